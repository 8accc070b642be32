"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

from collections.abc import Callable

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.dtype import DataType


@converter("aten.cumsum.default")
def cumsum(context: Context, self: Expr, dim: int, **_: object) -> Expr:
    """The running sum."""
    value = context.cast(self, context.dtype)
    return op.cumsum(value, dim) if context.rank(value) else value


@converter("aten.cumprod.default")
def cumprod(context: Context, self: Expr, dim: int, **_: object) -> Expr:
    """The running product."""
    value = context.cast(self, context.dtype)
    return op.cumprod(value, dim) if context.rank(value) else value


@converter("aten.logcumsumexp.default")
def logcumsumexp(context: Context, self: Expr, dim: int) -> Expr:
    """The logarithm of the running sum of exponentials, without overflow."""
    value = context.cast(self, context.dtype)
    return op.logcumsumexp(value, dim) if context.rank(value) else value


@converter("aten.cummax.default")
def cummax(context: Context, self: Expr, dim: int) -> tuple[Expr, Expr]:
    """The running maximum and the last place of each."""
    return _running(context, self, dim, op.cummax)


@converter("aten.cummin.default")
def cummin(context: Context, self: Expr, dim: int) -> tuple[Expr, Expr]:
    """The running minimum and the last place of each."""
    return _running(context, self, dim, op.cummin)


def _running(
    context: Context, self: Expr, dim: int, function: Callable[..., Expr]
) -> tuple[Expr, Expr]:
    shape = context.shape
    row = self if shape else context.emit(op.reshape(self, [1]))
    boolean = DataType(context.dtype_of(self)).is_bool
    row = context.cast(row, "uint8") if boolean else row
    both = context.emit(function(row, dim))
    values, places = (context.emit(both[i]) for i in (0, 1))
    if not shape:
        values, places = (context.emit(op.reshape(item, [])) for item in (values, places))
    return context.cast(values, context.dtype), places
