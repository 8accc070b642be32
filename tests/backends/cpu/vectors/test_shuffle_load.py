"""ShuffleLoad: before and after, and the same results in native code."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import dlight, te, topi
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Broadcast, Ramp
from weft.tir.interp import run
from weft.tir.transform import ShuffleLoad


def test_what_is_repeated_is_read_once(becomes):
    @T.prim_func
    def before(a: T.Buffer((16,), "int32"), c: T.Buffer((32,), "int32")):
        for i in range(4):
            c[i * 8 : i * 8 + 8] = a[T.Ramp(i * 8, 1, 8) // T.Broadcast(2, 8)]

    @T.prim_func
    def expected(a: T.Buffer((16,), "int32"), c: T.Buffer((32,), "int32")):
        for i in range(4):
            c[i * 8 : i * 8 + 8] = T.Shuffle([a[i * 4 : i * 4 + 4]], [0, 0, 1, 1, 2, 2, 3, 3])

    becomes(ShuffleLoad(), before, expected)


def test_a_run_does_not_leave_the_row(becomes):
    @T.prim_func
    def before(a: T.Buffer((6,), "int32"), c: T.Buffer((4,), "int32")):
        c[0:4] = a[T.min(T.Ramp(3, 1, 4), T.Broadcast(5, 4))]

    @T.prim_func
    def expected(a: T.Buffer((6,), "int32"), c: T.Buffer((4,), "int32")):
        c[0:4] = T.Shuffle([a[2:6]], [1, 2, 3, 3])

    becomes(ShuffleLoad(), before, expected)


def test_every_second_element_and_the_others_are_read_once(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 9), "int32"), c: T.Buffer((4, 2, 4), "int32")):
        for i in range(4):
            c[i, 0, 0:4] = a[i, 0:8:2]
            c[i, 1, 0:4] = a[i, 1:9:2]

    @T.prim_func
    def expected(a: T.Buffer((4, 9), "int32"), c: T.Buffer((4, 2, 4), "int32")):
        for i in range(4):
            c[i, 0, 0:4] = T.Shuffle([a[i, 0:8]], [0, 2, 4, 6])
            c[i, 1, 0:4] = T.Shuffle([a[i, 0:8]], [1, 3, 5, 7])

    becomes(ShuffleLoad(), before, expected)


def test_a_run_with_a_step_does_not_leave_the_row(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 7), "int32"), c: T.Buffer((4, 4), "int32")):
        for i in range(4):
            c[i, 0:4] = a[i, 0:8:2]

    becomes(ShuffleLoad(), before, before)


def test_arithmetic_of_constants_is_carried_out(becomes):
    @T.prim_func
    def before(a: T.Buffer((3,), "int32"), c: T.Buffer((4,), "int32")):
        c[0:4] = a[
            T.Cast("int32x4", T.floor(T.Cast("float32x4", T.Ramp(1, 1, 4)) * T.Broadcast(0.4, 4)))
        ]

    @T.prim_func
    def expected(a: T.Buffer((3,), "int32"), c: T.Buffer((4,), "int32")):
        c[0:4] = T.Shuffle([a[0:2]], [0, 0, 1, 1])

    becomes(ShuffleLoad(), before, expected)


def test_what_is_picked_in_one_order_is_computed_with_before(becomes):
    @T.prim_func
    def before(a: T.Buffer((2, 8), "float32"), c: T.Buffer((8,), "float32")):
        c[0:8] = (
            a[0, T.Ramp(0, 1, 8) // T.Broadcast(2, 8)] * T.Broadcast(T.float32(3), 8)
            + a[1, T.Ramp(0, 1, 8) // T.Broadcast(2, 8)]
        ) - a[0, T.Ramp(0, 1, 8) // T.Broadcast(4, 8)]

    @T.prim_func
    def expected(a: T.Buffer((2, 8), "float32"), c: T.Buffer((8,), "float32")):
        c[0:8] = T.Shuffle(
            [a[0, 0:4] * T.Broadcast(T.float32(3), 4) + a[1, 0:4]], [0, 0, 1, 1, 2, 2, 3, 3]
        ) - T.Shuffle([a[0, 0:4]], [0, 0, 0, 0, 1, 1, 1, 1])

    becomes(ShuffleLoad(), before, expected)


def test_neighbours_are_read_by_one_run_where_that_is_no_wider(becomes):
    @T.prim_func
    def before(a: T.Buffer((2, 40), "float32"), c: T.Buffer((8,), "float32")):
        c[0:8] = (
            a[0, (T.Ramp(3, 1, 8) // T.Broadcast(2, 8)) + T.Broadcast(1, 8)]
            + a[1, T.Ramp(3, 1, 8) // T.Broadcast(2, 8)]
            + a[0, (T.Ramp(3, 1, 8) // T.Broadcast(2, 8)) + T.Broadcast(7, 8)]
        )

    @T.prim_func
    def expected(a: T.Buffer((2, 40), "float32"), c: T.Buffer((8,), "float32")):
        c[0:8] = (
            T.Shuffle([a[0, 1:9]], [1, 2, 2, 3, 3, 4, 4, 5])
            + T.Shuffle([a[1, 1:9]], [0, 1, 1, 2, 2, 3, 3, 4])
            + T.Shuffle([a[0, 8:16]], [0, 1, 1, 2, 2, 3, 3, 4])
        )

    becomes(ShuffleLoad(), before, expected)


def test_what_is_far_apart_or_not_known_is_gathered(becomes):
    @T.prim_func
    def before(
        a: T.Buffer((64,), "int32"), b: T.Buffer((8,), "int32"), c: T.Buffer((4, 4), "int32")
    ):
        for i in range(2):
            c[0, 0:4] = a[T.Ramp(0, 30, 4) // T.Broadcast(2, 4)]
            c[1, 0:4] = a[b[T.Ramp(0, 1, 4)]]
            c[2, 0:4] = a[T.Ramp(i, 1, 4) // T.Broadcast(3, 4)]
            c[3, 0:4] = a[T.Ramp(i, 1, 4)]

    becomes(ShuffleLoad(), before, before)


RESIZED = {
    "nearest, doubled": ("nearest_neighbor", "asymmetric", 8, 32),
    "nearest, by one and a half": ("nearest_neighbor", "half_pixel", 12, 18),
    "nearest, smaller": ("nearest_neighbor", "asymmetric", 40, 16),
    "linear, doubled": ("linear", "half_pixel", 9, 18),
    "linear, of one pixel": ("linear", "half_pixel", 1, 17),
    "linear, many vectors": ("linear", "align_corners", 20, 259),
    "cubic": ("cubic", "half_pixel", 7, 24),
}


@pytest.mark.parametrize("case", RESIZED)
def test_images_are_resized_without_gathers(case):
    method, mode, size, wanted = RESIZED[case]
    image = te.placeholder((1, 2, 3, size), name="image")
    result = topi.image.resize2d(
        image, None, (5, wanted), method=method, coordinate_transformation_mode=mode
    )
    func = te.create_prim_func([image, result])
    target = weft.target.Target("llvm -num-cores=2")
    made = dlight.cpu.Default().apply(func, target, False)
    assert made is not None
    pixels = np.random.default_rng(0).standard_normal((1, 2, 3, size)).astype("float32")
    expected, found = [np.zeros((1, 2, 5, wanted), "float32") for _ in range(2)]
    run(func, pixels, expected)
    weft.build(made.mod, target)["main"](pixels, found)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    loads = collect(weft.lower(made.mod)["main"].body, BufferLoad)
    gathered = [
        load for load in loads
        if load.dtype.lanes > 1 and not isinstance(load.indices[-1], Ramp | Broadcast)
    ]  # fmt: skip
    assert not gathered


@pytest.mark.parametrize("extent", [0, 1, 17, 1000])
def test_repeated_columns(extent):
    row = te.placeholder((3, extent), name="row")
    func = te.create_prim_func([row, topi.repeat(row, 3, 1)])
    target = weft.target.Target("llvm -num-cores=1")
    made = dlight.cpu.Default().apply(func, target, False)
    assert made is not None
    numbers = np.arange(3 * extent, dtype="float32").reshape(3, extent)
    found = np.zeros((3, 3 * extent), "float32")
    weft.build(made.mod, target)["main"](numbers, found)
    np.testing.assert_array_equal(found, np.repeat(numbers, 3, 1))
