"""Spatial transformers: sampling grids of affine maps, and images sampled at grids.

A grid is (batch, axes, out spatial) with the coordinates x, y (and z) along its second axis, from
-1 to 1 over the image (Jaderberg et al., "Spatial Transformer Networks", 2015).
"""

from __future__ import annotations

import itertools

from weft.ir.expr import Extent, PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Point, Shape, compute_ax, is_const, may_be_equal, shape_text
from weft.topi.image.resize import cubic_far, cubic_near
from weft.topi.moments import wide
from weft.topi.nn.convolution import positions

METHODS = ("nearest", "bilinear", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
_LETTERS = {4: "HW", 5: "DHW"}
_CUBIC_ALPHA = -0.75


def affine_grid(data: Tensor, target_shape: Shape, align_corners: bool = True) -> Tensor:
    """The grid of an affine map: data (n, 2, 3) gives (n, 2, h, w), (n, 3, 4) (n, 3, d, h, w).

    With ``align_corners`` -1 and 1 are the centres of the outermost pixels, else their edges.
    """
    rank = len(target_shape)
    fits = rank in (2, 3) and data.ndim == 3
    if (
        not fits
        or not may_be_equal(data.shape[1], rank)
        or not may_be_equal(data.shape[2], rank + 1)
    ):
        raise IRValueError(
            f"affine_grid: expected data (n, 2, 3) and 2 extents, or (n, 3, 4) and 3, got "
            f"{shape_text(data.shape)} and {shape_text(target_shape)}"
        )
    kind = wide(data.dtype)

    def coordinate(index: PrimExpr, extent: Extent) -> PrimExpr:
        place, size = op.cast(kind, index), op.cast(kind, as_prim_expr(extent))
        unit = op.const(1, kind)
        if align_corners:
            steps = op.maximum(size - unit, unit)
            edge = op.select(size > unit, op.const(-1, kind), op.const(0, kind))
            return op.add(edge, op.div(place * op.const(2, kind), steps))
        return op.div(place * op.const(2, kind) + unit - size, size)

    def element(*indices: PrimExpr) -> PrimExpr:
        n, row, *point = indices
        total: PrimExpr = op.cast(kind, data(n, row, rank))
        for number, (index, extent) in enumerate(zip(point, target_shape, strict=True)):
            factor = op.cast(kind, data(n, row, rank - 1 - number))
            total = total + factor * coordinate(index, extent)
        return op.cast(data.dtype, total)

    return compute_ax(
        [data.shape[0], rank, *target_shape], element, "T_affine_grid", tag=tag.INJECTIVE
    )


class _Sampler:
    """Maps the coordinate of one axis to pixels and weights."""

    def __init__(self, extent: PrimExpr, kind: DataType, padding: str, align_corners: bool) -> None:
        self.extent, self.kind, self.padding = extent, kind, padding
        self.size = op.cast(kind, as_prim_expr(extent))
        self.align_corners = align_corners

    def position(self, coordinate: PrimExpr) -> PrimExpr:
        """The position in pixels of a coordinate from -1 to 1."""
        unit, half = op.const(1, self.kind), op.const(0.5, self.kind)
        if self.align_corners:
            return op.multiply((coordinate + unit) * half, self.size - unit)
        return op.multiply((coordinate + unit) * self.size - unit, half)

    def kept_inside(self, position: PrimExpr) -> PrimExpr:
        """The position, moved inside for padding by border or reflection; unchanged for zeros."""
        if self.padding == "reflection":
            position = self._reflected(position)
        if self.padding == "zeros":
            return position
        low = op.maximum(position, op.const(0, self.kind))
        return op.minimum(low, self.size - op.const(1, self.kind))

    def _reflected(self, position: PrimExpr) -> PrimExpr:
        zero, unit = op.const(0, self.kind), op.const(1, self.kind)
        low = zero if self.align_corners else op.const(-0.5, self.kind)
        span = self.size - unit if self.align_corners else self.size
        safe = op.maximum(span, unit)
        distance = op.abs(position - low)
        flips = op.floor(op.div(distance, safe))
        rest = distance - flips * safe
        is_even = op.equal(op.floormod(op.cast("int64", flips), 2), 0)
        turned = op.select(is_even, rest + low, span - rest + low)
        return op.select(span > zero, turned, zero)

    def index(self, whole: PrimExpr) -> PrimExpr:
        """The index of an integer position; -1 outside of the image if padding is by zeros."""
        index = op.cast("int64", whole)
        last = op.subtract(op.cast("int64", as_prim_expr(self.extent)), 1)
        low = op.const(-1 if self.padding == "zeros" else 0, "int64")
        limited = op.minimum(op.maximum(index, low), last)
        if self.padding != "zeros":
            return limited
        return op.select(op.less_equal(index, last), limited, low)

    def tap(self, position: PrimExpr, number: PrimExpr, method: str) -> tuple[PrimExpr, PrimExpr]:
        """The index and the weight of neighbour ``number`` of a position."""
        unit = op.const(1, self.kind)
        if method == "nearest":
            return self.index(op.round(self.kept_inside(position))), unit
        if method == "bilinear":
            position = self.kept_inside(position)
        base, step = op.floor(position), op.cast(self.kind, as_prim_expr(number))
        fraction = position - base
        if method == "bilinear":
            return self.index(base + step), op.select(step < unit, unit - fraction, fraction)
        step = step - unit
        return self.index(self.kept_inside(base + step)), _cubic_weight(op.abs(fraction - step))


def _cubic_weight(distance: PrimExpr) -> PrimExpr:
    """The weight of a neighbour at a distance up to 2."""
    near, far = cubic_near(distance, _CUBIC_ALPHA), cubic_far(distance, _CUBIC_ALPHA)
    return op.select(op.less_equal(distance, op.const(1, distance.dtype)), near, far)


class _Taps:
    """Indices and weights of the neighbours along one axis, for every point of the grid."""

    def __init__(self, sampler: _Sampler, grid: Tensor, number: int, method: str) -> None:
        self.count = {"nearest": 1, "bilinear": 2, "bicubic": 4}[method]
        self.zeros = sampler.padding == "zeros"
        rank = grid.ndim - 2
        place = compute_ax(
            [grid.shape[0], *grid.shape[2:]],
            lambda *i: sampler.position(
                op.cast(sampler.kind, grid(i[0], rank - 1 - number, *i[1:]))
            ),
            "position",
            tag=tag.INJECTIVE,
        )
        shape: Shape = [self.count, *place.shape]
        self.indices = compute_ax(
            shape,
            lambda *i: sampler.tap(place(*i[1:]), i[0], method)[0],
            "tap_index",
            tag=tag.INJECTIVE,
        )
        self.weights = compute_ax(
            shape,
            lambda *i: sampler.tap(place(*i[1:]), i[0], method)[1],
            "tap_weight",
            tag=tag.INJECTIVE,
        )


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """The image at the points of a grid (batch, 2, h, w), or (batch, 3, d, h, w) of volumes.

    Outside of the image: zeros, the border's pixels, or the image reflected. Of volumes there is
    no bicubic interpolation.
    """
    if data.ndim not in _LETTERS or grid.ndim != data.ndim:
        raise IRValueError(
            f"grid_sample: expected 4 or 5 dimensions of data and grid, got {data.ndim} and "
            f"{grid.ndim}"
        )
    known = METHODS if data.ndim == 4 else METHODS[:2]
    if method not in known or padding_mode not in PADDINGS:
        raise IRValueError(
            f"grid_sample: expected a method of {', '.join(known)} and a padding of "
            f"{', '.join(PADDINGS)}, got {method!r} and {padding_mode!r}"
        )
    letters = _LETTERS[data.ndim]
    at = positions(layout, f"NC{letters}", "grid_sample: layout")
    if is_const(grid.shape[1]) and not is_const(grid.shape[1], len(letters)):
        raise IRValueError(
            f"grid_sample: expected {len(letters)} coordinates along axis 1 of the grid, got "
            f"{shape_text(grid.shape)}"
        )
    kind = wide(data.dtype)
    samplers = [_Sampler(data.shape[i], kind, padding_mode, align_corners) for i in at[2:]]
    shape = list(data.shape)
    for place, extent in zip(at[2:], grid.shape[2:], strict=True):
        shape[place] = extent

    taps = [_Taps(sampler, grid, i, method) for i, sampler in enumerate(samplers)]

    def element(*indices: PrimExpr) -> PrimExpr:
        where = (indices[at[0]], *[indices[i] for i in at[2:]])
        return op.cast(data.dtype, _sampled(data, indices, at[2:], taps, where))

    return compute_ax(shape, element, "T_grid_sample", tag=tag.INJECTIVE)


def _sampled(
    data: Tensor, indices: Point, axes: list[int], taps: list[_Taps], where: Point
) -> PrimExpr:
    """The weighted sum over all combinations of the axes' neighbours."""
    total: PrimExpr | None = None
    for chosen in itertools.product(*[range(tap.count) for tap in taps]):
        point, tests = list(indices), []
        for axis, tap, number in zip(axes, taps, chosen, strict=True):
            index = tap.indices(number, *where)
            point[axis] = op.maximum(index, op.const(0, "int64")) if tap.zeros else index
            if tap.zeros:
                tests.append(op.less_equal(0, index))
        kind = taps[0].weights.dtype
        value: PrimExpr = op.cast(kind, data(*point))
        if tests:
            value = op.if_then_else(op.all(*tests), value, op.const(0, kind))
        for tap, number in zip(taps, chosen, strict=True):
            value = value * tap.weights(number, *where)
        total = value if total is None else total + value
    assert total is not None  # every method has at least one neighbour
    return total
