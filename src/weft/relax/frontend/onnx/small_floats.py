"""Conversions from and to floats of 4 and 8 bits, which tensors hold as their bits.

Reading is a look-up in the table of all values. Writing finds the place of the magnitude between
the midpoints of neighbouring values; ties go to the even code: a midpoint below an even code is
moved down by one float32, so that the one strict comparison of the search serves both.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import (
    FLOAT4E2M1,
    FLOAT8E4M3FNUZ,
    FLOAT8E5M2,
    FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    SMALL,
)
from weft.relax.frontend.onnx.value import Array, Value


@dataclass(frozen=True)
class Encoding:
    """How magnitudes become codes: ``codes[i]`` for what lies above i boundaries."""

    boundaries: Array
    codes: Array
    nan: int
    sign: int
    negative_zero: bool


@functools.cache
def values_of(elem: int) -> Array:
    """The float32 value of every code."""
    count = 16 if elem == FLOAT4E2M1 else 256
    return np.arange(count, dtype="uint8").view(SMALL[elem]).astype("float32")


@functools.cache
def encoding(elem: int, saturate: bool, round_mode: str) -> Encoding:
    """The tables of a type; those that do not saturate have infinity or NaN at the end."""
    if elem == FLOAT8E8M0:
        return _exponents(round_mode)
    half = 8 if elem == FLOAT4E2M1 else 128
    values = values_of(elem)[:half]
    finite = values[np.isfinite(values)].astype("float64")
    # beyond the largest value the next one that the format would have
    beyond = finite[-1] + (finite[-1] - finite[-2])
    steps = np.append(finite, beyond)
    bounds = ((steps[1:] + steps[:-1]) / 2).astype("float32")
    even = (np.arange(1, len(bounds) + 1) % 2) == 0
    bounds = np.where(even, np.nextafter(bounds, np.float32(0)), bounds)
    last = len(finite) - 1
    no_negative_zero = elem in (FLOAT8E4M3FNUZ, FLOAT8E5M2FNUZ)
    nan = 0x80 if no_negative_zero else half - 1
    if elem == FLOAT4E2M1:
        saturate, nan = True, half  # no NaN: the negative zero, as ml_dtypes
    overflow = last if saturate else (last + 1 if elem == FLOAT8E5M2 else nan)
    codes = np.append(np.arange(last + 1), overflow).astype("uint8")
    return Encoding(bounds, codes, nan, half, not no_negative_zero)


def _exponents(round_mode: str) -> Encoding:
    """E8M0: powers of two from 2**-127 on; rounded up, down, or to the nearest."""
    powers = np.ldexp(1.0, np.arange(-127, 128))
    if round_mode == "up":
        bounds = powers[:-1].astype("float32")
    elif round_mode == "down":
        bounds = np.nextafter(powers[1:].astype("float32"), np.float32(0))
    else:
        middle = (powers[1:] * 0.75).astype("float32")
        bounds = np.nextafter(middle, np.float32(0))
    return Encoding(bounds, np.arange(255, dtype="uint8"), 255, 0, True)


def decode(context: Context, x: Value) -> Expr:
    """The values of codes as float32."""
    assert x.elem is not None
    table = context.constant(values_of(x.elem)).expr
    return context.emit(op.take(table, context.emit(op.astype(x.expr, "int32")), 0))


def encode(
    context: Context, x: Expr, elem: int, saturate: bool = True, round_mode: str = "up"
) -> Expr:
    """The codes (uint8) of a tensor of floats or integers."""
    tables = encoding(elem, saturate, round_mode)
    emit, constant = context.emit, context.constant
    wide = x if x.struct_info.dtype == "float32" else emit(op.astype(x, "float32"))
    size = emit(op.abs(wide))
    place = emit(op.bucketize(size, constant(tables.boundaries).expr, True))
    code = emit(op.take(constant(tables.codes).expr, place, 0))
    if tables.sign:
        code = _signed(context, wide, code, tables)
    nan = constant(tables.nan, "uint8").expr
    return emit(op.where(emit(op.isnan(wide)), nan, code))


def _signed(context: Context, wide: Expr, code: Expr, tables: Encoding) -> Expr:
    """The code with its sign bit, where the format has a negative number of that size."""
    emit, constant = context.emit, context.constant
    bits = emit(op.bitcast(wide, "int32"))
    negative = emit(op.less(bits, constant(0, "int32").expr))
    if not tables.negative_zero:
        zero = constant(0, "uint8").expr
        negative = emit(op.logical_and(negative, emit(op.not_equal(code, zero))))
    marked = emit(op.bitwise_or(code, constant(tables.sign, "uint8").expr))
    return emit(op.where(negative, marked, code))
