"""Resampling along one axis, as ONNX's Resize defines it: positions, neighbours and weights.

Where the extents are numbers, neighbours and weights are tables that numpy computes in float64;
where they are symbols, the kernel computes them from its index with the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.relax.frontend.onnx.value import Array, Dim, as_prim
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op as tir

POSITIONS: Final = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
ROUNDINGS: Final = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Method:
    """How a node resamples: its attributes."""

    mode: str
    positions: str
    rounding: str = "round_prefer_floor"
    cubic: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class Axis:
    """One axis: its number, its extent before and after, output over input, the part taken."""

    axis: int
    extent: Dim
    count: Dim
    scale: Any
    part: tuple[float, float] = (0.0, 1.0)

    @property
    def is_static(self) -> bool:
        """Whether both extents are numbers."""
        return isinstance(self.extent, int) and isinstance(self.count, int)


def position(place: Any, extent: Any, count: Any, scale: Any, how: tuple[str, Any]) -> Any:
    """The position on the input of output indices ``place``; numpy's numbers or expressions."""
    mode, part = how
    width = scale * extent
    if mode == "asymmetric":
        return place / scale
    if mode == "align_corners":
        return _spread(place, extent - 1, width, 0.0)
    if mode == "tf_crop_and_resize":
        start, end = part
        middle = (end - start) * (extent - 1) / 2
        return _spread(place, (end - start) * (extent - 1), width, middle) + start * (extent - 1)
    if mode == "tf_half_pixel_for_nn":
        return (place + 0.5) / scale
    centre = (place + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return extent / 2 * (1 - count / width) + (place + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return _unless_one(width, centre, -0.5)
    return centre


def _unless_one(width: Any, value: Any, otherwise: Any) -> Any:
    if isinstance(width, float | int):
        return value if width != 1 else value * 0 + otherwise
    return tir.select(tir.equal(width, 1.0), value * 0.0 + otherwise, value)


def _spread(place: Any, reach: Any, width: Any, alone: Any) -> Any:
    """Indices spread evenly from 0 to ``reach``; ``alone`` where there is only one."""
    if isinstance(width, float | int):
        return place * 0 + alone if width == 1 else place * reach / (width - 1)
    one = tir.equal(width, 1.0)
    steps = tir.select(one, width, width - 1.0)
    return tir.select(one, place * 0.0 + alone, place * reach / steps)


# Kernels, on distances


def _triangle(distance: Array, _: float) -> Array:
    return np.clip(1 - np.abs(distance), 0, 1)


def _keys(distance: Array, a: float) -> Array:
    """Keys' cubic convolution kernel (1981)."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


KERNELS: Final[dict[str, tuple[int, Callable[[Array, float], Array]]]] = {
    "linear": (1, _triangle), "cubic": (2, _keys),
}  # fmt: skip
"""Mode -> how far the kernel reaches, the kernel."""


def static_positions(axis: Axis, method: Method, dtype: str = "float64") -> Array:
    """The positions of all output indices, computed in a type."""
    places = np.arange(axis.count, dtype=dtype)
    made = position(
        places, axis.extent, axis.count, float(axis.scale), (method.positions, axis.part)
    )
    return np.asarray(made, dtype)


def nearest_indices(axis: Axis, method: Method) -> Array:
    """The input index that each output index takes."""
    at = static_positions(axis, method)
    whole = {
        "round_prefer_floor": lambda: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda: np.floor(at + 0.5),
        "floor": lambda: np.floor(at), "ceil": lambda: np.ceil(at),
    }[method.rounding]()  # fmt: skip
    return np.clip(whole, 0, axis.extent - 1).astype("int64")


def weighted_taps(axis: Axis, method: Method, dtype: str = "float64") -> tuple[Array, Array]:
    """(indices, weights), both (outputs, taps); positions and weights are computed in a type."""
    at = static_positions(axis, method, dtype)
    reach, kernel = KERNELS[method.mode]
    shrink = min(float(axis.scale), 1.0) if method.antialias else 1.0
    first = int(np.floor(-reach / shrink)) + 1
    offsets = np.arange(first, 2 - first, dtype=dtype)
    base = np.floor(at)
    indices = base[:, None] + offsets
    weights = kernel((indices - at[:, None]) * shrink, method.cubic)
    if method.exclude_outside:
        weights = np.where((indices < 0) | (indices >= axis.extent), 0.0, weights)
    if method.antialias or method.exclude_outside:
        total = weights.sum(-1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    return np.clip(indices, 0, axis.extent - 1).astype("int64"), weights


def outside(axis: Axis, method: Method) -> Array:
    """Which output indices lie outside of the input."""
    at = static_positions(axis, method)
    return np.asarray((at < 0) | (at > axis.extent - 1))


# Tensor expressions


def along_symbolic(data: Tensor, axis: Axis, method: Method) -> Tensor:
    """One axis resampled where its extents are symbols."""
    shape = list(data.shape)
    shape[axis.axis] = as_prim(axis.count)
    kind = str(data.dtype)
    extent, count = (tir.cast("float64", as_prim(dim)) for dim in (axis.extent, axis.count))
    scale = tir.const(axis.scale, "float64") if isinstance(axis.scale, float) else axis.scale

    def clamped(whole: Any) -> Any:
        index = tir.cast("int64", whole)
        return tir.max(tir.min(index, as_prim(axis.extent) - 1), tir.const(0, "int64"))

    def at_index(index: Any) -> Any:
        place = tir.cast("float64", index)
        return position(place, extent, count, scale, (method.positions, axis.part))

    # a stage of its own: each position is read by several taps
    positions = compute([as_prim(axis.count)], at_index, "positions")

    def element(*point: Any) -> Any:
        at = positions(point[axis.axis])

        def read(whole: Any) -> Any:
            moved = list(point)
            moved[axis.axis] = clamped(whole)
            return data(*moved)

        if method.mode == "nearest":
            return read(_rounded(at, method.rounding))
        base = tir.floor(at)
        pairs = _symbolic_taps(at, base, extent, method)
        total = tir.add_n(*[read(whole) * tir.cast(kind, weight) for whole, weight in pairs])
        if method.positions != "tf_crop_and_resize":
            return total
        beyond = tir.any(at < 0.0, at > extent - 1.0)
        return tir.if_then_else(beyond, tir.const(method.extrapolation, kind), total)

    return compute(shape, element, "resample")


def _rounded(at: Any, rounding: str) -> Any:
    if rounding == "round_prefer_floor":
        return tir.ceil(at - 0.5)
    if rounding == "round_prefer_ceil":
        return tir.floor(at + 0.5)
    return tir.floor(at) if rounding == "floor" else tir.ceil(at)


def _symbolic_taps(at: Any, base: Any, extent: Any, method: Method) -> list[tuple[Any, Any]]:
    """Neighbours with their weights."""
    ratio, a = at - base, method.cubic
    if method.mode == "linear":
        pairs = [(base, 1.0 - ratio), (base + 1.0, ratio)]
    else:
        pairs = []
        for offset in range(-1, 3):
            x = tir.abs(ratio - float(offset))
            near = ((a + 2) * x - (a + 3)) * x * x + 1.0
            far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
            pairs.append((base + float(offset), near if offset in (0, 1) else far))
    if not method.exclude_outside:
        return pairs
    zero = tir.const(0.0, "float64")
    inside = [
        tir.select(tir.all(whole >= 0.0, whole < extent), weight, zero) for whole, weight in pairs
    ]
    total = tir.add_n(*inside)
    return [(whole, weight / total) for (whole, _), weight in zip(pairs, inside, strict=True)]
