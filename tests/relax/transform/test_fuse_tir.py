"""FuseTIR: results that are fields, repeated, nested; each is run."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.op import add, exp
from weft.relax.transform import FuseTIR, LegalizeOps
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.testing.round_trip import assert_round_trip
from weft.tir.function import PrimFunc

X = np.arange(4, dtype="float32")
INFO = relax.TensorStructInfo((4,), "float32")


def two(x):
    a = weft.te.compute(x.shape, lambda i: x[i] + 1, name="a")
    return [a, weft.te.compute(x.shape, lambda i: x[i] * 2, name="b")]


def fused_module(body):
    """A module whose main calls a Primitive function made by ``body(builder, x)``."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", INFO)
    with bb.function("fused", [x], attrs={"Primitive": True}, private=True):
        with bb.dataflow():
            out = bb.emit_output(body(bb, x))
        bb.emit_func_output(out)
    gvar = bb.get().get_global_var("fused")
    y = relax.Var("x", INFO)
    with bb.function("main", [y]):
        with bb.dataflow():
            out = bb.emit_output(relax.Call(gvar, [y]))
        bb.emit_func_output(out)
    return FuseTIR()(LegalizeOps()(bb.get()))


def run(mod):
    assert relax.analysis.well_formed(mod)
    assert isinstance(mod["fused"], PrimFunc)
    assert_round_trip(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    return machine["main"](weft.nd.array(X))


def test_the_result_is_a_field():
    mod = fused_module(lambda bb, x: relax.TupleGetItem(bb.emit_te(two, x), 1))
    np.testing.assert_array_equal(run(mod).numpy(), X * 2)
    assert len(mod["fused"].params) == 2


def test_one_value_is_returned_twice():
    def body(bb, x):
        a = bb.emit(add(x, x))
        b = bb.emit(exp(a))
        return relax.Tuple([b, a, b])

    mod = fused_module(body)
    found = run(mod)
    assert len(mod["fused"].params) == 3
    assert [param.name for param in mod["fused"].params] == ["p_x", "p_output0", "p_output1"]
    for out, expected in zip(found, [np.exp(2 * X), 2 * X, np.exp(2 * X)], strict=True):
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("nested", [False, True])
def test_tuples_of_one_and_of_tuples(nested):
    def body(bb, x):
        a = bb.emit(add(x, x))
        if not nested:
            return relax.Tuple([a])
        return relax.Tuple([relax.Tuple([a, bb.emit(exp(x))]), a])

    found = run(fused_module(body))
    if nested:
        np.testing.assert_allclose(found[0][1].numpy(), np.exp(X), rtol=1e-6)
        np.testing.assert_array_equal(found[0][0].numpy(), 2 * X)
        np.testing.assert_array_equal(found[1].numpy(), 2 * X)
    else:
        np.testing.assert_array_equal(found[0].numpy(), 2 * X)


def test_the_same_function_twice_in_one():
    mod = fused_module(lambda bb, x: add(bb.emit(add(x, x)), bb.emit(add(x, x))))
    np.testing.assert_array_equal(run(mod).numpy(), 4 * X)


def test_a_root_that_matches_buffers_stays_a_block():
    @T.prim_func(private=True)
    def one(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        with T.block("whole"):
            C = T.match_buffer(A[0:4], (4,), elem_offset=0)
            for i in range(4):
                with T.block("b"):
                    vi = T.axis.spatial(4, i)
                    B[vi] = C[vi] + T.float32(1)

    def body(bb, x):
        gvar = bb.add_func(one, "one")
        first = bb.emit(relax.call_tir(gvar, [x], INFO))
        return relax.call_tir(gvar, [first], INFO)

    mod = fused_module(body)
    np.testing.assert_array_equal(run(mod).numpy(), X + 2)
    text = mod["fused"].script()
    assert "T.reads(x[0:4])" in text
    for name in ("b", "b_1", "whole", "whole_1"):
        assert text.count(f'T.block("{name}")') == 1


@I.ir_module
class Annotated:
    @T.prim_func(private=True)
    def first(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"tir.is_scheduled": True, "op_pattern": 0, "mine": "both", "one": 1})
        with T.block("root"):
            T.block_attr({"unroll": 16, "only_first": "a"})
            for i in range(4):
                with T.block("b"):
                    vi = T.axis.spatial(4, i)
                    y[vi] = x[vi] + T.float32(1)

    @T.prim_func(private=True)
    def second(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"tir.is_scheduled": True, "op_pattern": 1, "mine": "both", "one": 2})
        with T.block("root"):
            T.block_attr({"unroll": 16, "only_second": [1, 2]})
            for i in range(4):
                with T.block("b"):
                    vi = T.axis.spatial(4, i)
                    y[vi] = x[vi] * T.float32(2)

    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": True})
        cls = Annotated
        with R.dataflow():
            a = R.call_tir(cls.first, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(cls.second, (a,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Annotated
        with R.dataflow():
            a = cls.fused(x)
            R.output(a)
        return a


def test_annotations_of_root_blocks_are_kept():
    mod = FuseTIR()(Annotated)
    root = mod["fused"].body.block
    assert set(root.annotations) == {"unroll", "only_first", "only_second"}
    assert int(root.annotations["unroll"]) == 16
    np.testing.assert_array_equal(run(mod).numpy(), (X + 1) * 2)


def test_attributes_on_which_all_agree_are_kept():
    attrs = FuseTIR()(Annotated)["fused"].attrs
    assert set(attrs) == {"tir.noalias", "tir.is_scheduled", "mine"}
    assert attrs["mine"] == "both"


def test_attributes_of_the_only_function_are_kept():
    def body(bb, x):
        return bb.emit_te(two, x, primfunc_attrs={"mine": 3})

    attrs = fused_module(body)["fused"].attrs
    assert int(attrs["mine"]) == 3
