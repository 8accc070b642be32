"""Floats of 4 and 8 bits by the element types of ONNX: their tables, and how they are rounded."""

from __future__ import annotations

import functools

import numpy as np

from weft.relax.expr import Expr
from weft.relax.frontend import float_codes
from weft.relax.frontend.float_codes import Encoding, encoding_of
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
    if elem == FLOAT4E2M1:  # no NaN: the negative zero, as ml_dtypes
        return encoding_of(values_of(elem), None, 8, True)
    no_negative_zero = elem in (FLOAT8E4M3FNUZ, FLOAT8E5M2FNUZ)
    nan = 0x80 if no_negative_zero else 0x7F
    infinite = 0x7C if elem == FLOAT8E5M2 else nan
    overflow = None if saturate else infinite
    return encoding_of(values_of(elem), overflow, nan, not no_negative_zero)


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
    return float_codes.decode(context, x.expr, context.constant(values_of(x.elem)).expr)


def encode(
    context: Context, x: Expr, elem: int, saturate: bool = True, round_mode: str = "up"
) -> Expr:
    """The codes (uint8) of a tensor of floats or integers."""
    tables = encoding(elem, saturate, round_mode)
    return float_codes.encode(context, x, tables, lambda array: context.constant(array).expr)
