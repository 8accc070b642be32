"""Images at another size, and at the points of a grid.

Where the input's extent over the output's is the scale, as it is unless torch was given factors
that do not divide evenly, ``relax.image.resize`` says it. Else, and with antialias, each axis is
multiplied by the matrix of the weights that torch computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import CONVERTERS, converter
from weft.support.errors import UnsupportedError

_RESIZE: Final = {1: op.image.resize1d, 2: op.image.resize2d, 3: op.image.resize3d}
_CUBIC: Final = -0.75
"""The coefficient of torch's cubic kernel; with antialias it is -0.5, as PIL's."""

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

    def resample(context: Context, self: Expr, output_size: Any = None, *rest: Any) -> Expr:
        options = list(rest)
        corners = bool(options.pop(0)) if "nearest" not in kind and kind != "exact" else False
        factors = _factors(options, rank)
        return resampled(context, self, (kind, corners), factors)

    return resample


def _factors(options: Sequence[Any], rank: int) -> list[float | None]:
    """A factor for each axis, None where the sizes tell."""
    if options and isinstance(options[0], list | tuple):
        options = options[0]
    given = [factor for factor in options if factor is not None]
    return list(options) if len(given) == len(options) == rank else [None] * rank


def resampled(
    context: Context, tensor: Expr, how: tuple[str, bool], factors: Sequence[float | None]
) -> Expr:
    """The tensor at the size that torch deduced."""
    kind, corners = how
    rank = len(factors)
    size: list[Any] = context.shape[-rank:]
    extents: list[Any] = context.dims(tensor)[-rank:]
    even = all(
        _is_even(extent, count, factor, kind)
        for extent, count, factor in zip(extents, size, factors, strict=True)
    )
    if even or (corners and not kind.endswith("_aa")):
        return _resized(tensor, size, kind, corners)
    if not context.static([*size, *extents]):
        raise UnsupportedError(
            f"{context.node.target}: scale factors {list(factors)} of symbolic extents that are "
            "no whole numbers; give the size, or whole factors"
        )
    for number in range(rank):
        axis = len(context.shape) - rank + number
        sizes = extents[number], size[number], factors[number]
        tensor = _along(context, tensor, axis, sizes, how)
    return tensor


def _is_even(extent: Any, count: Any, factor: float | None, kind: str) -> bool:
    """Whether ``relax.image.resize`` computes the same places as torch."""
    if kind.endswith("_aa"):
        return False
    if isinstance(extent, int) and isinstance(count, int):
        if kind in ("nearest", "exact"):
            return extent > 0 and count % extent == 0 and (
                factor is None or factor * extent == count
            )
        return factor is None or factor * extent == count
    if kind in ("nearest", "exact"):
        return factor is not None and float(factor).is_integer()
    return factor is None or float(factor).is_integer()


def _resized(tensor: Expr, size: Sequence[Any], kind: str, corners: bool) -> Expr:
    rank = len(size)
    layout = "NC" + "DHW"[3 - rank :]
    if kind in ("nearest", "exact"):
        return _RESIZE[rank](
            tensor, list(size), layout=layout, method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric", rounding_method="floor",
        )  # fmt: skip
    cubic = {"cubic_alpha": _CUBIC} if kind == "cubic" else {}
    return _RESIZE[rank](
        tensor, list(size), layout=layout, method=kind, **cubic,
        coordinate_transformation_mode="align_corners" if corners else "half_pixel",
    )  # fmt: skip


def _along(
    context: Context, tensor: Expr, axis: int, sizes: tuple[int, int, float | None],
    how: tuple[str, bool],
) -> Expr:  # fmt: skip
    """One axis at another extent."""
    kind, corners = how
    extent, count, factor = sizes
    if kind in ("nearest", "exact"):
        scale = np.float32(1 / factor) if factor else np.float32(extent) / np.float32(count)
        middle = np.float32(0.5 if kind == "exact" else 0)
        places = np.floor((np.arange(count, dtype="float32") + middle) * scale).astype("int64")
        chosen = const(np.minimum(places, extent - 1), "int64")
        return context.emit(op.take(tensor, chosen, axis))
    weights = const(weight_matrix(sizes, kind, corners).T.astype("float32"), "float32")
    last = context.rank(tensor) - 1
    order = list(range(last + 1))
    order[axis], order[last] = order[last], order[axis]
    data = context.emit(op.permute_dims(context.cast(tensor, "float32"), order))
    made = context.emit(op.permute_dims(context.emit(op.matmul(data, weights)), order))
    return context.cast(made, context.dtype)


def weight_matrix(sizes: tuple[int, int, float | None], kind: str, corners: bool) -> Any:
    """What each element of an axis (columns) adds to each of the resampled one (rows)."""
    extent, count, factor = sizes
    scale = 1 / factor if factor else extent / count
    if corners:
        scale = (extent - 1) / (count - 1) if count > 1 else 0.0
    made = np.zeros((count, extent))
    for row in range(count):
        for place, weight in _taps(row, (scale, extent), kind, corners):
            made[row, min(max(place, 0), extent - 1)] += weight
    return made


def _taps(
    row: int, axis: tuple[float, int], kind: str, corners: bool
) -> list[tuple[int, float]]:
    """Places with their weights."""
    scale, extent = axis
    if kind.endswith("_aa"):
        return _wide_taps(row, scale, extent, _linear if kind == "linear_aa" else _cubic_half)
    centre = row * scale if corners else (row + 0.5) * scale - 0.5
    if kind == "linear":
        centre = max(centre, 0.0)
    base = math.floor(centre)
    reach = range(2) if kind == "linear" else range(-1, 3)
    kernel = _linear if kind == "linear" else _cubic
    return [(base + tap, kernel(centre - base - tap)) for tap in reach]


def _wide_taps(
    row: int, scale: float, extent: int, kernel: Callable[[float], float]
) -> list[tuple[int, float]]:
    """All elements under a kernel stretched by the scale, as PIL resamples."""
    radius = (1 if kernel is _linear else 2) * max(scale, 1.0)
    centre = scale * (row + 0.5)
    first = max(int(centre - radius + 0.5), 0)
    end = min(int(centre + radius + 0.5), extent)
    weights = [kernel((place - centre + 0.5) / max(scale, 1.0)) for place in range(first, end)]
    total = sum(weights)
    return [(first + i, weight / total) for i, weight in enumerate(weights)]


def _linear(distance: float) -> float:
    return max(0.0, 1.0 - abs(distance))


def _keys(distance: float, alpha: float) -> float:
    """Keys' cubic convolution kernel (1981)."""
    x = abs(distance)
    if x <= 1:
        return (alpha + 2) * x**3 - (alpha + 3) * x**2 + 1
    return alpha * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def _cubic(distance: float) -> float:
    return _keys(distance, _CUBIC)


def _cubic_half(distance: float) -> float:
    return _keys(distance, -0.5)


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
    context: Context, input: Expr, grid: Expr, interpolation_mode: int, padding_mode: int,
    align_corners: bool,
) -> Expr:  # fmt: skip
    """The image at the points of a grid, whose coordinates are its last dimension."""
    rank = context.rank(input)
    points = context.emit(op.permute_dims(grid, [0, rank - 1, *range(1, rank - 1)]))
    return op.image.grid_sample(
        input, points, method=_INTERPOLATIONS[interpolation_mode],
        layout="NC" + "DHW"[5 - rank :], padding_mode=_PADDINGS[padding_mode],
        align_corners=bool(align_corners),
    )  # fmt: skip


@converter("aten.affine_grid_generator.default")
def affine_grid(
    context: Context, theta: Expr, size: Sequence[Any], align_corners: bool
) -> Expr:
    """The grid of an affine map for images of a size."""
    made = op.image.affine_grid(theta, list(size[2:]), align_corners=bool(align_corners))
    rank = len(size)
    return op.permute_dims(context.emit(made), [0, *range(2, rank), 1])
