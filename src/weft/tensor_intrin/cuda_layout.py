"""How the threads of a warp hold the fragments of ``mma``: indices of tiles <-> (thread, local).

The layouts are those of PTX (Parallel Thread Execution ISA, "Matrix fragments for mma").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.ir.node import Array
from weft.runtime.registry import register_func

Index = TypeVar("Index", int, PrimExpr)


def shared_16x16_to_ldmatrix_32x8_layout(i: Index, j: Index) -> tuple[Index, Index]:
    """(thread, local) of element (i, j) of a 16x16 tile of 16-bit numbers."""
    return 4 * (i % 8) + j % 8 // 2, 4 * (j // 8) + i // 8 * 2 + j % 2


def shared_16x32_to_ldmatrix_32x16_layout(i: Index, j: Index) -> tuple[Index, Index]:
    """(thread, local) of element (i, j) of a 16x32 tile of bytes."""
    return 4 * (i % 8) + j % 16 // 4, 8 * (j // 16) + i // 8 * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Index, j: Index) -> tuple[Index, Index]:
    """(thread, local) of element (i, j) of a 32x16 tile of bytes."""
    return i % 16 // 4 + 4 * (j % 8), 8 * (j // 8) + i // 16 * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Index, local_id: Index) -> tuple[Index, Index]:
    """The element (i, j) of a 16x16 tile for (thread, local): the inverse of the first layout."""
    row = 8 * (local_id % 4 // 2) + thread_id // 4
    return row, 8 * (local_id // 4) + thread_id % 4 * 2 + local_id % 2


@register_func("tir.index_map.shared_16x16_to_ldmatrix_32x8_layout", override=True)
def index_map_shared_16x16_to_ldmatrix_32x8_layout(ind: Sequence[PrimExpr]) -> Array[PrimExpr]:
    """The first layout as an index map, by whose name traces refer to it."""
    return Array([as_prim_expr(item) for item in shared_16x16_to_ldmatrix_32x8_layout(*ind)])


@register_func("tir.index_map_m16n8k8.matrixC", override=True)
def index_map_m16n8k8_matrixC(  # noqa: N802 - TVM's name
    ind: Sequence[PrimExpr],
) -> Array[PrimExpr]:
    """The place of an element of m16n8k8's result: in 8x8 pieces, divided into column pairs."""
    i, j = ind[0], ind[1]
    places = (i // 8 // 2, j // 8, i // 8 % 2, j % 8 % 2)
    return Array([as_prim_expr(item) for item in places])
