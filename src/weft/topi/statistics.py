"""Sums, means, variances, medians and scans of graphs, in types that lose no digits."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import Extent, PrimExpr, constant_value
from weft.support.dtype import DataType
from weft.te.tensor import Tensor
from weft.tir.op import const as tir_const
from weft.tir.op import floordiv, if_then_else, isnan, logical_not
from weft.tir.op import sqrt as tir_sqrt
from weft.topi.broadcast import divide, multiply, subtract
from weft.topi.extents import Point, Shape, compute_ax, product
from weft.topi.math import cast, sqrt
from weft.topi.moments import Moments
from weft.topi.reduction import sum_in
from weft.topi.simplify import simplified
from weft.topi.sort import argsort
from weft.topi.transform import reshape, transpose


def _axes(x: Tensor, axis: int | list[int] | None) -> list[int]:
    if axis is None:
        return list(range(len(x.shape)))
    return [item % len(x.shape) for item in (axis if isinstance(axis, list) else [axis])]


def product_of(extents: Shape) -> Extent:
    """The product of extents, in simplest form."""
    return simplified(product(extents))


FEW_TERMS = 128
"""Up to this many float32 terms are added in float32: the relative error is at most n * eps / 2."""


def accumulator(x: Tensor, axis: int | list[int] | None) -> str:
    """The type that the sum over axes is taken in."""
    return summing_type(x.dtype, product_of([x.shape[item] for item in _axes(x, axis)]))


def summing_type(dtype: DataType, count: Extent) -> str:
    """The type that a sum of ``count`` terms is taken in.

    float32 for 16-bit floats; float64 for float32 terms if their number is large or not known, as
    a sum of 100,000 terms far from zero would lose digits.
    """
    if not dtype.is_float or dtype.bits > 32:
        return str(dtype)
    if dtype.bits < 32:
        return "float32"
    terms = constant_value(count)
    return "float32" if terms is not None and terms <= FEW_TERMS else "float64"


def sum_of(x: Tensor, axis: int | list[int] | None, keepdims: bool) -> Tensor:
    """The sum, rounded once to the type of its terms."""
    total = sum_in(x, axis, keepdims, accumulator(x, axis))
    return total if total.dtype == x.dtype else cast(total, str(x.dtype))


def mean_of(x: Tensor, axis: int | list[int] | None, keepdims: bool) -> Tensor:
    """The sum divided by the number of elements."""
    count: PrimExpr = tir_const(1, "int32")
    for item in _axes(x, axis):
        count = count * x.shape[item]
    mean = divide(sum_in(x, axis, keepdims, accumulator(x, axis)), count)
    return mean if mean.dtype == x.dtype else cast(mean, str(x.dtype))


def variance_of(x: Tensor, axis: int | list[int] | None, keepdims: bool) -> Tensor:
    """The mean of squared distances from the mean."""
    if not x.dtype.is_float:
        distance = subtract(x, mean_of(x, axis, True))
        return mean_of(multiply(distance, distance), axis, keepdims)
    return _spread(x, axis, keepdims, lambda variance: variance)


def std_of(x: Tensor, axis: int | list[int] | None, keepdims: bool) -> Tensor:
    """The root of the variance."""
    if not x.dtype.is_float:
        return sqrt(variance_of(x, axis, keepdims))
    return _spread(x, axis, keepdims, tir_sqrt)


def _spread(
    x: Tensor,
    axis: int | list[int] | None,
    keepdims: bool,
    function: Callable[[PrimExpr], PrimExpr],
) -> Tensor:
    """A function of the variance, which is computed in float32 at least."""
    axes = sorted(_axes(x, axis))
    moments = Moments(x, axes, x.op.name)
    shape = [
        tir_const(1, extent.dtype) if i in axes else extent
        for i, extent in enumerate(x.shape)
        if keepdims or i not in axes
    ]

    def element(*point: PrimExpr) -> PrimExpr:
        outer = [p for i, p in enumerate(point) if i not in axes] if keepdims else point
        return function(moments.variance(outer)).astype(x.dtype)

    return compute_ax(shape, element, "variance")


def _is_number(x: Tensor) -> Tensor:
    return compute_ax(x.shape, lambda *point: logical_not(isnan(x(*point))), "is_number")


def median_of(
    x: Tensor, axis: int | list[int] | None, keepdims: bool
) -> Tensor | tuple[Tensor, Tensor]:
    """The lower median, with its index if there is one axis; a row's first NaN is its median."""
    axes = _axes(x, axis)
    kept = [item for item in range(len(x.shape)) if item not in axes]
    rows = transpose(x, [*kept, *axes]) if kept + axes != list(range(len(x.shape))) else x
    count = product_of([x.shape[item] for item in axes])
    rows = reshape(rows, [*[x.shape[item] for item in kept], count])
    order = argsort(rows, axis=-1, dtype="int64")
    numbers = sum_in(_is_number(rows), [len(kept)], False, "int64")
    shape = [
        tir_const(1, "int64") if item in axes else x.shape[item]
        for item in range(len(x.shape))
        if keepdims or item not in axes
    ]

    def place(point: Point) -> tuple[Point, PrimExpr]:
        outer = [p for item, p in enumerate(point) if item not in axes] if keepdims else point
        sorted_first = numbers(*outer)  # the index of the first NaN, as these come last
        rank = if_then_else(sorted_first < count, sorted_first, floordiv(count - 1, 2))
        return outer, order(*outer, rank)

    def value(*point: PrimExpr) -> PrimExpr:
        outer, where = place(point)
        return rows(*outer, where)

    values = compute_ax(shape, value, "median")
    if axis is None or len(axes) != 1:
        return values
    return values, compute_ax(shape, lambda *point: place(point)[1], "median_index")


def scanned(
    scan: Callable[[Tensor, int | None, str | None, bool], Tensor],
    x: Tensor,
    axis: int | None,
    dtype: str | None,
    exclusive: bool,
) -> Tensor:
    """Running sums or products in O(n), in a dtype (None: that of the terms)."""
    kind = DataType(dtype or x.dtype)
    sums = scan(x, axis, None if kind.is_bool else str(kind), exclusive)
    return sums if sums.dtype == kind else cast(sums, str(kind))


def first_place(
    search: Callable[[Tensor, int | None, bool], Tensor],
    x: Tensor,
    axis: int | None,
    keepdims: bool,
) -> Tensor:
    """The index of an extreme value, as int64."""
    places = search(x, axis, keepdims)
    return places if places.dtype == "int64" else cast(places, "int64")
