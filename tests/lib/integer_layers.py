"""Layers that multiply integers: as graphs of Relax, and what integer numpy says of their results.

A layer has one of two *forms*. ``"qdq"`` computes floats, ``(astype(q) - zero) * scale`` around a
float operator, as QDQ models and ``weft.quantize`` write it. ``"integer"`` computes int32 from
int16 that are centred on their zero points, as the importers of ONNX's integer operators write it.

What is right to the last bit:

- Sums in int32, always, modulo 2**32.
- What is made of such a sum. It is scaled once, ``float32(sum) * float32(s * t)``, whether the
  graph says so (form ``"integer"``) or DequantizeAfterProduct does (``is_summed_in_integers``).
- Any sum of floats whose terms are integers times one power of two, as long as their absolute
  values add up to 2**24 at most: float32 holds each of its partial sums.

Elsewhere a bound of the error is kept: a sum of floats rounds at each step and in any order, a
product and a sum (with a bias) may be one instruction that rounds once, and Winograd's algorithm
multiplies by thirds. A requantised result may then differ by one quantum where a tie is that near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.lib.integer_numbers import (
    BYTES,
    EPSILON,
    LARGEST_EXACT,
    Array,
    Coding,
    Real,
    Weights,
    Window,
    convolved,
    product,
    quantised,
    wrapped,
)
from weft.relax import op
from weft.relax.expr import Call, Expr, const

WINOGRAD_ERROR: Final = 500
"""The error of Winograd's algorithm, in roundings of the largest sum of absolute terms."""


@dataclass(frozen=True)
class Emit:
    """Binds an expression to a variable; knows the zero points that are arguments of the call.

    ``zeros`` has the variable of each, by the name of the tensor.
    """

    bind: Callable[[Expr], Any]
    zeros: Mapping[str, Expr]

    def __call__(self, expr: Expr) -> Any:
        return self.bind(expr)

    def less_zero(self, numbers: Expr, zero: Expr | Array, dtype: str) -> Expr:
        """``astype(numbers) - zero`` in a dtype that holds it; without the zeros that are known."""
        wide: Expr = self(op.astype(numbers, dtype))
        if isinstance(zero, np.ndarray):
            if not zero.any():
                return wide
            known: Expr = self(op.subtract(wide, const(zero.astype(dtype))))
            return known
        result: Expr = self(op.subtract(wide, self(op.astype(zero, dtype))))
        return result


@dataclass(frozen=True)
class Setting:
    """What the bounds of errors depend on beside the layer."""

    is_power: bool
    """Whether all scales of the graph are powers of two."""
    has_bytes: bool
    """Whether the processor adds up four products of bytes at a time."""


@dataclass(frozen=True)
class Answer:
    """The least and the largest right result, element by element: mostly the same."""

    low: Array
    high: Array

    @property
    def is_sure(self) -> bool:
        """Whether only one result is right."""
        return bool(np.array_equal(self.low, self.high))


@dataclass(frozen=True)
class Layer:
    """A layer that reads ``sources`` and gives integers of a coding; None: what it computes."""

    sources: tuple[str, ...]
    form: str
    result: Coding | None

    def emit(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        """The layer's result as an expression."""
        if self.form == "integer":
            return self.integers(emit, values, codings)
        scales = [np.asarray(coding.scale, "float32") for coding in codings]
        parts = zip(values, self.zeros(emit, codings), scales, strict=True)
        reals = [dequantised(emit, *part) for part in parts]
        real = self.floats(emit, reals, codings)
        return real if self.result is None else quantise(emit, emit(real), self.result)

    def zeros(self, emit: Emit, codings: Sequence[Coding]) -> list[Expr | Array]:
        """The zero points of what it reads: known ones, and arguments of the call."""
        known = [np.asarray(coding.zero, "int64") for coding in codings]
        return [emit.zeros.get(*pair) for pair in zip(self.sources, known, strict=True)]

    def integers(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        """The layer in the form of integers."""
        raise NotImplementedError

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        """The float operator of the layer."""
        raise NotImplementedError

    def answer(
        self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting
    ) -> Answer:
        """What numpy says of the result."""
        return answer_of(self.real(arrays, codings, setting), self.result)

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        """What the layer computes before it is quantised."""
        raise NotImplementedError


def answer_of(real: Real, coding: Coding | None) -> Answer:
    """The right results, given what is quantised; None: that itself."""
    if coding is None:
        wide = real.values.astype("float64")
        return Answer(*[(wide + sign * real.error).astype("float32") for sign in (-1, 1)])
    low, high = quantised(real, coding)
    return Answer(low.astype(coding.dtype), high.astype(coding.dtype))


def dequantised(emit: Emit, numbers: Expr, zero: Expr | Array, scale: Array) -> Expr:
    """``(astype(q) - zero) * scale``."""
    centred = emit.less_zero(numbers, zero, "int32")
    result: Expr = emit(op.multiply(emit(op.astype(centred, "float32")), const(scale)))
    return result


def quantise(emit: Emit, real: Expr, coding: Coding) -> Expr:
    """``clip(round(real * (1 / scale)) + zero)`` in the coding's dtype."""
    inverse = const(np.float32(1) / np.float32(coding.scale), "float32")
    whole = emit(op.round(emit(op.multiply(real, inverse))))
    if coding.zero:
        whole = emit(op.add(whole, const(float(coding.zero), "float32")))
    low, high = coding.limits
    held = emit(op.clip(whole, low, high))
    return op.astype(emit(op.astype(held, "int32")), coding.dtype)


def real_of(array: Array, coding: Coding) -> Array:
    """What integers stand for, in float32: one product, which is rounded once."""
    centred = array.astype("int64") - coding.zero
    return np.asarray(centred.astype("float32") * np.float32(coding.scale), "float32")


# Sums of products


@dataclass(frozen=True)
class Tail:
    """What follows a sum: a bias for each channel from a seed, and limits, if they are given."""

    bias: int | None = None
    limits: tuple[int, int] | None = None
    """In the units of the sum; the larger one at or above 2**31 - 1 stands for a relu."""

    @property
    def is_relu(self) -> bool:
        """Whether there is no upper limit."""
        return self.limits is not None and self.limits[1] >= 2**31 - 1

    def numbers(self, channels: int) -> Array | None:
        """The bias, in units of the sum."""
        if self.bias is None:
            return None
        return np.random.default_rng(self.bias).integers(-3000, 3000, channels)


@dataclass(frozen=True)
class Sums(Layer):
    """A layer that sums products. Its second operand is the weights or another tensor."""

    weights: Weights | None
    is_transposed: bool
    tail: Tail

    def call(self, left: Expr, right: Expr, dtype: str) -> Call:
        """The operator."""
        raise NotImplementedError

    def sums(self, left: Array, right: Array) -> Array:
        """What it gives for int64."""
        raise NotImplementedError

    def is_summed_in_integers(
        self, left: Array, codings: Sequence[Coding], setting: Setting
    ) -> bool:
        """Whether DequantizeAfterProduct rewrites the layer in the form of floats."""
        raise NotImplementedError

    @property
    def channels(self) -> int:
        """How many channels a bias has; 1 if the result has none."""
        raise NotImplementedError

    @property
    def trailing(self) -> int:
        """How many axes of the result follow that of the channels."""
        return 0

    def by_channel(self, values: Array) -> Array:
        """A number for each channel (or one) in a shape that broadcasts with the result."""
        values = np.asarray(values)
        return values.reshape(() if values.size == 1 else (-1, *[1] * self.trailing))

    def integers(self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        total: Expr = emit(self.call(*self.centred(emit, values, codings), "int32"))
        numbers = self.tail.numbers(self.channels)
        if numbers is not None:
            total = emit(op.add(total, const(self.by_channel(numbers).astype("int32"))))
        if self.tail.limits is not None:
            low, high = self.tail.limits
            least = const(low, "int32")
            total = emit(
                op.maximum(total, least) if self.tail.is_relu else op.clip(total, low, high)
            )
        if self.result is None:
            return total
        factor = const(np.asarray(self.factor(codings) / np.float32(self.result.scale)))
        scaled = emit(op.multiply(emit(op.astype(total, "float32")), factor))
        return quantise(emit, scaled, Coding(self.result.dtype, 1.0, self.result.zero))

    def centred(
        self, emit: Emit, values: Sequence[Expr], codings: Sequence[Coding]
    ) -> tuple[Expr, Expr]:
        """Both operands less their zero points, in int16 if that holds them."""
        is_wide = any(coding.dtype not in BYTES and coding.zero for coding in codings)
        dtype = "int32" if is_wide else "int16"
        numbers, zeros = list(values), self.zeros(emit, codings)
        if self.weights is not None:
            numbers.append(const(self.weights.numbers()))
            zeros.append(self.weights.spread(self.weights.zeros, "int64"))
        left, right = [emit.less_zero(*pair, dtype) for pair in zip(numbers, zeros, strict=True)]
        return left, self.placed(emit, right)

    def floats(self, emit: Emit, reals: Sequence[Expr], codings: Sequence[Coding]) -> Expr:
        left, *others = reals
        if self.weights is not None:
            zeros = self.weights.spread(self.weights.zeros, "int64")
            scales = self.weights.spread(self.weights.scales, "float32")
            others = [dequantised(emit, const(self.weights.numbers()), zeros, scales)]
        total: Expr = self.call(left, self.placed(emit, others[0]), "")
        bias, limits = self.float_tail(codings)
        if bias is not None:
            total = op.add(emit(total), const(bias))
        if limits is None:
            return total
        return op.nn.relu(emit(total)) if self.tail.is_relu else op.clip(emit(total), *limits)

    def float_tail(self, codings: Sequence[Coding]) -> tuple[Array | None, list[float] | None]:
        """The bias and the limits of floats."""
        factor, numbers, limits = self.factor(codings), self.tail.numbers(self.channels), None
        if self.tail.limits is not None:
            unit = np.float32(factor.reshape(-1)[0])
            limits = [float(np.float32(limit) * unit) for limit in self.tail.limits]
        if numbers is None:
            return None, limits
        return np.asarray(self.by_channel(numbers).astype("float32") * factor, "float32"), limits

    def placed(self, emit: Emit, right: Expr) -> Expr:
        """The second operand, transposed if it comes transposed."""
        if not self.is_transposed:
            return right
        axes = list(range(right.struct_info.ndim))
        axes[-2:] = reversed(axes[-2:])
        result: Expr = emit(op.permute_dims(right, axes))
        return result

    def factor(self, codings: Sequence[Coding]) -> Array:
        """What a sum is multiplied by: the product of both scales, rounded to float32."""
        left = np.float32(codings[0].scale)
        if self.weights is None:
            return np.asarray(left * np.float32(codings[1].scale), "float32")
        scales = np.array(self.weights.scales, "float32")
        return np.asarray(self.by_channel(scales) * left, "float32")

    def operands(self, arrays: Sequence[Array], codings: Sequence[Coding]) -> tuple[Array, Array]:
        """Both operands less their zero points, in int64."""
        left, *others = [
            array.astype("int64") - coding.zero
            for array, coding in zip(arrays, codings, strict=True)
        ]
        right = others[0] if self.weights is None else self.weights.centred()
        return left, np.swapaxes(right, -1, -2) if self.is_transposed else right

    def answer(
        self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting
    ) -> Answer:
        if self.form != "integer":
            return super().answer(arrays, codings, setting)
        total = self.sums(*self.operands(arrays, codings))
        numbers = self.tail.numbers(self.channels)
        total = wrapped(total if numbers is None else total + self.by_channel(numbers))
        if self.tail.limits is not None:
            low, high = self.tail.limits
            total = np.clip(total, low, min(high, 2**31 - 1)).astype("int32")
        if self.result is None:
            return Answer(total, total)
        factor = self.factor(codings) / np.float32(self.result.scale)
        scaled = Real.of(total.astype("float32") * factor)
        return answer_of(scaled, Coding(self.result.dtype, 1.0, self.result.zero))

    def real(self, arrays: Sequence[Array], codings: Sequence[Coding], setting: Setting) -> Real:
        left, right = self.operands(arrays, codings)
        total, factor = self.sums(left, right), self.factor(codings).astype("float64")
        bias, limits = self.float_tail(codings)
        added = np.zeros((), "float32") if bias is None else bias
        scaled = (np.float32(total) * self.factor(codings)).astype("float32")
        if self.is_summed_in_integers(left, codings, setting):
            is_fused = bias is not None and not setting.is_power
            error = 2 * EPSILON * (np.abs(scaled) + np.abs(added)) * is_fused
        else:
            scaled = (total * factor).astype("float32")
            error = self.float_error((left, right), factor, added, setting)
        real = Real.of(scaled + added, error)
        if limits is None:
            return real
        return real.limited(0.0 if self.tail.is_relu else limits[0], limits[1])

    def float_error(
        self, operands: tuple[Array, Array], factor: Array, added: Array, setting: Setting
    ) -> Array:
        """By how much a sum of floats may be off, where it is one."""
        left, right = operands
        absolute = self.sums(np.abs(left), np.abs(right)) + np.abs(added) / factor
        if self.may_be_winograd:
            largest = absolute.max(axis=(2, 3), keepdims=True, initial=0)
            return np.asarray(EPSILON * (self.steps(right) + WINOGRAD_ERROR) * largest * factor)
        error = EPSILON * (self.steps(right) + 8) * absolute * factor
        return np.where((absolute <= LARGEST_EXACT) & setting.is_power, 0.0, error)

    @property
    def may_be_winograd(self) -> bool:
        """Whether Winograd's algorithm can compute it."""
        return False

    def steps(self, right: Array) -> int:
        """How many products a sum has, given the second operand."""
        return int(right.shape[-2] if right.ndim > 1 else right.shape[0])


@dataclass(frozen=True)
class Product(Sums):
    """A product of matrices: by weights, or by another tensor if there are none."""

    def call(self, left: Expr, right: Expr, dtype: str) -> Call:
        return op.matmul(left, right, **({"out_dtype": dtype} if dtype else {}))

    def sums(self, left: Array, right: Array) -> Array:
        return product(left, right)

    def is_summed_in_integers(
        self, left: Array, codings: Sequence[Coding], setting: Setting
    ) -> bool:
        right = self.weights.dtype if self.weights is not None else codings[1].dtype
        is_vector = left.ndim < 2 or (self.weights is not None and len(self.weights.shape) < 2)
        return codings[0].dtype in BYTES and right in BYTES and not is_vector

    @property
    def channels(self) -> int:
        if self.weights is None or len(self.weights.shape) < 2:
            return 1
        return self.weights.shape[-2 if self.is_transposed else -1]


@dataclass(frozen=True)
class Convolution(Sums):
    """A convolution in one or two dimensions."""

    window: Window
    groups: int

    def call(self, left: Expr, right: Expr, dtype: str) -> Call:
        window = self.window
        make = op.nn.conv1d if len(window.kernel) == 1 else op.nn.conv2d
        return make(
            left, right, strides=window.strides, padding=window.pads, dilation=window.dilation,
            groups=self.groups, **({"out_dtype": dtype} if dtype else {}),
        )  # fmt: skip

    def sums(self, left: Array, right: Array) -> Array:
        return convolved(left, right, self.window, self.groups)

    def is_summed_in_integers(
        self, left: Array, codings: Sequence[Coding], setting: Setting
    ) -> bool:
        assert self.weights is not None
        is_dense = self.groups == 1 and len(self.window.kernel) == 2
        is_winograd = self.may_be_winograd and not setting.has_bytes
        return codings[0].dtype in BYTES and is_dense and not is_winograd

    @property
    def may_be_winograd(self) -> bool:
        is_slid = {*self.window.strides, *self.window.dilation} == {1}
        return self.window.kernel == (3, 3) and is_slid and self.groups == 1

    def steps(self, right: Array) -> int:
        return int(right[0].size)

    @property
    def channels(self) -> int:
        assert self.weights is not None
        return self.weights.shape[0]

    @property
    def trailing(self) -> int:
        return len(self.window.kernel)
