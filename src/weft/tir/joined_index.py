"""Indices that together are one flat index: ``y[i // 7, i % 7]``, where rows of y have 7 elements,
is element ``i`` of the flat y.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.arith.iter_map.integer import have_same_factors
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.structural import structural_equal
from weft.tir.expr import FloorDiv, FloorMod, Mul


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
    >>> walks([i // (n * 7), i % (n * 7) // n, i % n], [two, seven, n])
    [(i, [2, 7, n])]
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
    """The flat index ``i`` if row and column are ``i // width`` and ``i % width``, else None.

    Of three axes that were fused, with 9900 elements in the two inner ones of 100 and 99, the first
    two indices are ``i // 9900`` and ``i % 9900 // 99``, which together are ``i // 99``.
    """
    flat = _of_remainder(column, width)
    if flat is None or not isinstance(row, FloorDiv):
        return None
    if structural_equal(row.a, flat) and _is_same(row.b, width):
        return flat
    if not isinstance(flat, FloorDiv) or not structural_equal(row.a, flat.a):
        return None
    return flat if _is_product(row.b, flat.b, width) else None


def _of_remainder(column: PrimExpr, width: PrimExpr) -> PrimExpr | None:
    """``i`` if the index is ``i % width``; ``i // d`` if it is ``i % (d * width) // d``."""
    if isinstance(column, FloorMod) and _is_same(column.b, width):
        return column.a
    if not isinstance(column, FloorDiv) or not isinstance(column.a, FloorMod):
        return None
    if not _is_product(column.a.b, column.b, width):
        return None
    return FloorDiv(column.a.a, column.b)


def _is_product(whole: PrimExpr, part: PrimExpr, other: PrimExpr) -> bool:
    """Whether ``whole`` is ``part * other``, whatever the order of factors."""
    if whole.dtype != part.dtype or whole.dtype != other.dtype:
        numbers = [size.value for size in (whole, part, other) if isinstance(size, IntImm)]
        return len(numbers) == 3 and numbers[0] == numbers[1] * numbers[2]
    return have_same_factors(whole, Mul(part, other))


def _is_same(size: PrimExpr, other: PrimExpr) -> bool:
    if isinstance(size, IntImm) and isinstance(other, IntImm):
        return size.value == other.value
    return structural_equal(size, other)
