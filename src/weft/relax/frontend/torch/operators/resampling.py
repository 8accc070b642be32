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
from weft.relax.expr import Constant, Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.interpolation import (
    CUBIC,
    SMALL_IMAGE,
    fixed_point,
    nearest_places,
    tables,
    weighted_rows,
)
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.relax.frontend.torch.symbolic_tables import (
    Axis,
    symbolic_fixed_point,
    symbolic_places,
    symbolic_tables,
)
from weft.support.dtype import DataType

_RESIZE: Final = {1: op.image.resize1d, 2: op.image.resize2d, 3: op.image.resize3d}
Option = float | bool | None
"""What follows the size among the arguments: ``align_corners``, then factors."""
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
    image = axes[0][1] + axes[1][1] if rank == 2 else None
    if all(_is_copied_evenly(axis, kind, dtype, image) for axis in axes):
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
        sizes = (extent, count, factor)
        if not isinstance(extent, int) or not isinstance(count, int):
            places = symbolic_places(context, sizes, kind, image)
        elif image is None or isinstance(image, int):
            places = const(nearest_places((extent, count, factor), kind, dtype, image), "int64")
        else:
            places = symbolic_places(context, sizes, kind, image)
        tensor = context.emit(op.take(tensor, places, axis))
    return tensor


def _is_copied_evenly(axis: Axis, kind: str, dtype: str, image: Extent | None) -> bool:
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
    sums = [image] if image is None or isinstance(image, int) else [SMALL_IMAGE, SMALL_IMAGE + 1]
    tables = [nearest_places((extent, count, factor), kind, dtype, size) for size in sums]
    return all(bool((places == np.arange(count) // times).all()) for places in tables)


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
    if context.dtype == "uint8":
        return _of_bytes(context, tensor, how, axes)
    if not kind.endswith("_aa") and (corners or all(_is_scaled_evenly(*axis) for axis in axes)):
        return _resized(tensor, [count for _, count, _ in axes], kind, corners)
    is_wide = DataType(context.dtype).bits >= 32
    image = tensor if is_wide else context.cast(tensor, "float32")
    for number, axis in enumerate(axes, len(context.shape) - len(axes)):
        places, weights = _tables(context, axis, how)
        taps = places, context.cast(weights, context.dtype_of(image))
        image = context.emit(op.image.weighted_taps(image, *taps, number, True))
    return context.cast(image, context.dtype)


def _tables(context: Context, axis: Axis, how: tuple[str, bool]) -> tuple[Expr, Expr]:
    """(indices, weights) of an axis; the weights are float64."""
    extent, count, factor = axis
    if not isinstance(extent, int) or not isinstance(count, int):
        return symbolic_tables(context, axis, *how)
    places, weights = tables(weighted_rows((extent, count, factor), *how))
    return const(places, "int64"), const(weights, "float64")


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
    axes: Sequence[Axis],
) -> Expr:
    """uint8 as torch computes it: rows first, in fixed point, each axis rounded to uint8."""
    emit = context.emit
    for number in reversed(range(len(axes))):
        axis, (extent, count, _) = len(context.shape) - len(axes) + number, axes[number]
        if isinstance(extent, int) and extent == count:
            continue
        places, weights = _tables(context, axes[number], how)
        whole, bits = _fixed_point(context, weights)
        wide = context.cast(tensor, "int32")
        sums = emit(op.image.weighted_taps(wide, places, whole, axis))
        halfway = emit(op.left_shift(const(1, "int32"), bits - const(1, "int32")))
        rounded = emit(op.right_shift(emit(op.add(sums, halfway)), bits))
        tensor = context.cast(emit(op.clip(rounded, 0, 255)), "uint8")
    return tensor


def _fixed_point(context: Context, weights: Expr) -> tuple[Expr, Expr]:
    """Weights as whole numbers, and how many bits of them are a fraction: both int32."""
    if not isinstance(weights, Constant):
        return symbolic_fixed_point(context, weights)
    whole, bits = fixed_point(weights.data.numpy())
    return const(whole, "int32"), const(bits, "int32")


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
