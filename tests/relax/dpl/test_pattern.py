"""Patterns of single expressions: each kind, combinations, backtracking."""

import random

import numpy as np
import pytest

from weft import relax
from weft.relax.analysis import get_var2val
from weft.relax.dpl import (
    ExternFuncPattern,
    FunctionPattern,
    has_attr,
    has_dtype,
    is_call_dps_packed,
    is_call_packed,
    is_call_tir,
    is_const,
    is_dfv,
    is_expr,
    is_gv,
    is_op,
    is_shape,
    is_tuple,
    is_tuple_get_item,
    is_var,
    make_fused_bias_activation_pattern,
    reject,
    wildcard,
)
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import Var as TirVar


def tensor(name, *shape, dtype="float32"):
    return relax.Var(name, relax.TensorStructInfo(shape, dtype))


X, Y, Z = tensor("x", 2, 3), tensor("y", 2, 3), tensor("z", 2, 3)


@I.ir_module
class Graph:
    @T.prim_func(private=True)
    def scale(A: T.Buffer((4, 4)), B: T.Buffer((4, 4))):
        for i, j in T.grid(4, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        cls = Graph
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.call_tir(cls.scale, (b,), out_sinfo=R.Tensor((4, 4), "float32"))
            d = R.call_dps_packed("lib.act", (c,), out_sinfo=R.Tensor((4, 4), "float32"))
            e = R.split(d, 2)
            f = e[1]
            R.output(f)
        return f


VALUES = get_var2val(Graph["main"])
NAMED = {var.name_hint: value for var, value in VALUES.items()}
ADD = relax.op.add(X, Y)
CONSTANT = relax.const(np.float32(1))

YES_NO = {
    "variable": (is_var("x"), X, Y),
    "any variable": (is_var(), X, CONSTANT),
    "dataflow variable": (is_dfv("v"), relax.DataflowVar("v"), relax.Var("v")),
    "function of the module": (is_gv("relu"), relax.GlobalVar("relu_1"), relax.GlobalVar("gelu")),
    "constant": (is_const(), CONSTANT, X),
    "expression": (is_expr(relax.ShapeExpr([2])), relax.ShapeExpr([2]), relax.ShapeExpr([3])),
    "operator": (is_op("relax.add")(wildcard(), wildcard()), ADD, relax.op.multiply(X, Y)),
    "argument count": (wildcard()(wildcard(), wildcard()), ADD, relax.op.negative(X)),
    "registered function": (ExternFuncPattern("f"), relax.ExternFunc("f"), relax.ExternFunc("g")),
    "tuple": (is_tuple([is_var(), is_const()]), relax.Tuple([X, CONSTANT]), relax.Tuple([X, X])),
    "tuple length": (is_tuple([is_var()]), relax.Tuple([X]), relax.Tuple([X, X])),
    "unordered": (
        is_tuple([is_const(), is_var()], unordered=True),
        relax.Tuple([X, CONSTANT]),
        relax.Tuple([X, Y]),
    ),
    "field": (
        is_tuple_get_item(wildcard(), 1),
        relax.TupleGetItem(relax.Tuple([X, Y]), 1),
        relax.TupleGetItem(relax.Tuple([X, Y]), 0),
    ),
    "or": (is_var("x") | is_var("y"), Y, Z),
    "and": (is_var("x") & wildcard().has_shape((2, 3)), X, tensor("x", 3, 3)),
    "not": (~is_var("x"), Y, X),
    "reject": (reject(is_const()), X, CONSTANT),
    "dtype": (has_dtype("float32"), X, tensor("x", 2, 3, dtype="int32")),
    "shape": (wildcard().has_shape([2, 3]), X, tensor("x", 2, 4)),
    "rank and dtype": (
        wildcard().has_type(relax.TensorStructInfo(None, "float32", ndim=2)),
        X,
        tensor("x", 6),
    ),
    "shape as value": (is_shape([2, 3]), relax.ShapeExpr([2, 3]), relax.ShapeExpr([3, 2])),
    "attribute": (
        is_op("relax.permute_dims")(wildcard()).has_attr({"axes": [1, 0]}),
        relax.op.permute_dims(X, [1, 0]),
        relax.op.permute_dims(X, [0, 1]),
    ),
    "absent attribute": (
        wildcard() & ~has_attr({"axes": [1, 0]}),
        ADD,
        relax.op.permute_dims(X, [1, 0]),
    ),
}


@pytest.mark.parametrize("case", YES_NO)
def test_a_pattern_matches_what_it_says_and_not_the_rest(case):
    pattern, matched, other = YES_NO[case]
    assert pattern.match(matched)
    assert not pattern.match(other)


def test_the_same_pattern_means_the_same_expression():
    same = wildcard()
    twice = is_op("relax.add")(same, same)
    assert twice.match(relax.op.add(X, X))
    assert not twice.match(ADD)
    assert is_op("relax.add")(same, same.dup()).match(ADD)


def test_a_duplicate_has_parts_of_its_own_that_are_shared_as_before():
    same = wildcard()
    twice = is_op("relax.add")(same, same)
    copy = twice.dup()
    assert copy.args[0] is copy.args[1] is not same
    assert is_op("relax.multiply")(twice, copy).match(
        relax.op.multiply(relax.op.add(X, X), relax.op.add(Y, Y))
    )


def test_arguments_of_a_commutative_operator_match_in_both_orders():
    other = wildcard()
    pattern = is_op("relax.add")(other, is_const())
    for expr in (relax.op.add(X, CONSTANT), relax.op.add(CONSTANT, X)):
        assert pattern.extract_matched_expr(expr)[other] is X
    assert not is_op("relax.subtract")(wildcard(), is_const()).match(relax.op.subtract(CONSTANT, X))


def test_further_arguments_are_anything_where_the_pattern_says_so():
    call = relax.Call(relax.ExternFunc("f"), [X, Y])
    assert ExternFuncPattern("f")(is_var("x"), varg_default_wildcard=True).match(call)
    assert not ExternFuncPattern("f")(is_var("x")).match(call)
    assert is_call_packed("f").match(call)
    assert is_call_packed("f", [is_var("x"), is_var("y")]).match(call)


def test_variables_are_looked_through_where_their_values_are_given():
    matmul = is_op("relax.matmul")(is_var("x"), is_var("w"))
    relu = is_op("relax.nn.relu")(matmul)
    assert relu.match(NAMED["b"], VALUES)
    assert not relu.match(NAMED["b"])
    found = relu.extract_matched_expr(NAMED["b"], VALUES)
    assert found[matmul] is NAMED["a"]
    assert found[relu] is NAMED["b"]


def test_a_variable_pattern_sees_the_variable_even_where_its_value_is_known():
    inner = is_dfv("a")
    found = is_op("relax.nn.relu")(inner).extract_matched_expr(NAMED["b"], VALUES)
    assert found[inner].name_hint == "a"


def test_calls_of_loops_and_of_registered_functions():
    scale = is_call_tir("scale", [is_op("relax.nn.relu")(wildcard())])
    assert scale.match(NAMED["c"], VALUES)
    assert not is_call_tir("scale", [is_const()]).match(NAMED["c"], VALUES)
    assert is_call_dps_packed("lib.act", [scale]).match(NAMED["d"], VALUES)
    assert not is_call_dps_packed("lib.other").match(NAMED["d"], VALUES)


def test_a_tuple_pattern_has_patterns_of_its_fields():
    split = is_op("relax.split")(wildcard())
    assert is_tuple_get_item(split).match(NAMED["f"], VALUES)
    fields = is_tuple([is_var("x"), is_var("y")])
    value = relax.Tuple([X, Y])
    assert fields[-1].match(relax.TupleGetItem(value, 1))
    assert fields[None].match(relax.TupleGetItem(value, 0))
    with pytest.raises(IndexError, match="field 2 of 2 fields"):
        fields[2]


def test_a_function_pattern_looks_through_the_bindings_of_the_body():
    first, second = wildcard(), wildcard()
    body = is_op("relax.nn.relu")(is_op("relax.matmul")(first, second))

    @R.function
    def func(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        return b

    assert FunctionPattern([first, second], body).match(func)
    assert not FunctionPattern([second, first], body).match(func)
    assert FunctionPattern([first, second], body).has_attr({"global_symbol": "func"}).match(func)


def test_symbolic_dimensions_of_a_pattern_stand_for_one_dimension_each():
    m, n = TirVar("m", "int64"), TirVar("n", "int64")
    side = wildcard().has_struct_info(relax.TensorStructInfo([m, n]))
    pattern = is_op("relax.add")(side, wildcard().has_struct_info(relax.TensorStructInfo([m, n])))
    assert pattern.match(ADD)
    assert not pattern.match(relax.op.add(X, tensor("row", 1, 3)))


def test_a_dimension_that_mentions_later_symbols_is_checked_in_the_end():
    m = TirVar("m", "int64")
    first = wildcard().has_struct_info(relax.TensorStructInfo([m * 2]))
    second = wildcard().has_struct_info(relax.TensorStructInfo([m]))
    pattern = is_tuple([first, second])
    assert pattern.match(relax.Tuple([tensor("a", 8), tensor("b", 4)]))
    assert not pattern.match(relax.Tuple([tensor("a", 8), tensor("b", 5)]))


def test_a_known_dimension_is_not_taken_for_an_open_one():
    n = TirVar("n", "int64")
    pattern = wildcard().has_struct_info(relax.TensorStructInfo([4]))
    assert not pattern.match(relax.Var("x", relax.TensorStructInfo([n], "float32")))


def test_backtracking_goes_back_into_alternatives_chosen_earlier():
    """`a | b` inside of an argument first takes a; only the sibling shows that b is meant."""
    first, second = wildcard(), wildcard()
    inner = is_op("relax.nn.relu")(first) | is_op("relax.nn.relu")(second)
    pattern = is_op("relax.subtract")(inner, first)
    relu = relax.op.nn.relu(X)
    assert pattern.match(relax.op.subtract(relu, X))
    assert pattern.match(relax.op.subtract(relu, Y))
    assert pattern.extract_matched_expr(relax.op.subtract(relu, Y))[first] is Y


def test_commutative_operands_are_reordered_when_a_sibling_needs_it():
    a, b = wildcard(), wildcard()
    pattern = is_op("relax.subtract")(is_op("relax.add")(a, b), a)
    found = pattern.extract_matched_expr(relax.op.subtract(relax.op.add(X, Y), Y))
    assert (found[a], found[b]) == (Y, X)


def test_a_failed_alternative_leaves_nothing_bound():
    lost, kept = is_var("x"), is_var("y")
    pattern = is_tuple([lost, is_const()]) | is_tuple([wildcard(), kept])
    found = pattern.extract_matched_expr(relax.Tuple([X, Y]))
    assert lost not in found
    assert found[kept] is Y


def test_optional_takes_the_larger_pattern_first():
    base = is_op("relax.add")(wildcard(), wildcard())
    relu = base.optional(is_op("relax.nn.relu"))
    assert relu.match(ADD)
    assert relu.match(relax.op.nn.relu(ADD))
    assert not relu.match(relax.op.negative(ADD))


def test_fused_bias_activation():
    pattern = make_fused_bias_activation_pattern("relax.matmul", True, "relax.nn.relu")
    product = relax.op.matmul(tensor("a", 2, 2), tensor("b", 2, 2))
    assert pattern.match(relax.op.nn.relu(relax.op.add(product, X)))
    assert not pattern.match(relax.op.nn.relu(product))
    assert make_fused_bias_activation_pattern("relax.matmul").match(product)


def test_a_match_that_fails_says_where():
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(wildcard(), is_const()))
    said = pattern.explain(relax.op.nn.relu(ADD))
    assert said.startswith("expected ConstantPattern(), found ")
    assert pattern.explain(relax.op.nn.relu(relax.op.add(X, CONSTANT))) is None


def test_what_is_no_pattern_is_refused():
    with pytest.raises(IRTypeError, match=r"CallPattern: expected a pattern such as wildcard\(\)"):
        is_op("relax.add")(wildcard(), 1)
    with pytest.raises(IRValueError, match="has_shape: expected a list of dimensions"):
        wildcard().has_shape(3)
    with pytest.raises(IRTypeError, match=r"has_struct_info: expected struct info such as"):
        wildcard().has_struct_info(3)


UNARY = ("negative", "exp", "abs")
BINARY = ("add", "multiply", "subtract", "divide")


def random_expr(rng, depth, leaves):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(leaves)
    if rng.random() < 0.4:
        return getattr(relax.op, rng.choice(UNARY))(random_expr(rng, depth - 1, leaves))
    arguments = [random_expr(rng, depth - 1, leaves) for _ in range(2)]
    return getattr(relax.op, rng.choice(BINARY))(*arguments)


def pattern_of(rng, expr, holes):
    """A pattern cut out of an expression: variables, and some subtrees, become wildcards."""
    if not isinstance(expr, relax.Call) or rng.random() < 0.15:
        return holes.setdefault(expr, wildcard())
    arguments = [pattern_of(rng, arg, holes) for arg in expr.args]
    if expr.op.name in ("relax.add", "relax.multiply") and rng.random() < 0.5:
        arguments.reverse()
    made = is_op(expr.op.name)(*arguments)
    if rng.random() < 0.2:
        made = is_op("relax.sqrt")(wildcard()) | made
    return made


@pytest.mark.parametrize("seed", range(200))
def test_a_pattern_cut_out_of_an_expression_matches_it(seed):
    """Holes are shared, commutative arguments swapped: only full backtracking finds these."""
    rng = random.Random(seed)
    expr = random_expr(rng, 4, [X, Y, Z])
    holes = {}
    pattern = pattern_of(rng, expr, holes)
    found = pattern.extract_matched_expr(expr)
    assert found is not None
    assert found[pattern] is expr
