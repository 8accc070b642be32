"""wmma: fragments of matrices held by a warp, as CUDA's ``nvcuda::wmma`` has them.

A fragment is a buffer in scope ``wmma.matrix_a``, ``wmma.matrix_b`` or ``wmma.accumulator``; the
calls address it by its number among the tiles of its buffer.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.tensor_intrin.cuda_tile import Pair, Strided, Tile, copy_desc, fill_desc, multiply_pair
from weft.tir.buffer import Buffer


def get_wmma_fragment_index(buffer: Buffer, stride: PrimExpr, m_dim: int, n_dim: int) -> PrimExpr:
    """The number of the tile at which a buffer's offset lies, in rows of ``stride`` elements."""
    row, column = buffer.elem_offset // stride // m_dim, buffer.elem_offset % stride // n_dim
    return row * (stride // n_dim) + column


def _copy_pair(
    source: Tile, target: Tile, block: str, call: Callable[[Strided, Strided], PrimExpr]
) -> Pair:
    """One tile into another: element by element, and by ``call(source, target)``."""
    rows, columns = source.shape

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        a0, a1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, strides=[a0, a1], **source.matched)
        C = T.match_buffer(c, strides=[c0, c1], **target.matched)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            T.evaluate(call((A, a0), (C, c0)))

    return copy_desc(source, target, block), impl


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

    def load(source: Strided, fragment: Strided) -> PrimExpr:
        (A, stride), (C, c0) = source, fragment
        result: PrimExpr = T.tvm_load_matrix_sync(
            C.data,
            m_dim,
            n_dim,
            k_dim,
            get_wmma_fragment_index(C, c0, rows, columns),
            A.access_ptr("r"),
            stride,
            layout,
            dtype="handle",
        )
        return result

    return _copy_pair(
        Tile((rows, columns), dtype, shared_scope, columns),
        Tile((rows, columns), dtype, scope, columns),
        "load",
        load,
    )


def get_wmma_fill_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str) -> Pair:
    """An accumulator of zeros."""
    tile = Tile((m_dim, n_dim), dtype, "wmma.accumulator", n_dim)

    @T.prim_func
    def impl(c: T.handle) -> None:
        c0, c1 = T.int32(), T.int32()
        C = T.match_buffer(c, strides=[c0, c1], **tile.matched)
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_fill_fragment(
                    C.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(C, c0, m_dim, n_dim),
                    T.float32(0),
                    dtype="handle",
                )
            )

    return fill_desc(tile), impl


def get_wmma_store_intrin(m_dim: int, n_dim: int, k_dim: int, dtype: str, scope: str) -> Pair:
    """A tile of the result, from an accumulator into memory."""

    def store(fragment: Strided, target: Strided) -> PrimExpr:
        (A, a0), (C, stride) = fragment, target
        result: PrimExpr = T.tvm_store_matrix_sync(
            A.data,
            m_dim,
            n_dim,
            k_dim,
            get_wmma_fragment_index(A, a0, m_dim, n_dim),
            C.access_ptr("w"),
            stride,
            "row_major",
            dtype="handle",
        )
        return result

    return _copy_pair(
        Tile((m_dim, n_dim), dtype, "wmma.accumulator", n_dim),
        Tile((m_dim, n_dim), dtype, scope, n_dim),
        "store",
        store,
    )


def get_wmma_sync_intrin(
    m_dim: int, n_dim: int, k_dim: int, in_dtype: str, out_dtype: str, b_transposed: bool
) -> Pair:
    """The product of two fragments, added to an accumulator."""
    b_shape = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)

    def multiply(a: Strided, b: Strided, c: Strided) -> PrimExpr:
        def place(tile: Strided, rows: int, columns: int) -> tuple[PrimExpr, PrimExpr]:
            buffer, stride = tile
            return buffer.data, get_wmma_fragment_index(buffer, stride, rows, columns)

        total = place(c, m_dim, n_dim)
        result: PrimExpr = T.tvm_mma_sync(
            *total, *place(a, m_dim, k_dim), *place(b, *b_shape), *total, dtype="handle"
        )
        return result

    return multiply_pair(
        Tile((m_dim, k_dim), in_dtype, "wmma.matrix_a", k_dim),
        Tile(b_shape, in_dtype, "wmma.matrix_b", b_shape[1]),
        Tile((m_dim, n_dim), out_dtype, "wmma.accumulator", n_dim),
        b_transposed,
        "",
        multiply,
    )
