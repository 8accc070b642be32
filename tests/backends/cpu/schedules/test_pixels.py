"""Windows of pixels in blocks of channels: results at every size, and no memory for padding."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import SMALL, assert_results_are_kept, floats, scheduled
from weft import te, tir, topi
from weft.arith import Analyzer
from weft.backends.cpu.schedules import default, pixels
from weft.dlight.nest import Nest, blocks_of, loops_of
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect, substitute
from weft.target.machine import machine_of
from weft.tir.expr import Var
from weft.tir.interp import run
from weft.tir.stmt import Allocate, ForKind
from weft.topi.nn.convolution_blocked import conv_blocked

pytestmark = pytest.mark.sampled(3)


def depthwise(blocks, height, width, channels, size, stride, padding, dilation=1):
    x = te.placeholder((1, blocks, height, width, channels), name="x")
    w = te.placeholder((blocks, 1, size, size, channels), name="w")
    layouts = (f"NCHW{channels}c", f"OIHW{channels}o", f"NCHW{channels}c")
    found = conv_blocked(x, w, stride, padding, dilation, blocks * channels, layouts)
    return [x, w, topi.nn.relu(found)]


def pool(blocks, height, width, channels, stride, padding, kind, ceil):
    x = te.placeholder((2, blocks, height, width, channels), name="x")
    return [x, topi.nn.pool2d(x, (3, 3), stride, (1, 1), padding, kind, ceil, "NCHWc")]


CASES = {
    "depthwise": lambda: depthwise(2, 7, 9, 4, 3, 1, 1),
    "depthwise of rows of several tiles": lambda: depthwise(1, 5, 31, 4, 3, 1, 1),
    "depthwise with steps": lambda: depthwise(2, 9, 8, 4, 3, 2, 1),
    "depthwise, large windows": lambda: depthwise(2, 6, 5, 4, 5, 1, 2),
    "depthwise, windows of 49 pixels": lambda: depthwise(1, 8, 23, 16, 7, 1, 3),
    "depthwise, large windows with steps": lambda: depthwise(1, 7, 29, 16, 5, 2, 2),
    "depthwise, windows with holes": lambda: depthwise(1, 7, 15, 16, 3, 1, 2, 2),
    "depthwise, tiles that are cut off": lambda: depthwise(1, 4, 11, 16, 3, 1, 1),
    "depthwise, two vectors of channels": lambda: depthwise(2, 6, 7, 8, 3, 1, 1),
    "depthwise, a vector and a half": lambda: depthwise(1, 6, 7, 6, 3, 1, 1),
    "depthwise without padding": lambda: depthwise(1, 6, 7, 4, 3, 1, 0),
    "depthwise of one pixel": lambda: depthwise(2, 1, 1, 4, 3, 1, 1),
    "depthwise of one row": lambda: depthwise(2, 1, 6, 4, 3, 1, 1),
    "largest": lambda: pool(2, 9, 11, 4, (2, 2), (1, 1, 1, 1), "max", False),
    "largest, nothing around": lambda: pool(2, 9, 11, 4, (2, 2), (0, 0, 0, 0), "max", True),
    "largest, windows that leave": lambda: pool(2, 10, 12, 4, (2, 2), (0, 0, 0, 0), "max", True),
    "mean": lambda: pool(1, 8, 8, 4, (1, 1), (1, 1, 1, 1), "avg", False),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    assert_results_are_kept(CASES[name]())


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize(("size", "stride"), [(112, 2), (31, 1), (14, 1), (13, 2), (7, 1)])
def test_an_image_is_not_padded(cpu, size, stride):
    """Nothing is in memory but the image: the windows of a tile stay in registers."""
    machine = machine_of(weft.target.Target(f"llvm -mcpu={cpu}"))
    func = te.create_prim_func(depthwise(2, size, size, machine.lanes(), 3, stride, 1))
    made = default.schedule(tir.Schedule(func, debug_mask="none"), machine, ()).mod
    allocated = collect(lower_tir()(made)["main"], Allocate)
    bits = [np.prod([int(extent) for extent in one.extents]) * 32 for one in allocated]
    assert max(bits) <= machine.vector_registers * machine.vector_bits


def steps_of(size, stride, cpu):
    """The loops down and along a window, and the places of both."""
    func = te.create_prim_func(depthwise(2, 14, 28, 16, size, stride, 1))
    machine = machine_of(weft.target.Target(f"llvm -mcpu={cpu}"))
    sch = default.schedule(tir.Schedule(func, debug_mask="none"), machine, ())
    [block] = [item for item in blocks_of(sch) if sch.get(item).name_hint.endswith("_update")]
    nest = Nest(sch, block)
    order = [sch.get(loop) for loop in sch.get_loops(block)]
    down, along = [
        sch.get(loop) for axis, loop in loops_of(sch, nest).items()
        if axis in nest.reduced and nest.extent(axis) == size
    ]  # fmt: skip
    return down, along, order.index(down), order.index(along)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_step_along_rows_is_outermost_where_pixels_cannot_be_shared(stride):
    """Inside, LLVM would unroll that step and spill accumulators for pixels that others share."""
    _, _, place, outside = steps_of(3, stride, "haswell")
    assert outside < place


@pytest.mark.parametrize(("size", "unrolled"), [(3, 2), (5, 1), (7, 1)])
def test_windows_share_the_pixels_of_a_row_where_registers_hold_them(size, unrolled):
    """The steps along a row are unrolled, inside of those down the window."""
    down, along, outside, place = steps_of(size, 1, "skylake-avx512")
    assert outside < place
    assert along.kind is ForKind.UNROLLED
    assert [down.kind, along.kind].count(ForKind.UNROLLED) == unrolled


def test_windows_without_columns_are_left_to_others():
    """An ordinary convolution reads numbers that all channels of the result multiply."""
    x, w = te.placeholder((1, 2, 6, 7, 4), name="x"), te.placeholder((3, 2, 3, 3, 4, 8), name="w")
    layouts = ("NCHW4c", "OIHW4i8o", "NCHW8c")
    func = te.create_prim_func([x, w, conv_blocked(x, w, 1, 1, 1, 1, layouts)])
    sch = tir.Schedule(func)
    assert not any(pixels.fits(Nest(sch, block)) for block in blocks_of(sch))


HEIGHT, WIDTH = tir.SizeVar("h", "int64"), tir.SizeVar("w", "int64")
ANY = {
    "depthwise": (depthwise(2, HEIGHT, WIDTH, 4, 3, 1, 1), 1),
    "depthwise, large windows with steps": (depthwise(1, HEIGHT, WIDTH, 16, 5, 2, 2), 1),
    "depthwise, windows with holes": (depthwise(1, HEIGHT, WIDTH, 16, 3, 1, 2, 2), 1),
    "depthwise without padding": (depthwise(1, HEIGHT, WIDTH, 4, 3, 1, 0), 3),
    "largest": (pool(2, HEIGHT, WIDTH, 4, (2, 2), (1, 1, 1, 1), "max", False), 1),
    "mean": (pool(1, HEIGHT, WIDTH, 4, (1, 1), (1, 1, 1, 1), "avg", False), 1),
}
"""Windows over images of any size, and the smallest size."""


@pytest.mark.parametrize("name", ANY)
def test_images_of_any_size(name):
    tensors, least = ANY[name]
    func = te.create_prim_func(tensors)
    new = scheduled(func)
    lowered = lower_tir()(weft.IRModule({"main": new}))["main"]
    native = weft.build(new, SMALL)["main"]
    for height, width in ((1, 1), (2, 7), (3, 8), (5, 9), (4, 16), (9, 31), (3, 70)):
        sizes = {HEIGHT: max(height, least), WIDTH: max(width, least)}
        values = {var: tir.IntImm("int64", size) for var, size in sizes.items()}
        shapes = [[int(Analyzer().simplify(substitute(tir.convert(extent), values)))
                   for extent in tensor.shape] for tensor in tensors]  # fmt: skip
        arrays = [floats(*shape) for shape in shapes[:-1]]
        expected, interpreted, result = [np.full(shapes[-1], 7, "float32") for _ in range(3)]
        run(func, *arrays, expected)
        run(lowered, *arrays, interpreted)
        native(*arrays, result)
        np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ANY)
def test_an_image_of_any_size_is_not_padded(name):
    new = scheduled(te.create_prim_func(ANY[name][0]))
    lowered = lower_tir()(weft.IRModule({"main": new}))["main"]
    assert all(isinstance(extent, tir.IntImm)
               for memory in collect(lowered, Allocate) for extent in memory.extents)  # fmt: skip


def test_images_of_unknown_channels_are_left_to_others():
    n = Var("n", "int64")
    x = te.placeholder((1, 6, 7, n), name="x")
    func = te.create_prim_func([x, topi.nn.pool2d(x, (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), "max",
                                                  False, "NHWC")])  # fmt: skip
    sch = tir.Schedule(func)
    assert not any(pixels.fits(Nest(sch, block)) for block in blocks_of(sch))


def test_a_condition_without_axes_is_read_beside_windows():
    """It has no last index that could be the channel."""
    flag, shape = te.placeholder((), "bool", name="flag"), (2, 2, 1, 2, 2)
    x, y = te.placeholder((2, 1, 1, 2, 2), name="x"), te.placeholder((2, 2, 1, 2, 1), name="y")
    where = te.compute(
        shape,
        lambda a, b, c, d, e: tir.if_then_else(flag(), x[a, 0, c, d, e], y[a, b, c, d, 0]),
        name="where",
    )
    sch = tir.Schedule(te.create_prim_func([flag, x, y, topi.max(where, 4)]))
    sch.compute_inline(sch.get_block("where"))
    assert not any(pixels.fits(Nest(sch, block)) for block in blocks_of(sch))
