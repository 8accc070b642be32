"""Convolutions of one to three dimensions, forward and transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter

FORWARD: Final = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
TRANSPOSED: Final = {
    1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose,
}  # fmt: skip
SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


def each(value: Any, count: int) -> list[Any]:
    """A number for each dimension: one stands for all."""
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * count if len(values) == 1 else values


@converter("aten.convolution.default", "aten._convolution.default")
def convolution(
    context: Context, input: Expr, weight: Expr, bias: Expr | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int, *_: Any,
) -> Expr:  # fmt: skip
    """A convolution or its transpose, with a bias for each channel."""
    rank = context.rank(weight) - 2
    space = SPACE[rank]
    common: dict[str, Any] = {
        "strides": each(stride, rank), "padding": each(padding, rank),
        "dilation": each(dilation, rank), "groups": groups, "data_layout": f"NC{space}",
        "out_dtype": context.dtype,
    }  # fmt: skip
    data = input
    if context.rank(input) == rank + 1:
        data = context.emit(op.expand_dims(input, 0))
    if transposed:
        made = TRANSPOSED[rank](
            data, weight, output_padding=each(output_padding, rank), kernel_layout=f"IO{space}",
            **common,
        )  # fmt: skip
    else:
        made = FORWARD[rank](data, weight, kernel_layout=f"OI{space}", **common)
    made = context.emit(made)
    if bias is not None:
        made = context.emit(op.add(made, op.reshape(bias, [1, -1, *[1] * rank])))
    return made if context.rank(input) == rank + 2 else op.squeeze(made, [0])
