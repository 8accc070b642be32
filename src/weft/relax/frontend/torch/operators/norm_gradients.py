"""The gradients of layer and group normalisation and of an embedding, by their formulas.

With x^ = (x - mean) * rstd and h = gradient * weight, the gradient of the input is
rstd * (h - mean(h) - x^ * mean(h * x^)); those of weight and bias are sums of gradient * x^ and of
the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.dtype import DataType


class _Wide:
    """Arithmetic in float32 at least."""

    def __init__(self, context: Context, dtype: str) -> None:
        self.context = context
        self.dtype = "float32" if DataType(dtype).bits < 32 else dtype

    def __call__(self, tensor: Expr) -> Expr:
        return self.context.cast(tensor, self.dtype)

    def minus(self, a: Expr, b: Expr) -> Expr:
        return self.context.emit(op.subtract(a, b))

    def times(self, a: Expr, b: Expr) -> Expr:
        return self.context.emit(op.multiply(a, b))

    def mean(self, a: Expr, axes: Sequence[int]) -> Expr:
        return self.context.emit(op.mean(a, list(axes), True))

    def sum(self, a: Expr, axes: Sequence[int]) -> Expr:
        return self.context.emit(op.sum(a, list(axes), False)) if axes else a

    def shaped(self, a: Expr, shape: Sequence[Extent]) -> Expr:
        return self.context.emit(op.reshape(a, list(shape)))

    def input_gradient(self, h: Expr, x_hat: Expr, rstd: Expr, axes: Sequence[int]) -> Expr:
        """rstd * (h - mean(h) - x^ * mean(h * x^))."""
        along = self.times(x_hat, self.mean(self.times(h, x_hat), axes))
        return self.times(rstd, self.minus(self.minus(h, self.mean(h, axes)), along))


@converter("aten.native_layer_norm_backward.default")
def native_layer_norm_backward(
    context: Context,
    grad_out: Expr,
    input: Expr,
    normalized_shape: Sequence[Extent],
    mean: Expr,
    rstd: Expr,
    weight: Expr | None,
    bias: Expr | None,
    output_mask: Sequence[bool],
) -> Sequence[Expr | None]:
    """The gradients of input, weight and bias; None for those that the mask leaves out."""
    dtype = context.dtype_of(input)
    wide = _Wide(context, dtype)
    rank = context.rank(input)
    outer = list(range(rank - len(normalized_shape)))
    inner = list(range(len(outer), rank))
    gradient, scale = wide(grad_out), wide(rstd)
    x_hat = wide.times(wide.minus(wide(input), wide(mean)), scale)
    h = gradient if weight is None else wide.times(gradient, wide(weight))
    return (
        context.cast(wide.input_gradient(h, x_hat, scale, inner), dtype)
        if output_mask[0]
        else None,
        context.cast(wide.sum(wide.times(gradient, x_hat), outer), dtype)
        if output_mask[1] and weight is not None
        else None,
        context.cast(wide.sum(gradient, outer), dtype)
        if output_mask[2] and bias is not None
        else None,
    )


@converter("aten.native_group_norm_backward.default")
def native_group_norm_backward(
    context: Context,
    grad_out: Expr,
    input: Expr,
    mean: Expr,
    rstd: Expr,
    weight: Expr | None,
    N: Extent,
    C: Extent,
    HxW: Extent,
    group: int,
    output_mask: Sequence[bool],
) -> Sequence[Expr | None]:
    """The gradients of input, weight and bias; None for those that the mask leaves out."""
    dtype = context.dtype_of(input)
    wide = _Wide(context, dtype)
    parts, each = [N, group, C // group, HxW], [N, group, 1, 1]
    gradient = wide.shaped(wide(grad_out), parts)
    scale = wide.shaped(wide(rstd), each)
    centred = wide.minus(wide.shaped(wide(input), parts), wide.shaped(wide(mean), each))
    x_hat = wide.times(centred, scale)
    h = gradient
    if weight is not None:
        h = wide.times(gradient, wide.shaped(wide(weight), [1, group, C // group, 1]))
    gradients: list[Expr | None] = [None, None, None]
    if output_mask[0]:
        whole = wide.input_gradient(h, x_hat, scale, [2, 3])
        gradients[0] = context.cast(wide.shaped(whole, context.dims(input)), dtype)
    if output_mask[1]:
        sums = wide.sum(wide.times(gradient, x_hat), [0, 3])
        gradients[1] = context.cast(wide.shaped(sums, [C]), dtype)
    if output_mask[2]:
        gradients[2] = context.cast(wide.shaped(wide.sum(gradient, [0, 3]), [C]), dtype)
    return gradients


@converter("aten.embedding_dense_backward.default")
def embedding_dense_backward(
    context: Context,
    grad_output: Expr,
    indices: Expr,
    num_weights: Extent,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Expr:
    """The sum of the gradients of each row; of the padding's row 0."""
    rows, width = context.shape
    where = context.cast(context.emit(op.reshape(indices, [-1])), "int64")
    count = context.dims(where)[0]
    updates = context.emit(op.reshape(grad_output, [count, width]))
    column = context.emit(op.reshape(where, [count, 1]))
    if scale_grad_by_freq:
        ones = context.emit(op.ones([count], context.dtype))
        none = context.emit(op.zeros([rows], context.dtype))
        often = context.emit(op.scatter_nd(none, column, ones, "add"))
        each = context.emit(op.take(often, where, 0))
        updates = context.emit(op.divide(updates, context.emit(op.reshape(each, [count, 1]))))
    if padding_idx >= 0:
        padding = context.emit(op.equal(column, const(padding_idx, "int64")))
        updates = context.emit(op.where(padding, const(0, context.dtype), updates))
    empty = context.emit(op.zeros([rows, width], context.dtype))
    return op.scatter_nd(empty, column, updates, "add")
