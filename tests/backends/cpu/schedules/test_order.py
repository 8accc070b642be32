"""In which order tiles are computed: the counts behind it, and results in every order."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import dlight, te, topi
from weft.backends.cpu.schedules import order as order_module
from weft.backends.cpu.schedules import tile_order
from weft.backends.cpu.schedules.order import (
    Order,
    Side,
    Tiles,
    best_order,
    share_of_busiest,
    tiles_of,
)
from weft.backends.cpu.schedules.parallel_depth import depth_of_counts
from weft.driver.pipeline import lower_tir
from weft.target.machine import Machine
from weft.tir.interp import run
from weft.topi.nn.convolution_blocked import conv_blocked

ONE, TWO = [Machine(cores, 512, 32, 2, 32 << 10, 1 << 20, 32 << 20) for cores in (1, 2)]
LARGE = 1 << 22
RNG = np.random.default_rng(7)


def side(size, *counts):
    return Side(tuple([Tiles(count) for count in counts]), size)


def test_what_fits_the_second_cache_is_read_again_by_the_tiles_of_the_other():
    small, large = side(1 << 17, 16), side(LARGE, 16)
    assert best_order(ONE, large, small, 1e5) == Order()
    assert best_order(ONE, small, large, 1e5) == Order(by_row=True)
    assert best_order(ONE, small, large, 1e5, may_be_by_row=False) != Order(by_row=True)


def test_where_neither_fits_a_group_does():
    order = best_order(ONE, side(1 << 20, 16), side(1 << 21, 64), 1e5, may_be_by_row=False)
    assert order == Order(by_row=False, groups=4)


def test_weights_that_come_from_memory_come_once():
    assert best_order(ONE, side(LARGE, 16), side(1 << 21, 64), 1e5, may_be_by_row=False) == Order()


def test_multiply_adds_hide_what_little_memory_costs():
    assert best_order(ONE, side(1 << 20, 16), side(1 << 21, 64), 1e8) == Order()


def test_cores_share_what_has_no_tile_that_is_cut_off():
    """Of five tiles of pixels, the last a twelfth of a whole one, a core would get half of all."""
    pixels, filters = Side((tiles_of(196, 48),), 1 << 19), side(1 << 18, 32)
    assert share_of_busiest([*pixels.tiles, *filters.tiles], 2) > 0.6
    assert best_order(TWO, pixels, filters, 1e7).by_row
    assert best_order(ONE, pixels, filters, 1e7) == Order()


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.parametrize("counts", [(1,), (5,), (3, 4), (1, 9, 2), (100, 100, 100)])
def test_the_busiest_core_does_at_least_its_share(counts, cores):
    share = share_of_busiest([Tiles(count) for count in counts], cores)
    assert 1 / cores <= share <= 1
    depth = depth_of_counts(counts, [False] * len(counts), cores)
    assert 0 <= depth <= len(counts)


def filters_and_pixels(filters, channels, pixels):
    """A convolution of windows of one pixel, channels first: filters are rows, pixels columns."""
    x = te.placeholder((1, channels, 1, pixels), name="x")
    w = te.placeholder((filters, channels, 1, 1), name="w")
    bias = te.placeholder((1, filters, 1, 1), name="bias")
    return [x, w, bias, topi.nn.relu(topi.add(topi.nn.conv2d(x, w, 1, 0, 1), bias))]


def blocks_of_channels(filters, high, wide):
    """One of blocks of four channels: pixels are rows, filters columns."""
    x = te.placeholder((1, 2, high, wide, 4), name="x")
    w = te.placeholder((filters, 2, 1, 1, 4, 4), name="w")
    return [x, w, conv_blocked(x, w, 1, 0, 1, 1, ("NCHW4c", "OIHW4i4o", "NCHW4c"))]


def assert_results_are_kept(tensors, target):
    """Of inputs and the result: the same as written, lowered and native."""
    func = te.create_prim_func(tensors)
    made = dlight.cpu.Default().apply(func, target, False).mod["main"]
    shapes = [[int(extent) for extent in tensor.shape] for tensor in tensors]
    arrays = [RNG.normal(size=shape).astype("float32") for shape in shapes[:-1]]
    out = [np.full(shapes[-1], 7, "float32") for _ in range(3)]
    run(func, *arrays, out[0])
    run(lower_tir()(weft.IRModule({"main": made}))["main"], *arrays, out[1])
    given = [weft.nd.array(array) for array in (*arrays, out[2])]
    weft.build(made, target)["main"](*given)
    for result in (out[1], given[-1].numpy()):
        np.testing.assert_allclose(result, out[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("order", "cores"), [
    (Order(True), 2), (Order(False, 2), 2), (Order(True, 2), 1), (Order(False, 3), 1),
])  # fmt: skip
@pytest.mark.parametrize("make", [lambda: filters_and_pixels(24, 2, 39),
                                  lambda: filters_and_pixels(7, 1, 29),
                                  lambda: blocks_of_channels(6, 5, 7)])  # fmt: skip
def test_results_are_kept_in_every_order(make, order, cores, monkeypatch):
    chosen = []

    def best(machine, columns, rows, *_, **__):
        usual = Order(order.by_row)
        possible = [usual, *order_module._orders(machine, columns, rows, True)]
        chosen.append(order if order in possible else usual)
        return chosen[-1]

    monkeypatch.setattr(tile_order, "best_order", best)
    target = weft.target.Target(f"llvm -vector-width=128 -num-cores={cores}")
    assert_results_are_kept(make(), target)
    assert chosen


def test_filters_that_the_cache_does_not_hold_are_read_once():
    func = te.create_prim_func(filters_and_pixels(128, 16, 18))
    counts = []
    for size in (4096, 1 << 20):
        target = weft.target.Target(f"llvm -vector-width=128 -num-cores=1 -l2-cache-bytes={size}")
        outer = dlight.cpu.Default().apply(func, target, False).mod["main"].body.block.body
        while int(outer.extent) == 1:
            outer = outer.body
        counts.append(int(outer.extent))
    filters, pixels = counts
    assert filters > pixels
