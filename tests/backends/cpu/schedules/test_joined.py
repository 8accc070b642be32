"""Rows of rows as one axis: windows of one pixel take images of any width in whole tiles."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import (
    assert_results_are_kept,
    floats,
    native_source,
    results_of,
    scheduled,
)
from weft import dlight, relax, te, tir, topi
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.ir.transform import Sequential
from weft.relax.transform import DeadCodeElimination, FuseOps, FuseTIR, LegalizeOps
from weft.relax.transform.fusion.annotate_tir_op_pattern import AnnotateTIROpPattern
from weft.tir.expr import FloorDiv, FloorMod
from weft.tir.stmt import Block
from weft.topi.nn.convolution_blocked import conv_blocked

pytestmark = pytest.mark.sampled(3)

AVX2 = "llvm -mcpu=x86-64-v3 -num-cores=1"
LAYOUTS = ("NCHW4c", "OIHW4i4o", "NCHW4c")


def convolution(high, wide, window=1, stride=1, residual=True, batch=1):
    """A convolution of blocks of four channels, and what follows it element by element."""
    x = te.placeholder((batch, 3, high, wide, 4), name="x")
    w = te.placeholder((2, 3, window, window, 4, 4), name="w")
    bias = te.placeholder((1, 2, 1, 1, 4), name="bias")
    result = topi.add(conv_blocked(x, w, stride, window // 2, 1, 1, LAYOUTS), bias)
    if not residual:
        return [x, w, bias, topi.nn.relu(result)]
    again = te.placeholder(result.shape, name="again")
    return [x, w, bias, again, topi.nn.relu(topi.add(result, again))]


def is_joined(func):
    """Whether a sum is kept for each pixel, not for each one of each row."""
    made = [buffer for block in collect(func.body, Block) for buffer in block.alloc_buffers]
    return [len(buffer.shape) for buffer in made if buffer.scope() == "local"] == [4]


def keeps_sums_in_memory(func):
    """Whether the sums are written to memory before what follows them is computed."""
    made = [buffer for block in collect(func.body, Block) for buffer in block.alloc_buffers]
    return any(buffer.scope() != "local" for buffer in made)


@pytest.mark.parametrize(
    ("size", "batch", "residual"),
    [((7, 9), 1, True), ((5, 7), 2, False), ((3, 7), 1, True), ((2, 9), 3, False)],
)
def test_results_of_joined_rows_are_kept(size, batch, residual):
    tensors = convolution(*size, batch=batch, residual=residual)
    assert is_joined(scheduled(te.create_prim_func(tensors)))
    assert_results_are_kept(tensors)


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((6, 6), {}),  # rows are tiles
        ((7, 9), {"window": 3}), ((13, 17), {"stride": 2}),  # not all pixels follow each other
        ((1, 9), {}), ((9, 1), {}),
    ],
)  # fmt: skip
def test_rows_that_are_no_worse_apart_stay(size, options):
    tensors = convolution(*size, **options)
    assert not is_joined(scheduled(te.create_prim_func(tensors)))
    assert_results_are_kept(tensors)


def test_images_that_are_cut_out_of_others_stay():
    """Rows that do not lie one after the other, since those of the larger image are longer."""
    x = te.placeholder((1, 3, 7, 11, 4), name="x")
    w = te.placeholder((2, 3, 1, 1, 4, 4), name="w")
    cut = te.compute((1, 3, 7, 9, 4), lambda n, c, h, w, b: x[n, c, h, w + 1, b], name="cut")
    tensors = [x, w, topi.nn.relu(conv_blocked(cut, w, 1, 0, 1, 1, LAYOUTS))]
    assert not is_joined(scheduled(te.create_prim_func(tensors)))
    assert_results_are_kept(tensors)


def test_places_of_joined_rows_take_no_division():
    x = te.placeholder((1, 8, 7, 7, 16), name="x")
    w = te.placeholder((2, 8, 1, 1, 16, 16), name="w")
    layouts = ("NCHW16c", "OIHW16i16o", "NCHW16c")
    func = te.create_prim_func([x, w, topi.nn.relu(conv_blocked(x, w, 1, 0, 1, 1, layouts))])
    mod, text = native_source(func, AVX2, "ll")
    assert is_joined(mod["main"])
    assert not [word for word in ("sdiv", "srem", "udiv", "urem") if word in text]
    wide = dlight.cpu.Default().apply(func, weft.target.Target("llvm -mcpu=skylake-avx512"), False)
    assert not is_joined(wide.mod["main"])  # 32 registers hold four rows of seven


def symbolic(high, wide, window=1):
    """``convolution`` with a residual, of a graph for images of symbolic size."""
    shapes = [(1, 3, high, wide, 4), (2, 3, window, window, 4, 4), (1, 2, 1, 1, 4)]
    shapes.append((1, 2, high, wide, 4))
    x, w, bias, again = [
        relax.Var(name, relax.TensorStructInfo(shape, "float32"))
        for name, shape in zip(("x", "w", "bias", "again"), shapes, strict=True)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, bias, again]):
        with builder.dataflow():
            data, kernel, _ = LAYOUTS
            sums = builder.emit(
                relax.op.nn.conv2d(
                    x, w, padding=window // 2, data_layout=data, kernel_layout=kernel
                )
            )
            sums = builder.emit(relax.op.add(builder.emit(relax.op.add(sums, bias)), again))
            out = builder.emit_output(relax.op.nn.relu(sums))
        builder.emit_func_output(out)
    passes = [LegalizeOps(), AnnotateTIROpPattern(), FuseOps(), FuseTIR()]
    module = Sequential([*passes, DeadCodeElimination()])(builder.get())
    [func] = [func for func in module.functions.values() if isinstance(func, tir.PrimFunc)]
    return func


H, W = tir.Var("h", "int64"), tir.Var("w", "int64")


@pytest.mark.parametrize("axes", [(H, W), (5, W), (H, H), (H, 8), (H, 7)])
def test_rows_of_symbolic_size_are_joined(axes):
    func = symbolic(*axes)
    new = scheduled(func)
    assert is_joined(new)
    assert not keeps_sums_in_memory(new)
    lowered = lower_tir()(weft.IRModule({"main": new}))["main"]
    divisors = [node.b for node in collect(lowered.body, (FloorDiv, FloorMod))]
    assert all(isinstance(divisor, tir.IntImm) for divisor in divisors)
    for high, wide in ((1, 1), (1, 9), (3, 1), (7, 7), (5, 13), (13, 5), (2, 8), (0, 3), (3, 0)):
        sizes = {H: high, W: high if axes[1] is H else wide}
        high, wide = [sizes.get(axis, axis) for axis in axes]
        shapes = [(1, 3, high, wide, 4), (2, 3, 1, 1, 4, 4), (1, 2, 1, 1, 4), (1, 2, high, wide, 4)]
        arrays = [floats(*shape) for shape in shapes]
        _, expected, interpreted, native = results_of(func, arrays, (1, 2, high, wide, 4))
        np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def test_other_rows_of_symbolic_size_stay():
    assert not is_joined(scheduled(symbolic(H, W, window=3)))
    # 32 bits may not count the pixels of an image whose sides they count
    sides = tir.Var("h", "int32"), tir.Var("w", "int32")
    x = te.placeholder((1, 3, *sides, 4), name="x")
    w = te.placeholder((2, 3, 1, 1, 4, 4), name="w")
    short = [x, w, topi.nn.relu(conv_blocked(x, w, 1, 0, 1, 1, LAYOUTS))]
    assert not is_joined(scheduled(te.create_prim_func(short)))
