"""Which arguments a kernel may write its result over, and why not the others."""

import pytest

from weft.script import tir as T
from weft.testing.schedules import assert_same_in_place
from weft.tir.analysis.overwritable import overwritable_arguments


def tiled(size, tile=8):
    """Elements in tiles, in parallel, the last one cut off by a guard."""

    @T.prim_func
    def main(A: T.Buffer((size,), "float32"), B: T.Buffer((size,), "float32"),
             C: T.Buffer((size,), "float32")):  # fmt: skip
        T.func_attr({"tir.noalias": True})
        for o in T.parallel((size + tile - 1) // tile):
            for i in T.vectorized(tile):
                with T.block("C"):
                    v = T.axis.spatial(size, o * tile + i)
                    T.where(o * tile + i < size)
                    C[v] = A[v] * B[v] + A[v]

    return main


@T.prim_func
def fused(A: T.Buffer((7, 17), "float32"), B: T.Buffer((17,), "float32"),
          C: T.Buffer((7, 17), "float32")):  # fmt: skip
    for f in T.parallel(119):
        with T.block("C"):
            v = T.axis.spatial(7, f // 17)
            w = T.axis.spatial(17, f % 17)
            C[v, w] = A[v, w] + B[w]


@T.prim_func
def symbolic(a: T.handle, b: T.handle, c: T.handle):
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i in range(n):
        for o in range((m + T.int64(7)) // T.int64(8)):
            for j in T.vectorized(T.int64(8)):
                with T.block("C"):
                    v = T.axis.spatial(n, i)
                    w = T.axis.spatial(m, o * T.int64(8) + j)
                    T.where(o * T.int64(8) + j < m)
                    C[v, w] = A[v, w] - B[v, w]


@T.prim_func
def epilogue(X: T.Buffer((4, 5), "float32"), W: T.Buffer((5, 4), "float32"),
             A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):  # fmt: skip
    S = T.alloc_buffer((4, 4), scope="local")
    for i in T.parallel(4):
        for j, k in T.grid(4, 5):
            with T.block("S"):
                v, w, u = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    S[v, w] = T.float32(0)
                S[v, w] = S[v, w] + X[v, u] * W[u, w]
        for j in T.vectorized(4):
            with T.block("C"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = T.max(S[v, w] + A[v, w], T.float32(0))


@T.prim_func
def of_one_row(A: T.Buffer((1, 7), "float32"), C: T.Buffer((1, 7), "float32")):
    for i, j in T.grid(1, 7):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[0, w] = A[v, w] + A[0, w]


@T.prim_func
def of_a_number(A: T.Buffer((), "float32"), C: T.Buffer((), "float32")):
    with T.block("C"):
        C[()] = A[()] + T.float32(1)


@pytest.mark.parametrize(
    ("func", "sizes", "positions"),
    [
        *[(tiled(size), {}, (0, 1)) for size in (1, 7, 8, 17)],
        (fused, {}, (0,)),
        *[(symbolic, {"n": n, "m": m}, (0, 1)) for n, m in ((3, 17), (0, 7), (7, 0), (1, 1))],
        (epilogue, {}, (2,)),
        (of_one_row, {}, (0,)),
        (of_a_number, {}, (0,)),
    ],
)
def test_results_may_be_written_over(func, sizes, positions):
    assert assert_same_in_place(func, sizes) == positions


# What is refused, one reason each.


@T.prim_func
def tiles_that_overlap(A: T.Buffer((13,), "float32"), C: T.Buffer((13,), "float32")):
    for o, i in T.grid(2, 8):
        with T.block("C"):
            v = T.axis.spatial(13, T.min(o * 8, 5) + i)
            C[v] = A[v] * T.float32(2)


@T.prim_func
def more_iterations_than_elements(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for _, i in T.grid(2, 8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] * T.float32(2)


@T.prim_func
def halves_that_meet(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i // 2)
            C[v] = A[v] * T.float32(2)


@T.prim_func
def as_long_as_it_takes(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    n = T.alloc_buffer((1,), "int32")
    n[0] = 0
    while n[0] < 2:
        for i in range(8):
            C[i] = A[i] * T.float32(2)
        n[0] = n[0] + 1


@T.prim_func
def an_axis_that_a_let_names(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.LetStmt(T.max(i, 4)) as j:
            C[j - i + 3] = A[j - i + 3] * T.float32(2)


@T.prim_func
def a_copy_in_a_tile(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,), scope="local")
    for i in range(8):
        with T.block("S"):
            v = T.axis.spatial(8, i)
            S[v] = A[v]
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = S[7 - v] + A[v]


@T.prim_func
def accumulated_in_the_result(
    A: T.Buffer((8,), "float32"), X: T.Buffer((8, 3), "float32"), C: T.Buffer((8,), "float32")
):
    for i, k in T.grid(8, 3):
        with T.block("C"):
            v, u = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = A[v]
            C[v] = C[v] + X[v, u]


@T.prim_func
def read_again(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v]
        with T.block("S"):
            v = T.axis.spatial(8, i)
            S[v] = C[v]


@T.prim_func
def a_window(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + T.if_then_else(v < 7, A[v + 1], T.float32(0))


@T.prim_func
def a_transpose(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = A[w, v]


@T.prim_func
def a_row_for_all(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = A[v, w] + A[0, w]


@T.prim_func
def where_data_say(
    A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")
):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            T.reads(A[0:8], I[v])
            T.writes(C[0:8])
            C[I[v]] = A[I[v]]


@T.prim_func
def another_dtype(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = T.Cast("float32", A[v])


@T.prim_func
def other_symbols(a: T.handle, c: T.handle):
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (m,), "float32")
    for i in range(m):
        with T.block("C"):
            v = T.axis.spatial(m, i)
            C[v] = A[v]


@T.prim_func
def other_strides(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (4, 4), "float32", strides=(8, 1))
    C = T.match_buffer(c, (4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = A[v, w]


@T.prim_func
def by_another_name(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    with T.block("root"):
        part = T.match_buffer(A[0:8], (8,), "float32", offset_factor=1)
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = A[v] + part[7 - v]


@T.prim_func
def by_its_address(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            T.reads(A[0:8])
            T.writes(C[v])
            C[v] = A[v] + T.call_extern("float32", "first", A.data)


@T.prim_func
def in_two_statements(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = A[v]
    for i in range(4):
        with T.block("D"):
            v = T.axis.spatial(4, i)
            C[v + 4] = A[v + 4]


@pytest.mark.parametrize(
    "func",
    [
        tiles_that_overlap, more_iterations_than_elements, halves_that_meet, as_long_as_it_takes,
        an_axis_that_a_let_names, a_copy_in_a_tile, accumulated_in_the_result, read_again, a_window,
        a_transpose, a_row_for_all, where_data_say, another_dtype, other_symbols, other_strides,
        by_another_name, by_its_address, in_two_statements,
    ],
    ids=lambda func: func.__name__ if hasattr(func, "__name__") else None,
)  # fmt: skip
def test_results_are_kept_apart(func):
    assert overwritable_arguments(func) == ()


def test_an_argument_that_is_read_elsewhere_leaves_another():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
             C: T.Buffer((8,), "float32")):  # fmt: skip
        for i in range(8):
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = A[7 - v] + B[v]

    assert assert_same_in_place(func) == (1,)
