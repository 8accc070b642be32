"""Reductions: axes as an attribute, or (by operator, from opset 13 or 18) as an input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value
from weft.support.dtype import DataType
from weft.tir.op import max_value, min_value

Axes = list[int] | None
"""Axes that are reduced; None is all of them."""
Reduce = Callable[[Context, Expr, Axes, bool], Expr]


def _sum(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    return context.emit(op.sum(x, axes, keep))


def _l1(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    return _sum(context, context.emit(op.abs(x)), axes, keep)


def _sum_square(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    return _sum(context, context.emit(op.multiply(x, x)), axes, keep)


def _l2(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    return context.emit(op.sqrt(_sum_square(context, x, axes, keep)))


def _log_sum(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    return context.emit(op.log(_sum(context, x, axes, keep)))


def _log_sum_exp(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    """The largest element is taken off first, so that no exponential overflows."""
    if context.is_empty(x):
        return _log_sum(context, context.emit(op.exp(x)), axes, keep)
    top = context.emit(op.max(x, axes, True))
    zero = context.constant(0, str(x.struct_info.dtype)).expr
    finite = context.emit(op.where(context.emit(op.isfinite(top)), top, zero))
    small = context.emit(op.exp(context.emit(op.subtract(x, finite))))
    inner = _log_sum(context, small, axes, keep)
    flat = finite if keep else context.emit(op.squeeze(finite, axes))
    if not keep and axes is None:
        flat = context.emit(op.reshape(finite, []))
    return context.emit(op.add(inner, flat))


def _extreme(reduce: Callable[..., Expr], bound: Callable[[str], PrimExpr]) -> Reduce:
    """The largest or smallest; of booleans any or all; of nothing the type's own bound."""

    def extreme(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
        if str(x.struct_info.dtype) != "bool":
            return context.emit(reduce(x, axes, keep))
        small = context.emit(reduce(context.emit(op.astype(x, "uint8")), axes, keep))
        return context.emit(op.astype(small, "bool"))

    extreme.__doc__ = bound.__name__
    return extreme


def _direct(function: Callable[..., Expr]) -> Reduce:
    return lambda context, x, axes, keep: context.emit(function(x, axes, keep))


def _mean(context: Context, x: Expr, axes: Axes, keep: bool) -> Expr:
    if DataType(x.struct_info.dtype).is_float:
        return context.emit(op.mean(x, axes, keep))
    wide = context.emit(op.mean(context.emit(op.astype(x, "float64")), axes, keep))
    return context.emit(op.astype(wide, x.struct_info.dtype))


REDUCTIONS: Final[dict[str, tuple[int, Reduce]]] = {
    "ReduceSum": (13, _sum), "ReduceMean": (18, _mean), "ReduceProd": (18, _direct(op.prod)),
    "ReduceMax": (18, _extreme(op.max, min_value)), "ReduceMin": (18, _extreme(op.min, max_value)),
    "ReduceL1": (18, _l1), "ReduceL2": (18, _l2), "ReduceLogSum": (18, _log_sum),
    "ReduceLogSumExp": (18, _log_sum_exp), "ReduceSumSquare": (18, _sum_square),
}  # fmt: skip
"""Operator -> the opset from which axes are an input, and what it computes."""


def _enter(name: str, since: int, reduce: Reduce) -> None:
    def reduced(context: Context, x: Value, axes: Axes, keep: bool, noop: bool) -> Expr:
        context.refuse_small(x)
        if not axes:
            axes = [] if noop else None
        if axes is None:
            axes = list(range(context.rank(x, "data")))
        if not axes:
            return reduce(context, _as_is(context, x), [context.rank(x, "data")], False)
        return reduce(context, x.expr, axes, keep)

    @converter(name)
    def attribute(
        context: Context, x: Value, *, axes: Sequence[int] | None = None, keepdims: int = 1
    ) -> Expr:
        return reduced(context, x, None if axes is None else list(axes), bool(keepdims), False)

    @converter(name, since=since)
    def given(
        context: Context,
        x: Value,
        axes: Value | None = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Expr:
        chosen = context.ints(axes, "axes")
        return reduced(context, x, chosen, bool(keepdims), bool(noop_with_empty_axes))

    attribute.__name__ = given.__name__ = name.lower()


def _as_is(context: Context, x: Value) -> Expr:
    """x with one more axis of size 1: reducing over it changes what the reduction does alone."""
    return context.emit(op.expand_dims(x.expr, [context.rank(x, "data")]))


for _name, (_since, _reduce) in REDUCTIONS.items():
    _enter(_name, _since, _reduce)


@converter("ArgMax")
def argmax(
    context: Context, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> Expr:
    """The index of the largest element, the first or the last of equal ones."""
    return _arg(context, op.argmax, x, axis, (keepdims, select_last_index))


@converter("ArgMin")
def argmin(
    context: Context, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> Expr:
    """The index of the smallest element, the first or the last of equal ones."""
    return _arg(context, op.argmin, x, axis, (keepdims, select_last_index))


def _arg(
    context: Context, reduce: Callable[..., Expr], x: Value, axis: int, options: tuple[int, int]
) -> Expr:
    keep, last = options
    place = context.axis(x, axis)
    if not last:
        index = context.emit(reduce(x.expr, place, bool(keep)))
        return context.emit(op.astype(index, "int64"))
    turned = context.emit(reduce(context.emit(op.flip(x.expr, place)), place, bool(keep)))
    wide = context.emit(op.astype(turned, "int64"))
    end = context.dim_expr(context.shape(x, "data")[place], -1)
    return context.emit(op.subtract(end, wide))
