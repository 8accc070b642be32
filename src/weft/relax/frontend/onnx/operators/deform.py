"""DeformConv: a convolution whose taps are moved by offsets."""

from __future__ import annotations

from collections.abc import Sequence

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.convolution import biased
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value


@converter("DeformConv", since=19)
def deform_conv(
    context: Context,
    x: Value,
    weight: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    *,
    kernel_shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    group: int = 1,
    offset_group: int = 1,
) -> Expr:
    """A 2-D convolution whose taps are moved by offsets, sampled bilinearly."""
    kernel = [context.number(dim, weight, "W") for dim in context.shape(weight, "W")[2:]]
    if len(kernel) != 2:
        context.fail(f"expected 2 spatial axes, got a kernel {kernel_shape or kernel}")
    channels, outputs = context.shape(x, "X")[1], context.shape(weight, "W")[0]
    emit, taps = context.emit, kernel[0] * kernel[1]
    columns = emit(
        op.nn.deform_im2col(
            x.expr,
            offset.expr,
            kernel,
            strides or 1,
            list(pads or [0] * 4),
            dilations or 1,
            offset_group,
        )
    )
    batch, rows, width = [context.shape(context.value(columns), "X")[axis] for axis in (0, 4, 5)]
    places = rows * width
    if mask is not None:
        part = [batch, offset_group, channels // offset_group, taps, places]
        factors = emit(op.reshape(mask.expr, [batch, offset_group, 1, taps, places]))
        columns = emit(op.multiply(emit(op.reshape(columns, part)), factors))
    grouped = emit(op.reshape(columns, [batch, group, channels // group * taps, places]))
    kernels = emit(op.reshape(weight.expr, [1, group, outputs // group, channels // group * taps]))
    product = emit(op.matmul(kernels, grouped))
    whole = emit(op.reshape(product, [batch, outputs, rows, width]))
    return biased(context, whole, bias, 2)
