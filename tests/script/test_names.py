"""Names that are no Python identifiers, or mean something else in a script, survive the text."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.round_trip import assert_round_trip
from tests.lib.text_normal_form import text_normal_form
from weft import relax, tir
from weft.ir.module import IRModule
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.script.parser.entry import from_source
from weft.support.errors import DiagnosticError

NAMES = [
    "a.b", "1x", "class", "ä ö", "", "x y", "None", "T", "R", "I", "range", "print", "Module",
    "cls", "metadata", "self",
]  # fmt: skip


@T.prim_func
def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        y[i] = x[i] * T.float32(2)


@pytest.mark.parametrize("name", NAMES)
def test_variables_buffers_and_loops(name):
    size, handle, loop = tir.Var(name, "int32"), tir.Var(name, "handle"), tir.Var(name, "int32")
    buffer = tir.decl_buffer((size,), "float32", name)
    body = tir.For(loop, 0, size, tir.ForKind.SERIAL, tir.BufferStore(buffer, 1.0, [loop]))
    assert_round_trip(tir.PrimFunc([handle], body, buffer_map={handle: buffer}))


@pytest.mark.parametrize("name", NAMES)
def test_graph_variables(name):
    builder = relax.BlockBuilder()
    x = relax.Var(name, relax.TensorStructInfo((4,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.add(x, x), name_hint=name)
            out = builder.emit_output(relax.op.add(y, x), name)
        builder.emit_func_output(out)
    assert_round_trip(builder.get())


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", [name for name in NAMES if name])
def test_functions_of_a_module(name, private):
    func = double.without_attr("global_symbol") if private else double.with_attr(
        "global_symbol", name
    )  # fmt: skip
    other = tir.stmt_functor.renew_defs(double).with_attr("global_symbol", "a_b")
    module = IRModule({name: func, "a_b": other})
    assert_round_trip(module)
    parsed = from_source(module.script())
    assert {var.name_hint for var in parsed.get_global_vars()} == {name, "a_b"}


def test_plain_names_need_no_remark():
    text = IRModule({"double": double, "a_b": double.with_attr("global_symbol", "a_b")}).script()
    assert "function_names" not in text


def test_references_follow_the_names():
    @I.ir_module
    class Module:
        I.function_names({"kernel": "fused.add", "outside": "1 x", "main": "class"})
        outside = R.ExternFunc("foo")

        @T.prim_func
        def kernel(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = x[i]

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Module
            y = R.call_tir(cls.kernel, (x,), R.Tensor((4,), "float32"))
            _ = cls.outside(y)
            z = cls.main(y)
            return z

    assert {var.name_hint for var in Module.get_global_vars()} == {"fused.add", "1 x", "class"}
    assert_round_trip(Module)
    assert Module["class"].attrs["global_symbol"] == "class"


def test_names_run_as_they_are():
    built = weft.build(IRModule({"a.b": double.with_attr("global_symbol", "a.b")}))
    x, y = weft.nd.array(np.ones(4, "float32")), weft.nd.array(np.zeros(4, "float32"))
    built["a.b"](x, y)
    assert list(y.numpy()) == [2, 2, 2, 2]


def test_function_names_must_name_identifiers():
    source = """
@I.ir_module
class Module:
    I.function_names({"a b": "c"})
"""
    with pytest.raises(DiagnosticError, match="expected identifiers of functions below"):
        from_source(source)


def test_neighbouring_plain_blocks_are_one():
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    first, second = (relax.Var(name, x.struct_info) for name in ("y", "z"))
    blocks = [
        relax.BindingBlock([relax.VarBinding(first, relax.op.add(x, x))]),
        relax.BindingBlock([]),
        relax.BindingBlock([relax.VarBinding(second, relax.op.add(first, x))]),
    ]
    func = relax.Function([x], relax.SeqExpr(blocks, second), x.struct_info)
    (joined,) = text_normal_form(func).body.blocks
    assert len(joined.bindings) == 2
    assert text_normal_form(text_normal_form(func)) is not func
    normal = text_normal_form(func)
    assert text_normal_form(normal) is normal
    assert_round_trip(func)
    module = IRModule({"main": func.with_attr("global_symbol", "main")})
    assert_round_trip(module)
