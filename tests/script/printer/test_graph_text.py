"""Graph functions in texts: annotations, blocks, calls, symbols, and where each line stands."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.round_trip import assert_round_trip
from weft import relax
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax import expr as rx
from weft.relax import op
from weft.script import from_source
from weft.tir.expr import SizeVar
from weft.tir.expr import Var as TirVar

INFO = relax.TensorStructInfo((4,), "float32")


def lines(text):
    """The lines of the body of a function that is printed, which comes back."""
    func = from_source(text, check_well_formed=False)
    assert_round_trip(func)
    printed = func.script().split("\n")
    head = next(number for number, line in enumerate(printed) if line.startswith("def "))
    return [line.strip() for line in printed[head + 1 :]]


def body(*statements, head='x: R.Tensor((4,), "float32")', decorator="@R.function"):
    inner = "".join(f"    {line}\n" for line in statements)
    return lines(f"{decorator}\ndef main({head}):\n{inner}")


# Statements of a function, and how they are printed.
STATEMENTS = [
    ("y = x", 'y: R.Tensor((4,), dtype="float32") = x'),
    ("y: R.Object = x", "y: R.Object = x"),
    ("y = R.add(x, x)", 'y: R.Tensor((4,), dtype="float32") = R.add(x, x)'),
    ("y = x * 2", 'y: R.Tensor((4,), dtype="float32") = R.multiply(x, R.const(2.0, "float32"))'),
    ("y = (x, x)", 'y: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = '
                   "x, x"),
    ("y = (x,)", 'y: R.Tuple(R.Tensor((4,), dtype="float32")) = (x,)'),
    ("y = ()", "y: R.Tuple = R.tuple()"),
    ("y = R.shape([2, 3])", "y: R.Shape([2, 3]) = R.shape([2, 3])"),
    ("y = R.prim_value(3)", "y: R.Prim(value=3) = R.prim_value(3)"),
    ("y = R.str('a')", 'y: R.Object = R.str("a")'),
    ("y = R.dtype('int8')", 'y: R.Object = R.dtype("int8")'),
    ("y = R.const(1, 'int8')", 'y: R.Tensor((), dtype="int8") = R.const(1, "int8")'),
    ("y = R.const(True)", 'y: R.Tensor((), dtype="bool") = R.const(True, "bool")'),
    ("y = R.match_cast(x, R.Tensor(ndim=1))",
     "y: R.Tensor(ndim=1) = R.match_cast(x, R.Tensor(ndim=1))"),
    ("y = R.call_dps_packed('f', (x,), R.Tensor((4,), 'int8'))",
     'y = R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((4,), dtype="int8"))'),
    ("y = R.call_pure_packed('f', x, sinfo_args=R.Object)",
     'y: R.Object = R.call_pure_packed("f", x, sinfo_args=(R.Object,))'),
    ("y = R.call_packed('f', x, R.prim_value(1), sinfo_args=R.Object)",
     'y: R.Object = R.call_packed("f", x, R.prim_value(1), sinfo_args=(R.Object,))'),
    ("y = R.call_builtin_with_ctx('f', (x,), sinfo_args=R.Object)",
     'y: R.Object = R.call_builtin_with_ctx("f", (x,), sinfo_args=(R.Object,))'),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "wanted"), STATEMENTS, ids=[row[0] for row in STATEMENTS])
def test_a_binding(statement, wanted):
    assert body(statement, "return x")[0] == wanted


EFFECTS = [
    ("R.print(x, format='{}')", '_: R.Tuple = R.print(x, format=R.str("{}"))'),
    ("R.print(x, x, format='{} {}')", '_: R.Tuple = R.print(x, x, format=R.str("{} {}"))'),
    ("R.print(format='x')", '_: R.Tuple = R.print(format=R.str("x"))'),
    (
        "R.assert_op(R.const(True), format='no')",
        '_: R.Tuple = R.assert_op(R.const(True, "bool"), format=R.str("no"))',
    ),
    (
        "R.assert_op(R.const(True), x, format='{}')",
        '_: R.Tuple = R.assert_op(R.const(True, "bool"), x, format=R.str("{}"))',
    ),
    (
        "R.assert_op(R.const(True), [x, x], format='{}{}')",
        '_: R.Tuple = R.assert_op(R.const(True, "bool"), [x, x], format=R.str("{}{}"))',
    ),
]


@pytest.mark.parametrize(("statement", "wanted"), EFFECTS, ids=[row[0] for row in EFFECTS])
def test_a_call_for_its_effect(statement, wanted):
    assert body(statement, "return x", decorator="@R.function(pure=False)")[0] == wanted


def test_blocks_and_branches_are_indented():
    text = from_source("""
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
    if c:
        with R.dataflow():
            a = R.exp(x)
            y = R.add(a, a)
            R.output(y)
        z = y
    else:
        z = x
    return z
""").script(show_all_struct_info=False)
    assert text.split("\n")[4:] == [
        "    if c:",
        "        with R.dataflow():",
        "            a = R.exp(x)",
        "            y = R.add(a, a)",
        "            R.output(y)",
        "        z = y",
        "    else:",
        "        z = x",
        "    return z",
    ]


def test_a_local_function_stands_where_it_is_bound():
    text = from_source("""
@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.exp(x)
    @R.function
    def inner(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(a, y)
    z = inner(y)
    return z
""").script(show_all_struct_info=False)
    parts = ("y = R.exp(x)", "@R.function\n    def inner", "z = inner")
    order = [text.index(part) for part in parts]
    assert order == sorted(order)
    assert "private" not in text.split("def inner")[0].split("@R.function")[-1]


HEADS = [
    ("@R.function", "@R.function"),
    ("@R.function(private=True)", "@R.function(private=True)"),
    ("@R.function(pure=False)", "@R.function(pure=False)"),
    ("@R.function(pure=False, private=True)", "@R.function(pure=False, private=True)"),
]


@pytest.mark.parametrize(("decorator", "wanted"), HEADS, ids=[row[0] for row in HEADS])
def test_the_decorator_says_what_is_no_default(decorator, wanted):
    func = from_source(f"{decorator}\ndef main(x: R.Object):\n    return x\n")
    assert wanted in func.script().split("\n")
    assert_round_trip(func)


def function(params, value, **attrs):
    return rx.Function(params, rx.SeqExpr([], value), value.struct_info,
                       attrs={"global_symbol": "main", **attrs})  # fmt: skip


def test_symbols_are_declared_once_at_the_head():
    n, m = TirVar("n", "int64"), SizeVar("m", "int64")
    x = rx.Var("x", relax.TensorStructInfo((n, m), "float32"))
    text = function([x], rx.Tuple([x, rx.ShapeExpr([n + m, n])])).script()
    assert text.count("n = T.int64()") == 1
    assert text.count("m = T.int64(is_size_var=True)") == 1
    assert 'x: R.Tensor(("n", "m"), dtype="float32")' in text
    assert "R.shape([n + m, n])" in text


def test_symbols_of_one_name_are_told_apart():
    first, second = TirVar("n", "int64"), TirVar("n", "int64")
    x = rx.Var("x", relax.TensorStructInfo((first, second), "float32"))
    func = function([x], x)
    assert 'x: R.Tensor(("n", "n_1"), dtype="float32")' in func.script()
    assert_round_trip(func)


def test_a_symbol_and_a_value_of_one_name_are_told_apart():
    n = TirVar("x", "int64")
    func = function([rx.Var("x", relax.TensorStructInfo((n,), "float32"))],
                    rx.ShapeExpr([n]))  # fmt: skip
    assert_round_trip(func)


def test_attributes_of_a_function_are_sorted_and_without_its_name():
    x = rx.Var("x", INFO)
    func = function([x], x, b=1, a=[1, "x"])
    assert '    R.func_attr({"a": [1, "x"], "b": 1})' in func.script().split("\n")
    assert '"global_symbol": "main"' in func.script(name="other")


def test_a_constant_in_two_places_is_one_entry_of_the_metadata():
    x = rx.Var("x", INFO)
    shared = rx.Constant(np.arange(4, dtype="float32"))
    func = function([x], rx.Tuple([shared, shared, rx.Constant(np.arange(4, dtype="float32"))]))
    text = func.script(show_meta=True)
    assert text.count('metadata["relax.expr.Constant"][0]') == 2
    assert text.count('metadata["relax.expr.Constant"][1]') == 1
    assert "# Metadata omitted" not in text
    assert func.script().endswith(
        "# Metadata omitted. Use show_meta=True in script() method to show it."
    )


CONSTANTS = [
    (np.float32(0.1), "R.const(0.10000000149011612, \"float32\")"), (np.int8(-3), "-3"),
    (np.float64(1e300), "R.const(1e+300, \"float64\")"), (np.float16(np.inf), "metadata"),
    (np.uint64(2**64 - 1), "R.const(18446744073709551615, \"uint64\")"),
    (np.float32(-0.0), "R.const(-0.0, \"float32\")"), (np.array([1]), "metadata"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CONSTANTS)))
def test_a_scalar_constant_is_a_literal_if_that_is_exact(number):
    value, text = CONSTANTS[number]
    func = function([rx.Var("x", INFO)], rx.Tuple([rx.Constant(np.asarray(value))]))
    assert text in func.script()
    assert_round_trip(func)


def test_calls_that_no_function_gives_are_spelled_out():
    x = rx.Var("x", INFO)
    softmax = Op.get("relax.nn.softmax")
    for call in (rx.Call(softmax, [x], {"axis": 0, "extra": 1}),
                 rx.Call(Op.get("relax.add"), [x, x], {}, [INFO])):  # fmt: skip
        assert repr(call).startswith('R.Call("relax.')
        var = rx.Var("y", INFO)
        block = rx.BindingBlock([rx.VarBinding(var, call)])
        assert_round_trip(rx.Function([x], rx.SeqExpr([block], var), INFO))


def test_a_call_of_a_value_with_attributes_is_spelled_out():
    f = rx.Var("f", relax.FuncStructInfo.opaque_func())
    assert repr(rx.Call(f, [], {"k": 1})) == 'R.Call(f, (), attrs={"k": 1})'
    assert repr(rx.Call(f, [f], None, [INFO])) == (
        'f(f, sinfo_args=(R.Tensor((4,), dtype="float32"),))'
    )


def test_empty_outputs_and_blocks():
    x = rx.Var("x", INFO)
    hidden = rx.DataflowBlock([rx.VarBinding(rx.DataflowVar("a", INFO), op.exp(x))])
    func = rx.Function([x], rx.SeqExpr([hidden], x), INFO, attrs={"global_symbol": "main"})
    assert "        R.output()" in func.script().split("\n")
    assert_round_trip(func)
    assert repr(hidden).split("\n")[-1].strip() == "R.output()"


def test_parts_of_a_function_print_by_themselves():
    x = rx.Var("x", INFO)
    var = rx.Var("y", INFO)
    binding = rx.VarBinding(var, op.exp(x))
    block = rx.BindingBlock([binding])
    assert binding.script() == 'y: R.Tensor((4,), dtype="float32") = R.exp(x)'
    assert repr(block) == "y = R.exp(x)"
    assert repr(rx.SeqExpr([block], var)) == "y = R.exp(x)\ny"
    assert repr(rx.If(rx.Var("c"), rx.SeqExpr([], x), rx.SeqExpr([], x))) == (
        "if c:\n    x\nelse:\n    x"
    )
    assert repr(rx.MatchCast(var, x, INFO)) == (
        'y = R.match_cast(x, R.Tensor((4,), dtype="float32"))'
    )


def test_functions_of_a_module_stand_by_kind_and_name():
    x = rx.Var("x", INFO)
    prim = from_source("@T.prim_func(private=True)\ndef f():\n    T.evaluate(0)\n")
    graph = rx.Function([x], x, INFO)
    module = IRModule({"b": graph, "z": prim, "a": rx.Function([x], x, INFO), "y": prim,
                       "e": rx.ExternFunc("env.f")})  # fmt: skip
    text = module.script()
    places = [text.index(part) for part in ("def y(", "def z(", "e = R.Extern", "def a(", "def b(")]
    assert places == sorted(places)


def test_variables_print_their_struct_info_when_asked():
    assert rx.Var("x", INFO).script(verbose_expr=True) == 'x: R.Tensor((4,), dtype="float32")\nx'
    assert rx.Var("x", INFO).script() == "x"
