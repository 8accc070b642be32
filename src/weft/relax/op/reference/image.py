"""References of resampling operators: axis by axis where the method is separable."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import by_wide, convert
from weft.support.dtype import DataType

_CENTRED = ("half_pixel", "align_corners")


Float = type[np.float32] | type[np.float64]


def _arithmetic(dtype: DataType) -> Float:
    """The float type in which the operator computes positions."""
    return np.float32 if dtype.bits <= (32 if dtype.is_float else 16) else np.float64


def _positions(
    extent: int, size: int, mode: str, part: tuple[float, float], kind: Float
) -> np.ndarray:
    """The position on the input axis of each output element."""
    place: np.ndarray = np.arange(size, dtype=kind)
    last = kind(extent - 1)
    scale = kind(extent) / kind(max(size, 1))
    if mode == "align_corners":
        return np.asarray(place * (last / kind(max(size - 1, 1))))
    if mode == "asymmetric":
        return np.asarray(place * scale)
    if mode == "tf_half_pixel_for_nn":
        return np.asarray((place + kind(0.5)) * scale)
    if mode == "tf_crop_and_resize":
        start, end = kind(part[0]), kind(part[1])
        if size <= 1:
            return np.full(size, kind(0.5) * (start + end) * last)
        return np.asarray(start * last + place * ((end - start) * last / kind(size - 1)))
    if mode == "pytorch_half_pixel" and size <= 1:
        return np.zeros(size, kind)
    return np.asarray(scale * (place + kind(0.5)) - kind(0.5))


def _rounded(position: np.ndarray, rounding: str) -> np.ndarray:
    kind = position.dtype.type
    rules: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "round": np.round,
        "round_prefer_floor": lambda p: np.ceil(p - kind(0.5)),
        "round_prefer_ceil": lambda p: np.floor(p + kind(0.5)),
        "floor": lambda p: np.floor(p + kind(1e-5)),
        "ceil": lambda p: np.ceil(p - kind(1e-5)),
    }
    return np.asarray(rules[rounding](position))


def _cubic(distance: np.ndarray, alpha: float) -> np.ndarray:
    """The cubic convolution kernel of Keys (1981)."""
    d = np.abs(distance)
    near = (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
    far = alpha * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, np.where(d <= 2, far, 0.0))


def _nearest(position: np.ndarray, extent: int, attrs: dict[str, Any]) -> np.ndarray:
    """The input index of each output element."""
    is_centred = attrs["coordinate_transformation_mode"] in _CENTRED
    rounding = attrs["rounding_method"] or ("round" if is_centred else "floor")
    return np.asarray(np.clip(_rounded(position, rounding), 0, extent - 1).astype(int))


def _matrix(position: np.ndarray, extent: int, attrs: dict[str, Any]) -> np.ndarray:
    """The matrix (output, input) of weights along one axis."""
    weights = np.zeros((len(position), extent))
    rows = np.arange(len(position))
    method = attrs["method"]
    base = np.floor(position)
    fraction = (position - base).astype(np.float64)
    taps = (0, 1) if method == "linear" else (-1, 0, 1, 2)
    for tap in taps:
        index = base.astype(int) + tap
        weight = _cubic(fraction - tap, attrs["cubic_alpha"])
        if method == "linear":
            weight = fraction if tap else 1 - fraction
        if attrs["cubic_exclude"]:
            weight = np.where((index >= 0) & (index < extent), weight, 0)
        np.add.at(weights, (rows, np.clip(index, 0, extent - 1)), weight)
    return weights / weights.sum(1, keepdims=True) if attrs["cubic_exclude"] else weights


def resize(data: np.ndarray, size: Sequence[int], **attrs: Any) -> np.ndarray:
    """Multiply with a matrix of weights along each axis whose size changes."""
    letters = "DHW"[3 - len(size) :]
    axes = [attrs["layout"].index(letter) for letter in letters]
    roi, out_dtype = list(attrs["roi"]), attrs["out_dtype"]
    kind, mode = _arithmetic(DataType(data.dtype.name)), attrs["coordinate_transformation_mode"]
    copies = attrs["method"] == "nearest_neighbor"
    resized = data if copies else data.astype(np.float64)
    inside = np.ones((1,) * data.ndim, bool)
    for number, axis in enumerate(axes):
        extent, part = data.shape[axis], (roi[number], roi[len(roi) // 2 + number])
        position = _positions(extent, size[number], mode, part, kind)
        if copies:
            resized = np.take(resized, _nearest(position, extent, attrs), axis)
        elif extent != size[number] or mode == "tf_crop_and_resize":  # else it is copied
            weights = _matrix(position, extent, attrs)
            resized = np.moveaxis(np.moveaxis(resized, axis, -1) @ weights.T, -1, axis)
        shape = [-1 if place == axis else 1 for place in range(data.ndim)]
        inside = inside & ((position >= 0) & (position <= extent - 1)).reshape(shape)
    if mode == "tf_crop_and_resize":
        resized = np.where(inside, resized, attrs["extrapolation_value"])
    dtype = data.dtype.name if out_dtype in (None, "void") else str(out_dtype)
    if DataType(dtype).is_float:
        return resized
    return convert(np.round(resized), dtype)


def _reflected(position: np.ndarray, extent: int, align_corners: bool) -> np.ndarray:
    low, span = (0.0, extent - 1.0) if align_corners else (-0.5, float(extent))
    if span <= 0:
        return np.zeros_like(position)
    rest = np.mod(np.abs(position - low), 2 * span)
    return np.where(rest > span, 2 * span - rest, rest) + low


def _padded(position: np.ndarray, extent: int, attrs: dict[str, Any]) -> np.ndarray:
    if attrs["padding_mode"] == "zeros":
        return position
    if attrs["padding_mode"] == "reflection":
        position = _reflected(position, extent, attrs["align_corners"])
    return np.asarray(np.clip(position, 0, extent - 1))


def _neighbours(
    position: np.ndarray, extent: int, attrs: dict[str, Any]
) -> list[tuple[np.ndarray, np.ndarray | float]]:
    """The neighbours along one axis: (integer positions, weights) for each of them."""
    method = attrs["method"]
    if method == "nearest":
        return [(np.round(_padded(position, extent, attrs)), 1.0)]
    position = _padded(position, extent, attrs) if method == "bilinear" else position
    base = np.floor(position)
    fraction = position - base
    if method == "bilinear":
        return [(base, 1 - fraction), (base + 1, fraction)]
    return [
        (_padded(base + tap, extent, attrs), _cubic(fraction - tap, -0.75)) for tap in range(-1, 3)
    ]


@by_wide
def grid_sample(data: np.ndarray, grid: np.ndarray, **attrs: Any) -> np.ndarray:
    """The weighted sum of the neighbours of each point of the grid."""
    layout = attrs["layout"]
    letters = "DHW"[5 - data.ndim :]
    order = [layout.index(letter) for letter in f"NC{letters}"]
    images = data.transpose(order)
    axes = []
    for number, extent in enumerate(images.shape[2:]):
        coordinate = grid[:, len(letters) - 1 - number]
        aligned = (coordinate + 1) / 2 * (extent - 1)
        position = aligned if attrs["align_corners"] else ((coordinate + 1) * extent - 1) / 2
        axes.append(_neighbours(position, extent, attrs))
    total = np.zeros((*images.shape[:2], *grid.shape[2:]))
    batch = np.arange(len(images)).reshape(-1, *[1] * len(letters))
    for chosen in itertools.product(*axes):
        weight, inside, place = np.ones(grid[:, 0].shape), True, []
        for (whole, share), extent in zip(chosen, images.shape[2:], strict=True):
            weight = weight * share
            inside = inside & (whole >= 0) & (whole <= extent - 1)
            place.append(np.clip(whole, 0, extent - 1).astype(int))
        values = np.moveaxis(images, 1, -1)[(batch, *place)]
        total += np.moveaxis(values * np.where(inside, weight, 0)[..., None], -1, 1)
    return total.transpose([f"NC{letters}".index(letter) for letter in layout])


@by_wide
def affine_grid(data: np.ndarray, size: Sequence[int], align_corners: bool = True) -> np.ndarray:
    """The affine map applied to the homogeneous coordinates of all pixels."""
    lines = []
    for extent in size:
        place = np.arange(extent, dtype=np.float64)
        if align_corners:
            lines.append(place * 2 / (extent - 1) - 1 if extent > 1 else np.zeros(extent))
        else:
            lines.append((2 * place + 1) / max(extent, 1) - 1)
    mesh = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*mesh, np.ones(tuple(size))])
    return np.asarray(np.einsum("nij,j...->ni...", data, points))


def weighted_taps(
    data: np.ndarray, indices: np.ndarray, weights: np.ndarray, axis: int, skip_zeros: bool
) -> np.ndarray:
    """Weighted sums of elements along an axis."""
    rows = np.moveaxis(data, axis, -1)[..., indices]
    terms = rows * weights
    if skip_zeros:
        terms = np.where(weights == 0, 0, terms)
    return np.moveaxis(terms.sum(-1, dtype=terms.dtype), -1, axis)
