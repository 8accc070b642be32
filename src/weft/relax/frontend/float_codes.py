"""Conversions from and to floats of 4 and 8 bits, which tensors hold as their bits.

Reading is a look-up in the table of all values. Writing finds the place of the magnitude between
the midpoints of neighbouring values; ties go to the even code: a midpoint below an even code is
moved down by one float32, so that the one strict comparison of the search serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from weft.relax import op
from weft.relax.expr import Expr

Array = npt.NDArray[Any]
Constant = Callable[[Array], Expr]
"""The constant of an array."""


class Emits(Protocol):
    """What binds an expression to a variable: the context of a converter."""

    def emit(self, expr: Expr) -> Expr: ...


@dataclass(frozen=True)
class Encoding:
    """How magnitudes become codes: ``codes[i]`` for what lies above i boundaries."""

    boundaries: Array
    codes: Array
    nan: int
    sign: int
    negative_zero: bool


def encoding_of(values: Array, overflow: int | None, nan: int, negative_zero: bool) -> Encoding:
    """The encoding of a format with a sign bit, from the float32 value of every code.

    ``overflow`` is the code of what is too large; None is that of the largest value.
    """
    half = len(values) // 2
    finite = values[:half][np.isfinite(values[:half])].astype("float64")
    # beyond the largest value the next one that the format would have
    beyond = finite[-1] + (finite[-1] - finite[-2])
    steps = np.append(finite, beyond)
    bounds = ((steps[1:] + steps[:-1]) / 2).astype("float32")
    even = (np.arange(1, len(bounds) + 1) % 2) == 0
    bounds = np.where(even, np.nextafter(bounds, np.float32(0)), bounds)
    last = len(finite) - 1
    codes = np.append(np.arange(last + 1), last if overflow is None else overflow)
    return Encoding(bounds, codes.astype("uint8"), nan, half, negative_zero)


def decode(context: Emits, codes: Expr, values: Expr) -> Expr:
    """The values (float32) of codes, from the table of all values."""
    return context.emit(op.take(values, context.emit(op.astype(codes, "int32")), 0))


def encode(context: Emits, x: Expr, tables: Encoding, constant: Constant) -> Expr:
    """The codes (uint8) of a tensor of floats or integers."""
    emit = context.emit
    wide = x if x.struct_info.dtype == "float32" else emit(op.astype(x, "float32"))
    place = emit(op.bucketize(emit(op.abs(wide)), constant(tables.boundaries), True))
    code = emit(op.take(constant(tables.codes), place, 0))
    if tables.sign:
        code = _signed(context, wide, code, tables, constant)
    nan = constant(np.array(tables.nan, "uint8"))
    return emit(op.where(emit(op.isnan(wide)), nan, code))


def _signed(context: Emits, wide: Expr, code: Expr, tables: Encoding, constant: Constant) -> Expr:
    """The code with its sign bit, where the format has a negative number of that size."""
    emit = context.emit
    bits = emit(op.bitcast(wide, "int32"))
    negative = emit(op.less(bits, constant(np.array(0, "int32"))))
    if not tables.negative_zero:
        zero = constant(np.array(0, "uint8"))
        negative = emit(op.logical_and(negative, emit(op.not_equal(code, zero))))
    marked = emit(op.bitwise_or(code, constant(np.array(tables.sign, "uint8"))))
    return emit(op.where(negative, marked, code))
