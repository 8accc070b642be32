"""The gradient of a convolution, by convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.convolution import SPACE, each
from weft.relax.frontend.torch.registry import converter
from weft.relax.op.nn.convolution import CONVOLUTIONS, TRANSPOSED
from weft.support.errors import UnsupportedError


class _Convolution:
    """The geometry of a convolution, one number for each axis of space."""

    def __init__(
        self, context: Context, rank: int, geometry: Sequence[Sequence[int]], groups: int
    ) -> None:
        self.context = context
        self.rank = rank
        self.stride, self.padding, self.dilation = (each(item, rank) for item in geometry)
        self.groups = groups

    def forward(self, data: Expr, weight: Expr) -> Expr:
        """The convolution of the geometry."""
        return self.context.emit(
            CONVOLUTIONS[self.rank](
                data,
                weight,
                strides=self.stride,
                padding=self.padding,
                dilation=self.dilation,
                groups=self.groups,
                data_layout=f"NC{SPACE[self.rank]}",
                kernel_layout=f"OI{SPACE[self.rank]}",
            )
        )

    def backward(self, grad: Expr, weight: Expr, extents: Sequence[Extent]) -> Expr:
        """The transposed convolution that gives data of these extents."""
        counts, kernel = self.context.dims(grad)[2:], self.context.dims(weight)[2:]
        if not self.context.static([*extents, *counts, *kernel]):
            raise UnsupportedError(
                f"convolution_backward: the gradient needs constant extents, got {extents}"
            )
        missing = [
            extent - ((count - 1) * stride - 2 * padding + dilation * (size - 1) + 1)
            for extent, count, size, stride, padding, dilation in zip(
                extents, counts, kernel, self.stride, self.padding, self.dilation, strict=True
            )
        ]
        return self.context.emit(
            TRANSPOSED[self.rank](
                grad,
                weight,
                strides=self.stride,
                padding=self.padding,
                dilation=self.dilation,
                groups=self.groups,
                output_padding=missing,
                data_layout=f"NC{SPACE[self.rank]}",
                kernel_layout=f"IO{SPACE[self.rank]}",
            )
        )

    def of_weight(self, data: Expr, grad: Expr, kernel: Sequence[Extent]) -> Expr:
        """The gradient of the weight: data convolved with the gradient, batches as channels."""
        groups, rank = self.groups, self.rank
        batch, channels, *space = self.context.dims(data)
        inner = channels // groups
        places = list(range(3, 3 + rank))
        apart = op.reshape(data, [batch, groups, inner, *space])
        as_batch = self.context.emit(op.permute_dims(apart, [2, 1, 0, *places]))
        x = op.reshape(as_batch, [inner, groups * batch, *space])
        w = op.permute_dims(grad, [1, 0, *range(2, 2 + rank)])
        image = self.context.emit(
            CONVOLUTIONS[rank](
                x,
                w,
                strides=self.dilation,
                padding=self.padding,
                dilation=self.stride,
                groups=groups,
                data_layout=f"NC{SPACE[rank]}",
                kernel_layout=f"OI{SPACE[rank]}",
            )
        )
        axes = list(range(2, 2 + rank))
        cut = self.context.emit(op.strided_slice(image, axes, [0] * rank, list(kernel)))
        return op.permute_dims(cut, [1, 0, *axes])


@converter("aten.convolution_backward.default")
def convolution_backward(
    context: Context,
    grad_output: Expr,
    input: Expr,
    weight: Expr,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> list[Expr | None]:
    """The gradients of data, weight and bias, those that the mask asks for."""
    rank = context.rank(weight) - 2
    layer = _Convolution(context, rank, (stride, padding, dilation), groups)
    kernel, extents = context.dims(weight)[2:], context.dims(input)[2:]
    gradients: list[Expr | None] = [None, None, None]
    if output_mask[0]:
        gradients[0] = (
            layer.forward(grad_output, weight)
            if transposed
            else layer.backward(grad_output, weight, extents)
        )
    if output_mask[1]:
        pair = (grad_output, input) if transposed else (input, grad_output)
        gradients[1] = layer.of_weight(*pair, kernel)
    if output_mask[2]:
        gradients[2] = op.sum(grad_output, [0, *range(2, 2 + rank)])
    return gradients
