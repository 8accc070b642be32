"""SkipOutside: before and after; windows with holes over images of any size."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import SMALL, floats, scheduled
from weft import te, tir, topi
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.tir.transform import SkipOutside
from weft.topi.nn.convolution_blocked import conv_blocked


def test_steps_that_meet_only_padding_are_left_out(becomes):
    @T.prim_func
    def before(
        x: T.Buffer((6, 6), "float32"), k: T.Buffer((3, 3), "float32"),
        s: T.Buffer((6, 6), "float32"),
    ):  # fmt: skip
        p = T.alloc_buffer((14, 14), "float32")
        for r, c in T.grid(14, 14):
            p[r, c] = T.if_then_else(
                4 <= r and r < 10 and 4 <= c and c < 10, x[r - 4, c - 4], T.float32(0)
            )
        for y, o in T.grid(6, 3):
            for i in T.serial(3, annotations={"tir.skip_outside": True}):
                for j in T.serial(3, annotations={"tir.skip_outside": True}):
                    for v in T.unroll(2):
                        s[y, o * 2 + v] = (
                            s[y, o * 2 + v] + p[y + i * 4, o * 2 + v + j * 4] * k[i, j]
                        )

    @T.prim_func
    def expected(
        x: T.Buffer((6, 6), "float32"), k: T.Buffer((3, 3), "float32"),
        s: T.Buffer((6, 6), "float32"),
    ):  # fmt: skip
        p = T.alloc_buffer((14, 14), "float32")
        for r in range(14):
            if 4 <= r and r < 10:
                for c in range(14):
                    p[r, c] = T.if_then_else(
                        4 <= r and r < 10 and 4 <= c and c < 10, x[r - 4, c - 4], T.float32(0)
                    )
        for y, o in T.grid(6, 3):
            for i in range(3):
                if 4 <= y + i * 4 and y + i * 4 < 10:
                    for j in range(3):
                        if 4 <= j * 4 + o * 2 + 1 and j * 4 + o * 2 < 10:
                            for v in T.unroll(2):
                                s[y, o * 2 + v] = (
                                    s[y, o * 2 + v] + p[y + i * 4, o * 2 + v + j * 4] * k[i, j]
                                )

    becomes(SkipOutside(), before, expected)


def same_results(func, *outputs):
    """Whether SkipOutside leaves the results of an image and a window unchanged; what it made."""
    after = SkipOutside()(weft.IRModule({"main": func}))["main"]
    arrays = floats(6), floats(3)
    results = [[output.copy() for output in outputs] for _ in range(2)]
    for each, result in zip((func, after), results, strict=True):
        run(each, *arrays, *result)
    for left, right in zip(*results, strict=True):
        np.testing.assert_array_equal(left, right)
    return after


def asked(padding, update):
    """An annotated loop over something that steps cannot be left out of."""

    @T.prim_func
    def func(
        x: T.Buffer((6,), "float32"), k: T.Buffer((3,), "float32"), s: T.Buffer((6,), "float32")
    ):
        p = T.alloc_buffer((14,), "float32")
        for r in range(14):
            p[r] = T.if_then_else(4 <= r and r < 10, x[r - 4], T.float32(padding))
        for y in range(6):
            for i in T.serial(3, annotations={"tir.skip_outside": True}):
                s[y] = update(s[y], p[y + i * 4] * k[i])

    return func


@T.prim_func
def two(x: T.Buffer((6,), "float32"), k: T.Buffer((3,), "float32"), s: T.Buffer((6,), "float32")):
    p = T.alloc_buffer((14,), "float32")
    for r in range(14):
        p[r] = T.if_then_else(4 <= r and r < 10, x[r - 4], T.float32(0))
    for y in range(6):
        for i in T.serial(3, annotations={"tir.skip_outside": True}):
            s[y] = s[y] + p[y + i * 4] * k[i]
            s[y] = s[y] + k[i]


@pytest.mark.parametrize("kind", ["ones", "largest", "two"])
def test_others_are_computed_in_all_steps(kind):
    kinds = {"ones": (1, lambda s, x: s + x), "largest": (0, T.max)}
    func = two if kind == "two" else asked(*kinds[kind])
    after = same_results(func, np.zeros(6, "float32"))
    assert not collect(after.body, tir.IfThenElse)


def test_an_image_that_another_reads_is_filled_as_a_whole():
    @T.prim_func
    def func(
        x: T.Buffer((6,), "float32"), k: T.Buffer((3,), "float32"),
        s: T.Buffer((6,), "float32"), z: T.Buffer((14,), "float32"),
    ):  # fmt: skip
        p = T.alloc_buffer((14,), "float32")
        for r in range(14):
            p[r] = T.if_then_else(4 <= r and r < 10, x[r - 4], T.float32(0))
        for y in range(6):
            for i in T.serial(3, annotations={"tir.skip_outside": True}):
                s[y] = s[y] + p[y + i * 4] * k[i]
        for r in range(14):
            z[r] = p[r]

    after = same_results(func, np.zeros(6, "float32"), np.ones(14, "float32"))
    assert len(collect(after.body, tir.IfThenElse)) == 1


def test_what_the_caller_reads_or_shares_its_loop_is_filled_as_a_whole():
    @T.prim_func
    def argument(
        x: T.Buffer((6,), "float32"), k: T.Buffer((3,), "float32"),
        s: T.Buffer((6,), "float32"), p: T.Buffer((14,), "float32"),
    ):  # fmt: skip
        for r in range(14):
            p[r] = T.if_then_else(4 <= r and r < 10, x[r - 4], T.float32(0))
        for y in range(6):
            for i in T.serial(3, annotations={"tir.skip_outside": True}):
                s[y] = s[y] + p[y + i * 4] * k[i]

    @T.prim_func
    def shared(
        x: T.Buffer((6,), "float32"), k: T.Buffer((3,), "float32"),
        s: T.Buffer((6,), "float32"), z: T.Buffer((14,), "float32"),
    ):  # fmt: skip
        p = T.alloc_buffer((14,), "float32")
        for r in range(14):
            p[r] = T.if_then_else(4 <= r and r < 10, x[r - 4], T.float32(0))
            z[r] = T.float32(2)
        for y in range(6):
            for i in T.serial(3, annotations={"tir.skip_outside": True}):
                s[y] = s[y] + p[y + i * 4] * k[i]

    for func in (argument, shared):
        same_results(func, np.zeros(6, "float32"), np.ones(14, "float32"))


H, W = tir.SizeVar("h", "int64"), tir.SizeVar("w", "int64")


@pytest.mark.parametrize("dilation", [2, 9])
def test_windows_with_holes_over_images_of_any_size(dilation):
    x = te.placeholder((1, 4, H, W, 4), name="x")
    three = tir.IntImm("int64", 3)
    w = te.placeholder((2, 4, three, three, 4, 4), name="w")
    layouts = ("NCHW4c", "OIHW4i4o", "NCHW4c")
    conv = conv_blocked(x, w, 1, dilation, dilation, 1, layouts)
    func = te.create_prim_func([x, w, topi.nn.relu(conv)])
    new = scheduled(func)
    assert any("tir.skip_outside" in loop.annotations for loop in collect(new.body, For))
    lowered = lower_tir()(weft.IRModule({"main": new}))["main"]
    native = weft.build(new, SMALL)["main"]
    for height, width in ((1, 1), (3, 8), (12, 5), (5, 13), (2, 31)):
        arrays = floats(1, 4, height, width, 4), floats(2, 4, 3, 3, 4, 4)
        results = [np.full((1, 2, height, width, 4), 7, "float32") for _ in range(3)]
        run(func, *arrays, results[0])
        run(lowered, *arrays, results[1])
        native(*arrays, results[2])
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=1e-4, atol=1e-5)
