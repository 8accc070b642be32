"""Graphs: one row for each kind of value and struct info, golden functions, and the law."""

import numpy as np
import pytest

import weft.relax.op
import weft.script.printer  # noqa: F401 - fills the slot
from weft.ir.expr import GlobalVar, IntImm
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.structural import assert_structural_equal
from weft.relax import expr as rx
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.script.parser.entry import from_source
from weft.tir import op as tir_op
from weft.tir.expr import SizeVar
from weft.tir.expr import Var as TirVar

INFO = TensorStructInfo((4,), "float32")
BOTH, ONE = TupleStructInfo([INFO, INFO]), TupleStructInfo([INFO])
x, y = rx.Var("x", INFO), rx.Var("y", INFO)
n = TirVar("n", "int64")


def call(name, *args, sinfo_args=(), **attrs):
    return rx.Call(Op.get(f"relax.{name}"), args, attrs, sinfo_args)


def constant(value, dtype):
    return rx.Constant(np.array(value, dtype))


VALUES = [
    (rx.Tuple([x, y]), "(x, y)"),
    (rx.Tuple([x]), "(x,)"),
    (rx.Tuple([]), "R.tuple()"),
    (rx.TupleGetItem(rx.Tuple([x, y]), 1), "R.TupleGetItem((x, y), 1)"),
    (rx.ShapeExpr([1, 2]), "R.shape([1, 2])"),
    (rx.ShapeExpr([]), "R.shape([])"),
    (rx.PrimValue(3), "R.prim_value(3)"),
    (rx.PrimValue(IntImm("int32", 3)), "R.prim_value(T.int32(3))"),
    (rx.PrimValue(True), "R.prim_value(T.bool(True))"),
    (rx.PrimValue(2.5), "R.prim_value(T.float32(2.5))"),
    (rx.StringImm('a "b"\n'), 'R.str("a \\"b\\"\\n")'),
    (rx.DataTypeImm("bfloat16"), 'R.dtype("bfloat16")'),
    (rx.ExternFunc("env.f"), 'R.ExternFunc("env.f")'),
    (constant(1.5, "float32"), 'R.const(1.5, "float32")'),
    (constant(-0.0, "float16"), 'R.const(-0.0, "float16")'),
    (constant(3, "uint8"), 'R.const(3, "uint8")'),
    (constant(True, "bool"), 'R.const(True, "bool")'),
    (constant(np.nan, "float32"), 'metadata["relax.expr.Constant"][0]'),
    (constant([1, 2], "int64"), 'metadata["relax.expr.Constant"][0]'),
    (call("add", x, y), "R.add(x, y)"),
    (call("nn.relu", x), "R.nn.relu(x)"),
    (call("nn.softmax", x, axis=0), "R.nn.softmax(x, axis=0)"),
    # no operator function gives these, so the node is spelled out
    (call("add", x, y, sinfo_args=[INFO]),
     'R.Call("relax.add", (x, y), sinfo_args=(R.Tensor((4,), dtype="float32"),))'),
    (rx.Call(rx.ExternFunc("pk"), [x, rx.PrimValue(1)], None, [INFO]),
     'R.call_packed("pk", x, R.prim_value(1), sinfo_args=(R.Tensor((4,), dtype="float32"),))'),
    (call("call_pure_packed", rx.ExternFunc("pk"), x, sinfo_args=[ObjectStructInfo()]),
     'R.call_pure_packed("pk", x, sinfo_args=(R.Object,))'),
    (call("call_dps_packed", rx.ExternFunc("f"), rx.Tuple([x]), sinfo_args=[INFO]),
     'R.call_dps_packed("f", (x,), out_sinfo=R.Tensor((4,), dtype="float32"))'),
    (call("call_dps_packed", rx.ExternFunc("f"), rx.Tuple([]), sinfo_args=[BOTH]),
     'R.call_dps_packed("f", R.tuple(), out_sinfo=[R.Tensor((4,), dtype="float32"), '
     'R.Tensor((4,), dtype="float32")])'),
    (call("call_dps_packed", rx.ExternFunc("f"), rx.Tuple([x]), sinfo_args=[ONE]),
     'R.call_dps_packed("f", (x,), out_sinfo=R.Tuple(R.Tensor((4,), dtype="float32")))'),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=[row[1][:50] for row in VALUES])
def test_value_prints_and_comes_back(value, expected):
    assert repr(value) == expected
    result = rx.Var("r", value.struct_info or ObjectStructInfo())
    block = rx.BindingBlock([rx.VarBinding(result, value)])
    func = rx.Function([x, y], rx.SeqExpr([block], x), INFO, attrs={"global_symbol": "f"})
    parsed = from_source(func.script(show_meta=True), check_well_formed=False)
    assert_structural_equal(parsed, func)


INFOS = [
    (ObjectStructInfo(), "R.Object"),
    (PrimStructInfo("int64"), 'R.Prim("int64")'),
    (PrimStructInfo(value=n), 'R.Prim(value="n")'),
    (ShapeStructInfo([n, 4]), 'R.Shape(["n", 4])'),
    (ShapeStructInfo(ndim=2), "R.Shape(ndim=2)"),
    (ShapeStructInfo(), "R.Shape(ndim=-1)"),
    (INFO, 'R.Tensor((4,), dtype="float32")'),
    (TensorStructInfo((n, n + 1), "int8"), 'R.Tensor(("n", "n + 1"), dtype="int8")'),
    (TensorStructInfo((), "bool"), 'R.Tensor((), dtype="bool")'),
    (TensorStructInfo(None, "float32"), 'R.Tensor(dtype="float32")'),
    (TensorStructInfo(None, "", ndim=2), "R.Tensor(ndim=2)"),
    (TensorStructInfo(None, ""), "R.Tensor"),
    (TupleStructInfo([]), "R.Tuple"),
    (TupleStructInfo([INFO, ObjectStructInfo()]),
     'R.Tuple(R.Tensor((4,), dtype="float32"), R.Object)'),
    (FuncStructInfo.opaque_func(), "R.Callable"),
    (FuncStructInfo.opaque_func(ret=INFO, purity=True),
     'R.Callable(ret=R.Tensor((4,), dtype="float32"), purity=True)'),
    (FuncStructInfo([INFO], INFO),
     'R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True)'),
]  # fmt: skip


@pytest.mark.parametrize(("info", "expected"), INFOS, ids=[row[1][:50] for row in INFOS])
def test_struct_info_prints_and_comes_back(info, expected):
    shape = rx.Var("s", ShapeStructInfo([n]))
    func = rx.Function([shape, rx.Var("p", info)], rx.Tuple([]), TupleStructInfo([]),
                       attrs={"global_symbol": "f"})  # fmt: skip
    text = func.script()
    assert f"p: {expected})" in text
    assert_structural_equal(from_source(text), func)


def test_golden_function_with_call_tir_constants_and_alias():
    lv, gv = rx.DataflowVar("lv", INFO), rx.Var("gv", INFO)
    first = call("call_tir", GlobalVar("f"), rx.Tuple([x]), sinfo_args=[INFO])
    second = call("add", lv, constant([1, 2, 3, 4], "float32"))
    block = rx.DataflowBlock([rx.VarBinding(lv, first), rx.VarBinding(gv, second)])
    main = rx.Function([x], rx.SeqExpr([block], gv), INFO,
                       attrs={"global_symbol": "main", "num_input": 1})  # fmt: skip
    kernel = from_source(
        "@T.prim_func\n"
        'def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
        "    for i in range(4):\n"
        "        B[i] = A[i]\n"
    )
    module = IRModule({"main": main, "f": kernel})
    assert (
        module.script()
        == """\
# from tvm.script import ir as I
# from tvm.script import tir as T
# from tvm.script import relax as R

@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    @R.function
    def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
            gv: R.Tensor((4,), dtype="float32") = R.add(lv, metadata["relax.expr.Constant"][0])
            R.output(gv)
        return gv

# Metadata omitted. Use show_meta=True in script() method to show it."""
    )


SOURCES = [
    '''
@R.function(pure=False)
def f(c: R.Tensor((), "bool"), x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
    R.func_attr({"k": [1, 2.5, {"a": None}], "s": "text", "t": True})
    if c:
        a: R.Tensor((1,), dtype="float32") = R.add(x, x)
        y: R.Tensor((1,), dtype="float32") = R.multiply(a, x)
    else:
        y: R.Tensor((1,), dtype="float32") = R.add(x, x)
    @R.function
    def inner(q: R.Tensor((1,), dtype="float32")) -> R.Tensor((1,), dtype="float32"):
        r: R.Tensor((1,), dtype="float32") = R.add(q, x)
        return r

    w: R.Tensor((1,), dtype="float32") = inner(y)
    _: R.Tuple = R.print(w, format=R.str("x {}"))
    return w''',
    '''
@R.function(private=True)
def main(
    x: R.Tensor(("n", "m"), "float32"),
) -> R.Tensor(("n * m",), "float32"):
    n = T.int64()
    m = T.int64()
    p = T.int64()
    with R.dataflow():
        a: R.Tensor((n * m,), dtype="float32") = R.reshape(x, R.shape([n * m]))
        b: R.Tensor((n, 1), dtype="float32") = R.sum(x, axis=[1], keepdims=True)
        c: R.Tensor((n, m), dtype="float32") = R.nn.softmax(x, axis=-1)
        d: R.Tensor((p,), dtype="float32") = R.match_cast(a, R.Tensor((p,), dtype="float32"))
        R.output(a)
    e: R.Tuple(R.Tensor((n * m,), dtype="float32"), R.Tensor((n, m), dtype="float32")) = a, x
    g: R.Tensor((n, m), dtype="float32") = e[1]
    return a''',
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=["control", "symbols"])
def test_text_parses_and_prints_alike(source):
    func = from_source(source)
    text = func.script()
    assert_structural_equal(from_source(text), func)
    wanted = [line for line in source.splitlines() if " = R." in line and "y:" not in line]
    assert [line for line in wanted if line not in text.splitlines()] == []


def test_symbols_keep_size_var_and_width():
    size, narrow = SizeVar("s", "int64"), TirVar("k", "int32")
    dims = (n + size * 2, (n + 1) // 2, tir_op.max(n, 4))
    func = rx.Function(
        [rx.Var("a", ShapeStructInfo([n, size])), rx.Var("b", TensorStructInfo(dims, "float32")),
         rx.Var("c", PrimStructInfo(value=narrow))],
        rx.ShapeExpr([n * 2, size]), ShapeStructInfo([n * 2, size]),
    )  # fmt: skip
    text = func.script()
    assert "s = T.int64(is_size_var=True)" in text
    assert "k = T.int32()" in text
    assert_structural_equal(from_source(text), func)


def test_short_forms():
    binding = rx.VarBinding(rx.Var("lv0", INFO), call("multiply", x, y))
    assert repr(binding) == "lv0 = R.multiply(x, y)"
    func = rx.Function([x, y], x, INFO)
    assert repr(func.params) == "[x, y]"
    assert repr(Op.get("relax.multiply")) == "Op(relax.multiply)"
    assert repr(x) == "x"
    assert repr(GlobalVar("main")) == 'I.GlobalVar("main")'
    assert repr(x.struct_info) == 'R.Tensor((4,), dtype="float32")'


def test_an_operator_of_a_package_prints_as_a_call_that_comes_back():
    value = rx.Call(Op.register("acme.f"), [x], {"axis": 1}, [INFO])
    var = rx.Var("gv", INFO)
    func = rx.Function([x], rx.SeqExpr([rx.BindingBlock([rx.VarBinding(var, value)])], var), INFO)
    assert 'R.Call("acme.f", (x,), attrs={"axis": 1}, sinfo_args=' in func.script()
    assert_structural_equal(from_source(func.script()), func)
