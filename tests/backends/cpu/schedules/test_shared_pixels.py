"""How many results of a row a tile has if their windows share the pixels that they load."""

from __future__ import annotations

import pytest

from weft import te, tir, topi
from weft.backends.cpu.schedules.shared_pixels import Window, is_shared, tile_of, window_of
from weft.dlight.nest import Nest, blocks_of
from weft.target.machine import Machine
from weft.tir.expr import Var

WIDE = Machine(1, 512, 32, 1, 32 << 10, 1 << 20, 8 << 20)
NARROW = Machine(1, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20)


def window(size, stride=1, dilation=1, vectors=1):
    return Window(Var("kx"), size * size, size, stride, dilation, vectors)


@pytest.mark.parametrize(
    ("shape", "tile", "pixels"),
    [
        (window(3), 4, 6),
        (window(3, stride=2), 4, 9),
        (window(3, stride=3), 4, 12),
        (window(3, dilation=2), 2, 6),
        (window(3, dilation=2), 4, 8),
        (window(1), 4, 4),
    ],
)
def test_neighbouring_windows_have_pixels_in_common(shape, tile, pixels):
    assert shape.pixels(tile) == pixels
    assert shape.pixels(tile) == len(
        {i * shape.stride + k * shape.dilation for i in range(tile) for k in range(shape.wide)}
    )


@pytest.mark.parametrize("length", [1, 3, 7, 13, 14, 28, 31, 112])
@pytest.mark.parametrize("size", [2, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_tile_fits_the_registers_and_the_row(length, size, stride):
    shape = window(size, stride)
    tile = tile_of(shape, length, WIDE)
    assert tile is not None
    assert 1 <= tile <= length
    if shape.overlaps:
        assert shape.registers(tile) <= WIDE.vector_registers
        assert is_shared(shape, tile, WIDE)


def test_tiles_end_with_the_row_where_they_can():
    assert [tile_of(window(3), length, WIDE) for length in (56, 14, 112, 11)] == [8, 7, 8, 6]


def test_few_registers_are_filled_instead():
    assert tile_of(window(3, vectors=2), 28, NARROW) is None
    assert tile_of(None, 28, WIDE) is None


def test_windows_apart_share_nothing():
    assert not window(2, stride=2).overlaps
    assert not is_shared(window(2, stride=2), 1, WIDE)
    assert tile_of(window(2, stride=2), 56, WIDE) == tile_of(window(2, stride=2), 56, NARROW) == 8


def nest_of(tensors):
    sch = tir.Schedule(te.create_prim_func(tensors))
    return Nest(sch, [block for block in blocks_of(sch) if Nest(sch, block).is_reduction][0])


def test_the_window_of_a_pool():
    x = te.placeholder((1, 2, 9, 11, 32), name="x")
    nest = nest_of(
        [x, topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (0, 0, 0, 0), "max", layout="NCHWc")]
    )
    row = nest.result_axes()[-2]
    shape = window_of(nest, row, WIDE)
    assert (shape.taps, shape.wide, shape.stride, shape.dilation, shape.vectors) == (
        9,
        3,
        64,
        32,
        2,
    )


def test_a_sum_down_columns_has_no_window():
    x = te.placeholder((1, 2, 9, 11, 32), name="x")
    nest = nest_of([x, topi.sum(x, 2)])
    assert window_of(nest, nest.result_axes()[-2], WIDE) is None
