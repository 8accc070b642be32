"""VectorizeLoop: before and after, and the same results."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.transform import VectorizeLoop


def test_a_loop_becomes_vector_expressions(becomes):
    @T.prim_func
    def before(a: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32")):
        for i in range(4):
            for j in T.vectorized(4):
                c[i * 4 + j] = a[i * 4 + j] * T.float32(2) + T.Cast("float32", j)

    @T.prim_func
    def expected(a: T.Buffer((16,), "float32"), c: T.Buffer((16,), "float32")):
        for i in range(4):
            doubled = T.meta_var(a[i * 4 : i * 4 + 4] * T.Broadcast(T.float32(2.0), 4))
            c[i * 4 : i * 4 + 4] = doubled + T.Cast("float32x4", T.Ramp(0, 1, 4))

    becomes(VectorizeLoop(), before, expected)


def test_a_condition_that_differs_by_lane_keeps_the_loop(becomes):
    @T.prim_func
    def before(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i in T.vectorized(8):
            if a[i] < 3:
                c[i] = a[i]

    @T.prim_func
    def expected(a: T.Buffer((8,), "int32"), c: T.Buffer((8,), "int32")):
        for i in range(8):
            if a[i] < 3:
                c[i] = a[i]

    becomes(VectorizeLoop(), before, expected)
    becomes(VectorizeLoop(False), before, expected)


def test_a_choice_by_lane_between_what_may_be_read_becomes_a_select(becomes):
    @T.prim_func
    def before(a: T.Buffer((2, 8), "int32"), c: T.Buffer((2, 8), "int32")):
        for i in T.unroll(2):
            for j in T.vectorized(8):
                c[i, j] = T.if_then_else(j <= i + 3, a[i, j], -1)

    @T.prim_func
    def expected(a: T.Buffer((2, 8), "int32"), c: T.Buffer((2, 8), "int32")):
        for i in T.unroll(2):
            allowed = T.meta_var(T.Ramp(0, 1, 8) <= T.Broadcast(i + 3, 8))
            c[i, 0:8] = T.Select(allowed, a[i, 0:8], T.Broadcast(-1, 8))

    becomes(VectorizeLoop(), before, expected)


def test_a_choice_by_lane_that_keeps_a_load_inside_keeps_the_loop(becomes):
    @T.prim_func
    def before(a: T.Buffer((6,), "int32"), c: T.Buffer((8,), "int32")):
        for j in T.vectorized(8):
            c[j] = T.if_then_else(j < 6, a[j], -1)

    @T.prim_func
    def expected(a: T.Buffer((6,), "int32"), c: T.Buffer((8,), "int32")):
        for j in range(8):
            c[j] = T.if_then_else(j < 6, a[j], -1)

    becomes(VectorizeLoop(), before, expected)


def test_lanes_of_a_marked_loop_are_masked_where_they_are_known(becomes):
    @T.prim_func
    def before(a: T.Buffer((6,), "int32"), c: T.Buffer((2, 8), "int32")):
        for i in T.unroll(2):
            for j in T.vectorized(8, annotations={"tir.masked_lanes": 1}):
                c[i, j] = T.if_then_else(j < 6 - i, a[j], -1)
        for i in range(2):
            for j in T.vectorized(8, annotations={"tir.masked_lanes": 1}):
                c[i, j] = T.if_then_else(j < 6 - i, a[j], 0)

    @T.prim_func
    def expected(a: T.Buffer((6,), "int32"), c: T.Buffer((2, 8), "int32")):
        for i in T.unroll(2):
            wanted = T.meta_var(T.Ramp(0, 1, 8) < T.Broadcast(6 - i, 8))
            read = T.meta_var(a.vload([T.Ramp(0, 1, 8)], predicate=wanted))
            c[i, 0:8] = T.Select(wanted, read, T.Broadcast(-1, 8))
        for i in range(2):
            for j in T.serial(8, annotations={"tir.masked_lanes": 1}):
                c[i, j] = T.if_then_else(j < 6 - i, a[j], 0)

    becomes(VectorizeLoop(), before, expected)


def test_a_guarded_store_of_a_marked_loop_is_masked(becomes):
    @T.prim_func
    def before(a: T.Buffer((9,), "int32"), b: T.Buffer((9,), "int32"), n: T.int32):
        for j in T.vectorized(8, annotations={"tir.masked_lanes": 1}):
            if j + 4 < n:
                b[j] = a[j + 4] + a[0]
        for j in T.vectorized(8, annotations={"tir.masked_lanes": 1}):
            if j + 4 < n:
                b[8 - j] = a[j + 4]
        for j in T.vectorized(8):
            if j + 4 < n:
                b[j] = a[j + 4]

    @T.prim_func
    def expected(a: T.Buffer((9,), "int32"), b: T.Buffer((9,), "int32"), n: T.int32):
        wanted = T.meta_var(T.Ramp(4, 1, 8) < T.Broadcast(n, 8))
        read = T.meta_var(a.vload([T.Ramp(4, 1, 8)], predicate=wanted))
        b.vstore([T.Ramp(0, 1, 8)], read + T.Broadcast(a[0], 8), predicate=wanted)
        for j in T.serial(8, annotations={"tir.masked_lanes": 1}):
            if j + 4 < n:
                b[8 - j] = a[j + 4]
        for j in range(8):
            if j + 4 < n:
                b[j] = a[j + 4]

    becomes(VectorizeLoop(), before, expected)
