"""LowerInitBlock: before and after, and the same results."""

from __future__ import annotations

import numpy as np

from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.transform import LowerInitBlock


def test_a_reduction_is_guarded_by_its_first_iteration(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4,), "int32")):
        for i, k in T.grid(4, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    c[vi] = 0
                c[vi] = c[vi] + a[vi, vk]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((4,), "int32")):
        # with T.block("root"):
        for i, k in T.grid(4, 8):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(a[vi, vk])
                T.writes(c[vi])
                if vk == 0:
                    c[vi] = 0
                c[vi] = c[vi] + a[vi, vk]

    becomes(LowerInitBlock(), before, expected)


def test_a_reduction_over_nothing_gives_the_identity(becomes):
    @T.prim_func
    def before(var_a: T.handle, c: T.Buffer((4,), "int32")):
        n = T.int32()
        a = T.match_buffer(var_a, (4, n), "int32")
        for i, k in T.grid(4, n):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    c[vi] = 7
                c[vi] = c[vi] + a[vi, vk]

    @T.prim_func
    def expected(var_a: T.handle, c: T.Buffer((4,), "int32")):
        n = T.int32()
        a = T.match_buffer(var_a, (4, n), "int32")
        # with T.block("root"):
        for i in range(4):
            if n <= 0:
                with T.block("sum_init"):
                    vi = T.axis.spatial(4, i)
                    T.reads()
                    T.writes(c[vi])
                    c[vi] = 7
            for k in range(n):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(a[vi, vk])
                    T.writes(c[vi])
                    if vk == 0:
                        c[vi] = 7
                    c[vi] = c[vi] + a[vi, vk]

    becomes(LowerInitBlock(), before, expected)
    out = np.zeros(4, "int32")
    run(before, np.zeros((4, 0), "int32"), out)
    np.testing.assert_array_equal(out, [7, 7, 7, 7])
