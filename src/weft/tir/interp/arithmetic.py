"""Arithmetic of the reference interpreter: one row for each operator.

A scalar integer is a Python int in its type's range, a bool a Python bool, a float a numpy scalar
of its type; a vector is a numpy array of its lanes. Integers wrap; floor division and remainder
are Python's; division by zero is an error; shifts by the width or more give 0 (or the sign);
conversion of floats to integers saturates, and NaN becomes 0; min and max propagate NaN, and -0.0
is less than 0.0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from weft.ir.expr import integer_range
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, RuntimeFault
from weft.tir.interp.values import Value
from weft.tir.intrinsic import UNARY_FLOAT
from weft.tir.op import saturate, wrap

Binary = Callable[[Value, Value], Value]


def is_vector(dtype: DataType) -> bool:
    """Whether values of the type are vectors: arrays of lanes."""
    return dtype.lanes != 1


def finish(dtype: DataType) -> Callable[[Value], Value]:
    """The function that converts an exact result to a type: wraps, rounds, or makes a bool."""
    element = dtype.element
    if is_vector(dtype):
        kind = element.numpy
        return lambda value: np.asarray(value).astype(kind)
    if element.is_bool:
        return bool
    if element.is_integral:
        low, high = integer_range(element)
        return lambda value: value if low <= value <= high else wrap(value, element)
    return element.numpy.type


def _check_divisor(divisor: Value) -> None:
    if not (divisor if isinstance(divisor, int) else np.all(divisor)):
        raise RuntimeFault("division by zero")


def _floordiv(a: Value, b: Value) -> Value:
    _check_divisor(b)
    return a // b


def _floormod(a: Value, b: Value) -> Value:
    _check_divisor(b)
    return a % b


def _truncdiv(a: Value, b: Value) -> Value:
    _check_divisor(b)
    if isinstance(a, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    rest = np.fmod(a, b)  # the absolute value of the least integer would wrap
    return (a - rest) // b


def _truncmod(a: Value, b: Value) -> Value:
    _check_divisor(b)
    if isinstance(a, int):
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    return np.fmod(a, b)


def _integer_min(a: Value, b: Value) -> Value:
    return (a if a <= b else b) if isinstance(a, int) else np.minimum(a, b)


def _integer_max(a: Value, b: Value) -> Value:
    return (a if a >= b else b) if isinstance(a, int) else np.maximum(a, b)


def float_minimum(a: Value, b: Value) -> Value:
    """The ``minimum`` of IEEE 754-2019: NaN if either is, and -0.0 is less than 0.0."""
    with np.errstate(all="ignore"):
        return np.where((a == 0) & (b == 0), -(-a - b), np.minimum(a, b))[()]


def float_maximum(a: Value, b: Value) -> Value:
    """The ``maximum`` of IEEE 754-2019: NaN if either is, and 0.0 is more than -0.0."""
    with np.errstate(all="ignore"):
        return np.where((a == 0) & (b == 0), a + b, np.maximum(a, b))[()]


ARITHMETIC: Final[dict[str, tuple[Binary, Binary]]] = {
    "Add": (operator.add, operator.add),
    "Sub": (operator.sub, operator.sub),
    "Mul": (operator.mul, operator.mul),
    "Div": (_truncdiv, operator.truediv),
    "Mod": (_truncmod, np.fmod),
    "FloorDiv": (_floordiv, lambda a, b: np.floor(a / b)),
    "FloorMod": (_floormod, lambda a, b: a - np.floor(a / b) * b),
    "Min": (_integer_min, float_minimum),
    "Max": (_integer_max, float_maximum),
}
"""Node class -> (on integers, on floats)."""

COMPARISON: Final[dict[str, Binary]] = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


def binary(name: str, dtype: DataType) -> Binary:
    """The binary operator of that node class on operands of ``dtype``."""
    on_integers, on_floats = ARITHMETIC[name]
    compute = on_integers if dtype.is_integral else on_floats
    end = finish(dtype)
    return lambda a, b: end(compute(a, b))


def cast(source: DataType, target: DataType) -> Callable[[Value], Value]:
    """The conversion between two types of the same lanes."""
    convert = _scalar_cast(source.element, target.element)
    if not is_vector(target):
        return convert
    kind = target.element.numpy
    return lambda value: np.array([convert(_plain(source.element, lane)) for lane in value], kind)


def _plain(dtype: DataType, lane: Value) -> Value:
    """A lane of a vector as a scalar value."""
    return bool(lane) if dtype.is_bool else int(lane) if dtype.is_integral else lane


def _scalar_cast(source: DataType, target: DataType) -> Callable[[Value], object]:
    if target.is_bool:
        return bool
    if target.is_integral or target.is_handle:
        if source.is_float:
            return lambda value: saturate(float(value), target)
        if target.is_handle:
            return int
        return lambda value: wrap(int(value), target)
    kind = target.numpy.type
    if source.is_integral and target.kind == "float":
        return lambda value: kind(int(value)) if abs(value) < 1 << 53 else _round_int(value, kind)
    if source.is_integral:
        return lambda value: kind(float(value))
    return kind


def _round_int(value: int, kind: type[np.floating]) -> Value:
    """A large integer as a float, rounded once, as hardware converts it."""
    return np.int64(value).astype(kind) if value < 1 << 63 else np.uint64(value).astype(kind)


def reinterpret(source: DataType, target: DataType) -> Callable[[Value], Value]:
    """The same bits in another type."""
    if source.bits * source.lanes != target.bits * target.lanes:
        raise IRTypeError(f"reinterpret: {source} and {target} differ in width")
    from_kind, to_kind = source.element.numpy, target.element.numpy
    if is_vector(target):
        return lambda value: np.atleast_1d(np.asarray(value, from_kind)).view(to_kind)
    scalar = _plain
    return lambda value: scalar(
        target.element, np.asarray(value, from_kind).reshape(-1).view(to_kind)[0]
    )


def shift_left(a: int, n: int, bits: int) -> int:
    """a << n; 0 if n is negative or at least the width."""
    return 0 if n < 0 or n >= bits else a << n


def shift_right(a: int, n: int, bits: int) -> int:
    """a >> n; the sign (0 or -1) if n is negative or at least the width."""
    if n < 0 or n >= bits:
        return -1 if a < 0 else 0
    return a >> n


def scaleb(x: Value, power: Value, where: Value) -> Value:
    """x * 2**power where the condition holds, else 0; large exponents are clamped for ldexp."""
    exponent = np.clip(np.asarray(power, np.float64), -5000, 5000).astype(np.int64)
    return np.where(where, np.ldexp(x, exponent), np.zeros_like(x))


def dot_four_bytes(total: Value, unsigned: Value, signed: Value) -> Value:
    """The total of each lane plus the products of its four uint8 and int8, as a wide integer."""
    a, b = (
        np.ascontiguousarray(lanes, "int32").reshape(-1, 1).view(kind).astype("int64")
        for lanes, kind in ((unsigned, "uint8"), (signed, "int8"))
    )
    sums = np.asarray(total, "int64") + (a * b).sum(axis=1).reshape(np.shape(total))
    return sums if np.ndim(total) else int(sums)


UNARY: Final[dict[str, Callable[[Value], Value]]] = {**UNARY_FLOAT, "fabs": np.abs}
"""Intrinsic -> its value in float64; the result is rounded to the operand's type."""

BINARY_INTRINSIC: Final[dict[str, Binary]] = {
    "pow": np.power, "atan2": np.arctan2, "copysign": np.copysign, "fmod": np.fmod,
    "hypot": np.hypot, "ldexp": lambda x, n: np.ldexp(x, int(n)),
}  # fmt: skip


def multiply_shift(x: int, y: int, q: int, s: int) -> int:
    """``x * y * 2**(s - q)``, rounded to the nearest integer, a half upwards."""
    right = q - min(s, 0)
    half = 1 << (right - 1) if right > 0 else 0
    return ((int(x) << max(s, 0)) * int(y) + half) >> right


PREDICATE: Final[dict[str, Callable[[Value], Value]]] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip
