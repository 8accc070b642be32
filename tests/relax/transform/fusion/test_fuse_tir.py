"""FuseTIR: results that are fields, repeated, nested; each is run."""

import numpy as np
import pytest

import weft
from tests.lib.round_trip import assert_round_trip
from weft import relax
from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, Range
from weft.relax.op import add, exp
from weft.relax.transform import FuseTIR, LegalizeOps
from weft.relax.transform.fusion.kernel_bodies import hull
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import UnsupportedError
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block

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


@I.ir_module
class InPlace:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                vi = T.axis.spatial(4, i)
                x[vi] = x[vi] * T.float32(2)

    @T.prim_func(private=True)
    def negate(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("negate"):
                vi = T.axis.spatial(4, i)
                y[vi] = -x[vi]

    @R.function(private=True)
    def fused(x: R.Tensor((4,), "float32")):
        R.func_attr({"Primitive": True})
        cls = InPlace
        with R.dataflow():
            lv = R.call_tir(cls.negate, (x,), out_sinfo=R.Tensor((4,), "float32"))
            gv = R.call_tir_inplace(
                cls.double, (lv,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32")
            )
            R.output(gv)
        return gv

    @R.function(private=True)
    def overwriting(x: R.Tensor((4,), "float32")):
        R.func_attr({"Primitive": True})
        cls = InPlace
        with R.dataflow():
            lv = R.call_tir_inplace(
                cls.double, (x,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32")
            )
            gv = R.call_tir_inplace(
                cls.double, (lv,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32")
            )
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = InPlace
        with R.dataflow():
            lv = cls.fused(x)
            gv = cls.overwriting(lv)
            R.output(gv)
        return gv


def test_in_place_calls():
    after = FuseTIR()(InPlace)
    assert len(after["fused"].params) == 2
    assert after["fused"].body.block.alloc_buffers == []
    first, second = [b.value for b in after["main"].body.blocks[0].bindings]
    assert first.op.name == "relax.call_tir"
    assert second.op.name == "relax.call_tir_inplace"
    assert list(second.attrs["inplace_indices"]) == [0]
    assert len(after["overwriting"].params) == 1
    np.testing.assert_array_equal(run(after).numpy(), X * -8)


def test_a_parameter_is_returned_as_it_came():
    found = run(fused_module(lambda bb, x: relax.Tuple([x, bb.emit(exp(x))])))
    np.testing.assert_array_equal(found[0].numpy(), X)
    np.testing.assert_allclose(found[1].numpy(), np.exp(X), rtol=1e-6)


def test_nothing_to_compute_is_an_error():
    with pytest.raises(UnsupportedError, match="fused: it computes nothing that it returns"):
        fused_module(lambda bb, x: relax.Tuple([x]))


def test_parameters_that_no_kernel_takes_go():
    bb = relax.BlockBuilder()
    pair = relax.Var("pair", relax.TupleStructInfo([INFO, INFO]))
    with bb.function("fused", [pair], attrs={"Primitive": True}, private=True):
        with bb.dataflow():
            second = bb.emit(relax.TupleGetItem(pair, 1))
            out = bb.emit_output(bb.call_te(weft.topi.exp, second))
        bb.emit_func_output(out)
    gvar = bb.get().get_global_var("fused")
    y = relax.Var("x", INFO)
    with bb.function("main", [y]):
        with bb.dataflow():
            out = bb.emit_output(relax.Call(gvar, [relax.Tuple([y, y])]))
        bb.emit_func_output(out)
    after = FuseTIR()(bb.get())
    assert [param.name for param in after["fused"].params] == ["p_pair_1", "p_output0"]
    np.testing.assert_allclose(run(after).numpy(), np.exp(X), rtol=1e-6)


def test_a_block_that_reads_one_buffer_twice_says_so_once():
    mod = fused_module(lambda bb, x: exp(bb.emit(relax.op.concat([x, x]))))
    (block,) = [
        b for b in weft.ir.functor.collect(mod["fused"], Block) if b.name_hint == "T_concat"
    ]
    assert len(block.reads) == 1
    np.testing.assert_allclose(run(mod).numpy(), np.exp([*X, *X]), rtol=1e-6)


@pytest.mark.parametrize("shift", range(-2, 3))
@pytest.mark.parametrize("extents", [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_the_hull_of_two_ranges(shift, extents):
    start = TirVar("v", "int64")
    first, second = extents
    found = hull(
        Range.from_min_extent(start, IntImm("int64", first)),
        Range.from_min_extent(start + shift, IntImm("int64", second)),
        IntImm("int64", 10),
    )
    low, high = min(0, shift), max(first, shift + second)
    analyzer = Analyzer()
    assert analyzer.can_prove_equal(found.min, start + low)
    assert analyzer.can_prove_equal(found.extent, high - low)


def stored_in_two_dimensions(separators):
    """A sum of three tensors in two kernels; the second operand of each has the separators."""

    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def plus(a: T.handle, b: T.handle, c: T.handle):
            T.func_attr({"op_pattern": 0})
            A = T.match_buffer(a, (T.int64(2), T.int64(3)), axis_separators=[1])
            B = T.match_buffer(b, (T.int64(2), T.int64(3)), axis_separators=separators)
            C = T.match_buffer(c, (T.int64(2), T.int64(3)), axis_separators=[1])
            for i, j in T.grid(T.int64(2), T.int64(3)):
                with T.block("plus"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] + B[vi, vj]

        @R.function(private=True)
        def fused(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            R.func_attr({"Primitive": True})
            cls = Module
            with R.dataflow():
                a = R.call_tir(cls.plus, (x, y), R.Tensor((2, 3), "float32"))
                b = R.call_tir(cls.plus, (a, y), R.Tensor((2, 3), "float32"))
                R.output(b)
            return b

        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            cls = Module
            with R.dataflow():
                out = cls.fused(x, y)
                R.output(out)
            return out

    return Module


@pytest.mark.parametrize("separators", [[], [1]])
def test_axis_separators_are_kept(separators):
    mod = FuseTIR()(stored_in_two_dimensions(separators))
    func = mod["fused"]
    found = [list(func.buffer_map[param].axis_separators) for param in func.params]
    assert found == [[1], separators, [1]]
    (inner,) = func.body.block.alloc_buffers
    assert list(inner.axis_separators) == [1]
    assert_round_trip(mod)


def test_one_tensor_stored_in_two_ways_is_an_error():
    text = stored_in_two_dimensions([]).script().replace("(cls.plus, (a, y)", "(cls.plus, (y, a)")
    message = r"fused: Inconsistent buffers A .* and y .* are mapped to the same relax var"
    with pytest.raises(UnsupportedError, match=message):
        FuseTIR()(weft.script.from_source(text))
