"""Resize and Upsample: every mode, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Call, Constant, Expr, Tuple, Var
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.resampling import (
    KERNELS,
    POSITIONS,
    ROUNDINGS,
    Axis,
    Method,
    Symbolic,
    nearest_indices,
    outside,
    weighted_taps,
)
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.support.dtype import DataType
from weft.tir import op as tir

_WHOLE: Final = 1 / 1024


@converter("Upsample", ignores=["width_scale", "height_scale"])
def upsample_attributes(
    context: Context,
    x: Value,
    *,
    scales: Sequence[float] | None = None,
    mode: str = "nearest",
    width_scale: float = 1.0,
    height_scale: float = 1.0,
) -> Expr:
    """Until opset 8 the factors are attributes."""
    factors = [1.0, 1.0, height_scale, width_scale] if scales is None else list(scales)
    return _left_edges(context, x, context.constant(factors, "float32"), mode)


@converter("Upsample", since=9)
@converter("Resize", since=10)
def upsample(context: Context, x: Value, scales: Value, *, mode: str = "nearest") -> Expr:
    """The factors are an input; positions are left edges, rounded down."""
    return _left_edges(context, x, scales, mode)


def _left_edges(context: Context, x: Value, scales: Value, mode: str) -> Expr:
    method = Method("linear" if mode in ("bilinear", "linear") else mode, "asymmetric", "floor")
    axes = _by_scales(context, x, range(context.rank(x, "X")), scales)
    return resampled(context, x, axes, method)


@converter("Resize", since=11)
def resize(  # noqa: PLR0913 - the inputs and attributes of the operator
    context: Context,
    x: Value,
    roi: Value | None = None,
    scales: Value | None = None,
    sizes: Value | None = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    nearest_mode: str = "round_prefer_floor",
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: str = "stretch",
) -> Expr:
    """The tensor at another size, by factors or by sizes, of all axes or of some."""
    method = Method(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
    )
    _check(context, method)
    if antialias:
        context.numbers(x, "X")  # how many neighbours there are depends on the scale
        if scales is not None and scales.shape != [0]:
            context.array(scales, "scales")
    rank = context.rank(x, "X")
    chosen = list(range(rank)) if axes is None else [context.axis(x, axis) for axis in axes]
    if scales is not None and scales.shape != [0]:
        resized = _by_scales(context, x, chosen, scales)
    elif sizes is not None:
        numbers = bool(antialias) or keep_aspect_ratio_policy != "stretch"
        wanted = (context.ints if numbers else context.sizes)(sizes, "sizes") or []
        resized = _by_sizes(context, x, chosen, (wanted, keep_aspect_ratio_policy))
    else:
        context.fail("expected one of the inputs scales and sizes")
    if method.positions == "tf_crop_and_resize":
        if antialias:
            context.array(roi, "roi")  # how many neighbours there are depends on it, too
        resized = _cropped(context, resized, roi)
    return resampled(context, x, resized, method)


def _cropped(context: Context, axes: Sequence[Axis], roi: Value | None) -> list[Axis]:
    """The axes, of each the part between its edges: all starts, then all ends."""
    if roi is None:
        context.fail("the input roi is missing")
    edges = [
        edge if isinstance(edge, float) else _as_scale(context, edge)
        for edge in _elements(context, roi, "roi")
    ]
    if len(edges) != 2 * len(axes):
        context.fail(f"roi: expected {2 * len(axes)} numbers, got {len(edges)}")
    parts = zip(edges[: len(axes)], edges[len(axes) :], strict=True)
    return [replace(axis, part=part) for axis, part in zip(axes, parts, strict=True)]


def _check(context: Context, method: Method) -> None:
    choices = [
        ("mode", method.mode, ("nearest", *KERNELS)),
        ("coordinate_transformation_mode", method.positions, POSITIONS),
        ("nearest_mode", method.rounding, ROUNDINGS),
    ]
    for name, value, known in choices:
        if value not in known:
            context.fail(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    if method.antialias and method.mode == "nearest":
        context.fail("antialias: expected the mode linear or cubic, got nearest")


def scaled(extent: Dim, scale: float) -> Dim:
    """floor(extent * scale) of float32, of a symbol too."""
    if isinstance(extent, int):
        return int(np.float32(scale) * np.float32(extent))
    ratio = Fraction(float(scale)).limit_denominator(1 << 12)
    whole = as_prim(extent) * ratio.numerator
    return simplified(tir.floordiv(whole, ratio.denominator))


def _by_scales(context: Context, x: Value, chosen: Sequence[int], scales: Value) -> list[Axis]:
    factors = _elements(context, scales, "scales")
    if len(factors) != len(chosen):
        context.fail(f"scales: expected {len(chosen)} numbers, got {len(factors)}")
    shape = context.shape(x, "X")
    return [
        Axis(axis, shape[axis], scaled(shape[axis], factor), factor)
        if isinstance(factor, float)
        else _by_computed_scale(context, axis, shape[axis], factor)
        for axis, factor in zip(chosen, factors, strict=True)
    ]


def _elements(context: Context, vector: Value, what: str) -> list[float | Expr]:
    """The numbers of a vector; a (1,) tensor for each that the program computes, as in a Concat."""
    if vector.constant is not None:
        return [float(number) for number in vector.constant.ravel().tolist()]
    if isinstance(vector.expr, Constant):
        return [float(number) for number in vector.expr.data.numpy().ravel().tolist()]
    call = context.builder.lookup_binding(expect(vector.expr, Var))
    if isinstance(call, Call) and call.op.name == "relax.concat":
        parts = [context.value(field) for field in expect(call.args[0], Tuple).fields]
        return [element for part in parts for element in _elements(context, part, what)]
    return [
        context.emit(op.strided_slice(vector.expr, [0], [place], [place + 1]))
        for place in range(context.extent(vector, 0, what))
    ]


def _by_computed_scale(context: Context, axis: int, extent: Dim, scale: Expr) -> Axis:
    """An axis whose factor the program computes, and with it the extent of the result."""
    emit = context.emit
    before = emit(op.reshape(emit(op.astype(context.dim_expr(extent), "float32")), [1]))
    whole = emit(op.astype(emit(op.floor(emit(op.multiply(before, scale)))), "int64"))
    (count,) = context.sizes(context.value(whole), "resized")
    return Axis(axis, extent, count, _as_scale(context, scale))


def _as_scale(context: Context, number: Expr) -> Expr:
    """A (1,) tensor as one of float64 without dimensions, as positions are computed with."""
    return context.as_type(context.emit(op.reshape(number, [])), "float64")


def _by_sizes(
    context: Context, x: Value, chosen: Sequence[int], wanted: tuple[Sequence[Dim], str]
) -> list[Axis]:
    sizes, policy = wanted
    if len(sizes) != len(chosen):
        context.fail(f"sizes: expected {len(chosen)} numbers, got {len(sizes)}")
    shape = context.shape(x, "X")
    extents = [shape[axis] for axis in chosen]
    if policy == "stretch":
        return [
            Axis(axis, extent, size, _ratio(size, extent))
            for axis, extent, size in zip(chosen, extents, sizes, strict=True)
        ]
    if policy not in ("not_larger", "not_smaller"):
        context.fail(f"keep_aspect_ratio_policy: {policy!r} is unknown")
    numbers = [context.extent(x, axis, "X") for axis in chosen]
    ratios = zip(sizes, numbers, strict=True)
    pick = min if policy == "not_larger" else max
    scale = pick(expect(size, int) / extent for size, extent in ratios)
    return [
        Axis(axis, extent, int(scale * extent + 0.5), scale)
        for axis, extent in zip(chosen, numbers, strict=True)
    ]


def _ratio(size: Dim, extent: Dim) -> float | None:
    if isinstance(size, int) and isinstance(extent, int):
        return size / extent if extent else 1.0
    return None


def resampled(context: Context, x: Value, axes: Sequence[Axis], method: Method) -> Expr:
    """All axes, one after the other; those that stay as they are are passed over."""
    emit = context.emit
    work = [axis for axis in axes if not _stays(axis)]
    if method.mode == "nearest":
        image = x.expr
        for axis in work:
            image = _nearest(context, image, axis, method)
        return image
    if not work:
        return x.expr
    kind = DataType(x.dtype)
    wide = "float64" if kind.bits > (32 if kind.is_float else 8) else "float32"
    if kind.bits == 8 and method.antialias and method.positions != "tf_crop_and_resize":
        return _by_whole_weights(context, x.expr, work[::-1], method)
    image = x.expr if x.dtype == wide else emit(op.astype(x.expr, wide))
    if not kind.is_float and method.antialias:
        return _rounded_by_axis(context, image, work[::-1], method, x.dtype)
    for axis in work:
        image = _weighted(context, image, axis, method)
    if x.dtype == wide:
        return image
    return emit(op.astype(image if kind.is_float else _whole(context, image), x.dtype))


def _rounded_by_axis(
    context: Context, data: Expr, work: Sequence[Axis], method: Method, dtype: str
) -> Expr:
    """Integers with antialias: rows first, each axis rounded, as ONNX Runtime does."""
    emit, wide = context.emit, str(data.struct_info.dtype)
    for axis in work:
        sums = _weighted(context, data, axis, method)
        whole = emit(op.astype(emit(op.round(sums)), dtype))
        data = emit(op.astype(whole, wide))
    return whole


_FRACTION: Final = 22
"""Bits of the fraction of whole weights: sums of bytes with them fit in int32."""


def _by_whole_weights(context: Context, data: Expr, work: Sequence[Axis], method: Method) -> Expr:
    """Bytes with antialias: rows first, each axis summed in integers and rounded half up.

    As ONNX Runtime and Pillow do it: weights are float32, then whole numbers of 2 ** -22. (ONNX
    Runtime limits int8 to 0 to 255 as well, which is a fault; here it keeps to its own range.)
    """
    emit, dtype = context.emit, str(data.struct_info.dtype)
    limits = np.iinfo(dtype)
    for axis in work:
        indices, weights = weighted_taps(axis, method, "float32")
        whole = np.floor(weights.astype("float64") * (1 << _FRACTION) + 0.5)
        largest = np.abs(whole).sum(-1).max() * 256 + (1 << _FRACTION)
        wide = "int32" if largest < 1 << 31 else "int64"
        tables = [context.constant(indices).expr, context.constant(whole.astype(wide)).expr]
        wider = emit(op.astype(data, wide))
        sums = emit(op.image.weighted_taps(wider, *tables, axis.axis))
        half, bits = (
            context.constant(number, wide).expr for number in (1 << _FRACTION - 1, _FRACTION)
        )
        rounded = emit(op.right_shift(emit(op.add(sums, half)), bits))
        data = emit(op.astype(emit(op.clip(rounded, int(limits.min), int(limits.max))), dtype))
    return data


def _whole(context: Context, sums: Expr) -> Expr:
    """The integers that ONNX Runtime makes of sums: cut towards zero.

    Sums that miss an integer by less than a thousandth are that integer, so that an image of sevens
    stays one though its weights add up to 0.9999999.
    """
    emit = context.emit
    near = emit(op.round(sums))
    kind = str(sums.struct_info.dtype)
    distance = emit(op.abs(emit(op.subtract(sums, near))))
    is_whole = emit(op.less(distance, context.constant(_WHOLE, kind).expr))
    return emit(op.where(is_whole, near, emit(op.trunc(sums))))


def _stays(axis: Axis) -> bool:
    if isinstance(axis.scale, Expr) or not axis.has_known_part:
        return False
    same = axis.extent is axis.count or (axis.is_static and axis.extent == axis.count)
    return same and axis.scale in (1.0, None) and axis.part == (0.0, 1.0)


def _nearest(context: Context, data: Expr, axis: Axis, method: Method) -> Expr:
    if axis.is_static:
        indices = context.constant(nearest_indices(axis, method)).expr
    else:
        indices = Symbolic(context, axis, method).nearest()
    return _within(context, context.emit(op.take(data, indices, axis.axis)), axis, method)


def _weighted(context: Context, data: Expr, axis: Axis, method: Method) -> Expr:
    kind = str(data.struct_info.dtype)
    if axis.is_static:
        indices, weights = [context.constant(table).expr for table in weighted_taps(axis, method)]
    else:
        indices, weights = Symbolic(context, axis, method).taps()
    if kind != "float64":
        weights = context.emit(op.astype(weights, kind))
    sums = context.emit(op.image.weighted_taps(data, indices, weights, axis.axis))
    return _within(context, sums, axis, method)


def _within(context: Context, data: Expr, axis: Axis, method: Method) -> Expr:
    """The data, with the value of extrapolation where positions are outside of the input."""
    if method.positions != "tf_crop_and_resize":
        return data
    if axis.is_static and not outside(axis, method).any():
        return data
    places = (
        context.constant(outside(axis, method)).expr
        if axis.is_static
        else Symbolic(context, axis, method).outside()
    )
    dims: list[Dim] = [1] * data.struct_info.ndim
    dims[axis.axis] = axis.count
    mask = context.emit(op.reshape(places, dims))
    fill = context.constant(method.extrapolation, str(data.struct_info.dtype)).expr
    return context.emit(op.where(mask, fill, data))
