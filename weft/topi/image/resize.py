"""Resampling of spatial axes: nearest neighbour, linear and cubic.

How an output position maps to an input coordinate is ``coordinate_transformation_mode``:
``half_pixel`` (pixel centres), ``align_corners``, ``asymmetric`` (left edges),
``pytorch_half_pixel``, ``tf_half_pixel_for_nn``, and ``tf_crop_and_resize``: the part ``roi`` of
the image (starts, then ends, as fractions of the extents), a fixed value where it leaves the image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.expr import PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import compute_one
from weft.topi.nn.convolution import per_axis

MODES = (
    "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip


def _float(value: Any) -> PrimExpr:
    return op.cast("float32", as_prim_expr(value))


def _coordinate(
    index: Any, extent: Any, size: Any, mode: str, part: tuple[float, float]
) -> PrimExpr:
    """The position along the input axis (float32) that an output index stands for."""
    if mode == "tf_crop_and_resize":
        return _cropped(index, extent, size, part)
    place, scale = _float(index), op.div(_float(extent), _float(size))
    half = op.const(0.5, "float32")
    if mode == "asymmetric":
        return op.multiply(scale, place)
    if mode == "align_corners":
        steps = op.maximum(_float(size) - 1.0, op.const(1, "float32"))
        return op.multiply(op.div(_float(extent) - 1.0, steps), place)
    if mode == "tf_half_pixel_for_nn":
        return op.multiply(scale, op.add(place, half))
    centre = op.subtract(op.multiply(scale, op.add(place, half)), half)
    if mode == "pytorch_half_pixel":
        alone = op.less_equal(_float(size), op.const(1, "float32"))
        return op.if_then_else(alone, op.const(0, "float32"), centre)
    return centre


def _cropped(index: Any, extent: Any, size: Any, part: tuple[float, float]) -> PrimExpr:
    """The position for a part of the axis, corners aligned; its middle for a size of 1."""
    start, end = [op.const(edge, "float32") for edge in part]
    last = _float(extent) - 1.0
    steps = op.maximum(_float(size) - 1.0, op.const(1, "float32"))
    spread = start * last + _float(index) * op.div((end - start) * last, steps)
    alone = op.less_equal(_float(size), op.const(1, "float32"))
    return op.if_then_else(alone, 0.5 * (start + end) * last, spread)


def _clamped(index: PrimExpr, extent: Any) -> PrimExpr:
    low = op.maximum(index, op.const(0, index.dtype))
    return op.minimum(low, op.subtract(op.cast(index.dtype, as_prim_expr(extent)), 1))


def _nearest(position: PrimExpr, rounding: str) -> PrimExpr:
    half = op.const(0.5, "float32")
    if rounding == "round":
        whole = op.round(position)
    elif rounding == "round_prefer_floor":
        whole = op.ceil(op.subtract(position, half))
    elif rounding == "round_prefer_ceil":
        whole = op.floor(op.add(position, half))
    elif rounding == "floor":
        whole = op.floor(op.add(position, op.const(1e-5, "float32")))
    elif rounding == "ceil":
        whole = op.ceil(op.subtract(position, op.const(1e-5, "float32")))
    else:
        raise IRValueError(
            "resize: expected the rounding round, round_prefer_floor, round_prefer_ceil, floor or "
            f"ceil, got {rounding!r}"
        )
    return op.cast("int32", whole)


def _cubic_weights(fraction: PrimExpr, alpha: float) -> list[PrimExpr]:
    """The weights of the four neighbours of a position (Keys' kernel)."""
    weights = []
    for tap in range(-1, 3):
        distance = op.abs(op.subtract(fraction, op.const(float(tap), "float32")))
        square = distance * distance
        near = (alpha + 2) * square * distance - (alpha + 3) * square + 1.0
        far = alpha * (square * distance - 5.0 * square + 8.0 * distance - 4.0)
        weights.append(op.if_then_else(op.less_equal(distance, 1.0), near, far))
    return weights


def _taps(
    position: PrimExpr, extent: Any, options: dict[str, Any]
) -> list[tuple[PrimExpr, PrimExpr | None]]:
    """Input indices along one axis with their weights (None is 1)."""
    if options["method"] == "nearest_neighbor":
        return [(_clamped(_nearest(position, options["rounding"]), extent), None)]
    base = op.floor(position)
    fraction = op.subtract(position, base)
    first = op.cast("int32", base)
    if options["method"] == "linear":
        weights, start = [op.subtract(op.const(1, "float32"), fraction), fraction], 0
    else:
        weights, start = _cubic_weights(fraction, options["alpha"]), -1
    inside = []
    for number, weight in enumerate(weights):
        place = op.add(first, start + number)
        if options["exclude"]:
            within = op.logical_and(op.less_equal(0, place), op.less(place, extent))
            weight = op.if_then_else(within, weight, op.const(0, "float32"))
        inside.append((_clamped(place, extent), weight))
    if not options["exclude"]:
        return list(inside)
    total = op.add_n(*[weight for _, weight in inside])
    return [(place, op.div(weight, total)) for place, weight in inside]


def _resize(data: Tensor, size: Any, letters: str, layout: str, options: dict[str, Any]) -> Tensor:
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
    axes = [layout.index(letter) for letter in letters]
    sizes = per_axis(size, len(axes), "resize: size")
    shape = list(data.shape)
    for axis, extent in zip(axes, sizes, strict=True):
        kind = data.shape[axis].dtype
        shape[axis] = op.const(extent, kind) if isinstance(extent, int) else extent
    kind = DataType(options["out_dtype"] or data.dtype)

    roi = [float(edge) for edge in options["roi"]] if options["roi"] else [0.0] * 2 * len(axes)
    if options["mode"] == "tf_crop_and_resize" and len(roi) != 2 * len(axes):
        raise IRValueError(f"resize: roi: expected {2 * len(axes)} numbers, got {len(roi)}")

    def place(indices: Any, number: int) -> PrimExpr:
        axis = axes[number]
        part = (roi[number], roi[len(roi) // 2 + number])
        sizes = (data.shape[axis], shape[axis])
        return _coordinate(indices[axis], *sizes, options["mode"], part)

    def element(*indices: Any) -> Any:
        places = [place(indices, number) for number in range(len(axes))]
        taps = {
            axis: _taps(position, data.shape[axis], options)
            for axis, position in zip(axes, places, strict=True)
        }
        value = op.cast(kind, _weighted(data, list(indices), axes[::-1], taps))
        if options["mode"] != "tf_crop_and_resize":
            return value
        inside = op.all(*[
            test
            for axis, position in zip(axes, places, strict=True)
            for test in (position >= 0.0, position <= _float(data.shape[axis]) - 1.0)
        ])  # fmt: skip
        return op.if_then_else(inside, value, op.const(options["extrapolation"], kind))

    return compute_one(shape, element, name="resize", tag=tag.INJECTIVE)


def _weighted(
    data: Tensor, point: list[Any], axes: list[int], taps: dict[int, Any]
) -> PrimExpr:
    """The sum over the taps of the first axis of what the other axes give."""
    if not axes:
        return data(*point)
    total: PrimExpr | None = None
    for place, weight in taps[axes[0]]:
        moved = [*point]
        moved[axes[0]] = place
        value = _weighted(data, moved, axes[1:], taps)
        if weight is not None:
            value = op.multiply(op.cast("float32", value), weight)
        total = value if total is None else op.add(total, value)
    assert total is not None  # every method has at least one tap
    return total


def _public(letters: str) -> Callable[..., Tensor]:
    default_layout = f"NC{letters}"

    def resize(
        data: Tensor, roi: Any, size: Any, layout: str = default_layout, method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "",
        bicubic_alpha: float = -0.5, bicubic_exclude: int = 0, extrapolation_value: float = 0.0,
        out_dtype: str | None = None, output_shape: Any = None,
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
