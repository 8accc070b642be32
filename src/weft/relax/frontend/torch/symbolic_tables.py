"""``interpolation`` where extents are symbols: the program computes places and weights in float64.

An axis is (extent, count, factor): its extent before and after, and the factor that the user gave,
None where the extents tell it.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import Extent, as_prim_expr
from weft.relax import op
from weft.relax.expr import Expr, RelaxLike, ShapeExpr, const
from weft.relax.frontend.resampling_kernels import kernel_weights
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.interpolation import (
    CUBIC,
    CUBIC_ANTIALIAS,
    MOST_BITS,
    SMALL_IMAGE,
)
from weft.tir import op as tir_op

Axis = tuple[Extent, Extent, float | None]
"""The extent of an axis before and after, and the factor that the user gave."""
_WIDE: Final = "float64"


def symbolic_places(context: Context, axis: Axis, kind: str, image: Extent | None = None) -> Expr:
    """``nearest_places`` of an axis, as a tensor that the program computes."""
    if image is None:
        return _nearest_places(context, axis, kind, (False, False))
    if isinstance(image, int):
        return _nearest_places(context, axis, kind, (True, image <= SMALL_IMAGE))
    small, large = [
        _nearest_places(context, axis, kind, (True, is_small)) for is_small in (True, False)
    ]
    is_small = op.less_equal(_number(context, image), _wide(float(SMALL_IMAGE)))
    return context.emit(op.where(is_small, small, large))


def _nearest_places(context: Context, axis: Axis, kind: str, image: tuple[bool, bool]) -> Expr:
    """The places in an image (or not), which is small (or not)."""
    extent, count, factor = axis
    is_image, is_small = image
    real = "float64" if context.dtype == "float64" and not is_small else "float32"
    emit, cast = context.emit, context.cast
    before, after = [_number(context, number) for number in (extent, count)]
    ratio = emit(op.divide(cast(before, real), cast(emit(op.maximum(after, _wide(1.0))), real)))
    scale = ratio
    if factor is not None:
        scale = const(1 / factor, real)
        if kind == "nearest" and is_image:
            keeps = op.logical_or(op.equal(after, before), op.equal(after, before * 2.0))
            scale = emit(op.where(keeps, ratio, scale))
    middle = 0.5 if kind == "exact" else 0.0
    centres = emit(_rows(context, count) + middle)
    if is_small:
        moved = emit(op.multiply(cast(centres, real), scale))
    else:
        exact = emit(centres * cast(scale, _WIDE) - middle)
        moved = emit(op.add(cast(exact, real), const(middle, real)))
    place = cast(emit(op.floor(cast(moved, "float32"))), "int64")
    return _inside(context, place, extent)


def symbolic_tables(context: Context, axis: Axis, kind: str, corners: bool) -> tuple[Expr, Expr]:
    """(indices, weights) of an axis, both (outputs, taps); the weights are float64."""
    emit = context.emit
    rows, scale = _rows(context, axis[1]), _scale(context, axis, kind, corners)
    if kind.endswith("_aa"):
        return _wide_tables(context, axis, (kind.removesuffix("_aa"), corners), scale)
    centre = emit(rows * scale if corners else (rows + 0.5) * scale - 0.5)
    reach = 1 if kind == "linear" else 2
    offsets = context.cast(emit(op.arange(1 - reach, reach + 1, dtype="int64")), _WIDE)
    base = emit(op.expand_dims(op.floor(centre), [1]))
    distance = emit(op.abs(op.expand_dims(centre, [1]) - base - offsets))
    places = _inside(context, context.cast(emit(base + offsets), "int64"), axis[0])
    weights = emit(kernel_weights(distance, kind, CUBIC))
    if context.dtype == "uint8":  # weights are rounded
        weights = _merged(context, places, weights)
    return places, weights


def _merged(context: Context, places: Expr, weights: Expr) -> Expr:
    """Weights of which the first of several for one place has their sum, and the others 0."""
    emit = context.emit
    same = emit(op.equal(op.expand_dims(places, [2]), op.expand_dims(places, [1])))
    sums = emit(op.sum(op.where(same, op.expand_dims(weights, [1]), _wide(0.0)), [2]))
    earlier = emit(op.sum(op.tril(context.cast(same, "int32"), -1), [2]))
    return emit(op.where(op.equal(earlier, const(0, "int32")), sums, _wide(0.0)))


def symbolic_fixed_point(context: Context, weights: Expr) -> tuple[Expr, Expr]:
    """``fixed_point`` of weights that the program computes: int32, and the bits as an int32."""
    emit, cast = context.emit, context.cast
    powers = const([float(1 << bits) for bits in range(1, MOST_BITS + 1)], _WIDE)
    largest = emit(op.maximum(op.max(weights), _wide(0.0)))
    fits = emit(op.less(op.trunc(largest * powers + 0.5), _wide(float(1 << 15))))
    bits = emit(op.sum(cast(fits, "int32")))
    scaled = emit(weights * cast(emit(op.left_shift(const(1, "int32"), bits)), _WIDE))
    half = op.where(op.less(scaled, _wide(0.0)), _wide(-0.5), _wide(0.5))
    return cast(emit(op.trunc(scaled + half)), "int32"), bits


def _wide_tables(
    context: Context, axis: Axis, how: tuple[str, bool], scale: Expr
) -> tuple[Expr, Expr]:
    """All elements under a kernel stretched by the scale, as PIL resamples."""
    emit, (mode, corners) = context.emit, how
    support = 1 if mode == "linear" else 2
    stretch = emit(op.maximum(scale, _wide(1.0)))
    centre = emit(op.expand_dims((_rows(context, axis[1]) + 0.5) * scale, [1]))
    radius = emit(stretch * float(support))
    first = op.maximum(op.trunc(centre - radius + 0.5), _wide(0.0))
    end = op.minimum(op.trunc(centre + radius + 0.5), _number(context, axis[0]))
    places = emit(first + _rows(context, _most_taps(axis, support, corners)))
    distance = emit(op.abs((places - centre + 0.5) / stretch))
    weights = kernel_weights(distance, mode, CUBIC_ANTIALIAS)
    weights = emit(op.where(op.less(places, end), weights, _wide(0.0)))
    total = emit(op.sum(weights, [1], True))
    return _inside(context, context.cast(places, "int64"), axis[0]), emit(weights / total)


def _most_taps(axis: Axis, support: int, corners: bool) -> Extent:
    """How many elements a stretched kernel covers at most."""
    extent, count, factor = axis
    if factor is not None and not corners:
        return 2 * math.ceil(support * max(1 / factor, 1.0)) + 1
    ends = 1 if corners else 0
    steps = tir_op.maximum(as_prim_expr(count) - ends, 1)
    radius = tir_op.ceildiv((as_prim_expr(extent) - ends) * support, steps)
    return tir_op.maximum(radius, support) * 2 + 1


def _scale(context: Context, axis: Axis, kind: str, corners: bool) -> Expr:
    """Input over output; an axis that keeps its extent may be copied, whatever the factor."""
    extent, count, factor = axis
    emit = context.emit
    before, after = [_number(context, number) for number in (extent, count)]
    if corners:
        steps = op.maximum(after - 1.0, _wide(1.0))
        return emit(op.where(op.greater(after, _wide(1.0)), (before - 1.0) / steps, _wide(0.0)))
    if factor is None:
        return emit(before / op.maximum(after, _wide(1.0)))
    if kind != "linear" and context.dtype != "uint8":
        return _wide(1 / factor)
    return emit(op.where(op.equal(after, before), _wide(1.0), _wide(1 / factor)))


def _wide(number: float) -> Expr:
    return const(number, _WIDE)


def _number(context: Context, extent: Extent) -> Expr:
    """An extent as a tensor without dimensions."""
    number = op.reshape(context.emit(op.shape_to_tensor(ShapeExpr([extent]))), [])
    return context.cast(context.emit(number), _WIDE)


def _rows(context: Context, count: Extent) -> Expr:
    """0 to ``count`` - 1."""
    return context.cast(context.emit(op.arange(count, dtype="int64")), _WIDE)


def _inside(context: Context, places: Expr, extent: Extent) -> Expr:
    """Places as indices, those outside of the axis as its ends."""
    last: RelaxLike = op.minimum(places, context.operand(extent - 1, "int64"))
    return context.emit(op.maximum(context.emit(last), const(0, "int64")))
