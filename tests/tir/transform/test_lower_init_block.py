"""LowerInitBlock: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
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
