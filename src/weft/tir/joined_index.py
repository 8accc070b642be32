"""Indices that together are one flat index: ``y[i // 7, i % 7]``, where rows of y have 7 elements,
is element ``i`` of the flat y.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.structural import structural_equal
from weft.tir.expr import FloorDiv, FloorMod


def walks(
    indices: Iterable[PrimExpr], shape: Iterable[PrimExpr]
) -> list[tuple[PrimExpr, list[PrimExpr]]]:
    """The indices of a compact tensor, joined where possible, each with the extents it covers.

    >>> from weft import tir
    >>> i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    >>> two, seven = tir.const(2, "int32"), tir.const(7, "int32")
    >>> walks([j, i // 7, i % 7], [two, two, seven]), walks([i // 7, j % 7], [two, seven])
    ([(j, [2]), (i, [2, 7])], [(i // 7, [2]), (j % 7, [7])])
    >>> n = tir.Var("n", "int32")
    >>> walks([i // n, i % n], [two, n])
    [(i, [2, n])]
    """
    joined: list[tuple[PrimExpr, list[PrimExpr]]] = []
    for index, size in zip(indices, shape, strict=True):
        both = _joined(joined[-1][0], index, size) if joined else None
        if both is None:
            joined.append((index, [size]))
        else:
            joined[-1] = (both, [*joined[-1][1], size])
    return joined


def _joined(row: PrimExpr, column: PrimExpr, width: PrimExpr) -> PrimExpr | None:
    """The flat index ``i`` if row and column are ``i // width`` and ``i % width``, else None."""
    if not isinstance(row, FloorDiv) or not isinstance(column, FloorMod):
        return None
    if not _is_same(row.b, width) or not _is_same(column.b, width):
        return None
    return row.a if structural_equal(row.a, column.a) else None


def _is_same(size: PrimExpr, other: PrimExpr) -> bool:
    if isinstance(size, IntImm) and isinstance(other, IntImm):
        return size.value == other.value
    return structural_equal(size, other)
