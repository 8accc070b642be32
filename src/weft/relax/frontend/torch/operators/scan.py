"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

import math
from typing import Any

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.dtype import DataType
from weft.topi.broadcast import log_add_exp
from weft.topi.scan import running_extreme, scanop


@converter("aten.cumsum.default")
def cumsum(context: Context, self: Expr, dim: int, **_: Any) -> Any:
    """The running sum."""
    value = context.cast(self, context.dtype)
    return op.cumsum(value, dim) if context.rank(value) else value


@converter("aten.cumprod.default")
def cumprod(context: Context, self: Expr, dim: int, **_: Any) -> Any:
    """The running product."""
    value = context.cast(self, context.dtype)
    return op.cumprod(value, dim) if context.rank(value) else value


@converter("aten.logcumsumexp.default")
def logcumsumexp(context: Context, self: Expr, dim: int) -> Any:
    """The logarithm of the running sum of exponentials, without overflow."""
    value = context.cast(self, context.dtype)
    if context.rank(value) == 0:
        return value

    def kernel(x: Any) -> Any:
        return scanop(x, _joined, -math.inf, "logcumsumexp", dim)

    return context.emit(context.builder.call_te(kernel, value, primfunc_name_hint="logcumsumexp"))


def _joined(running: PrimExpr, value: PrimExpr) -> PrimExpr:
    made: PrimExpr = log_add_exp(running, value)
    return made


@converter("aten.cummax.default")
def cummax(context: Context, self: Expr, dim: int) -> Any:
    """The running maximum and the last place of each."""
    return _running(context, self, dim, True)


@converter("aten.cummin.default")
def cummin(context: Context, self: Expr, dim: int) -> Any:
    """The running minimum and the last place of each."""
    return _running(context, self, dim, False)


def _running(context: Context, self: Expr, dim: int, largest: bool) -> Any:
    shape = context.shape
    row = self if shape else context.emit(op.reshape(self, [1]))
    boolean = DataType(context.dtype_of(self)).is_bool
    row = context.cast(row, "uint8") if boolean else row

    def kernel(x: Any) -> Any:
        return running_extreme(x, dim, largest)

    name = "cummax" if largest else "cummin"
    both = context.emit(context.builder.call_te(kernel, row, primfunc_name_hint=name))
    values, places = (context.emit(both[i]) for i in (0, 1))
    if not shape:
        values, places = (context.emit(op.reshape(item, [])) for item in (values, places))
    return context.cast(values, context.dtype), places
