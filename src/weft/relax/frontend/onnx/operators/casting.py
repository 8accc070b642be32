"""Conversions between element types: Cast, CastLike, BitCast."""

from __future__ import annotations

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import (
    BOOL,
    INT2,
    INT4,
    SMALL,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    STORAGE,
    STRING,
    UINT2,
    UINT4,
)
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.small_floats import decode, encode
from weft.relax.frontend.onnx.text_values import call_library, table_of, text_places
from weft.relax.frontend.onnx.value import TextValue, Value
from weft.runtime import texts
from weft.support.dtype import DataType

_BITS = {UINT4: 4, INT4: 4, UINT2: 2, INT2: 2}
_NAMES = {
    "FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7,
    "STRING": 8, "BOOL": 9, "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13,
}  # fmt: skip


@converter("Cast")
def cast_by_name(context: Context, x: Value | TextValue, *, to: str | int) -> Value | TextValue:
    """Until opset 5 the type is named by text."""
    return cast(context, x, to=_NAMES[to] if isinstance(to, str) else to)


@converter("Cast", since=6)
def cast(
    context: Context, x: Value | TextValue, *, to: int, saturate: int = 1, round_mode: str = "up"
) -> Value | TextValue:
    """The values in another type: floats to integers towards zero, to small types as ONNX says."""
    if to == x.elem:
        return x
    if isinstance(x, TextValue):
        places = text_places(context, x)
        dims, target = context.shape(places, "input"), context.storage(to)
        kind = (dims, "float64" if target == "bfloat16" else target)
        read = call_library(context, texts.TO_NUMBERS, [places.expr], [kind[1]], kind)
        return context.value(context.as_type(read.expr, target))
    if to == STRING:
        places = call_library(
            context, texts.OF_NUMBERS, [x.expr], [], (context.shape(x, "input"), "int64")
        )
        return TextValue(places, table_of(context))
    context.storage(to)
    source: Expr = decode(context, x) if x.elem in SMALL_FLOATS else x.expr
    if to in SMALL_FLOATS:
        return context.value(encode(context, source, to, bool(saturate), round_mode), to)
    if to in SMALL_INTEGERS:
        return context.value(_narrowed(context, source, to), to)
    if str(source.struct_info.dtype) != STORAGE[to]:
        source = context.emit(_converted(context, source, to))
    return context.value(source, to if to in SMALL else None)


def _converted(context: Context, source: Expr, to: int) -> Expr:
    kind = DataType(source.struct_info.dtype)
    if to == BOOL:
        return op.not_equal(source, context.constant(0, str(kind)).expr)
    target = DataType(STORAGE[to])
    if kind.is_float and target.is_integral and target.bits < 32:
        # as numpy: through a wider integer, whose low bits remain
        return op.astype(context.emit(op.astype(source, "int64")), STORAGE[to])
    return op.astype(source, STORAGE[to])


def _narrowed(context: Context, source: Expr, to: int) -> Expr:
    """Integers of 2 or 4 bits: the low bits of the integer, its sign bit spread."""
    wide = context.emit(op.astype(source, "int64"))
    bits = _BITS[to]
    low = context.emit(op.bitwise_and(wide, context.constant((1 << bits) - 1, "int64").expr))
    if to in (INT4, INT2):
        top = context.constant(1 << (bits - 1), "int64").expr
        low = context.emit(op.subtract(context.emit(op.bitwise_xor(low, top)), top))
    return context.emit(op.astype(low, STORAGE[to]))


@converter("CastLike", since=15)
def cast_like(
    context: Context,
    x: Value | TextValue,
    target: Value | TextValue,
    *,
    saturate: int = 1,
    round_mode: str = "up",
) -> Value | TextValue:
    """The values in the type of another tensor."""
    assert target.elem is not None
    return cast(context, x, to=target.elem, saturate=saturate, round_mode=round_mode)


@converter("BitCast", since=26)
def bit_cast(context: Context, x: Value, *, to: int) -> Value:
    """The same bits read as another type of the same size."""
    kind = context.storage(to)
    if np.dtype(DataType(kind).numpy).itemsize != np.dtype(DataType(x.dtype).numpy).itemsize:
        context.fail(f"expected a type of as many bits as {x.dtype}, got {kind}")
    if "bool" in (kind, x.dtype):
        source = x.expr if x.dtype != "bool" else context.emit(op.astype(x.expr, "uint8"))
        return context.value(context.emit(op.astype(source, kind)), to if to in SMALL else None)
    return context.value(context.emit(op.bitcast(x.expr, kind)), to if to in SMALL else None)
