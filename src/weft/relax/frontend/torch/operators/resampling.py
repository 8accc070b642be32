"""Images at another size, and at the points of a grid.

``relax.image.resize`` serves where the scale of each axis is the input's extent over the output's.
Where torch was given factors that do not divide evenly, with antialias, and for uint8, each axis is
a sum of neighbours with the weights that torch computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.interpolation import (
    CUBIC,
    Sizes,
    fixed_point,
    nearest_places,
    tables,
    weighted_rows,
)
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError

_RESIZE: Final = {1: op.image.resize1d, 2: op.image.resize2d, 3: op.image.resize3d}
Option = float | bool | None
"""What follows the size among the arguments: ``align_corners``, then factors."""
Axis = tuple[Extent, Extent, float | None]
"""The extent of an axis before and after, and the factor that the user gave."""
_FEW_PIXELS: Final = 1 << 13
"""Where extents are unknown, a factor is exact if it places so many pixels exactly."""

METHODS: Final = {
    "upsample_nearest1d": (1, "nearest"), "upsample_nearest2d": (2, "nearest"),
    "upsample_nearest3d": (3, "nearest"), "_upsample_nearest_exact1d": (1, "exact"),
    "_upsample_nearest_exact2d": (2, "exact"), "_upsample_nearest_exact3d": (3, "exact"),
    "upsample_linear1d": (1, "linear"), "upsample_bilinear2d": (2, "linear"),
    "upsample_trilinear3d": (3, "linear"), "upsample_bicubic2d": (2, "cubic"),
    "_upsample_bilinear2d_aa": (2, "linear_aa"), "_upsample_bicubic2d_aa": (2, "cubic_aa"),
}  # fmt: skip
"""Dimensions and kind of each of torch's operators."""


def _resampler(rank: int, kind: str) -> Callable[..., Expr]:
    """The converter of an operator's overloads: (input, size, [corners], factors ...)."""

    def resample(
        context: Context,
        self: Expr,
        output_size: Sequence[Extent] | None = None,
        *rest: Option | Sequence[Option],
    ) -> Expr:
        options = list(rest)
        corners = bool(options.pop(0)) if "nearest" not in kind and kind != "exact" else False
        factors = _factors(options, rank)
        return resampled(context, self, (kind, corners), factors)

    return resample


def _factors(options: Sequence[Option | Sequence[Option]], rank: int) -> list[float | None]:
    """A factor for each axis, None where the sizes tell."""
    if options and isinstance(options[0], list | tuple):
        options = options[0]
    factors = [factor for factor in options if not isinstance(factor, Sequence)]
    numbers = [factor for factor in factors if factor is not None]
    return factors if len(numbers) == len(factors) == rank else [None] * rank


def resampled(
    context: Context, tensor: Expr, how: tuple[str, bool], factors: Sequence[float | None]
) -> Expr:
    """The tensor at the size that torch deduced."""
    rank = len(factors)
    extents, size = context.dims(tensor)[-rank:], context.shape[-rank:]
    axes = list(zip(extents, size, factors, strict=True))
    if how[0] in ("nearest", "exact"):
        return _nearest(context, tensor, how[0], axes)
    return _weighted(context, tensor, how, axes)


# Nearest


def _nearest(context: Context, tensor: Expr, kind: str, axes: Sequence[Axis]) -> Expr:
    rank, dtype = len(axes), context.dtype
    if all(_is_copied_evenly(axis, kind, dtype, rank) for axis in axes):
        return _RESIZE[rank](
            tensor,
            [count for _, count, _ in axes],
            layout="NC" + "DHW"[3 - rank :],
            method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric",
            rounding_method="floor",
        )
    for number, (extent, count, factor) in enumerate(axes):
        axis = len(context.shape) - rank + number
        if isinstance(extent, int) and isinstance(count, int):
            table = nearest_places((extent, count, factor), kind, dtype, rank)
            places: Expr = const(table, "int64")
        elif factor is None:
            raise _uneven(context, axes)
        else:
            places = _symbolic_places(context, (extent, count, factor), kind)
        tensor = context.emit(op.take(tensor, places, axis))
    return tensor


def _is_copied_evenly(axis: Axis, kind: str, dtype: str, rank: int) -> bool:
    """Whether each element is taken ``count / extent`` times, also as torch rounds positions."""
    extent, count, factor = axis
    if isinstance(extent, int) and isinstance(count, int):
        if extent <= 0 or count % extent:
            return False
        times = count // extent
    elif factor is None or not float(factor).is_integer():
        return False
    else:
        times, count = int(factor), int(factor) * (_FEW_PIXELS // int(factor) + 1)
        extent = count // times
    places = nearest_places((extent, count, factor), kind, dtype, rank)
    return bool((places == np.arange(count) // times).all())


def _symbolic_places(context: Context, axis: tuple[Extent, Extent, float], kind: str) -> Expr:
    """``nearest_places`` where the extents are not known."""
    extent, count, factor = axis
    real = "float64" if context.dtype == "float64" else "float32"
    scale = const(float(np.dtype(real).type(1 / factor)), "float64")
    middle = const(0.5 if kind == "exact" else 0.0, "float64")
    emit, cast = context.emit, context.cast
    index = cast(emit(op.arange(count, dtype="int64")), "float64")
    exact = emit(op.subtract(emit(op.multiply(emit(op.add(index, middle)), scale)), middle))
    moved = emit(op.add(cast(exact, real), const(middle.data.numpy(), real)))
    place = cast(emit(op.floor(cast(moved, "float32"))), "int64")
    return emit(op.minimum(place, context.operand(extent - 1, "int64")))


# Weighted


def _weighted(
    context: Context,
    tensor: Expr,
    how: tuple[str, bool],
    axes: Sequence[Axis],
) -> Expr:
    kind, corners = how
    if kind == "linear":  # an axis that keeps its extent is copied, whatever the factor
        axes = [(e, n, None if isinstance(e, int) and e == n else factor) for e, n, factor in axes]
    is_static = all(context.static([extent, count]) for extent, count, _ in axes)
    if is_static and context.dtype == "uint8":
        return _of_bytes(context, tensor, how, _constant(axes))
    if not kind.endswith("_aa") and (corners or all(_is_scaled_evenly(*axis) for axis in axes)):
        return _resized(tensor, [count for _, count, _ in axes], kind, corners)
    if not is_static:
        raise _uneven(context, axes)
    is_wide = DataType(context.dtype).bits >= 32
    image = tensor if is_wide else context.cast(tensor, "float32")
    for axis, sizes in enumerate(_constant(axes), len(context.shape) - len(axes)):
        places, weights = tables(weighted_rows(sizes, kind, corners))
        taps = const(places, "int64"), const(weights, context.dtype_of(image))
        image = context.emit(op.image.weighted_taps(image, *taps, axis, True))
    return context.cast(image, context.dtype)


def _constant(axes: Sequence[Axis]) -> list[Sizes]:
    """Axes of which the extents are known."""
    return [
        (extent, count, factor)
        for extent, count, factor in axes
        if isinstance(extent, int) and isinstance(count, int)
    ]


def _is_scaled_evenly(extent: Extent, count: Extent, factor: float | None) -> bool:
    """Whether ``relax.image.resize`` computes the same places as torch."""
    if factor is None:
        return True
    if isinstance(extent, int) and isinstance(count, int):
        return bool(factor * extent == count)
    return float(factor).is_integer()


def _resized(tensor: Expr, size: Sequence[Extent], kind: str, corners: bool) -> Expr:
    rank = len(size)
    cubic = {"cubic_alpha": CUBIC} if kind == "cubic" else {}
    return _RESIZE[rank](
        tensor,
        list(size),
        layout="NC" + "DHW"[3 - rank :],
        method=kind,
        **cubic,
        coordinate_transformation_mode="align_corners" if corners else "half_pixel",
    )


def _of_bytes(
    context: Context,
    tensor: Expr,
    how: tuple[str, bool],
    axes: Sequence[Sizes],
) -> Expr:
    """uint8 as torch computes it: rows first, in fixed point, each axis rounded to uint8."""
    for number in reversed(range(len(axes))):
        axis, sizes = len(context.shape) - len(axes) + number, axes[number]
        if sizes[0] == sizes[1]:
            continue
        places, weights = tables(weighted_rows(sizes, *how))
        whole, bits = fixed_point(weights)
        taps = const(places, "int64"), const(whole, "int32")
        wide = context.cast(tensor, "int32")
        sums = context.emit(op.image.weighted_taps(wide, *taps, axis))
        halfway = context.emit(op.add(sums, const(1 << (bits - 1), "int32")))
        rounded = context.emit(op.right_shift(halfway, const(bits, "int32")))
        tensor = context.cast(context.emit(op.clip(rounded, 0, 255)), "uint8")
    return tensor


def _uneven(context: Context, axes: Sequence[Axis]) -> UnsupportedError:
    return UnsupportedError(
        f"{context.node.target}: scale factors {[factor for _, _, factor in axes]} of symbolic "
        "extents that are no whole numbers; give the size, or whole factors"
    )


for _name, _what in METHODS.items():
    for _overload in ("default", "vec"):
        CONVERTERS[f"aten.{_name}.{_overload}"] = _resampler(*_what)


# Grids

_INTERPOLATIONS: Final = ("bilinear", "nearest", "bicubic")
_PADDINGS: Final = ("zeros", "border", "reflection")


@converter(
    "aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default", "aten.grid_sampler.default",
)  # fmt: skip
def grid_sampler(
    context: Context,
    input: Expr,
    grid: Expr,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Expr:
    """The image at the points of a grid, whose coordinates are its last dimension."""
    rank = context.rank(input)
    points = context.emit(op.permute_dims(grid, [0, rank - 1, *range(1, rank - 1)]))
    return op.image.grid_sample(
        input,
        points,
        method=_INTERPOLATIONS[interpolation_mode],
        layout="NC" + "DHW"[5 - rank :],
        padding_mode=_PADDINGS[padding_mode],
        align_corners=bool(align_corners),
    )


@converter("aten.affine_grid_generator.default")
def affine_grid(context: Context, theta: Expr, size: Sequence[Extent], align_corners: bool) -> Expr:
    """The grid of an affine map for images of a size."""
    grid = op.image.affine_grid(theta, list(size[2:]), align_corners=bool(align_corners))
    rank = len(size)
    return op.permute_dims(context.emit(grid), [0, *range(2, rank), 1])
