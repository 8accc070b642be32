"""Quantised numbers for random graphs of integers, and what numpy computes with them in int64.

A *coding* says what the integers of a tensor stand for: ``(q - zero) * scale``. A *real* is what a
layer computes before it is quantised again: float32 with a bound of the error that a compiler may
make, which is zero wherever the arithmetic is defined to the last bit (see ``integer_layers``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BYTES: Final = ("int8", "uint8")
EPSILON: Final = 2.0**-24
"""The largest relative error of one rounding to float32."""
LARGEST_EXACT: Final = 1 << 24
"""Up to here float32 holds every integer."""
FILLS: Final = ("any", "any", "any", "least", "largest", "ends", "near zero", "zero")
"""How data is drawn: over the whole range, all alike at an end, a mixture of both ends, within a
few steps of the zero point, or all at it."""


@dataclass(frozen=True)
class Coding:
    """What integers stand for: ``(q - zero) * scale``."""

    dtype: str
    scale: float
    zero: int

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest integer."""
        return limits_of(self.dtype)

    @property
    def reach(self) -> int:
        """The largest absolute value of ``q - zero``."""
        low, high = self.limits
        return max(high - self.zero, self.zero - low)


@dataclass(frozen=True)
class Weights:
    """Constant integers with a zero point and a scale for each channel, or the same for all."""

    shape: tuple[int, ...]
    dtype: str
    seed: int
    fill: str
    axis: int
    """The axis of the channels."""
    zeros: tuple[int, ...]
    scales: tuple[float, ...]

    def numbers(self) -> Array:
        """The integers."""
        coding = Coding(self.dtype, 1.0, int(self.zeros[0]))
        return drawn(coding, self.shape, self.fill, np.random.default_rng(self.seed))

    def spread(self, values: Sequence[float], dtype: str) -> Array:
        """One number, or one for each channel, in a shape that broadcasts with the weights."""
        if len(values) == 1:
            return np.array(values[0], dtype)
        rank = len(self.shape)
        return np.array(values, dtype).reshape([-1 if a == self.axis else 1 for a in range(rank)])

    def centred(self) -> Array:
        """The integers less their zero points, in int64."""
        return self.numbers().astype("int64") - self.spread(self.zeros, "int64")

    @property
    def reach(self) -> int:
        """The largest absolute value of an integer less its zero point."""
        return max(Coding(self.dtype, 1.0, zero).reach for zero in self.zeros)


def limits_of(dtype: str) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def drawn(coding: Coding, shape: Sequence[int], fill: str, generator: np.random.Generator) -> Array:
    """Random integers of a coding, filled as one of ``FILLS`` says."""
    low, high = coding.limits
    if fill == "ends":
        numbers = generator.choice(np.array([low, high]), shape)
    elif fill == "any":
        numbers = generator.integers(low, high + 1, shape)
    elif fill == "near zero":
        numbers = coding.zero + generator.integers(-4, 5, shape)
    else:
        same = {"least": low, "largest": high, "zero": coding.zero}[fill]
        numbers = np.full(shape, same)
    return np.asarray(np.clip(numbers, low, high), coding.dtype)


def wrapped(total: Array) -> Array:
    """Sums as int32 holds them: modulo 2**32."""
    return np.asarray(total, "int64").astype("int32")


@dataclass(frozen=True)
class Real:
    """Numbers of a layer in float32, and by how much each may be off (float64)."""

    values: Array
    error: Array

    @staticmethod
    def of(values: Array, error: Array | float = 0.0) -> Real:
        """The numbers, with an error that is broadcast to their shape."""
        values = np.asarray(values, "float32")
        return Real(values, np.broadcast_to(np.asarray(error, "float64"), values.shape))

    def limited(self, low: float, high: float) -> Real:
        """The numbers within limits, which brings none further apart."""
        return Real(np.clip(self.values, np.float32(low), np.float32(high)), self.error)


def quantised(real: Real, coding: Coding) -> tuple[Array, Array]:
    """The least and the largest integers that may stand for real numbers.

    They are ``clip(round(real / scale) + zero)``, ties to even. The two differ only where the error
    of ``real`` reaches over a tie; where there is none, each step is one operation of float32.
    """
    inverse = np.float32(1) / np.float32(coding.scale)
    steps = np.asarray(real.values * inverse, "float32").astype("float64")
    error = real.error * float(inverse) + 3 * EPSILON * np.abs(steps) * (real.error > 0)
    low, high = [
        np.clip(np.rint(steps + sign * error) + coding.zero, *coding.limits).astype("int64")
        for sign in (-1, 1)
    ]
    return low, high


# Sums of products, in int64


def product(left: Array, right: Array) -> Array:
    """A product of matrices, or of a vector and a matrix."""
    return np.asarray(np.matmul(left.astype("int64"), right.astype("int64")))


@dataclass(frozen=True)
class Window:
    """How a window moves over an image: a number for each spatial axis, padding at both ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    """Before the first pixel of each axis, then after the last one of each axis."""
    dilation: tuple[int, ...]

    def counts(self, extents: Sequence[int]) -> list[int]:
        """How many places it has along each axis."""
        rank = len(self.kernel)
        spans = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        return [
            (extents[a] + self.pads[a] + self.pads[rank + a] - spans[a]) // self.strides[a] + 1
            for a in range(rank)
        ]

    def views(self, image: Array, filler: float = 0) -> Array:
        """What the window sees at each place: batch, channels, places..., kernel...."""
        rank = len(self.kernel)
        pairs = [(self.pads[a], self.pads[rank + a]) for a in range(rank)]
        wide = np.pad(image, [(0, 0), (0, 0), *pairs], constant_values=filler)
        spans = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        axes = tuple(range(2, 2 + rank))
        seen = np.lib.stride_tricks.sliding_window_view(wide, spans, axes)
        places = [slice(None, None, stride) for stride in self.strides]
        taps = [slice(None, None, step) for step in self.dilation]
        return seen[(slice(None), slice(None), *places, *taps)]


def convolved(image: Array, weights: Array, window: Window, groups: int) -> Array:
    """A convolution of int64: image (n, c, ...), weights (o, c / groups, ...)."""
    seen = window.views(image.astype("int64"))
    depth, filters = weights.shape[1], weights.shape[0] // groups
    rank = len(window.kernel)
    results = []
    for group in range(groups):
        part = seen[:, group * depth : (group + 1) * depth]
        own = weights[group * filters : (group + 1) * filters].astype("int64")
        taps = tuple(range(part.ndim - rank, part.ndim))
        whole = np.tensordot(part, own, axes=((1, *taps), tuple(range(1, own.ndim))))
        results.append(np.moveaxis(whole, -1, 1))
    return np.concatenate(results, 1)
