"""Resampling of spatial axes: nearest neighbour, linear and cubic.

How an output position maps to an input coordinate is ``coordinate_transformation_mode``:
``half_pixel`` (pixel centres), ``align_corners``, ``asymmetric`` (left edges),
``pytorch_half_pixel``, ``tf_half_pixel_for_nn``, and ``tf_crop_and_resize``: the part ``roi`` of
the image (starts, then ends, as fractions of the extents), a fixed value where it leaves the image.

Positions and weights are float32; for float64, and for integers of 32 bits and more, which float32
does not represent, they are float64 (of an int64, 53 bits remain). Sums for an integer result are
rounded to the nearest integer, ties to even, and limited to its range: 254.7 -> 255, and -3.2 -> 0
for uint8. Nearest neighbours are copied. So are the elements along an axis that keeps its extent:
the weight of their neighbours is 0, and infinity times 0 would be NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.expr import Mul
from weft.topi import tag
from weft.topi.extents import Extents, Point, same_extent
from weft.topi.moments import wide
from weft.topi.nn.convolution import per_axis

MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip


Tap = tuple[PrimExpr, PrimExpr | None]
"""The index of a neighbour and its weight; None means 1."""


def _arithmetic(dtype: DataType) -> DataType:
    """The type that positions and sums are computed in: int16 -> float32, int32 -> float64."""
    if dtype.is_float:
        return wide(dtype)
    return DataType("float32" if dtype.bits <= 16 else "float64")


def _float(value: PrimExpr, kind: DataType) -> PrimExpr:
    return op.cast(kind, as_prim_expr(value))


def _coordinate(
    index: PrimExpr,
    sizes: tuple[PrimExpr, PrimExpr],
    mode: str,
    part: tuple[float, float],
    kind: DataType,
) -> PrimExpr:
    """The position along the input axis of an output index.

    ``sizes`` are the extents of the input and of the output.
    """
    extent, size = [_float(number, kind) for number in sizes]
    if mode == "tf_crop_and_resize":
        return _cropped(index, extent, size, part)
    place, scale = _float(index, kind), op.div(extent, size)
    half = op.const(0.5, kind)
    if mode == "asymmetric":
        return op.multiply(scale, place)
    if mode == "align_corners":
        steps = op.maximum(size - 1.0, op.const(1, kind))
        return op.multiply(op.div(extent - 1.0, steps), place)
    if mode == "tf_half_pixel_for_nn":
        return op.multiply(scale, op.add(place, half))
    centre = op.subtract(op.multiply(scale, op.add(place, half)), half)
    if mode == "pytorch_half_pixel":
        alone = op.less_equal(size, op.const(1, kind))
        return op.if_then_else(alone, op.const(0, kind), centre)
    return centre


def _cropped(
    index: PrimExpr, extent: PrimExpr, size: PrimExpr, part: tuple[float, float]
) -> PrimExpr:
    """The position for a part of the axis with aligned corners; its middle if the size is 1."""
    kind = extent.dtype
    start, end = [op.const(edge, kind) for edge in part]
    last = extent - 1.0
    steps = op.maximum(size - 1.0, op.const(1, kind))
    spread = start * last + _float(index, kind) * op.div((end - start) * last, steps)
    alone = op.less_equal(size, op.const(1, kind))
    return op.if_then_else(alone, 0.5 * (start + end) * last, spread)


def _clamped(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    low = op.maximum(index, op.const(0, index.dtype))
    return op.minimum(low, op.subtract(op.cast(index.dtype, as_prim_expr(extent)), 1))


def _nearest(position: PrimExpr, rounding: str) -> PrimExpr:
    half = op.const(0.5, position.dtype)
    if rounding == "round":
        whole = op.round(position)
    elif rounding == "round_prefer_floor":
        whole = op.ceil(op.subtract(position, half))
    elif rounding == "round_prefer_ceil":
        whole = op.floor(op.add(position, half))
    elif rounding == "floor":
        whole = op.floor(op.add(position, op.const(1e-5, position.dtype)))
    elif rounding == "ceil":
        whole = op.ceil(op.subtract(position, op.const(1e-5, position.dtype)))
    else:
        raise IRValueError(
            "resize: expected the rounding round, round_prefer_floor, round_prefer_ceil, floor or "
            f"ceil, got {rounding!r}"
        )
    return op.cast("int32", whole)


_REPEATING: Final = {
    ("asymmetric", "floor"), ("tf_half_pixel_for_nn", "floor"),
    *[
        (mode, rounding)
        for mode in ("half_pixel", "pytorch_half_pixel")
        for rounding in ("round", "round_prefer_floor", "round_prefer_ceil")
    ],
}  # fmt: skip
"""Modes and roundings in which ``k`` times as many elements are ``k`` copies of each."""


def _copies(extent: PrimExpr, size: PrimExpr, options: dict[str, Any]) -> int | None:
    """How many copies of each element there are along an axis; None where that is not known.

    Of an axis of unknown extent, ``index // 2`` tells more than the float that it is rounded from:
    neighbours are read together.
    """
    is_nearest = options["method"] == "nearest_neighbor"
    if not is_nearest or (options["mode"], options["rounding"]) not in _REPEATING:
        return None
    return _multiple(extent, size)


def _multiple(extent: PrimExpr, size: PrimExpr) -> int | None:
    """How many times as long as an axis of unknown extent its result is; None if not known."""
    for count, other in ((size.a, size.b), (size.b, size.a)) if isinstance(size, Mul) else ():
        if isinstance(count, IntImm) and count.value > 0 and same_extent(other, extent):
            return int(count.value)
    return None


def _cubic_weights(fraction: PrimExpr, alpha: float) -> list[PrimExpr]:
    """The weights of the four neighbours of a position."""
    return [
        cubic_far(fraction + 1.0, alpha),
        cubic_near(fraction, alpha),
        cubic_near(1.0 - fraction, alpha),
        cubic_far(2.0 - fraction, alpha),
    ]


def cubic_near(distance: PrimExpr, alpha: float) -> PrimExpr:
    """Keys' cubic kernel (1981) up to a distance of 1: (a + 2) d^3 - (a + 3) d^2 + 1, factored.

    In expanded form the terms cancel: the four weights would add up to 1 + 1.4e-6.
    """
    return (1.0 - distance) * (1.0 + distance - (alpha + 2.0) * distance * distance)


def cubic_far(distance: PrimExpr, alpha: float) -> PrimExpr:
    """The same from 1 to 2: a (d^3 - 5 d^2 + 8 d - 4), factored."""
    left = distance - 2.0
    return alpha * (distance - 1.0) * left * left


def _split(
    index: PrimExpr, position: PrimExpr, sizes: tuple[PrimExpr, PrimExpr], mode: str
) -> tuple[PrimExpr, PrimExpr]:
    """The element before a position, and how far behind that it is.

    Where the result is ``k`` times as long as the axis, of unknown extent, the centre of element i
    is at (2 i + 1 - k) / 2 k: integers tell which element it is, and that its neighbours follow.
    """
    count, is_half = _multiple(*sizes), mode in ("half_pixel", "pytorch_half_pixel")
    if count is None or not (is_half or mode == "asymmetric"):
        base = op.floor(position)
        return op.cast("int32", base), op.subtract(position, base)
    steps = op.multiply(index, 2)
    if is_half:
        steps = op.add(steps, 1 - count)
    rest = _float(op.floormod(steps, 2 * count), position.dtype)
    return op.floordiv(steps, 2 * count), op.multiply(
        rest, op.const(1 / (2 * count), position.dtype)
    )


def _taps(
    index: PrimExpr, position: PrimExpr, sizes: tuple[PrimExpr, PrimExpr], options: dict[str, Any]
) -> list[Tap]:
    """Input indices along one axis with their weights (None means 1)."""
    extent = sizes[0]
    if options["method"] == "nearest_neighbor":
        return [(_clamped(_nearest(position, options["rounding"]), extent), None)]
    first, fraction = _split(index, position, sizes, options["mode"])
    if options["method"] == "linear":
        weights, start = [op.subtract(op.const(1, fraction.dtype), fraction), fraction], 0
    else:
        weights, start = _cubic_weights(fraction, options["alpha"]), -1
    inside = []
    for number, weight in enumerate(weights):
        place = op.add(first, start + number)
        if options["exclude"]:
            within = op.logical_and(op.less_equal(0, place), op.less(place, extent))
            weight = op.if_then_else(within, weight, op.const(0, weight.dtype))
        inside.append((_clamped(place, extent), weight))
    if not options["exclude"]:
        return list(inside)
    total = op.add_n(*[weight for _, weight in inside])
    return [(place, op.div(weight, total)) for place, weight in inside]


def _check_options(data: Tensor, letters: str, layout: str, options: dict[str, Any]) -> None:
    if sorted(layout) != sorted(f"NC{letters}") or len(layout) != data.ndim:
        raise IRValueError(
            f"resize: expected a layout of the letters NC{letters} for {data.ndim} dimensions, "
            f"got {layout!r}"
        )
    if options["method"] not in ("nearest_neighbor", "linear", "cubic"):
        raise IRValueError(
            f"resize: expected nearest_neighbor, linear or cubic, got {options['method']!r}"
        )
    if options["mode"] not in MODES:
        raise IRValueError(f"resize: expected one of {', '.join(MODES)}, got {options['mode']!r}")
    edges = 2 * len(letters)
    if options["mode"] == "tf_crop_and_resize" and len(options["roi"] or [0] * edges) != edges:
        raise IRValueError(f"resize: roi: expected {edges} numbers, got {len(options['roi'])}")


def _kept_axes(
    data: Tensor, shape: Sequence[PrimExpr], axes: Sequence[int], options: dict[str, Any]
) -> set[int]:
    """The axes along which every element of the result coincides with an element of the data."""
    if options["method"] == "nearest_neighbor" or options["mode"] == "tf_crop_and_resize":
        return set()
    return {axis for axis in axes if same_extent(data.shape[axis], shape[axis])}


def _resize(
    data: Tensor, size: Extents, letters: str, layout: str, options: dict[str, Any]
) -> Tensor:
    _check_options(data, letters, layout, options)
    axes = [layout.index(letter) for letter in letters]
    sizes = per_axis(size, len(axes), "resize: size")
    shape = list(data.shape)
    for axis, extent in zip(axes, sizes, strict=True):
        kind = data.shape[axis].dtype
        shape[axis] = op.const(extent, kind) if isinstance(extent, int) else extent
    kind, arithmetic = DataType(options["out_dtype"] or data.dtype), _arithmetic(data.dtype)
    roi = [float(edge) for edge in options["roi"]] if options["roi"] else [0.0] * 2 * len(axes)
    kept = _kept_axes(data, shape, axes, options)

    def place(indices: Point, number: int) -> PrimExpr:
        axis = axes[number]
        part = (roi[number], roi[len(roi) // 2 + number])
        sizes = (data.shape[axis], shape[axis])
        return _coordinate(indices[axis], sizes, options["mode"], part, arithmetic)

    def element(*indices: PrimExpr) -> PrimExpr:
        places = [place(indices, number) for number in range(len(axes))]
        taps: dict[int, list[Tap]] = {}
        for axis, position in zip(axes, places, strict=True):
            count = 1 if axis in kept else _copies(data.shape[axis], shape[axis], options)
            taps[axis] = (
                _taps(indices[axis], position, (data.shape[axis], shape[axis]), options)
                if count is None
                else [(indices[axis] if count == 1 else op.floordiv(indices[axis], count), None)]
            )
        value = _as(kind, _weighted(data, list(indices), axes[::-1], taps))
        if options["mode"] != "tf_crop_and_resize":
            return value
        inside = op.all(*[
            test
            for axis, position in zip(axes, places, strict=True)
            for test in (position >= 0.0, position <= _float(data.shape[axis], arithmetic) - 1.0)
        ])  # fmt: skip
        return op.if_then_else(inside, value, op.const(options["extrapolation"], kind))

    return compute(shape, element, name="resize", tag=tag.INJECTIVE)


def _as(kind: DataType, value: PrimExpr) -> PrimExpr:
    """The value in the result's type; casts to integers limit it to their range."""
    is_rounded = value.dtype.is_float and kind.is_integral
    return op.cast(kind, op.round(value) if is_rounded else value)


def _weighted(
    data: Tensor, point: list[PrimExpr], axes: list[int], taps: dict[int, list[Tap]]
) -> PrimExpr:
    """The weighted sum over the taps of the first axis, of the sums over the other axes."""
    if not axes:
        return data(*point)
    total: PrimExpr | None = None
    for place, weight in taps[axes[0]]:
        moved = [*point]
        moved[axes[0]] = place
        value = _weighted(data, moved, axes[1:], taps)
        if weight is not None:
            value = op.multiply(op.cast(weight.dtype, value), weight)
        total = value if total is None else op.add(total, value)
    assert total is not None  # every method has at least one tap
    return total


def _public(letters: str) -> Callable[..., Tensor]:
    default_layout = f"NC{letters}"

    def resize(
        data: Tensor, roi: Sequence[float] | None, size: Extents, layout: str = default_layout,
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
        bicubic_alpha: float = -0.5, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
        out_dtype: str | None = None, output_shape: Extents | None = None,
    ) -> Tensor:  # fmt: skip
        centred = coordinate_transformation_mode in ("half_pixel", "align_corners")
        options = {
            "method": method, "mode": coordinate_transformation_mode,
            "rounding": rounding_method or ("round" if centred else "floor"),
            "alpha": bicubic_alpha, "exclude": bool(bicubic_exclude), "out_dtype": out_dtype,
            "roi": roi, "extrapolation": extrapolation_value,
        }  # fmt: skip
        wanted = size if output_shape is None else output_shape
        return _resize(data, wanted, letters, layout, options)

    resize.__name__ = resize.__qualname__ = f"resize{len(letters)}d"
    resize.__doc__ = (
        f"Resample the axes {letters} of ``data`` to ``size``; ``roi`` and "
        "``extrapolation_value`` are for tf_crop_and_resize."
    )
    return resize


resize1d = _public("W")
resize2d = _public("HW")
resize3d = _public("DHW")
