"""Layers of quantised tensors without products: sums, pools, limits, concatenations, moves.

Tests.lib.integer_layers says what the two forms are and what is right to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.lib.integer_layers import Answer, Emit, Layer, Setting, real_of
from tests.lib.integer_numbers import EPSILON, Array, Coding, Real, Window
from weft.relax import op
from weft.relax.expr import Expr, const


def _same(array: Array) -> Answer:
    return Answer(array, array)


@dataclass(frozen=True)
class Limit(Layer):
    """A relu or a clip. As integers it is one of the integers themselves, with the same coding."""

    low: int
    high: int | None
    """In steps from the zero point; None: no upper limit."""

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        low, high = self.float_limits(codings[0])
        return op.nn.relu(reals[0]) if self.high is None else op.clip(reals[0], low, high)

    def float_limits(self, coding: Coding) -> tuple[float, float]:
        """The limits of floats."""
        unit = np.float32(coding.scale)
        high = np.inf if self.high is None else float(np.float32(self.high) * unit)
        return float(np.float32(self.low) * unit), high

    def integer_limits(self, coding: Coding) -> tuple[int, int]:
        """The limits of integers, within those of the dtype."""
        least, largest = coding.limits
        low = min(max(coding.zero + self.low, least), largest)
        high = largest if self.high is None else min(max(coding.zero + self.high, low), largest)
        return low, high

    def integers(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        low, high = self.integer_limits(codings[0])
        if self.high is None:
            return op.maximum(values[0], const(low, codings[0].dtype))
        return op.clip(values[0], low, high)

    def answer(
        self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting
    ) -> Answer:
        if self.form == "integer":
            return _same(np.clip(arrays[0], *self.integer_limits(codings[0])))
        return super().answer(arrays, codings, setting)

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        real = Real.of(real_of(arrays[0], codings[0]))
        return real.limited(*self.float_limits(codings[0]))


@dataclass(frozen=True)
class Combine(Layer):
    """``add``, ``subtract``, ``multiply``, ``maximum`` or ``minimum`` of two tensors, in floats."""

    operator: str

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        result: Expr = getattr(op, self.operator)(*reals)
        return result

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        left, right = [real_of(*pair) for pair in zip(arrays, codings, strict=True)]
        values = getattr(np, self.operator)(left, right)
        is_fused = self.operator in ("add", "subtract") and not setting.is_power
        return Real.of(values, 2 * EPSILON * (np.abs(left) + np.abs(right)) * is_fused)


@dataclass(frozen=True)
class Largest(Layer):
    """A max pool of images."""

    window: Window

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        return self._pool(reals[0])

    def integers(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        return self._pool(values[0])

    def _pool(self, value: Expr) -> Expr:
        window = self.window
        return op.nn.max_pool2d(
            value, window.kernel, window.strides, window.pads, dilation=window.dilation
        )

    def _largest(self, image: Array, filler: float) -> Array:
        return np.asarray(self.window.views(image, filler).max(axis=(-2, -1)))

    def answer(
        self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting
    ) -> Answer:
        if self.form == "integer":
            return _same(self._largest(arrays[0], codings[0].limits[0]))
        return super().answer(arrays, codings, setting)

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        return Real.of(self._largest(real_of(arrays[0], codings[0]), -np.inf))


@dataclass(frozen=True)
class Mean(Layer):
    """An average pool of images, or (without a window) the mean of each channel; in floats."""

    window: Window | None
    counts_pads: bool = False

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        window = self.window
        if window is None:
            return op.mean(reals[0], axis=[2, 3], keepdims=True)
        return op.nn.avg_pool2d(
            reals[0], window.kernel, window.strides, window.pads,
            count_include_pad=self.counts_pads,
        )  # fmt: skip

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        image = arrays[0].astype("int64") - codings[0].zero
        pixels = image.shape[2:]
        window = self.window or Window(pixels, (1, 1), (0, 0, 0, 0), (1, 1))
        total = window.views(image).sum(axis=(-2, -1))
        absolute = window.views(np.abs(image)).sum(axis=(-2, -1))
        ones = np.ones((1, 1, *pixels), "int64")
        counts = window.views(ones, int(self.counts_pads)).sum(axis=(-2, -1))
        counts = np.maximum(counts, 1)
        scale = float(np.float32(codings[0].scale))
        values = total * scale / counts
        is_exact = (counts & (counts - 1) == 0) & setting.is_power
        error = EPSILON * (math.prod(window.kernel) + 8) * absolute * scale / counts
        return Real.of(values, np.where(is_exact, 0.0, error))


@dataclass(frozen=True)
class Join(Layer):
    """Two tensors beside each other; as integers they have the same coding."""

    axis: int

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        return op.concat(list(reals), self.axis)

    def integers(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        return op.concat(list(values), self.axis)

    def answer(
        self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting
    ) -> Answer:
        if self.form == "integer":
            return _same(np.concatenate(arrays, self.axis))
        return super().answer(arrays, codings, setting)

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        reals = [real_of(*pair) for pair in zip(arrays, codings, strict=True)]
        return Real.of(np.concatenate(reals, self.axis))


@dataclass(frozen=True)
class Move(Layer):
    """``flatten``: all axes but the first in one; ``swap``: the last two axes; of integers."""

    kind: str

    def integers(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        if self.kind == "swap":
            axes = list(range(values[0].struct_info.ndim))
            axes[-2:] = reversed(axes[-2:])
            return op.permute_dims(values[0], axes)
        first, *others = values[0].struct_info.shape.values
        return op.reshape(values[0], [first, math.prod(int(extent) for extent in others)])

    def answer(
        self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting
    ) -> Answer:
        if self.kind == "swap":
            return _same(np.ascontiguousarray(np.swapaxes(arrays[0], -1, -2)))
        first, *others = arrays[0].shape
        return _same(arrays[0].reshape(first, math.prod(others)))
