"""FlattenBuffer: before and after, and the same results."""

from __future__ import annotations

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.script import tir as T
from weft.tir.stmt import Block
from weft.tir.transform import FlattenBuffer


def test_indices_become_one_offset(becomes):
    @T.prim_func
    def before(a: T.Buffer((4, 8), "int32"), c: T.Buffer((2, 2, 8), "int32")):
        for i, j in T.grid(4, 8):
            c[i // 2, i % 2, j] = a[i, j]

    @T.prim_func
    def expected(a: T.Buffer((4, 8), "int32"), c: T.Buffer((2, 2, 8), "int32")):
        a_1 = T.Buffer((32,), "int32", data=a.data)
        c_1 = T.Buffer((32,), "int32", data=c.data)
        for i, j in T.grid(4, 8):
            c_1[(i // 2 * 2 + i % 2) * 8 + j] = a_1[i * 8 + j]

    becomes(FlattenBuffer(), before, expected)


def test_regions_of_blocks_that_are_left_span_the_elements():
    @T.prim_func
    def func(A: T.Buffer((8, 4), "int32")):
        for i in range(4):
            with T.block("twice"):
                T.reads(A[i * 2 : i * 2 + 2, 0:4])
                T.writes()
                T.evaluate(A[i * 2, 0])

    main = FlattenBuffer()(IRModule({"main": func}))["main"]
    (region,) = collect(main.body, Block)[0].reads
    assert len(region.buffer.shape) == 1
    assert str(region.region[0].min) == "i * 8"
    assert region.region[0].extent.value == 8


def test_offsets_of_symbolic_shapes_are_int64(becomes):
    @T.prim_func
    def before(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8), "int32")
        for i, j in T.grid(n, 8):
            A[i, j] = 1

    @T.prim_func
    def expected(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 8), "int32")
        B = T.Buffer((T.Cast("int64", n) * T.int64(8),), "int32", data=A.data)
        for i, j in T.grid(n, 8):
            B[T.Cast("int64", i) * T.int64(8) + T.Cast("int64", j)] = 1

    becomes(FlattenBuffer(), before, expected)
