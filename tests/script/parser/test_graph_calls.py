"""Calls of graph scripts: of functions of the module, of registered ones, of closures, of te."""

from __future__ import annotations

import pytest

from tests.lib.round_trip import assert_round_trip
from tests.lib.script_errors import error_of
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.relax.expr import ExternFunc, Tuple
from weft.relax.struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo
from weft.script import from_source

INFO = TensorStructInfo((4,), "float32")
PAIR = TupleStructInfo([INFO, TensorStructInfo((2,), "int32")])
MODULE = """
@I.ir_module(check_well_formed=False)
class Module:
    @T.prim_func(private=True)
    def f(x: T.handle, y: T.handle):
        T.evaluate(0)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32"), t: R.Tuple(R.Tensor((4,), "float32")), g: R.Callable):
        cls = Module
        y = {}
        return y

    @R.function(private=True)
    def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x
"""


def value_of(call):
    """The value of y in the module, and its struct info."""
    module = from_source(MODULE.format(call))
    assert isinstance(module, IRModule)
    assert_round_trip(module)
    binding = module["main"].body.blocks[-1].bindings[-1]
    return binding.value, binding.var.struct_info


OUT = "R.Tensor((4,), 'float32')"
PAIRS = "[R.Tensor((4,), 'float32'), R.Tensor((2,), 'int32')]"
# A call as it is written, the operator, and the struct info of the result.
CALLS = [
    (f"R.call_tir(cls.f, (x,), out_sinfo={OUT})", "relax.call_tir", INFO),
    (f"R.call_tir(cls.f, (x,), {OUT})", "relax.call_tir", INFO),
    (f"R.call_tir(cls.f, x, {OUT})", "relax.call_tir", INFO),
    (f"R.call_tir(Module.f, [x], {OUT})", "relax.call_tir", INFO),
    (f"R.call_tir(f, (x,), out_ty={OUT})", "relax.call_tir", INFO),
    ("R.call_tir(cls.f, (x,), (4,), dtype='float32')", "relax.call_tir", INFO),
    ("R.call_tir(cls.f, (x,), (4,), dtype=T.float32)", "relax.call_tir", INFO),
    (f"R.call_tir(cls.f, (x,), {PAIRS})", "relax.call_tir", PAIR),
    ("R.call_tir(cls.f, (x,), [(4,), (2,)], dtype=['float32', 'int32'])", "relax.call_tir", PAIR),
    ("R.call_tir(cls.f, (x,), [(4,), (4,)], dtype='float32')", "relax.call_tir",
     TupleStructInfo([INFO, INFO])),
    (f"R.call_tir(cls.f, (x,), {OUT}, tir_vars=R.shape([3]))", "relax.call_tir", INFO),
    (f"R.call_tir(cls.f, (x,), {OUT}, (3, 5))", "relax.call_tir", INFO),
    (f"R.call_tir('env.f', (x,), {OUT})", "relax.call_dps_packed", INFO),
    ("R.call_tir('env.f', (x,), (4,), dtype='float32')", "relax.call_dps_packed", INFO),
    (f"R.call_tir(R.ExternFunc('env.f'), (x,), {OUT})", "relax.call_dps_packed", INFO),
    (f"R.call_tir_inplace(cls.f, (x,), 0, {OUT})", "relax.call_tir_inplace", INFO),
    (f"R.call_tir_inplace(cls.f, (x,), [0], out_ty={OUT})", "relax.call_tir_inplace", INFO),
    (f"R.call_tir_inplace(cls.f, (x, x), [0, -1], [{OUT}, {OUT}])", "relax.call_tir_inplace",
     TupleStructInfo([INFO, INFO])),
    (f"R.call_tir_with_grad(cls.f, (x,), {OUT}, te_grad_name='g')", "relax.call_tir_with_grad",
     INFO),
    (f"R.call_tir_with_grad(cls.f, (x,), {OUT}, 'g', {{'k': 1.5}})", "relax.call_tir_with_grad",
     INFO),
    (f"R.call_dps_packed('env.f', (x,), {OUT})", "relax.call_dps_packed", INFO),
    (f"R.call_dps_packed('env.f', x, out_sinfo={OUT})", "relax.call_dps_packed", INFO),
    (f"R.call_dps_packed('env.f', (), {OUT})", "relax.call_dps_packed", INFO),
    (f"R.call_pure_packed('env.f', x, sinfo_args={OUT})", "relax.call_pure_packed", INFO),
    (f"R.call_pure_packed('env.f', x, sinfo_args=({OUT},))", "relax.call_pure_packed", INFO),
    (f"R.call_inplace_packed('env.f', x, inplace_indices=0, sinfo_args={OUT})",
     "relax.call_inplace_packed", INFO),
    (f"R.call_inplace_packed('env.f', x, x, inplace_indices=[1], sinfo_args={OUT})",
     "relax.call_inplace_packed", INFO),
    ("R.call_builtin_with_ctx('vm.builtin.f', (x,))", "relax.call_builtin_with_ctx",
     ObjectStructInfo()),
    (f"R.call_builtin_with_ctx('vm.builtin.f', (x,), sinfo_args={OUT})",
     "relax.call_builtin_with_ctx", INFO),
    (f"R.invoke_closure(g, (x,), sinfo_args={OUT})", "relax.invoke_closure", INFO),
    (f"R.invoke_pure_closure(g, (x,), sinfo_args=({OUT},))", "relax.invoke_pure_closure", INFO),
    ("R.add(x, x)", "relax.add", INFO),
    ("R.nn.relu(x)", "relax.nn.relu", INFO),
    ("R.Call('relax.add', (x, x))", "relax.add", INFO),
    ("R.Call('relax.nn.softmax', (x,), attrs={'axis': 0})", "relax.nn.softmax", INFO),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name", "info"), CALLS, ids=[row[0] for row in CALLS])
def test_a_call_of_an_operator(call, name, info):
    value, given = value_of(call)
    assert value.op.name == name
    assert structural_equal(given, info)


def test_arguments_are_one_tuple():
    for given in ("x", "(x,)", "[x]"):
        value, _ = value_of(f"R.call_tir(cls.f, {given}, {OUT})")
        assert isinstance(value.args[1], Tuple)
        assert len(value.args[1].fields) == 1


def test_a_tuple_of_the_graph_is_the_arguments():
    value, _ = value_of(f"R.call_tir(cls.f, t, {OUT})")
    assert value.args[1].name_hint == "t"


def test_registered_functions_are_named():
    value, info = value_of(f"R.call_packed('env.f', x, 3, 'mode', sinfo_args={OUT})")
    assert isinstance(value.op, ExternFunc)
    assert value.op.global_symbol == "env.f"
    assert [type(arg).__name__ for arg in value.args] == ["Var", "PrimValue", "StringImm"]
    assert structural_equal(info, INFO)


def test_a_registered_function_of_unknown_result():
    _, info = value_of("R.call_packed('env.f', x)")
    assert isinstance(info, ObjectStructInfo)


def test_attributes_of_a_packed_call():
    value, _ = value_of("R.call_packed('env.f', x, sinfo_args=R.Object, axis=1)")
    assert dict(value.attrs) == {"axis": 1}


def test_functions_of_the_module_and_values_are_called_as_in_python():
    value, info = value_of("cls.helper(x)")
    assert value.op.name_hint == "helper"
    assert structural_equal(info, INFO)
    value, _ = value_of(f"g(x, sinfo_args=({OUT},))")
    assert value.op.name_hint == "g"
    assert structural_equal(list(value.sinfo_args)[0], INFO)


WRONG = [
    ("cls.f(x)", "call of f: a PrimFunc returns nothing, it writes into buffers that it is given"),
    ("cls.helper(x, axis=1)", "a call of I.GlobalVar(\"helper\") has no keyword 'axis'"),
    ("cls.helper()", "call of helper: expected 1 arguments, got 0"),
    ("cls.helper(x, x)", "call of helper: expected 1 arguments, got 2"),
    ("R.call_tir(cls.f, (x,))", "R.call_tir: out_sinfo=R.Tensor(shape, dtype) is missing"),
    (
        "R.call_tir_inplace(cls.f, (x,), 0)",
        "R.call_tir_inplace: out_sinfo=R.Tensor(shape, dtype) is missing",
    ),
    (
        "R.call_tir(cls.f, (x,), 4, dtype='float32')",
        "R.Tensor: the shape must be a tuple or a list, got 4",
    ),
    ("R.call_tir(cls.f, (x,), [(4,), (2,)], dtype=['float32'])", "zip() argument 2 is shorter"),
    ("R.call_tir(3, (x,), R.Tensor((4,), 'float32'))", "call_tir: expected a GlobalVar"),
    ("R.match_cast(3, R.Object)", "R.match_cast: expected a graph value, got int"),
    ("R.invoke_closure(g, (x,), sinfo_args=3)", "expected struct info such as R.Tensor((2, 3), "),
    ("R.nn.nothing(x)", "R.nn.nothing is neither an operator nor a part of the language"),
    ("R.call_tir(cls.f, (x,), 'float32', out_ty='float32')", "expected struct info such as"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_call(call, message):
    found, place = error_of(MODULE.format(call))
    assert found.startswith(message)
    assert place in (call, f"y = {call}", call.partition("(")[0])


# Values of Python in a graph, and what they are there.
VALUES = [
    ("3", "Constant"), ("2.5", "Constant"), ("True", "Constant"), ("(x, 3)", "Tuple"),
    ("[x, x]", "Tuple"), ("x", "Var"), ("t[0]", "TupleGetItem"), ("R.const([1, 2])", "Constant"),
    ("R.shape([2, 3])", "ShapeExpr"), ("R.prim_value(T.int64(3))", "PrimValue"),
    ("R.str('a')", "StringImm"), ("R.dtype(T.int8)", "DataTypeImm"), ("R.tuple()", "Tuple"),
    ("R.tuple(x, R.tuple(x))", "Tuple"), ("R.ExternFunc('env.f')", "ExternFunc"),
    ("cls.helper", "GlobalVar"), ("R.TupleGetItem((x, x), 1)", "TupleGetItem"),
    ("R.ShapeExpr([2])", "ShapeExpr"), ("R.linear(x, R.const([[1.0] * 4], 'float32'))", "Call"),
    ("-x", "Call"), ("x + 1", "Call"), ("2 * x", "Call"), ("x - x", "Call"), ("x / x", "Call"),
    ("x ** 2", "Call"), ("x // 2", "Call"), ("x % 2", "Call"), ("x < 2", "Call"),
    ("x.astype('int32')", "Call"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), VALUES, ids=[row[0] for row in VALUES])
def test_a_value(text, kind):
    value, _ = value_of(text)
    assert type(value).__name__ == kind


OPERATORS = [
    ("x + x", "add"), ("x - x", "subtract"), ("x * x", "multiply"), ("x / x", "divide"),
    ("x // x", "floor_divide"), ("x % x", "mod"), ("x ** x", "power"), ("x < x", "less"),
    ("x <= x", "less_equal"), ("x > x", "greater"), ("x >= x", "greater_equal"), ("-x", "negative"),
    ("x @ x", "matmul"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name"), OPERATORS, ids=[row[0] for row in OPERATORS])
def test_operators_of_python_are_those_of_the_graph(text, name):
    assert value_of(text)[0].op.name == f"relax.{name}"


def test_te_functions_are_named_by_a_hint_and_equal_ones_are_one():
    from weft import topi

    module = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        a = R.emit_te(te.exp, x)
        b = R.emit_te(te.sin, a, primfunc_name_hint="mine")
        c = R.emit_te(te.add, b, x)
        d = R.emit_te(te.exp, c)
        return d
""", {"te": topi})  # fmt: skip
    assert sorted(var.name_hint for var in module.functions) == ["add", "exp", "main", "mine"]
    assert_round_trip(module)


def test_te_outside_of_a_graph_function():
    message, place = error_of("@T.prim_func\ndef f():\n    R.emit_te(T.exp, 3)\n")
    assert message == "R.emit_te belongs inside an R.function"
    assert place == "R.emit_te(T.exp, 3)"
