"""PrefetchSteps: before and after, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.transform import PrefetchNextIteration, PrefetchSteps


def lowered(func):
    return PrefetchSteps()(weft.IRModule({"func": func}))["func"]


def prefetches(func):
    return [line.strip() for line in func.script().splitlines() if 'tir.prefetch"' in line]


def test_each_step_asks_for_the_lines_of_the_fourth_after_it(becomes):
    @T.prim_func
    def before(
        a: T.Buffer((2, 9), "float32"), b: T.Buffer((9, 40), "float32"),
        c: T.Buffer((2, 40), "float32"),
    ):  # fmt: skip
        for k in T.serial(9, annotations={"tir.prefetch_steps": True}):
            for r in T.unroll(2):
                for x in T.vectorized(40):
                    c[r, x] = c[r, x] + a[r, k] * b[k, x]

    @T.prim_func
    def expected(
        a: T.Buffer((2, 9), "float32"), b: T.Buffer((9, 40), "float32"),
        c: T.Buffer((2, 40), "float32"),
    ):  # fmt: skip
        for k in range(9):
            for x in T.unroll(3):
                T.Call("int32", "tir.prefetch", [b[k + 4, x * 16], 0, 3, 1])
            for r in T.unroll(2):
                for x in T.vectorized(40):
                    c[r, x] = c[r, x] + a[r, k] * b[k, x]

    becomes(PrefetchSteps(), before, expected)


def test_steps_that_are_unrolled_ask_each_for_its_own(becomes):
    """Blocks of columns are several runs of memory; and what else is fetched stays in front."""

    @T.prim_func
    def before(
        a: T.Buffer((2, 9), "float32"), b: T.Buffer((2, 9, 16), "float32"),
        c: T.Buffer((2, 2, 16), "float32"),
    ):  # fmt: skip
        for k in T.serial(3, annotations={"tir.prefetch_steps": True}):
            T.Call("int32", "tir.prefetch", [a[0, k], 0, 2, 1])
            for step in T.unroll(3):
                for r in T.unroll(2):
                    for j in T.unroll(2):
                        for x in T.vectorized(16):
                            c[r, j, x] = c[r, j, x] + a[r, k * 3 + step] * b[j, k * 3 + step, x]

    @T.prim_func
    def expected(
        a: T.Buffer((2, 9), "float32"), b: T.Buffer((2, 9, 16), "float32"),
        c: T.Buffer((2, 2, 16), "float32"),
    ):  # fmt: skip
        for k in range(3):
            T.Call("int32", "tir.prefetch", [a[0, k], 0, 2, 1])
            for step in T.unroll(3):
                for j in T.unroll(2):
                    for x in T.unroll(1):
                        T.Call("int32", "tir.prefetch", [b[j, (k + 2) * 3 + step, x * 16], 0, 3, 1])
                for r in T.unroll(2):
                    for j in T.unroll(2):
                        for x in T.vectorized(16):
                            c[r, j, x] = c[r, j, x] + a[r, k * 3 + step] * b[j, k * 3 + step, x]

    becomes(PrefetchSteps(), before, expected)


def test_numbers_accumulators_and_what_is_the_same_in_each_step_are_not_asked_for():
    @T.prim_func
    def func(
        a: T.Buffer((9,), "float32"), b: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32"),
    ):  # fmt: skip
        for k in T.serial(9, annotations={"tir.prefetch_steps": True}):
            for x in T.vectorized(16):
                c[x] = c[x] + a[k] * b[x]

    after = lowered(func)
    assert not prefetches(after)
    assert "prefetch_steps" not in after.script()


def test_vectors_of_symbolic_width_are_not_asked_for():
    @T.prim_func
    def func(n: T.int64, b_handle: T.handle, c_handle: T.handle):
        b = T.match_buffer(b_handle, (9, n), "float32")
        c = T.match_buffer(c_handle, (n,), "float32")
        for k in T.serial(9, annotations={"tir.prefetch_steps": True}):
            for x in T.vectorized(n):
                c[x] = c[x] + b[k, x]

    assert not prefetches(lowered(func))


def test_of_narrow_operands_a_line_holds_more():
    @T.prim_func
    def func(
        a: T.Buffer((9,), "float32"), b: T.Buffer((9, 48), "bfloat16"),
        c: T.Buffer((48,), "float32"),
    ):  # fmt: skip
        for k in T.serial(9, annotations={"tir.prefetch_steps": True}):
            for x in T.vectorized(48):
                c[x] = c[x] + a[k] * T.Cast("float32", b[k, x])

    script = lowered(func).script()
    assert "T.unroll(2)" in script
    assert "x * 32" in script


@pytest.mark.parametrize(("rows", "depth", "width"), [(1, 1, 16), (3, 5, 24), (4, 8, 33)])
def test_results_stay(rows, depth, width):
    """Also of the last steps, which ask for what lies beyond the operand."""

    @T.prim_func
    def func(
        a: T.Buffer((rows, depth), "float32"), b: T.Buffer((depth, width), "float32"),
        c: T.Buffer((rows, width), "float32"),
    ):  # fmt: skip
        for r in range(rows):
            for x in T.vectorized(width):
                c[r, x] = T.float32(0)
            for k in T.serial(depth, annotations={"tir.prefetch_steps": True}):
                for x in T.vectorized(width):
                    c[r, x] = c[r, x] + a[r, k] * b[k, x]

    after = lowered(func)
    assert len(prefetches(after)) == 1
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in ((rows, depth), (depth, width))]
    native = weft.nd.array(np.zeros((rows, width), np.float32))
    weft.build(func)["func"](*[weft.nd.array(array) for array in arrays], native)
    interpreted = np.zeros((rows, width), np.float32)
    run(after, *arrays, interpreted)
    for result in (native.numpy(), interpreted):
        np.testing.assert_allclose(result, arrays[0] @ arrays[1], rtol=1e-5, atol=1e-5)


def test_the_next_panel_is_asked_for_as_well():
    @T.prim_func
    def func(
        a: T.Buffer((4, 8), "float32"), b: T.Buffer((3, 8, 16), "float32"),
        c: T.Buffer((4, 3, 16), "float32"),
    ):  # fmt: skip
        for j in T.serial(3, annotations={"tir.prefetch_next": True}):
            for r in range(4):
                for k in T.serial(8, annotations={"tir.prefetch_steps": True}):
                    for x in T.vectorized(16):
                        c[r, j, x] = c[r, j, x] + a[r, k] * b[j, k, x]

    both = PrefetchSteps()(PrefetchNextIteration()(weft.IRModule({"func": func})))["func"]
    assert len(prefetches(both)) == 2


def test_below_a_name_nothing_is_asked_for():
    @T.prim_func
    def func(
        a: T.Buffer((9,), "float32"), b: T.Buffer((9, 16), "float32"),
        c: T.Buffer((16,), "float32"),
    ):  # fmt: skip
        for k in T.serial(9, annotations={"tir.prefetch_steps": True}):
            with T.LetStmt(8 - k) as last:
                for x in T.vectorized(16):
                    c[x] = c[x] + a[k] * b[last, x]

    assert not prefetches(lowered(func))
