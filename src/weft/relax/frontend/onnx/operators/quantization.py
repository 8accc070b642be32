"""Linear quantization: to and from integers and small floats, products of quantized tensors.

Quantized is ``saturate(round(x / scale) + zero_point)``, ties to even; products are exact in int32.
Scale and zero point are one number, one for each index of an axis, or one for each block along it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import (
    FLOAT,
    SMALL,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    STORAGE,
    UINT8,
)
from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.small_floats import decode, encode
from weft.relax.frontend.onnx.value import Value

_BITS: Final = {21: 4, 22: 4, 25: 2, 26: 2}
_SIGNED_SMALL: Final = frozenset({22, 26})


def bounds(elem: int) -> tuple[int, int]:
    """The least and the greatest number of an integer element type."""
    if elem in SMALL_INTEGERS:
        bits = _BITS[elem]
        return (
            (-(1 << bits - 1), (1 << bits - 1) - 1)
            if elem in _SIGNED_SMALL
            else (0, (1 << bits) - 1)
        )
    info = np.iinfo(STORAGE[elem])
    return int(info.min), int(info.max)


def _numbers(context: Context, value: Value, dtype: str) -> Expr:
    """The numbers that a tensor holds, small floats decoded, in a data type."""
    source = decode(context, value) if value.elem in SMALL_FLOATS else value.expr
    return context.as_type(source, dtype)


def spread(context: Context, x: Value, parameter: Expr, axis: int, block: int) -> Expr:
    """A scale or zero point such that it broadcasts with ``x``."""
    emit, rank = context.emit, parameter.struct_info.ndim
    if rank == 0:
        return parameter
    dims = context.value(parameter).shape
    if rank == 1 and not block:
        if dims == [1]:
            return emit(op.reshape(parameter, []))
        place, whole = context.axis(x, axis), context.rank(x, "x")
        return emit(op.reshape(parameter, [1] * place + [-1] + [1] * (whole - place - 1)))
    if not block:
        context.fail(f"block_size: expected a positive number for a scale of {rank} dimensions")
    place, shape = context.axis(x, axis), context.shape(x, "x")
    repeated = emit(op.repeat(parameter, block, place))
    spread_out = emit(op.strided_slice(repeated, [place], [0], [shape[place]], assume_inbound=True))
    if all(isinstance(dim, int) for dim in shape):
        return spread_out
    return context.matched(spread_out, shape)  # all other dimensions are those of x, by ONNX


def quantized(
    context: Context, scaled: Expr, zero: Expr | None, elem: int, saturate: bool = True
) -> Value:
    """What has been divided by the scale: rounded, moved by the zero point, kept in range.

    NaN becomes the least integer, as in ONNX Runtime; ONNX does not say what.
    """
    if elem in SMALL_FLOATS:
        return context.value(encode(context, scaled, elem, saturate), elem)
    emit = context.emit
    whole = context.as_type(emit(op.round(scaled)), "float32")
    if zero is not None:
        whole = emit(op.add(whole, zero))
    low, high = bounds(elem)
    if low < 0:  # 0 is what a cast makes of NaN
        least = context.constant(low, "float32").expr
        whole = emit(op.where(emit(op.greater(whole, least)), whole, least))
    whole = emit(op.clip(whole, low, high))
    integers = emit(op.astype(emit(op.astype(whole, "int32")), STORAGE[elem]))
    return context.value(integers, elem if elem in SMALL else None)


@converter("QuantizeLinear", since=10)
@converter("QuantizeLinear", domain=MICROSOFT)
def quantize_linear(
    context: Context,
    x: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Value:
    """Numbers divided by the scale as integers or small floats of the zero point's type."""
    elem = zero_point.elem if zero_point is not None else output_dtype or UINT8
    assert elem is not None
    kind = (
        STORAGE[precision]
        if precision
        else ("float32" if scale.elem in SMALL_FLOATS else scale.dtype)
    )
    if kind == "int32":
        kind = "float32"
    factor = spread(context, x, _numbers(context, scale, kind), axis, block_size)
    scaled = context.emit(op.divide(_numbers(context, x, kind), factor))
    zero = None
    if zero_point is not None and elem not in SMALL_FLOATS:
        zero = spread(context, x, _numbers(context, zero_point, "float32"), axis, block_size)
    return quantized(context, scaled, zero, elem, bool(saturate))


@converter("DequantizeLinear", since=10)
@converter("DequantizeLinear", domain=MICROSOFT)
def dequantize_linear(
    context: Context,
    x: Value,
    scale: Value,
    zero_point: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Expr:
    """(x - zero_point) * scale, in the type of the scale unless another is asked for."""
    emit = context.emit
    wanted = STORAGE[output_dtype or scale.elem or FLOAT]
    wide = "float64" if wanted == "float64" else "float32"
    exact = "float32" if x.elem in SMALL_FLOATS else "int32"
    steps = _numbers(context, x, exact)
    if zero_point is not None:
        zero = spread(context, x, _numbers(context, zero_point, exact), axis, block_size)
        steps = emit(op.subtract(steps, zero))
    factor = spread(context, x, _numbers(context, scale, wide), axis, block_size)
    real = emit(op.multiply(context.as_type(steps, wide), factor))
    return context.as_type(real, wanted)


# Products


def _centred(context: Context, x: Value, zero_point: Value | None, axis: int | None) -> Value:
    """The tensor of bytes less its zero point in int16, which holds all differences.

    ``axis`` is that of a zero point for each index.
    """
    emit = context.emit
    centred = context.as_type(x.expr, "int16")
    if zero_point is not None:
        zero = context.as_type(zero_point.expr, "int16")
        if zero_point.rank == 1:
            zero = spread(context, x, zero, axis or 0, 0)
        centred = emit(op.subtract(centred, zero))
    return context.value(centred)


def _product(
    context: Context, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None
) -> Expr:
    lhs = _centred(context, a, a_zero, -2 if a.rank > 1 else -1)
    rhs = _centred(context, b, b_zero, -1)
    return context.emit(op.matmul(lhs.expr, rhs.expr, out_dtype="int32"))


@converter("MatMulInteger", since=10)
def matmul_integer(
    context: Context,
    a: Value,
    b: Value,
    a_zero_point: Value | None = None,
    b_zero_point: Value | None = None,
) -> Expr:
    """The product of integers less their zero points, in int32."""
    return _product(context, a, b, a_zero_point, b_zero_point)


def _rows(context: Context, factor: Expr) -> Expr:
    """A factor for each row, to broadcast with the matrix."""
    if factor.struct_info.ndim != 1 or context.value(factor).shape == [1]:
        return factor
    return context.emit(op.expand_dims(factor, -1))


@converter("QLinearMatMul", since=10)
def qlinear_matmul(
    context: Context,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Value:
    """The product of quantized matrices, quantized; scales of a and y may be for each row."""
    emit = context.emit
    product = context.as_type(_product(context, a, b, a_zero, b_zero), "float32")
    factors = [context.as_type(item.expr, "float32") for item in (a_scale, b_scale, y_scale)]
    left, right, out = _rows(context, factors[0]), factors[1], _rows(context, factors[2])
    scaled = emit(op.multiply(product, emit(op.divide(emit(op.multiply(left, right)), out))))
    zero = _rows(context, context.as_type(y_zero.expr, "float32"))
    assert y_zero.elem is not None
    return quantized(context, scaled, zero, y_zero.elem)


@converter("ConvInteger", since=10)
def conv_integer(
    context: Context,
    x: Value,
    w: Value,
    x_zero_point: Value | None = None,
    w_zero_point: Value | None = None,
    **attributes: Attribute,
) -> Value:
    """The convolution of integers less their zero points, in int32."""
    data = _centred(context, x, x_zero_point, None)
    weight = _centred(context, w, w_zero_point, 0)
    return context.apply("Conv", [data, weight, None], attributes)


@converter("QLinearConv", since=10)
def qlinear_conv(
    context: Context,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None = None,
    **attributes: Attribute,
) -> Value:
    """The convolution of quantized tensors, quantized; the weight's scale may be per channel."""
    emit = context.emit
    data, weight = _centred(context, x, x_zero, None), _centred(context, w, w_zero, 0)
    image = context.apply("Conv", [data, weight, bias], attributes)
    total = context.as_type(image.expr, "float32")
    scales = [context.as_type(item.expr, "float32") for item in (x_scale, w_scale, y_scale)]
    scales = [spread(context, image, item, 1, 0) for item in scales]
    factor = emit(op.divide(emit(op.multiply(scales[0], scales[1])), scales[2]))
    zero = spread(context, image, context.as_type(y_zero.expr, "float32"), 1, 0)
    assert y_zero.elem is not None
    return quantized(context, emit(op.multiply(total, factor)), zero, y_zero.elem)
