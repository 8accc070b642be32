"""Resampling along one axis, as ONNX's Resize defines it: positions, neighbours and weights.

Neighbours and weights are tables in float64, which numpy computes; where an extent is a symbol, the
program computes them, with the same formulas on tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.value import Array, Dim, as_prim
from weft.relax.frontend.resampling_kernels import kernel_weights

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


Part = tuple[float | Expr, float | Expr]
"""Where a part of an axis starts and ends: 0 is the first element, 1 the last."""


@dataclass(frozen=True)
class Axis:
    """One axis: its number, its extent before and after, output over input, the part taken.

    The scale of symbolic extents is None where it is their ratio. It and the edges of the part are
    tensors of float64 where the program computes them.
    """

    axis: int
    extent: Dim
    count: Dim
    scale: float | Expr | None
    part: Part = (0.0, 1.0)

    @property
    def has_known_part(self) -> bool:
        """Whether the edges of the part are numbers."""
        return not any(isinstance(edge, Expr) for edge in self.part)

    @property
    def is_static(self) -> bool:
        """Whether both extents and the edges of the part are numbers."""
        extents = isinstance(self.extent, int) and isinstance(self.count, int)
        return extents and self.has_known_part


Number = Any
"""Numbers and arrays at import, or expressions of the program: both have Python's operators."""


def position(
    place: Number,
    extent: Number,
    count: Number,
    scale: Number,
    how: tuple[str, Part],
) -> Number:
    """The position on the input of output indices ``place``: arrays of numpy, or of the graph."""
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


def _unless_one(width: Number, value: Number, otherwise: float) -> Number:
    if isinstance(width, float | int):
        return value if width != 1 else value * 0 + otherwise
    return op.where(op.equal(width, 1.0), value * 0.0 + otherwise, value)


def _spread(place: Number, reach: Number, width: Number, alone: Number) -> Number:
    """Indices spread evenly from 0 to ``reach``; ``alone`` where there is only one."""
    if isinstance(width, float | int):
        return place * 0 + alone if width == 1 else place * reach / (width - 1)
    is_one = op.equal(width, 1.0)
    steps = op.where(is_one, width, width - 1.0)
    return op.where(is_one, place * 0.0 + alone, place * reach / steps)


# Kernels, on distances


def _triangle(distance: Array, _: float) -> Array:
    return np.asarray(np.clip(1 - np.abs(distance), 0, 1))


def _keys(distance: Array, a: float) -> Array:
    """Keys' cubic convolution kernel (1981)."""
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.asarray(np.where(x <= 1, near, np.where(x < 2, far, 0.0)))


KERNELS: Final[dict[str, tuple[int, Callable[[Array, float], Array]]]] = {
    "linear": (1, _triangle), "cubic": (2, _keys),
}  # fmt: skip
"""Mode -> how far the kernel reaches, the kernel."""


def extent_of(axis: Axis) -> int:
    """The extent before, which is a number."""
    return expect(axis.extent, int)


def count_of(axis: Axis) -> int:
    """The extent after, which is a number."""
    return expect(axis.count, int)


def scale_of(axis: Axis) -> float:
    """Output over input, of extents that are numbers."""
    return expect(axis.scale, float)


def static_positions(axis: Axis, method: Method, dtype: str = "float64") -> Array:
    """The positions of all output indices, computed in a type."""
    places = np.arange(count_of(axis), dtype=dtype)
    at = position(
        places, extent_of(axis), count_of(axis), scale_of(axis), (method.positions, axis.part)
    )
    return np.asarray(at, dtype)


def nearest_indices(axis: Axis, method: Method) -> Array:
    """The input index that each output index takes."""
    at = static_positions(axis, method)
    whole = {
        "round_prefer_floor": np.ceil(at - 0.5),
        "round_prefer_ceil": np.floor(at + 0.5),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }[method.rounding]
    return np.asarray(np.clip(whole, 0, extent_of(axis) - 1), "int64")


def weighted_taps(axis: Axis, method: Method, dtype: str = "float64") -> tuple[Array, Array]:
    """(indices, weights), both (outputs, taps); positions and weights are computed in a type."""
    at = static_positions(axis, method, dtype)
    reach, kernel = KERNELS[method.mode]
    shrink = min(scale_of(axis), 1.0) if method.antialias else 1.0
    first = int(np.floor(-reach / shrink)) + 1
    offsets = np.arange(first, 2 - first, dtype=dtype)
    base = np.floor(at)
    indices = base[:, None] + offsets
    weights = kernel((indices - at[:, None]) * shrink, method.cubic)
    if method.exclude_outside:
        weights = np.where((indices < 0) | (indices >= extent_of(axis)), 0.0, weights)
    if method.antialias or method.exclude_outside:
        total = weights.sum(-1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    return np.clip(indices, 0, extent_of(axis) - 1).astype("int64"), weights


def outside(axis: Axis, method: Method) -> Array:
    """Which output indices lie outside of the input."""
    at = static_positions(axis, method)
    return np.asarray((at < 0) | (at > extent_of(axis) - 1))


# Symbolic extents


class Symbolic:
    """The tables of an axis whose extents are symbols, computed by the program in float64."""

    def __init__(self, context: Context, axis: Axis, method: Method) -> None:
        self.context, self.axis, self.method = context, axis, method
        self.extent, count = self.number(axis.extent), self.number(axis.count)
        scale = axis.scale
        if scale is None:
            scale = count / self.extent
        elif not isinstance(scale, Expr):
            scale = context.constant(scale).expr
        places = op.astype(op.arange(as_prim(axis.count), dtype="int64"), "float64")
        how = (method.positions, axis.part)
        self.at = context.emit(position(places, self.extent, count, context.emit(scale), how))

    def number(self, dim: Dim) -> Expr:
        """A dimension as a tensor without dimensions."""
        return self.context.emit(op.astype(self.context.dim_expr(dim), "float64"))

    def clamped(self, whole: Expr) -> Expr:
        """Places as indices, those outside of the input as its ends."""
        indices = op.minimum(op.astype(whole, "int64"), self.context.dim_expr(self.axis.extent, -1))
        zero = self.context.constant(0, "int64").expr
        return self.context.emit(op.maximum(indices, zero))

    def nearest(self) -> Expr:
        """The input index that each output index takes."""
        whole = {
            "round_prefer_floor": lambda: op.ceil(self.at - 0.5),
            "round_prefer_ceil": lambda: op.floor(self.at + 0.5),
            "floor": lambda: op.floor(self.at),
            "ceil": lambda: op.ceil(self.at),
        }[self.method.rounding]()
        return self.clamped(whole)

    def taps(self) -> tuple[Expr, Expr]:
        """(indices, weights), both (outputs, taps)."""
        reach = KERNELS[self.method.mode][0]
        offsets = self.context.constant(np.arange(1 - reach, reach + 1, dtype="float64")).expr
        emit = self.context.emit
        ratio = emit(op.expand_dims(self.at - op.floor(self.at), [1]))
        whole = emit(op.expand_dims(op.floor(self.at), [1]) + offsets)
        weights = self.weights(emit(op.abs(offsets - ratio)))
        if self.method.exclude_outside:
            inside = op.logical_and(whole >= 0.0, whole < self.extent)
            weights = emit(op.where(inside, weights, self.context.constant(0.0).expr))
            weights = emit(op.divide(weights, op.sum(weights, [1], True)))
        return self.clamped(whole), weights

    def weights(self, x: Expr) -> Expr:
        """The kernel at distances."""
        return self.context.emit(kernel_weights(x, self.method.mode, self.method.cubic))

    def outside(self) -> Expr:
        """Which output indices lie outside of the input."""
        return self.context.emit(op.logical_or(self.at < 0.0, self.at > self.extent - 1.0))
