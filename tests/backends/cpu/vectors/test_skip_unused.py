"""SkipUnused: before and after, where it does nothing, and what is computed then."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.backends.cpu.vectors.skip_unused import SKIP_UNUSED, SkipUnused
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.stmt import For


def in_bands(size, annotated=2):
    """Elements in bands of three groups of two; ``size`` elements are in a band of the loop."""

    @T.prim_func
    def func(p: T.handle, q: T.handle):
        n = T.int64()
        a = T.match_buffer(p, (n,), "int32")
        count = T.match_buffer(q, (1,), "int32")
        for band in range((n + (size - 1)) // size):
            for group in T.serial(T.int64(3), annotations={SKIP_UNUSED: annotated}):
                count[0] = count[0] + 1
                for i in range(T.int64(2)):
                    if band * 6 + group * 2 + i < n:
                        a[band * 6 + group * 2 + i] = a[band * 6 + group * 2 + i] + 1

    return func


def test_the_last_band_runs_the_groups_that_it_has():
    @T.prim_func
    def expected(p: T.handle, q: T.handle):
        n = T.int64()
        a = T.match_buffer(p, (n,), "int32")
        count = T.match_buffer(q, (1,), "int32")
        for band in range((n + 5) // 6):
            for group in range(T.min(T.int64(3), (n - (band - T.int64(0)) * 6 + 1) // 2)):
                count[0] = count[0] + 1
                for i in range(T.int64(2)):
                    if band * 6 + group * 2 + i < n:
                        a[band * 6 + group * 2 + i] = a[band * 6 + group * 2 + i] + 1

    after = SkipUnused()(weft.IRModule({"main": in_bands(6)}))["main"]
    weft.ir.assert_structural_equal(after, expected.with_attr("global_symbol", "func"))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6, 7, 10, 11, 12])
def test_so_many_groups_run_as_there_are_elements_for(n):
    after = SkipUnused()(weft.IRModule({"main": in_bands(6)}))["main"]
    values, count = np.zeros(n, "int32"), np.zeros(1, "int32")
    run(after, values, count)
    assert count[0] == -(-n // 2)
    np.testing.assert_array_equal(values, 1)


@pytest.mark.parametrize(("size", "annotated"), [(7, 2), (6, 3)])
def test_all_groups_run_where_no_loop_around_counts_their_bands(size, annotated):
    before = in_bands(size, annotated)
    after = SkipUnused()(weft.IRModule({"main": before}))["main"]
    assert not any(SKIP_UNUSED in loop.annotations for loop in collect(after.body, For))
    extents = [loop.extent for loop in collect(before.body, For)]
    for loop, extent in zip(collect(after.body, For), extents, strict=True):
        weft.ir.assert_structural_equal(loop.extent, extent)
