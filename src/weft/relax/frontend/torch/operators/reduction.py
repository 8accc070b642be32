"""Reductions: sums, extremes, tests, moments and norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.pointwise import is_narrow, number
from weft.relax.frontend.torch.registry import Converter, converter
from weft.support.dtype import DataType
from weft.tir import op as tir_op

Axes = Sequence[int] | int | None
Reduction = Callable[..., Expr]
"""Of a tensor, axes, and whether they are kept with an extent of 1."""


def reduced_axes(context: Context, tensor: Expr, dim: Axes) -> list[int]:
    """The axes that are reduced: all for None and for an empty list; none of a 0-d tensor."""
    rank = context.rank(tensor)
    if rank == 0:
        return []
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(rank))
    dims = [dim] if isinstance(dim, int) else dim
    return [int(axis) % rank for axis in dims]


def reduce_with(
    context: Context, function: Reduction, tensor: Expr, dim: Axes, keepdim: bool
) -> Expr:
    """A reduction of relax over ``dim``; a 0-d tensor is reduced as a row of one element."""
    axes = reduced_axes(context, tensor, dim)
    if axes:
        return function(tensor, axes, keepdim)
    return function(context.emit(op.reshape(tensor, [1])), [0], False)


# Sums and products


@converter("aten.sum.default", "aten.sum.dim_IntList")
def sum_(
    context: Context, self: Expr, dim: Axes = None, keepdim: bool = False, **_: object
) -> Expr:
    """The sum; booleans and integers in int64."""
    return _counted(context, op.sum, self, dim, keepdim)


def _counted(context: Context, function: Reduction, tensor: Expr, dim: Axes, keepdim: bool) -> Expr:
    """A sum or product in the result's type; of booleans whether any or all of them hold."""
    cast = context.cast(tensor, context.dtype)
    if context.dtype != "bool":
        return reduce_with(context, function, cast, dim, keepdim)
    count = reduce_with(context, function, context.cast(cast, "int64"), dim, keepdim)
    return context.cast(context.emit(count), "bool")


@converter("aten.nansum.default")
def nansum(
    context: Context, self: Expr, dim: Axes = None, keepdim: bool = False, **_: object
) -> Expr:
    """The sum without NaN."""
    return reduce_with(context, op.sum, without_nan(context, self, context.dtype), dim, keepdim)


def without_nan(context: Context, tensor: Expr, dtype: str) -> Expr:
    """The tensor in a type, 0 where it is NaN."""
    value = context.cast(tensor, dtype)
    if not DataType(dtype).is_float:
        return value
    zero = const(0, dtype)
    return context.emit(op.where(context.emit(op.isnan(value)), zero, value))


@converter("aten.prod.default")
def prod(context: Context, self: Expr, **_: object) -> Expr:
    """The product of all elements."""
    return _counted(context, op.prod, self, None, False)


@converter("aten.prod.dim_int")
def prod_dim(context: Context, self: Expr, dim: int, keepdim: bool = False, **_: object) -> Expr:
    """The product over a dimension."""
    return _counted(context, op.prod, self, dim, keepdim)


@converter("aten.mean.default", "aten.mean.dim")
def mean(
    context: Context, self: Expr, dim: Axes = None, keepdim: bool = False, **_: object
) -> Expr:
    """The mean."""
    return reduce_with(context, op.mean, context.cast(self, context.dtype), dim, keepdim)


@converter("aten.count_nonzero.default", "aten.count_nonzero.dim_IntList")
def count_nonzero(context: Context, self: Expr, dim: Axes = None) -> Expr:
    """How many elements are not 0."""
    ones = context.cast(context.cast(self, "bool"), "int64")
    return reduce_with(context, op.sum, ones, dim, False)


@converter("aten.trace.default")
def trace(context: Context, self: Expr) -> Expr:
    """The sum of the diagonal."""
    diagonal = context.emit(op.diagonal(self))
    return op.sum(context.cast(diagonal, context.dtype), [0])


# Extremes and where they stand


@converter("aten.amax.default", "aten.max.default")
def amax(context: Context, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    """The largest element; NaN if there is one."""
    return _extreme(context, self, dim, keepdim, op.max)


@converter("aten.amin.default", "aten.min.default")
def amin(context: Context, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    """The smallest element; NaN if there is one."""
    return _extreme(context, self, dim, keepdim, op.min)


def _extreme(context: Context, self: Expr, dim: Axes, keepdim: bool, function: Reduction) -> Expr:
    return reduce_with(context, function, self, dim, keepdim)


@converter("aten.aminmax.default")
def aminmax(
    context: Context, self: Expr, dim: int | None = None, keepdim: bool = False
) -> tuple[Expr, Expr]:
    """The smallest and the largest element."""
    return amin(context, self, dim, keepdim), amax(context, self, dim, keepdim)


@converter("aten.max.dim")
def max_dim(context: Context, self: Expr, dim: int, keepdim: bool = False) -> tuple[Expr, Expr]:
    """The largest elements along a dimension and the first place of each."""
    return (amax(context, self, dim, keepdim), argmax(context, self, dim, keepdim))


@converter("aten.min.dim")
def min_dim(context: Context, self: Expr, dim: int, keepdim: bool = False) -> tuple[Expr, Expr]:
    """The smallest elements along a dimension and the first place of each."""
    return (amin(context, self, dim, keepdim), argmin(context, self, dim, keepdim))


@converter("aten.argmax.default")
def argmax(context: Context, self: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    """The first place of the largest element, of NaN if there is one."""
    return _place(context, self, dim, keepdim, op.argmax)


@converter("aten.argmin.default")
def argmin(context: Context, self: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    """The first place of the smallest element, of NaN if there is one."""
    return _place(context, self, dim, keepdim, op.argmin)


def _place(
    context: Context, self: Expr, dim: int | None, keepdim: bool, function: Reduction
) -> Expr:
    value = context.cast(self, "uint8") if context.dtype_of(self) == "bool" else self
    rank = context.rank(value)
    if rank == 0:
        return op.full([], const(0, "int64"), "int64")
    return function(value, None if dim is None else int(dim) % rank, keepdim)


@converter("aten.any.default", "aten.any.dim", "aten.any.dims", "aten._is_any_true.default")
def any_(context: Context, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    """Whether any element is not 0."""
    return _test(context, self, dim, keepdim, op.max)


@converter("aten.all.default", "aten.all.dim", "aten.all.dims", "aten._is_all_true.default")
def all_(context: Context, self: Expr, dim: Axes = None, keepdim: bool = False) -> Expr:
    """Whether no element is 0."""
    return _test(context, self, dim, keepdim, op.min)


def _test(context: Context, self: Expr, dim: Axes, keepdim: bool, function: Reduction) -> Expr:
    holds = context.cast(self, "bool")
    if isinstance(dim, list | tuple) and not dim and context.rank(self):
        return context.cast(holds, context.dtype)  # of no dimensions: element for element
    result = context.emit(reduce_with(context, function, holds, dim, keepdim))
    return context.cast(result, context.dtype)


# Moments


def _spread(
    context: Context, self: Expr, dim: Axes, correction: float, keepdim: bool, root: bool
) -> Expr:
    """Squared distances from the mean, summed, over the number of elements less ``correction``."""
    dtype = context.dtype_of(self)
    wide = context.cast(self, "float32" if is_narrow(dtype) else dtype)
    kind = context.dtype_of(wide)
    value = context.emit(reduce_with(context, op.variance, wide, dim, keepdim))
    if correction:
        axes, dims = reduced_axes(context, self, dim), context.dims(self)
        count = number(math.prod([dims[axis] for axis in axes]), kind)
        divisor = tir_op.maximum(count - number(correction, kind), number(0, kind))
        total = context.emit(op.multiply(value, context.operand(count, kind)))
        value = context.emit(op.divide(total, context.operand(divisor, kind)))
    return context.cast(context.emit(op.sqrt(value)) if root else value, dtype)


def _moments(*, root: bool, with_mean: bool) -> Converter:
    """The converter of the variance, or its root, divided by n - correction; the mean beside."""

    def convert(
        context: Context,
        self: Expr,
        dim: Axes = None,
        unbiased: bool = True,
        keepdim: bool = False,
        correction: float | None = None,
    ) -> Expr | tuple[Expr, Expr]:
        # ``var.default`` has ``unbiased`` in the place of the dimensions.
        axes, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
        correction = int(unbiased) if correction is None else correction
        spread = _spread(context, self, axes, correction, keepdim, root)
        return (spread, reduce_with(context, op.mean, self, axes, keepdim)) if with_mean else spread

    return convert


for _name, _is_root, _with_mean in (
    ("var", False, False), ("std", True, False), ("var_mean", False, True), ("std_mean", True, True)
):  # fmt: skip
    converter(*[f"aten.{_name}.{kind}" for kind in ("correction", "default", "dim")])(
        _moments(root=_is_root, with_mean=_with_mean)
    )


# Norms


@converter("aten.linalg_vector_norm.default")
def vector_norm(
    context: Context,
    self: Expr,
    ord: float = 2,
    dim: Axes = None,
    keepdim: bool = False,
    **_: object,
) -> Expr:
    """``sum(|x| ** ord) ** (1 / ord)``; the largest or smallest for infinite orders."""
    value = context.emit(op.abs(context.cast(self, context.dtype)))
    if math.isinf(ord):
        return reduce_with(context, op.max if ord > 0 else op.min, value, dim, keepdim)
    if ord == 0:
        ones = context.cast(context.cast(value, "bool"), context.dtype)
        return reduce_with(context, op.sum, ones, dim, keepdim)

    wide = context.cast(value, "float32") if DataType(context.dtype).bits < 32 else value
    if ord in (1, 2):
        terms = wide if ord == 1 else op.multiply(wide, wide)
    else:
        terms = op.power(wide, const(float(ord), context.dtype_of(wide)))
    total = context.emit(reduce_with(context, op.sum, context.emit(terms), dim, keepdim))
    return context.cast(_root(context, total, ord), context.dtype)


def _root(context: Context, total: Expr, order: float) -> Expr:
    if order == 1:
        return total
    if order == 2:
        return context.emit(op.sqrt(total))
    return context.emit(op.power(total, const(1.0 / float(order), context.dtype_of(total))))


@converter("aten.norm.Scalar", "aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dtype",
           "aten.norm.ScalarOpt_dim_dtype")  # fmt: skip
def norm(
    context: Context,
    self: Expr,
    p: float | None = 2,
    dim: Axes = None,
    keepdim: bool = False,
    **_: object,
) -> Expr:
    """The norm of order p, 2 unless given."""
    return vector_norm(context, self, 2 if p is None else p, dim, keepdim)


@converter("aten.logsumexp.default", "aten.special_logsumexp.default")
def logsumexp(context: Context, self: Expr, dim: Axes, keepdim: bool = False) -> Expr:
    """log(sum(exp(x))) from the largest element on, so that nothing overflows."""
    value = context.cast(self, context.dtype)
    if context.rank(value) == 0:
        return value
    axes = reduced_axes(context, value, dim)
    if any(context.dims(value)[axis] == 0 for axis in axes):
        return op.full(context.shape, const(-math.inf, context.dtype), context.dtype)
    top = context.emit(op.max(value, axes, True))
    zero = const(0, context.dtype)
    top = context.emit(op.where(context.emit(op.isfinite(top)), top, zero))
    shifted = context.emit(op.exp(context.emit(op.subtract(value, top))))
    total = context.emit(op.log(context.emit(op.sum(shifted, axes, True))))
    result = context.emit(op.add(total, top))
    return result if keepdim else op.squeeze(result, axes)


@converter("aten.dist.default")
def dist(context: Context, self: Expr, other: Expr, p: float = 2) -> Expr:
    """The norm of the difference."""
    difference = context.emit(op.subtract(*context.promoted(self, other)))
    return vector_norm(context, difference, p)
