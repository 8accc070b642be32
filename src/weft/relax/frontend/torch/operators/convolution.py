"""Convolutions of one to three dimensions, forward and transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.op.nn.convolution import CONVOLUTIONS, TRANSPOSED

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
        "strides": each(stride, rank), "dilation": each(dilation, rank), "groups": groups,
        "data_layout": f"NC{space}", "out_dtype": context.dtype,
    }  # fmt: skip
    data = batched(context, input, rank)
    around = each(padding, rank)
    if transposed:
        made = transposed_convolution(
            context, data, weight, (around, each(output_padding, rank)), common
        )
    else:
        made = CONVOLUTIONS[rank](
            data, weight, padding=around, kernel_layout=f"OI{space}", **common
        )
    made = context.emit(made)
    if bias is not None:
        made = context.emit(op.add(made, op.reshape(bias, [1, -1, *[1] * rank])))
    return made if context.rank(input) == rank + 2 else op.squeeze(made, [0])


def batched(context: Context, tensor: Expr, rank: int) -> Expr:
    """The tensor with a batch in front, where it is a single sample."""
    if context.rank(tensor) == rank + 2:
        return tensor
    return context.emit(op.expand_dims(tensor, 0))


def transposed_convolution(
    context: Context, data: Expr, weight: Expr, edges: tuple[list[Any], list[Any]],
    common: dict[str, Any],
) -> Expr:  # fmt: skip
    """The transposed convolution; ``edges`` is (padding, what the ends have more).

    torch lets an end have more than a stride, if the dilation is wider: less is cut off there, and
    beyond what the kernel reaches there are zeros.
    """
    around, more = edges
    rank = len(around)
    layout = f"IO{SPACE[rank]}"
    if all(extra < step for extra, step in zip(more, common["strides"], strict=True)):
        return TRANSPOSED[rank](
            data, weight, padding=around, output_padding=more, kernel_layout=layout, **common
        )
    after = [max(width - extra, 0) for width, extra in zip(around, more, strict=True)]
    beyond = [max(extra - width, 0) for width, extra in zip(around, more, strict=True)]
    made = TRANSPOSED[rank](
        data, weight, padding=[*around, *after], kernel_layout=layout, **common
    )
    return op.nn.pad(context.emit(made), [0] * 4 + [i for pair in beyond for i in (0, pair)])
