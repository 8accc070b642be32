"""Quantised models of PT2E: integers and back, by numbers of a whole tensor or of each channel.

Models that ``prepare_pt2e`` and ``convert_pt2e`` make hold these around each layer::

    quantized_decomposed.quantize_per_tensor(x, scale, zero_point, -128, 127, int8)
    quantized_decomposed.dequantize_per_tensor(q, scale, zero_point, -128, 127, int8)
"""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import Operand


@converter("quantized_decomposed.quantize_per_tensor.default")
def quantize_per_tensor(
    context: Context,
    input: Expr,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
) -> Expr:
    """``clamp(round(input / scale) + zero_point)``, as torch has it: times the inverse."""
    whole = op.round(op.multiply(_wide(context, input), context.operand(1.0 / scale, "float32")))
    return _limited(context, whole, zero_point, (quant_min, quant_max), dtype)


@converter(
    "quantized_decomposed.quantize_per_tensor.tensor",
    "quantized_decomposed.quantize_per_tensor.tensor2",
)
def quantize_by_tensors(
    context: Context,
    input: Expr,
    scale: Expr,
    zero_point: Expr,
    quant_min: Operand,
    quant_max: Operand,
    dtype: str,
) -> Expr:
    """The same with scale, zero point and perhaps limits that are tensors of one number."""
    inverse = op.divide(context.operand(1.0, "float32"), _single(context, scale, "float32"))
    whole = op.round(op.multiply(_wide(context, input), inverse))
    zero = _single(context, zero_point, "float32")
    return _limited(context, whole, zero, (quant_min, quant_max), dtype)


@converter("quantized_decomposed.quantize_per_channel.default")
def quantize_per_channel(
    context: Context,
    input: Expr,
    scales: Expr,
    zero_points: Expr,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
) -> Expr:
    """The same with a scale and a zero point for each index of an axis."""
    inverse = op.divide(context.operand(1.0, "float32"), context.cast(scales, "float32"))
    factor = _along(context, context.emit(inverse), axis, context.rank(input))
    whole = op.round(op.multiply(_wide(context, input), factor))
    zero = _along(context, context.cast(zero_points, "float32"), axis, context.rank(input))
    return _limited(context, whole, zero, (quant_min, quant_max), dtype)


@converter("quantized_decomposed.dequantize_per_tensor.default")
def dequantize_per_tensor(
    context: Context,
    input: Expr,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
    out_dtype: str | None = None,
) -> Expr:
    """``(input - zero_point) * scale``."""
    zero = context.operand(zero_point, "int32")
    return _real(context, input, zero, context.operand(scale, "float32"))


@converter(
    "quantized_decomposed.dequantize_per_tensor.tensor",
    "quantized_decomposed.dequantize_per_tensor.tensor2",
)
def dequantize_by_tensors(
    context: Context,
    input: Expr,
    scale: Expr,
    zero_point: Expr,
    quant_min: Operand,
    quant_max: Operand,
    dtype: str,
    out_dtype: str | None = None,
) -> Expr:
    """The same with a scale and a zero point that are tensors of one number."""
    zero = _single(context, zero_point, "int32")
    return _real(context, input, zero, _single(context, scale, "float32"))


@converter("quantized_decomposed.dequantize_per_channel.default")
def dequantize_per_channel(
    context: Context,
    input: Expr,
    scales: Expr,
    zero_points: Expr | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: str,
    out_dtype: str | None = None,
) -> Expr:
    """The same with a scale and a zero point for each index of an axis."""
    rank, zero = context.rank(input), None
    if zero_points is not None:
        zero = _along(context, context.cast(zero_points, "int32"), axis, rank)
    return _real(context, input, zero, _along(context, context.cast(scales, "float32"), axis, rank))


def _wide(context: Context, value: Expr) -> Expr:
    """Numbers in float32, in which torch quantises 16-bit floats too."""
    return context.cast(value, "float32")


def _single(context: Context, value: Expr, dtype: str) -> Expr:
    """A tensor of one number, without dimensions."""
    value = context.cast(value, dtype)
    return context.emit(op.reshape(value, [])) if context.rank(value) else value


def _along(context: Context, values: Expr, axis: int, rank: int) -> Expr:
    """Numbers of the indices of an axis, such that they broadcast along it."""
    shape = [1] * rank
    shape[axis] = -1
    return context.emit(op.reshape(values, shape))


def _limited(
    context: Context, whole: Expr, zero: Operand, limits: tuple[Operand, Operand], dtype: str
) -> Expr:
    """Whole numbers moved by the zero point, kept between the limits, in the integers' type."""
    moved = context.emit(op.add(whole, context.operand(zero, "float32")))
    least, greatest = limits
    if isinstance(least, int) and isinstance(greatest, int):
        kept = context.emit(op.clip(moved, least, greatest))
    else:
        above = op.maximum(moved, context.operand(least, "float32"))
        kept = context.emit(op.minimum(above, context.operand(greatest, "float32")))
    integers = context.emit(op.astype(kept, "int32"))
    return context.cast(integers, dtype)


def _real(context: Context, input: Expr, zero: Expr | None, scale: Expr) -> Expr:
    """Integers less the zero point, times the scale, in the type that torch deduced."""
    steps = context.cast(input, "int32")
    if zero is not None:
        steps = context.emit(op.subtract(steps, zero))
    return context.cast(
        context.emit(op.multiply(context.cast(steps, "float32"), scale)), context.dtype
    )
