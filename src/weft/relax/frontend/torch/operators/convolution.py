"""Convolutions of one to three dimensions, forward and transposed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.expr import Extent, PrimExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.relax.op.nn.convolution import CONVOLUTIONS, TRANSPOSED
from weft.support.errors import UnsupportedError

SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


Size = int | Sequence[int]
"""Numbers for the dimensions of space; one stands for all."""


def each(value: Size, count: int) -> list[int]:
    """A number for each dimension of space."""
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


@converter("aten.convolution.default", "aten._convolution.default")
def convolution(
    context: Context,
    input: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: Extent,
    *_: object,
) -> Expr:
    """A convolution or its transpose, with a bias for each channel."""
    rank = context.rank(weight) - 2
    space = SPACE[rank]
    common: dict[str, object] = {
        "strides": each(stride, rank),
        "dilation": each(dilation, rank),
        "groups": groups,
        "data_layout": f"NC{space}",
        "out_dtype": context.dtype,
    }
    data = batched(context, input, rank)
    around = each(padding, rank)
    if not isinstance(groups, int):
        if transposed:
            raise UnsupportedError(
                f"{context.node.target}: expected a known number of groups of a transposed "
                f"convolution, got {groups}; convolve the groups one by one"
            )
        image = convolved_by_taps(context, data, weight, around, common)
    elif transposed:
        image = transposed_convolution(
            context, data, weight, (around, each(output_padding, rank)), common
        )
    else:
        image = CONVOLUTIONS[rank](
            data, weight, padding=around, kernel_layout=f"OI{space}", **common
        )
    image = context.emit(image)
    if bias is not None:
        image = context.emit(op.add(image, op.reshape(bias, [1, -1, *[1] * rank])))
    return image if context.rank(input) == rank + 2 else op.squeeze(image, [0])


@converter(*[f"aten.conv{rank}d.default" for rank in SPACE])
def plain_convolution(
    context: Context,
    input: Expr,
    weight: Expr,
    bias: Expr | None = None,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: Extent = 1,
) -> Expr:
    """A convolution that is not transposed."""
    rank = context.rank(weight) - 2
    steps, around, holes = [each(value, rank) for value in (stride, padding, dilation)]
    edges = [0] * rank
    return convolution(context, input, weight, bias, steps, around, holes, False, edges, groups)


def convolved_by_taps(
    context: Context, data: Expr, weight: Expr, around: list[int], common: Mapping[str, object]
) -> Expr:
    """A convolution of a symbolic number of groups, such as one for each sample of a batch.

    It is the sum of products over the elements of the kernel, each of which meets the image moved
    by its place.
    """
    emit, rank, groups = context.emit, len(around), expect(common["groups"], PrimExpr)
    steps, holes = (expect(common[name], list) for name in ("strides", "dilation"))
    outputs, inputs, *kernel = context.dims(weight)
    outputs = outputs // groups
    if any(around):
        data = emit(op.nn.pad(data, [0] * 4 + [width for width in around for _ in range(2)]))
    batch, _, *extents = context.dims(data)
    grouped = emit(op.reshape(data, [batch, groups, inputs, *extents]))
    matrices = emit(op.reshape(weight, [groups, outputs, inputs, *kernel]))
    axes = [*range(3, 3 + rank)]
    spans = [
        (extent - hole * (size - 1) - 1) // step + 1
        for extent, size, step, hole in zip(extents, kernel, steps, holes, strict=True)
    ]
    sums: Expr | None = None
    for tap in itertools.product(*(range(expect(size, int)) for size in kernel)):
        begins = [place * hole for place, hole in zip(tap, holes, strict=True)]
        ends = [
            begin + (span - 1) * step + 1
            for begin, span, step in zip(begins, spans, steps, strict=True)
        ]
        moved = emit(op.strided_slice(grouped, axes, begins, ends, steps))
        moved = emit(op.reshape(moved, [batch, groups, inputs, math.prod(spans)]))
        part = emit(op.strided_slice(matrices, axes, list(tap), [place + 1 for place in tap]))
        part = emit(op.reshape(part, [1, groups, outputs, inputs]))
        product = emit(op.matmul(part, moved))
        sums = product if sums is None else emit(op.add(sums, product))
    return op.reshape(expect(sums, Expr), [batch, groups * outputs, *spans])


def batched(context: Context, tensor: Expr, rank: int) -> Expr:
    """The tensor with a batch in front, where it is a single sample."""
    if context.rank(tensor) == rank + 2:
        return tensor
    return context.emit(op.expand_dims(tensor, 0))


def transposed_convolution(
    context: Context,
    data: Expr,
    weight: Expr,
    edges: tuple[list[int], list[int]],
    common: dict[str, object],
) -> Expr:
    """The transposed convolution; ``edges`` is (padding, what the ends have more).

    torch lets an end have more than a stride, if the dilation is wider: less is cut off there, and
    beyond what the kernel reaches there are zeros.
    """
    around, more = edges
    rank = len(around)
    layout = f"IO{SPACE[rank]}"
    if all(extra < step for extra, step in zip(more, expect(common["strides"], list), strict=True)):
        return TRANSPOSED[rank](
            data, weight, padding=around, output_padding=more, kernel_layout=layout, **common
        )
    after = [max(width - extra, 0) for width, extra in zip(around, more, strict=True)]
    beyond = [max(extra - width, 0) for width, extra in zip(around, more, strict=True)]
    image = TRANSPOSED[rank](
        data, weight, padding=[*around, *after], kernel_layout=layout, **common
    )
    return op.nn.pad(context.emit(image), [0] * 4 + [i for pair in beyond for i in (0, pair)])
