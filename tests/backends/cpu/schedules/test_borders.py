"""Windows over an image's border: what is outside is left out, where tiles know what that is."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import assert_results_are_kept, floats, scheduled
from weft import dlight, te, tir, topi
from weft.backends.cpu.schedules import borders, default
from weft.dlight.nest import Nest
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.interp import run
from weft.tir.stmt import Block, For, ForKind, IfThenElse
from weft.topi.nn.convolution_blocked import conv_blocked

pytestmark = pytest.mark.sampled(3)

LAYOUTS = ("NCHW2c", "OIHW2i4o", "NCHW4c")


def convolution(
    size, window=(3, 3), stride=1, padding=(1, 1, 1, 1), dilation=1, batch=1, blocks=(1, 2)
):
    """A convolution of blocks of channels, and what follows it element by element."""
    x = te.placeholder((batch, blocks[0], *size, 2), name="x")
    w = te.placeholder((blocks[1], blocks[0], *window, 2, 4), name="w")
    bias = te.placeholder((1, blocks[1], 1, 1, 4), name="bias")
    result = conv_blocked(x, w, stride, padding, dilation, 1, LAYOUTS)
    return [x, w, bias, topi.nn.relu(topi.add(result, bias))]


def copies_padding(func):
    """Whether an image is copied into a padded one."""
    made = [buffer for block in collect(func.body, Block) for buffer in block.alloc_buffers]
    return any(buffer.name == "pad_temp" for buffer in made)


def guards_in_loops(func):
    """The tests that the innermost loops of a lowered function hold."""
    lowered = lower_tir()(weft.IRModule({"main": func}))["main"]
    innermost = [loop for loop in collect(lowered.body, For) if not collect(loop.body, For)]
    assert innermost
    return [test for loop in innermost for test in collect(loop, IfThenElse)]


CASES = {
    "small": ((7, 7), {}),
    "rows of several tiles": ((3, 24), {}),
    "steps": ((7, 8), {"stride": 2}),
    "larger windows": ((5, 4), {"window": (5, 5), "padding": (2, 2, 2, 2)}),
    "of no two sides the same": ((7, 6), {"padding": (2, 0, 1, 1)}),
    "more around than inside": ((3, 3), {"window": (5, 5), "padding": (3, 3, 3, 3)}),
    "far apart": ((5, 6), {"dilation": 2, "padding": (2, 2, 2, 2)}),
    "several images": ((5, 7), {"batch": 2}),
    "rows only": ((7, 8), {"window": (3, 1), "padding": (1, 0, 1, 0)}),
    "sums in parts": ((3, 4), {"blocks": (32, 1)}),
    "as far apart as the image is large": ((5, 15), {"dilation": 9, "padding": (9, 9, 9, 9)}),
    "farther apart": ((5, 9), {"dilation": 12, "padding": (12, 12, 12, 12)}),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept_without_a_padded_image(name):
    size, options = CASES[name]
    tensors = convolution(size, **options)
    assert not copies_padding(scheduled(te.create_prim_func(tensors)))
    assert_results_are_kept(tensors)


@pytest.mark.parametrize("dilation", [1, 12, 32])
def test_a_slower_tile_is_taken_where_it_leaves_out_enough(dilation):
    """Of 33 pixels, 13 are the fastest tile, and 11 one of which the ends of rows are known."""
    x = te.placeholder((1, 4, 33, 33, 16), name="x")
    w = te.placeholder((4, 4, 3, 3, 16, 16), name="w")
    layouts = ("NCHW16c", "OIHW16i16o", "NCHW16c")
    conv = conv_blocked(x, w, 1, dilation, dilation, 1, layouts)
    sch = tir.Schedule(te.create_prim_func([x, w, conv]), debug_mask="none")
    machine = machine_of(weft.target.Target("llvm -mcpu=skylake-avx512 -num-cores=1"))
    func = default.schedule(sch, machine, ()).mod["main"]
    tiles = {int(loop.extent) for loop in collect(func.body, For) if loop.kind is ForKind.UNROLLED}
    assert (13 in tiles, 11 in tiles) == (dilation < 32, dilation == 32)
    assert copies_padding(func) == (dilation < 32)


@pytest.mark.parametrize("name", ["small", "steps", "sums in parts"])
def test_no_test_is_left_in_the_loops(name):
    size, options = CASES[name]
    assert not guards_in_loops(scheduled(te.create_prim_func(convolution(size, **options))))


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((70, 70), {}),  # few terms are outside
        ((3, 31), {}),  # a tile that is cut off
    ],
)
def test_others_keep_a_padded_image(size, options):
    tensors = convolution(size, **options)
    assert copies_padding(scheduled(te.create_prim_func(tensors)))


@pytest.mark.parametrize("name", ["small", "steps", "larger windows"])
def test_images_of_an_unknown_number_are_not_copied_either(name):
    size, options = CASES[name]
    tensors = convolution(size, **options, batch=tir.Var("batch", "int32"))
    func = scheduled(te.create_prim_func(tensors))
    assert not copies_padding(func)
    native = weft.build(func, "llvm")["main"]
    for batch in (0, 1, 3):
        shapes = [[batch, *tensor.shape[1:]] for tensor in tensors]
        shapes[1:3] = [tensor.shape for tensor in tensors[1:3]]
        arrays = [floats(*map(int, shape)) for shape in shapes]
        expected = [array.copy() for array in arrays]
        run(te.create_prim_func(tensors), *expected)
        given = [weft.nd.array(array) for array in arrays]
        native(*given)
        np.testing.assert_allclose(given[-1].numpy(), expected[-1], rtol=1e-4, atol=1e-5)


def test_an_image_that_is_padded_with_ones_is_copied():
    x, w = te.placeholder((1, 1, 5, 4, 2), name="x"), te.placeholder((2, 1, 3, 3, 2, 4), name="w")
    padded = topi.nn.pad(x, [0, 0, 1, 1, 0], [0, 0, 1, 1, 0], pad_value=1.0, name="pad_temp")
    tensors = [x, w, conv_blocked(padded, w, 1, 0, 1, 1, LAYOUTS)]
    assert copies_padding(scheduled(te.create_prim_func(tensors)))
    assert_results_are_kept(tensors)


def nests(tensors):
    sch = tir.Schedule(te.create_prim_func(tensors))
    return Nest(sch, sch.get_block("pad_temp")), Nest(sch, sch.get_block("conv2d_NCHWc"))


@pytest.mark.parametrize(
    ("size", "options", "share"),
    [
        ((7, 7), {}, (19 / 21) ** 2),
        ((14, 14), {"stride": 2}, (20 / 21) ** 2),
        ((7, 6), {"padding": (2, 0, 1, 1)}, (20 / 24) * (14 / 15)),
    ],
)  # fmt: skip
def test_terms_are_counted(size, options, share):
    assert borders.share_inside(*nests(convolution(size, **options))) == pytest.approx(share)


def test_an_axis_of_unknown_size_that_is_not_padded_is_inside():
    batch = tir.Var("batch", "int32")
    tensors = convolution((7, 7), batch=batch)
    assert borders.share_inside(*nests(tensors)) == pytest.approx((19 / 21) ** 2)


def test_a_padding_of_another_tensor_says_nothing():
    pad, _ = nests(convolution((7, 7)))
    _, other = nests(convolution((9, 9)))
    assert borders.share_inside(pad, other) == 1.0


@pytest.mark.parametrize("target", ["skylake-avx512", "haswell"])
@pytest.mark.parametrize("cores", [1, 2])
def test_tiles_of_other_machines_hold_no_tests(target, cores):
    """Of two rows of seven pixels the last tile has one, of vectors of 16 lanes or of 8."""
    lanes = 16 if target == "skylake-avx512" else 8
    x = te.placeholder((1, 2, 7, 7, lanes), name="x")
    w = te.placeholder((4, 2, 3, 3, lanes, lanes), name="w")
    layouts = (f"NCHW{lanes}c", f"OIHW{lanes}i{lanes}o", f"NCHW{lanes}c")
    func = te.create_prim_func([x, w, conv_blocked(x, w, 1, 1, 1, 1, layouts)])
    machine = weft.target.Target(f"llvm -mcpu={target} -num-cores={cores}")
    made = dlight.cpu.Default().apply(func, machine, False).mod["main"]
    assert not copies_padding(made)
    assert not guards_in_loops(made)
