"""Filling, copying and multiplying tiles: what wmma and mma.sync.m16n8k8 have in common.

A description is a loop nest over the elements; an implementation is one call, which gets the
buffers of the tiles and the strides of their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc

Pair = tuple[PrimFunc, PrimFunc]
Strided = tuple[Buffer, Var]
"""A buffer, and the stride of its rows."""


class Tile(NamedTuple):
    """A part of a matrix in a storage scope."""

    shape: tuple[int, int]
    dtype: str
    scope: str
    offset_factor: int = 1

    @property
    def matched(self) -> dict[str, Any]:
        """The arguments of ``T.match_buffer`` behind the handle."""
        return {**self._asdict(), "align": 64}


def fill_desc(tile: Tile) -> PrimFunc:
    """A tile of zeros."""
    rows, columns = tile.shape
    zero = op.const(0, tile.dtype)

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = T.match_buffer(c, **tile.matched)
        with T.block("root"):
            T.reads()
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = zero

    return desc


def copy_desc(source: Tile, target: Tile, block: str) -> PrimFunc:
    """One tile into another of its shape; ``block`` names the copy of an element."""
    rows, columns = source.shape

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, **source.matched)
        C = T.match_buffer(c, **target.matched)
        with T.block("root"):
            T.reads(A[0:rows, 0:columns])
            T.writes(C[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.block(block):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj]

    return desc


def multiply_pair(
    a_tile: Tile,
    b_tile: Tile,
    c_tile: Tile,
    b_transposed: bool,
    block: str,
    call: Callable[[Strided, Strided, Strided], PrimExpr],
) -> Pair:
    """The product of two tiles added to a third: element by element, and by ``call(a, b, c)``."""
    (m_dim, k_dim), n_dim = a_tile.shape, c_tile.shape[1]
    b_rows, b_columns = b_tile.shape

    def wide(value: PrimExpr) -> PrimExpr:
        return op.cast(c_tile.dtype, value)

    def in_b(k: PrimExpr, j: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        return (j, k) if b_transposed else (k, j)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, **a_tile.matched)
        B = T.match_buffer(b, **b_tile.matched)
        C = T.match_buffer(c, **c_tile.matched)
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            for i, j, k in T.grid(m_dim, n_dim, k_dim):
                with T.block(block):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    b0, b1 = T.meta_var(in_b(vk, vj))
                    C[vi, vj] = C[vi, vj] + wide(A[vi, vk]) * wide(B[b0, b1])

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a0, a1, b0 = T.int32(), T.int32(), T.int32()
        b1, c0, c1 = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, strides=[a0, a1], **a_tile.matched)
        B = T.match_buffer(b, strides=[b0, b1], **b_tile.matched)
        C = T.match_buffer(c, strides=[c0, c1], **c_tile.matched)
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(call((A, a0), (B, b0), (C, c0)))

    return desc, impl
