"""DeformConv: a convolution whose taps are moved by offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import ExprLike
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.convolution import biased
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op as tir


@converter("DeformConv", since=19)
def deform_conv(
    context: Context, x: Value, weight: Value, offset: Value, bias: Value | None = None,
    mask: Value | None = None, *, kernel_shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None, group: int = 1, offset_group: int = 1,
) -> Expr:  # fmt: skip
    """A 2-D convolution whose taps are moved by offsets, sampled bilinearly."""
    kernel = [context.number(dim, weight, "W") for dim in context.shape(weight, "W")[2:]]
    if len(kernel) != 2:
        context.fail(f"expected 2 spatial axes, got a kernel {kernel_shape or kernel}")
    steps, spread = list(strides or [1, 1]), list(dilations or [1, 1])
    before = list(pads or [0] * 4)[:2]
    batch, channels = context.shape(x, "X")[:2]
    out_height, out_width = context.shape(offset, "offset")[2:]
    outputs = context.shape(weight, "W")[0]
    per_offset = context.number(channels, x, "X") // offset_group
    operands = [x.expr, offset.expr, *([] if mask is None else [mask.expr])]
    taps = kernel[0] * kernel[1]

    def columns(data: Tensor, moves: Tensor, *masks: Tensor) -> Tensor:
        def element(n: Any, c: Any, k: Any, i: Any, j: Any) -> Any:
            row, column = tir.floordiv(k, kernel[1]), tir.floormod(k, kernel[1])
            part = tir.floordiv(c, per_offset) * taps + k
            kind = data.dtype
            y = (i * steps[0] - before[0] + row * spread[0]).astype(kind) + moves(n, 2 * part, i, j)
            z = (j * steps[1] - before[1] + column * spread[1]).astype(kind) + moves(
                n, 2 * part + 1, i, j)  # fmt: skip
            value = _bilinear(data, (n, c), (y, z))
            return value * masks[0](n, part, i, j) if masks else value

        shape: list[ExprLike] = [data.shape[0], data.shape[1], taps, moves.shape[2], moves.shape[3]]
        return compute(shape, element, "T_deform_columns")

    emit = context.emit
    made = context.te(columns, *operands)
    per_group = channels // group
    grouped = emit(op.reshape(made, [batch, group, per_group * taps, out_height * out_width]))
    kernels = emit(op.reshape(weight.expr, [1, group, outputs // group, per_group * taps]))
    whole = emit(op.reshape(emit(op.matmul(kernels, grouped)),
                            [batch, outputs, out_height, out_width]))  # fmt: skip
    return biased(context, whole, bias, 2)


def _bilinear(data: Tensor, plane: tuple[Any, Any], place: tuple[Any, Any]) -> Any:
    """The element between four; outside of the data are zeros."""
    total: Any = tir.const(0, data.dtype)
    low = [tir.floor(value) for value in place]
    for row in (0, 1):
        for column in (0, 1):
            corner = (low[0] + row, low[1] + column)
            weight = (1 - tir.abs(place[0] - corner[0])) * (1 - tir.abs(place[1] - corner[1]))
            at = [value.astype("int64") for value in corner]
            inside = tir.all(at[0] >= 0, at[0] < data.shape[2], at[1] >= 0, at[1] < data.shape[3])
            value = tir.if_then_else(inside, data(*plane, *at), tir.const(0, data.dtype))
            total = total + weight * value
    return total
