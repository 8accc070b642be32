from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest

from weft.arith.analyzer import Analyzer, ProofStrength
from weft.arith.const_int_bound import ConstIntBound
from weft.arith.modular_set import ModularSet
from weft.ir.expr import IntImm, Range
from weft.ir.functor import rewrite
from weft.ir.structural import structural_equal
from weft.support.errors import IRTypeError
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import SizeVar, Var

I, J, K, N = (Var(name, "int32") for name in "ijkn")


def bound(**extents):
    analyzer = Analyzer()
    for var in (I, J, K, N):
        if var.name in extents:
            analyzer.bind(var, Range(0, extents[var.name]))
    return analyzer


@pytest.mark.parametrize(
    ("expr", "expected", "extents"),
    [
        ((I * 8 + J) // 8, I, {"j": 8}),
        ((I * 8 + J) % 8, J, {"j": 8}),
        (I // 4 * 4 + I % 4, I, {}),
        (I // 16 * 16 + (I // 4 % 4) * 4 + I % 4, I, {}),
        ((I * 64 + J) // 128, I // 2, {"j": 64}),
        ((I * 8 + J + 9) // 8, I + 1, {"j": 7}),
        (I + J - 1 - I, J - 1, {}),
        (J + I * 4, I * 4 + J, {}),
        (I * 8 + J < 16, I < 2, {"j": 8}),
        (N > I, I < N, {}),
        (op.min(N, I), I, {"i": N}),
        ((I * N + J) // N, I, {"j": N}),
        ((I * N + J) % N, J, {"j": N}),
        (op.all(I < N, J < N), J < N, {"i": N}),
        (I - 1 >= 0, nodes.LE(op.const(1), I), {}),
        (op.floordiv(N + 7, 8) * 8 >= N, IntImm("bool", 1), {}),
        (((I * 16 + J) * 4 + K) // 64, I, {"j": 16, "k": 4}),
    ],
)
def test_canonical_forms(expr, expected, extents):
    result = bound(**extents).simplify(expr)
    assert structural_equal(result, op.convert(expected)), result


def test_bind_to_a_value_replaces_the_variable():
    analyzer = Analyzer()
    analyzer.bind(I, J + 1)
    assert structural_equal(analyzer.simplify(I - 1), J)
    analyzer.bind(K, Range(5, 6))
    assert analyzer.simplify(K + 1).value == 6


def test_bind_of_no_variable_is_an_error():
    with pytest.raises(IRTypeError, match="expected a Var, got IntImm"):
        Analyzer().bind(op.const(1), 2)


def test_bounds():
    analyzer = bound(i=8, j=4)
    assert analyzer.const_int_bound(I * 4 + J) == ConstIntBound(0, 31)
    assert analyzer.const_int_bound(I - J) == ConstIntBound(-3, 7)
    assert Analyzer().const_int_bound(Var("x", "int64")) == ConstIntBound(
        ConstIntBound.NEG_INF, ConstIntBound.POS_INF
    )
    assert Analyzer().const_int_bound(SizeVar("m", "int32")).min_value == 0
    assert Analyzer().const_int_bound(I % 7) == ConstIntBound(0, 6)


def test_update_narrows_and_overrides():
    analyzer = Analyzer()
    analyzer.update(I, ConstIntBound(0, 10))
    analyzer.update(I, ConstIntBound(5, 20))
    assert analyzer.const_int_bound(I) == ConstIntBound(5, 10)
    analyzer.update(I, ConstIntBound(5, 20), override=True)
    assert analyzer.const_int_bound(I) == ConstIntBound(5, 20)


def test_modular_sets():
    assert Analyzer().modular_set(I * 6 + 4) == ModularSet(6, 4)
    assert Analyzer().modular_set(I * 6 + J * 4 + 1) == ModularSet(2, 1)
    with (analyzer := Analyzer()).constraint_scope(I % 4 == 2):
        assert analyzer.modular_set(I) == ModularSet(4, 2)


def test_a_new_fact_reaches_memoised_results():
    analyzer = Analyzer()
    expr = op.floordiv(I * 8 + J, 8)
    assert analyzer.simplify(expr) is not I
    analyzer.bind(J, Range(0, 8))
    assert analyzer.simplify(expr) is I


def test_constraint_scope_ends():
    analyzer = Analyzer()
    with analyzer.constraint_scope(op.all(I >= 0, I < 8)):
        assert analyzer.can_prove(I < 8)
        assert analyzer.simplify(I // 8).value == 0
    assert not analyzer.can_prove(I < 8)
    assert analyzer.const_int_bound(I).max_value > 8


def test_symbolic_constraints_chain():
    analyzer = bound(k=4)
    with analyzer.constraint_scope(I < N):
        assert analyzer.can_prove(I < N + K)
        assert analyzer.can_prove(I + 1 <= N)
        assert not analyzer.can_prove(I + 2 <= N)


def test_conditions_on_data_are_not_relied_on():
    a = decl_buffer((8,), "int32", "A")
    analyzer = Analyzer()
    condition = a[I] > 3
    with analyzer.constraint_scope(condition):
        assert not analyzer.can_prove(condition)
    analyzer.bind(K, a[I])
    assert analyzer.simplify(K + 1).a is K


def test_if_then_else_knows_its_condition():
    expr = op.if_then_else(op.all(I >= 0, I < 4), op.floordiv(I, 4), 7)
    assert Analyzer().simplify(expr).args[1].value == 0


def test_can_prove_family():
    analyzer = bound(i=8)
    assert analyzer.can_prove_equal(I * 2 + I, I * 3)
    assert not analyzer.can_prove_equal(I, J)
    assert analyzer.can_prove_greater_equal(I, 0)
    assert analyzer.can_prove_less(I, 8)
    assert not analyzer.can_prove_less(I, 7)


def test_int64_against_int32():
    wide = Var("w", "int64")
    analyzer = bound(i=8)
    analyzer.bind(wide, Range(IntImm("int64", 0), IntImm("int64", 4)))
    flat = I.astype("int64") * 4 + wide
    assert analyzer.const_int_bound(flat) == ConstIntBound(0, 31)
    assert structural_equal(analyzer.simplify(flat // 4), I.astype("int64"))


def test_floats_are_left_alone():
    x = Var("x", "float32")
    for expr in (x + x - x, x * 0.0, nodes.Max(x, x + 1.0), x - x):
        assert Analyzer().simplify(expr) is expr


def test_data_arithmetic_wraps_as_the_machine_does():
    """int32 elements near the limits: no rule may assume that sums do not overflow."""
    a = decl_buffer((4,), "int32", "A")
    loads = [a[0], a[1]]
    rng = random.Random(5)
    kinds = [nodes.Add, nodes.Sub, nodes.Mul, nodes.FloorDiv, nodes.FloorMod, nodes.Min, nodes.Max]
    edges = np.array([0, 1, -1, 2, 3, 2**31 - 1, -(2**31), 2**30, -(2**30), 12345], "int32")

    def make(depth):
        if depth == 0:
            return rng.choice([*loads, op.const(rng.choice([1, 2, 3, 4, 8, 2**30]))])
        kind = rng.choice(kinds)
        if kind in (nodes.FloorDiv, nodes.FloorMod):
            return kind(make(depth - 1), op.const(rng.choice([2, 3, 4])))
        return kind(make(depth - 1), make(depth - 1))

    def run(expr, values):
        def fold_load(node):
            if isinstance(node, BufferLoad):
                return op.const(int(values[node.indices[0].value]))
            return None

        def fold_all(node):
            replaced = fold_load(node)
            if replaced is not None:
                return replaced
            if isinstance(node, nodes.BinaryExpr):
                return FOLDS[type(node)](node.a, node.b)
            return None

        return rewrite(expr, fold_all).value

    for _ in range(400):
        expr = make(rng.choice([2, 3]))
        if rng.random() < 0.4:
            expr = nodes.LT(expr, make(2))
        result = Analyzer().simplify(expr)
        for _ in range(6):
            values = [rng.choice(edges), rng.choice(edges)]
            assert run(result, values) == run(expr, values), (expr, result, values)


FOLDS = {
    nodes.Add: op.add, nodes.Sub: op.subtract, nodes.Mul: op.multiply,
    nodes.FloorDiv: op.floordiv, nodes.FloorMod: op.floormod, nodes.Min: op.minimum,
    nodes.Max: op.maximum, nodes.LT: op.less, nodes.LE: op.less_equal, nodes.EQ: op.equal,
    nodes.NE: op.not_equal, nodes.And: op.logical_and, nodes.Or: op.logical_or,
}  # fmt: skip


def test_remainders_through_shifts_masks_and_truncation():
    x, y = Var("x", "int32"), Var("y", "int32")
    analyzer = Analyzer()

    def known(expr):
        found = analyzer.modular_set(expr)
        return found.coeff, found.base

    assert known((x * 8 + 6) >> 1) == (4, 3)
    assert known((x * 12 + y * 4) & 15) == (4, 0)
    assert known((x * 12 + y * 4) & 9) == (1, 0)
    assert known(op.truncmod(x * 6, 4)) == (2, 0)
    assert known(op.truncmod(x * 6 + 1, 4)) == (1, 0)
    assert known(op.truncdiv(x * 6 + 3, 2)) == (1, 0)
    analyzer.bind(x, Range(0, 50))
    assert known(op.truncdiv(x * 6 + 3, 2)) == (3, 1)
    assert known(op.truncmod(x * 6 + 1, 4)) == (2, 1)


def test_two_remainders_of_one_variable_combine():
    x = Var("x", "int32")
    analyzer = Analyzer()
    with (
        analyzer.constraint_scope(op.floormod(x, 5) == 2),
        analyzer.constraint_scope(op.truncmod(x, 6) == 4),
    ):
        found = analyzer.modular_set(x + 1)
        assert (found.coeff, found.base) == (30, 23)
    assert analyzer.modular_set(x).coeff == 1


def test_constants_of_bool_add_up_to_true():
    true = IntImm("bool", 1)
    assert Analyzer().simplify(nodes.Add(true, true)).value == 1
    four = nodes.Cast("bool", IntImm("int64", 4))
    assert Analyzer().simplify(nodes.Add(four, true)).value == 1


def test_remainders_by_negative_numbers_may_be_zero():
    x, y = Var("x", "int64"), Var("y", "int64")
    remainder = nodes.FloorMod(x, op.minimum(y, IntImm("int64", -1)))
    assert Analyzer().const_int_bound(remainder).max_value == 0
    assert not isinstance(Analyzer().simplify(nodes.EQ(remainder, IntImm("int64", 0))), IntImm)


def test_conditions_nested_to_the_right_are_nested_to_the_left():
    names = [Var(f"p{index}", "bool") for index in range(40)]
    right, left = names[-1], names[0]
    for name in names[-2::-1]:
        right = nodes.And(name, right)
    for name in names[1:]:
        left = nodes.And(left, name)
    assert structural_equal(Analyzer().simplify(right), left)


def test_many_ranges_up_to_one_symbol():
    analyzer, extent = Analyzer(), Var("n", "int32")
    loops = [Var(f"i{index}", "int32") for index in range(20)]
    for loop in loops:
        analyzer.bind(loop, Range(0, extent))
    for loop in loops:
        assert analyzer.can_prove(loop < extent)
        assert not analyzer.can_prove(loop < extent - 1)
    total = loops[0] + loops[1]
    assert analyzer.can_prove(total < extent * 2, ProofStrength.SYMBOLIC_BOUND)


def test_counts_of_bits_have_bounds():
    value = Var("x", "int32")
    bound = Analyzer().const_int_bound(op.popcount(value))
    assert (bound.min_value, bound.max_value) == (0, 32)


def visits_of_nested_conditions(depth):
    """How many nodes the simplifier looks at where each condition holds the next inside."""
    variables = [Var(f"x{index}", "int32") for index in range(depth + 1)]
    condition = variables[0] * 3 < variables[0] + 5
    for index, var in enumerate(variables[1:], 1):
        condition = nodes.Select(condition, var + index, var * 2) < 7
    analyzer = Analyzer()
    analyzer.simplify(nodes.Select(condition, variables[0], variables[1]))
    return analyzer.rewrite_simplify_stats.nodes_visited


def test_conditions_inside_of_conditions_cost_no_power_of_their_depth():
    """Each level once took five times as long as the one before it (found by the fuzzer)."""
    shallow, deep = visits_of_nested_conditions(3), visits_of_nested_conditions(6)
    assert deep < 4 * shallow


def test_a_condition_inside_of_a_condition_still_decides():
    inner = nodes.Select(I < 4, nodes.Select(I < 8, J, K), K)
    outer = nodes.Select(inner < 5, nodes.Select(inner < 6, I, N), N)
    assert structural_equal(
        Analyzer().simplify(outer), nodes.Select(nodes.Select(I < 4, J, K) < 5, I, N)
    )


def test_an_analyzer_goes_with_its_last_name():
    """Passes make thousands of them, which would wait for the collector of cycles."""
    n, m = Var("n", "int32"), Var("m", "int32")
    analyzer = Analyzer()
    analyzer.bind(n, Range(0, 8))
    analyzer.simplify(op.min(nodes.Select(n < 4, n * 4 + m, n // 3), m % 7) < n * 2 + m)
    parts = analyzer._rewriter, analyzer._bounds, analyzer._canonical, analyzer._differences
    references = [weakref.ref(part) for part in (analyzer, *parts)]
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        del analyzer, parts
        assert [reference() for reference in references] == [None] * 5
    finally:
        if is_enabled:
            gc.enable()
