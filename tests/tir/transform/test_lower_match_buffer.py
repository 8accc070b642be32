"""LowerMatchBuffer: before and after, and the same results."""

from __future__ import annotations

import numpy as np

import weft
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.transform import LowerMatchBuffer


def test_accesses_of_a_view_are_of_its_source(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        for i, j in T.grid(4, 2):
            with T.block("tile"):
                T.reads(a[i, j * 4 : j * 4 + 4])
                T.writes(c[i, j * 4 : j * 4 + 4])
                x = T.match_buffer(a[i, j * 4 : j * 4 + 4], (4,), "int32", strides=("s",))
                y = T.match_buffer(c[i, j * 4 : j * 4 + 4], (4,), "int32")
                for k in range(4):
                    y[k] = x[k] + x.strides[0]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4, 8), "int32")):
        # with T.block("root"):
        for i, j in T.grid(4, 2):
            with T.block("tile"):
                T.reads(a[i, j * 4 : j * 4 + 4])
                T.writes(c[i, j * 4 : j * 4 + 4])
                for k in range(4):
                    c[i, j * 4 + k] = a[i, j * 4 + k] + 1

    becomes(LowerMatchBuffer(), before, expected)


def test_a_region_that_memory_names_stays_while_its_block_runs():
    @T.prim_func
    def before(a: T.Buffer((4,), "int64"), c: T.Buffer((4, 4), "int64")):
        for i in range(2):
            with T.block("row"):
                T.where(a[0] < T.int64(4))
                m = T.match_buffer(c[a[0], 0:4], (4,), "int64")
                a[0] = T.int64(1)
                m[i] = T.int64(77)

    results = [(np.full(4, 2), np.zeros((4, 4), "int64")) for _ in range(2)]
    run(before, *results[0])
    weft.build(before)(*results[1])
    assert results[0][1][2].tolist() == [77, 0, 0, 0]
    assert results[0][1][1].tolist() == [0, 77, 0, 0]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
