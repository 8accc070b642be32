"""wmma: fragments of matrices held by a warp, as CUDA's ``nvcuda::wmma`` has them.

A fragment is a buffer in scope ``wmma.matrix_a``, ``wmma.matrix_b`` or ``wmma.accumulator``; the
calls address it by its number among the tiles of its buffer.
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import IntImm
from weft.script import tir as T
from weft.tir import op
from weft.tir.function import PrimFunc

Pair = tuple[PrimFunc, PrimFunc]


def get_wmma_fragment_index(buffer: Any, stride: Any, m_dim: int, n_dim: int) -> Any:
    """The number of the tile at which a buffer's offset lies, in rows of ``stride`` elements."""
    row, column = buffer.elem_offset // stride // m_dim, buffer.elem_offset % stride // n_dim
    return row * (stride // n_dim) + column


def get_wmma_load_intrin(
    m_dim: int,
    n_dim: int,
    k_dim: int,
    dtype: str,
    shared_scope: str,
    is_b: bool,
    is_col_major: bool,
) -> Pair:
    """A tile of an operand, from shared memory into a fragment."""
    scope = "wmma.matrix_b" if is_b else "wmma.matrix_a"
    layout = "col_major" if is_col_major else "row_major"
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    if is_col_major:
        rows, columns = columns, rows
    tile = {"dtype": dtype, "align": 64, "offset_factor": columns}

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (rows, columns), scope=shared_scope, **tile)
        C = T.match_buffer(c, (rows, columns), scope=scope, **tile)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block("load"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        a0, a1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (rows, columns), scope=shared_scope, strides=[a0, a1], **tile)
        C = T.match_buffer(c, (rows, columns), scope=scope, strides=[c0, c1], **tile)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    C.data, m_dim, n_dim, k_dim, get_wmma_fragment_index(C, c0, rows, columns),
                    A.access_ptr("r"), a0, layout, dtype="handle",
                )
            )  # fmt: skip

    return desc, impl


def get_wmma_fill_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """An accumulator of zeros."""
    zero = op.cast(dtype, IntImm("int32", 0))
    tile = {"dtype": dtype, "align": 64, "offset_factor": n_dim, "scope": "wmma.accumulator"}

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = T.match_buffer(c, (m_dim, n_dim), **tile)
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j in T.grid(m_dim, n_dim):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = zero

    @T.prim_func
    def impl(c: T.handle) -> None:
        c0, c1 = T.int32(), T.int32()
        C = T.match_buffer(c, (m_dim, n_dim), strides=[c0, c1], **tile)
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_fill_fragment(
                    C.data, m_dim, n_dim, k_dim, get_wmma_fragment_index(C, c0, m_dim, n_dim),
                    T.float32(0), dtype="handle",
                )
            )  # fmt: skip

    return desc, impl


def get_wmma_store_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str) -> Pair:
    """A tile of the result, from an accumulator into memory."""
    tile = {"dtype": dtype, "align": 64, "offset_factor": n_dim}

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (m_dim, n_dim), scope="wmma.accumulator", **tile)
        C = T.match_buffer(c, (m_dim, n_dim), scope=scope, **tile)
        with T.block("root"):
            T.reads(A[0:m_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j in T.grid(m_dim, n_dim):
                with T.block("store"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        a0, a1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (m_dim, n_dim), scope="wmma.accumulator", strides=[a0, a1], **tile)
        C = T.match_buffer(c, (m_dim, n_dim), scope=scope, strides=[c0, c1], **tile)
        with T.block("root"):
            T.reads(A[0:m_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_store_matrix_sync(
                    A.data, m_dim, n_dim, k_dim, get_wmma_fragment_index(A, a0, m_dim, n_dim),
                    C.access_ptr("w"), c0, "row_major", dtype="handle",
                )
            )  # fmt: skip

    return desc, impl


def get_wmma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> Pair:
    """The product of two fragments, added to an accumulator."""
    b_rows, b_columns = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)
    shapes = ((m_dim, n_dim), (m_dim, k_dim), (b_rows, b_columns))
    sum_tile = {"dtype": out_dtype, "align": 64, "offset_factor": n_dim}
    a_tile = {"dtype": in_dtype, "align": 64, "offset_factor": k_dim}
    b_tile = {"dtype": in_dtype, "align": 64, "offset_factor": b_columns}

    def wide(value: Any) -> Any:
        return op.cast(out_dtype, value)

    def in_b(k: Any, j: Any) -> tuple[Any, Any]:
        return (j, k) if b_transposed else (k, j)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, shapes[1], scope="wmma.matrix_a", **a_tile)
        B = T.match_buffer(b, shapes[2], scope="wmma.matrix_b", **b_tile)
        C = T.match_buffer(c, shapes[0], scope="wmma.accumulator", **sum_tile)
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j, k in T.grid(m_dim, n_dim, k_dim):
                with T.block(""):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    b0, b1 = T.meta_var(in_b(vk, vj))
                    C[vi, vj] = C[vi, vj] + wide(A[vi, vk]) * wide(B[b0, b1])

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a0, a1, b0 = T.int32(), T.int32(), T.int32()
        b1, c0, c1 = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, shapes[1], scope="wmma.matrix_a", strides=[a0, a1], **a_tile)
        B = T.match_buffer(b, shapes[2], scope="wmma.matrix_b", strides=[b0, b1], **b_tile)
        C = T.match_buffer(c, shapes[0], scope="wmma.accumulator", strides=[c0, c1], **sum_tile)
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_mma_sync(
                    C.data, get_wmma_fragment_index(C, c0, m_dim, n_dim),
                    A.data, get_wmma_fragment_index(A, a0, m_dim, k_dim),
                    B.data, get_wmma_fragment_index(B, b0, b_rows, b_columns),
                    C.data, get_wmma_fragment_index(C, c0, m_dim, n_dim), dtype="handle",
                )
            )  # fmt: skip

    return desc, impl
