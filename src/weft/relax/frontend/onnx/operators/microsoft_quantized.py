"""Quantized operators of com.microsoft: products, QLinear*, attention.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md). Results
are rounded as ONNX Runtime's CPU kernels round them: to the nearest, ties to even.
"""

from __future__ import annotations

from typing import Final, Unpack

import numpy as np

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.activation import added
from weft.relax.frontend.onnx.operators.microsoft import normal_embeddings, transposed
from weft.relax.frontend.onnx.operators.microsoft_attention import FILTER, attention_of
from weft.relax.frontend.onnx.operators.quantization import (
    dequantize_linear,
    matmul_integer,
    quantize_linear,
    spread,
)
from weft.relax.frontend.onnx.operators.recurrent import Inputs, LayerAttributes, recurrent
from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Array, Value

# Products


@converter("MatMulIntegerToFloat", domain=MICROSOFT)
def matmul_integer_to_float(
    context: Context,
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero: Value | None = None,
    b_zero: Value | None = None,
    bias: Value | None = None,
) -> Expr:
    """The product of integers less their zero points, times both scales."""
    whole = matmul_integer(context, a, b, a_zero, b_zero)
    return added(context, _scaled(context, whole, a_scale, b_scale), bias)


@converter("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_quantize_matmul(
    context: Context,
    a: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value | None = None,
    bias: Value | None = None,
) -> Expr:
    """A quantized to uint8 by its own range, times a quantized matrix."""
    factor, zero_point = _range_of(context, a)
    whole = quantize_linear(context, a, factor, zero_point)
    return matmul_integer_to_float(context, whole, b, factor, b_scale, zero_point, b_zero, bias)


def _range_of(context: Context, x: Value) -> tuple[Value, Value]:
    """The scale and the zero point with which uint8 holds the range of a tensor, and 0."""
    emit, constant = context.emit, context.constant
    zero, most = constant(0.0, "float32").expr, constant(255.0, "float32").expr
    low = emit(op.minimum(emit(op.min(x.expr)), zero))
    high = emit(op.maximum(emit(op.max(x.expr)), zero))
    width = emit(op.subtract(high, low))
    is_flat = emit(op.equal(width, zero))
    scale = emit(op.where(is_flat, constant(1.0, "float32").expr, emit(op.divide(width, most))))
    offset = emit(op.negative(emit(op.divide(low, scale))))
    place = emit(op.astype(emit(op.round(emit(op.clip(offset, 0, 255)))), "uint8"))
    return context.value(scale), context.value(place)


@converter("QGemm", domain=MICROSOFT)
def quantized_gemm(
    context: Context,
    a: Value,
    a_scale: Value,
    a_zero: Value | None,
    b: Value,
    b_scale: Value,
    b_zero: Value | None,
    c: Value | None = None,
    y_scale: Value | None = None,
    y_zero: Value | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,  # noqa: N803 - ONNX's names
) -> Value:
    """alpha * (A' * B' + C) of integers times both scales; quantized if there is a scale for it."""
    lhs, rhs = (
        context.value(transposed(context, value)) if turned else value
        for value, turned in ((a, transA), (b, transB))
    )
    whole = added(context, matmul_integer(context, lhs, rhs, a_zero, b_zero), c)
    product = context.value(_scaled(context, whole, a_scale, b_scale, alpha))
    return product if y_scale is None else quantize_linear(context, product, y_scale, y_zero)


@converter("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_quantize_lstm(
    context: Context,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    lengths: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    p: Value | None,
    w_scale: Value,
    w_zero: Value | None,
    r_scale: Value,
    r_zero: Value | None,
    **attributes: Unpack[LayerAttributes],
) -> list[Expr]:
    """An LSTM of quantized weights, which stand with their rows as columns.

    The data, and the state of all sequences at each step, are rounded to 256 steps of their own
    ranges, as in ONNX Runtime with one thread (with more it has a range for the rows of each).
    """
    small = _small_weights(context, r, r_scale, r_zero)
    states, factors = small or (_weights(context, r, r_scale, r_zero), None)
    data = _small_weights(context, w, w_scale, w_zero)
    products: list[Value] = []
    if x.rank == 3:  # else the layer says what it expected
        scale, zero = _range_of(context, x)
        whole = quantize_linear(context, x, scale, zero)
        if data is None:
            x = context.value(dequantize_linear(context, whole, scale, zero))
        else:
            products = _products(context, whole, (scale, zero), *data)
    weights = _weights(context, w, w_scale, w_zero) if data is None else data[0]
    inputs = Inputs(
        x, weights, states, b, lengths, [initial_h, initial_c], p, True, factors, products
    )
    return recurrent(context, "lstm", inputs, attributes)


def _products(
    context: Context, x: Value, steps: tuple[Value, Value], weights: Value, factors: Value
) -> list[Value]:
    """The product of uint8 data and int8 weights (directions, columns, rows) by direction."""
    assert weights.constant is not None
    assert factors.constant is not None
    scale, zero = steps
    return [
        context.value(
            matmul_integer_to_float(
                context, x, context.constant(np.ascontiguousarray(columns.T)), scale,
                context.constant(each), zero,
            )
        )
        for columns, each in zip(weights.constant, factors.constant, strict=True)
    ]  # fmt: skip


def _weights(context: Context, whole: Value, scale: Value, zero: Value | None) -> Value:
    """Weights of all directions: one scale for each direction, or for each column of it.

    Those that are known are computed here: FoldConstant leaves bytes that become four times as
    many to the run, and each run would compute and lay out all of them.
    """
    emit, dtype = context.emit, scale.dtype
    numbers, factors = whole.constant, scale.constant
    offsets = None if zero is None else zero.constant
    if numbers is not None and factors is not None and (zero is None or offsets is not None):
        return context.constant(_known_weights(numbers, factors, offsets), dtype)

    def by_direction(value: Value) -> Expr:
        numbers = context.as_type(value.expr, dtype)
        return emit(op.expand_dims(numbers, [1, 2] if value.rank == 1 else [1]))

    wide = context.as_type(whole.expr, dtype)
    if zero is not None:
        wide = emit(op.subtract(wide, by_direction(zero)))
    columns = emit(op.multiply(wide, by_direction(scale)))
    return context.value(op.permute_dims(columns, [0, 2, 1]))


def _small_weights(
    context: Context, whole: Value, scale: Value, zero: Value | None
) -> tuple[Value, Value] | None:
    """Known weights as int8 (directions, columns, rows), and the factors of the columns.

    A step reads all of them, so that they are best left small. None where they are not known, or
    are no int8 when their zero point is subtracted.
    """
    numbers, factors = whole.constant, scale.constant
    offset = np.zeros(1, "int32") if zero is None else zero.constant
    if numbers is None or factors is None or offset is None:
        return None
    whole_numbers = numbers.astype("int32") - offset.reshape(len(offset), 1, -1)
    if whole_numbers.size and (whole_numbers.min() < -128 or whole_numbers.max() > 127):
        return None
    columns = np.ascontiguousarray(whole_numbers.astype("int8").transpose(0, 2, 1))
    each = np.broadcast_to(factors.reshape(len(factors), -1), columns.shape[:2])
    return context.constant(columns), context.constant(np.ascontiguousarray(each))


def _known_weights(whole: Array, scale: Array, zero: Array | None) -> Array:
    """The same of numbers: (directions, columns, rows)."""
    factor, offset = (
        np.zeros(1, scale.dtype)
        if item is None
        else np.expand_dims(item.astype(scale.dtype), (1, 2) if item.ndim == 1 else 1)
        for item in (scale, zero)
    )
    numbers = (whole.astype(scale.dtype) - offset) * factor
    return np.ascontiguousarray(numbers.transpose(0, 2, 1))


def _scaled(
    context: Context, whole: Expr, a_scale: Value, b_scale: Value, alpha: float = 1.0
) -> Expr:
    """A product of integers times both scales, of which each may have one for each column."""
    emit = context.emit
    product = context.value(op.astype(whole, a_scale.dtype))
    factors = [spread(context, product, item.expr, -1, 0) for item in (a_scale, b_scale)]
    scale = emit(op.multiply(factors[0], factors[1]))
    if alpha != 1:
        scale = emit(op.multiply(scale, context.constant(alpha, a_scale.dtype).expr))
    return emit(op.multiply(product.expr, scale))


def _to_first(context: Context, x: Value) -> Value:
    """An image (batch, ..., channels) as (batch, channels, ...)."""
    rank = context.rank(x, "x")
    return context.value(op.permute_dims(x.expr, [0, rank - 1, *range(1, rank - 1)]), x.elem)


def _to_last(context: Context, x: Value) -> Value:
    """And back."""
    rank = context.rank(x, "x")
    return context.value(op.permute_dims(x.expr, [0, *range(2, rank), 1]), x.elem)


@converter("QLinearConv", domain=MICROSOFT)
def qlinear_conv(
    context: Context,
    x: Value,
    *values: Value | None,
    channels_last: int = 0,
    **attributes: Attribute,
) -> Value:
    """That of ONNX, also of images whose channels stand last; weights stand as there."""
    if not channels_last:
        return context.apply("QLinearConv", [x, *values], attributes)
    image = context.apply("QLinearConv", [_to_first(context, x), *values], attributes)
    return _to_last(context, image)


@converter("NhwcMaxPool", domain=MICROSOFT)
def max_pool_channels_last(context: Context, x: Value, **attributes: Attribute) -> Value:
    """MaxPool of images whose channels stand last."""
    return _to_last(context, context.apply("MaxPool", [_to_first(context, x)], attributes))


# Dequantized, computed, quantized


QUANTIZED: Final = {
    "Add": 2, "Mul": 2, "Sigmoid": 1, "LeakyRelu": 1, "Softmax": 1, "AveragePool": 1,
    "GlobalAveragePool": 1,
}  # fmt: skip
"""Operator of ONNX -> how many tensors with scale and zero point its QLinear form takes."""


def _dequantized(
    context: Context, x: Value | None, scale: Value | None, zero: Value | None = None
) -> Expr:
    """A tensor with scale and zero point as real numbers."""
    return dequantize_linear(context, expect(x, Value), expect(scale, Value), zero)


def _enter_quantized(name: str, count: int) -> None:
    """QLinear*: ``count`` tensors with scale and zero point, then those of the result."""

    @converter(f"QLinear{name}", domain=MICROSOFT)
    def convert(
        context: Context,
        *values: Value | None,
        opset: int | None = None,
        channels_last: int = 0,
        **attributes: Attribute,
    ) -> Value:
        triples = [values[3 * index : 3 * index + 3] for index in range(count)]
        real = [context.value(_dequantized(context, *triple)) for triple in triples]
        if channels_last:
            real = [_to_first(context, item) for item in real]
        result = context.apply(name, [*real], attributes, opset)
        if channels_last:
            result = _to_last(context, result)
        scale, zero = (*values[3 * count :], None)[:2]
        assert scale is not None
        return quantize_linear(context, result, scale, zero)


for _name, _count in QUANTIZED.items():
    _enter_quantized(_name, _count)


@converter("QLinearConcat", domain=MICROSOFT)
def qlinear_concat(
    context: Context, scale: Value, zero: Value, *values: Value | None, axis: int
) -> Value:
    """Quantized tensors joined, quantized anew."""
    triples = [values[index : index + 3] for index in range(0, len(values), 3)]
    real = [_dequantized(context, *triple) for triple in triples]
    return quantize_linear(context, context.value(op.concat(real, axis)), scale, zero)


@converter("QLinearWhere", domain=MICROSOFT)
def qlinear_where(context: Context, condition: Value, *values: Value | None) -> Value:
    """Elements of one of two quantized tensors, quantized anew."""
    real = [_dequantized(context, *values[start : start + 3]) for start in (0, 3)]
    chosen = context.value(op.where(condition.expr, *real))
    scale, zero = (*values[6:], None)[:2]
    return quantize_linear(context, chosen, expect(scale, Value), zero)


# Embeddings


@converter("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embed_layer_norm(
    context: Context,
    ids: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    kinds: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None,
    *steps: Value | None,
    epsilon: float = 1e-12,
) -> list[Expr]:
    """EmbedLayerNormalization of quantized tables, whose rows become numbers when it runs."""
    length = context.shape(ids, "input_ids")[1]
    here = op.strided_slice(positions.expr, [0], [0], [length])
    rows = [context.apply("Gather", [words, ids], {}), context.value(here, positions.elem)]
    if kinds is not None and segments is not None:
        rows.append(context.apply("Gather", [kinds, segments], {}))
    *terms, scale, shift = (
        _dequantized(context, value, *steps[place::5])
        for value, place in zip([*rows, gamma, beta], [*range(len(rows)), 3, 4], strict=True)
    )
    total = terms[0]
    for term in terms[1:]:
        total = context.emit(op.add(total, term))
    norm = context.value(scale), context.value(shift)
    return normal_embeddings(context, ids, total, norm, mask, epsilon)[:2]


# Attention


@converter("QAttention", domain=MICROSOFT,
           neutral={"do_rotary": (0,), "past_present_share_buffer": (0,)})  # fmt: skip
def quantized_attention(  # noqa: PLR0913 - the inputs and attributes of the operator
    context: Context,
    x: Value,
    weights: Value,
    bias: Value,
    x_scale: Value,
    weight_scale: Value,
    mask: Value | None = None,
    x_zero: Value | None = None,
    weight_zero: Value | None = None,
    past: Value | None = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    mask_filter_value: float = FILTER,
    scale: float | None = None,
) -> list[Expr]:
    """Attention whose queries, keys and values come of a product of integers."""
    whole = matmul_integer_to_float(
        context, x, weights, x_scale, weight_scale, x_zero, weight_zero, bias
    )
    width = context.extent(weights, 1, "weights")
    return attention_of(
        context,
        whole,
        [width // 3] * 3,
        mask,
        past,
        None,
        num_heads,
        bool(unidirectional),
        scale,
        mask_filter_value,
    )
