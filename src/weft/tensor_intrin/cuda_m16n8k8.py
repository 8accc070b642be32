"""mma.sync.m16n8k8: half precision with fragments in the scopes ``m16n8k8.matrixA`` to ``C``.

The buffers have the shape of the matrices; the code generator decides which thread holds an element
(``tir.index_map_m16n8k8.matrixC`` for results).
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tensor_intrin.cuda_tile import Pair, Strided, Tile, copy_desc, fill_desc, multiply_pair
from weft.tir import op

WARP_SIZE: Final = 32


def get_index_A(elem_offset: PrimExpr, stride: PrimExpr) -> PrimExpr:  # noqa: N802 - TVM's name
    """The first register of the 32x8 tile of A at an offset, in rows of ``stride``."""
    i, j = elem_offset // stride, elem_offset % stride
    return (i // 32 * (stride // 8) + j // 8) * 8 + i % 32 // 16 * 4


def get_index_B(elem_offset: PrimExpr, stride: PrimExpr) -> PrimExpr:  # noqa: N802 - TVM's name
    """The first register of the 8x32 tile of B at an offset, in rows of ``stride``."""
    i, j = elem_offset // stride, elem_offset % stride
    return (i // 8 * (stride // 32) + j // 32) * 8 + j % 32 // 8 * 2


def get_index_C(elem_offset: PrimExpr, stride: PrimExpr) -> PrimExpr:  # noqa: N802 - TVM's name
    """The first register of the 16x8 tile of C at an offset, in rows of ``stride``."""
    i, j = elem_offset // stride // 8, elem_offset % stride // 8
    return i // 2 * 2 * (stride // 8) + i % 2 + j * 2


def get_mma_init_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """A tile of zeros."""
    del k_dim
    if m_dim % 8 or n_dim % 4 or dtype not in ("float16", "float32"):
        raise IRValueError(
            f"mma init: expected m_dim and n_dim in steps of 8 and 4 of float16 or float32, got "
            f"{m_dim} and {n_dim} of {dtype}"
        )
    zero = op.const(0, dtype)
    tile = Tile((m_dim, n_dim), dtype, "m16n8k8.matrixC")

    @T.prim_func
    def impl(c: T.handle) -> None:
        C = T.match_buffer(c, **tile.matched)
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                for b in range(m_dim // 8):
                    for v in T.vectorized(n_dim // 4):
                        C[b * 8 + tx // 4, (tx % 4) * (n_dim // 4) + v] = zero

    return fill_desc(tile), impl


def get_mma_load_intrin(
    m_dim: int,
    n_dim: int,
    k_dim: int,
    dtype: str,
    shared_scope: str,
    is_b: bool,
    is_col_major: bool,
) -> Pair:
    """A tile of an operand, from shared memory (``ldmatrix``)."""
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    if is_col_major:
        rows, columns = columns, rows
    turned = is_col_major is not is_b
    first = get_index_B if is_b else get_index_A
    shared = Tile((rows, columns), dtype, shared_scope)
    operand = Tile((rows, columns), dtype, "m16n8k8.matrixB" if is_b else "m16n8k8.matrixA")

    def offset(tx: PrimExpr, stride: PrimExpr) -> PrimExpr:
        return tx % 8 * stride + tx // 8 * 8 if turned else tx * stride

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        a0, a1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, strides=[a0, a1], **shared.matched)
        C = T.match_buffer(c, strides=[c0, c1], **operand.matched)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        turned,
                        4,
                        ".b16",
                        C.data,
                        first(C.elem_offset, c0),
                        A.access_ptr("r"),
                        offset(tx, a0),
                        dtype=dtype,
                    )
                )

    return copy_desc(shared, operand, "root"), impl


def get_mma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> Pair:
    """The product of two tiles, added to a third (``mma.sync``)."""
    b_shape = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)

    def multiply(a: Strided, b: Strided, c: Strided) -> PrimExpr:
        (A, a0), (B, b0), (C, c0) = a, b, c
        result: PrimExpr = T.ptx_mma(
            f"m{m_dim}n{n_dim}k{k_dim}",
            "row",
            "col",
            in_dtype,
            in_dtype,
            out_dtype,
            A.data,
            get_index_A(A.elem_offset, a0),
            B.data,
            get_index_B(B.elem_offset, b0),
            C.data,
            get_index_C(C.elem_offset, c0),
            False,
            dtype=out_dtype,
        )
        return result

    return multiply_pair(
        Tile((m_dim, k_dim), in_dtype, "m16n8k8.matrixA"),
        Tile(b_shape, in_dtype, "m16n8k8.matrixB"),
        Tile((m_dim, n_dim), out_dtype, "m16n8k8.matrixC"),
        b_transposed,
        "m16n8k8_sync",
        multiply,
    )


def get_mma_store_dummy_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """A tile of the result into shared memory, element by element."""
    del k_dim
    result = Tile((m_dim, n_dim), dtype, "m16n8k8.matrixC")
    shared = Tile((m_dim, n_dim), dtype, "shared.dyn")
    desc = copy_desc(result, shared, "m16n8k8_store")
    return desc, desc
