"""Keys and values in buffers: where those of a call lie, and which of them each query sees.

Tensors of a call are (batch, length, heads, features), buffers (batch, heads, length, features).
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.attention import turned
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.ir.shape_arith import simplified


@dataclass(frozen=True)
class Places:
    """Where the keys of a call lie.

    Attributes:
        starts: the keys (batch) of each sequence before the first one of this call; None where
            there are none.
        counts: the keys (batch) of each sequence, those of this call among them.
        length: how many places the keys and values that result have.
    """

    starts: Expr | None
    counts: Expr
    length: Dim


def length_of(context: Context, x: Expr, axis: int = 1) -> Dim:
    """An extent of a tensor, by default its length."""
    return context.shape(context.value(x), "input")[axis]


def cached(context: Context, past: Value, fresh: Expr, places: Places, keeps: bool) -> Expr:
    """The keys of the past, and those of a call behind them in each sequence.

    Behind those stand zeros, or what stood there before if the buffer ``keeps`` it. The result is
    (batch, length, heads, features).
    """
    emit = context.emit
    assert places.starts is not None
    batch, count, heads, features = context.shape(context.value(fresh), "key")
    before = context.shape(past, "past_key")[2]
    known = context.matched(past.expr, [batch, heads, before, features])
    missing = simplified(as_prim(places.length) - as_prim(before))
    old = turned(context, emit(op.nn.pad(known, [*[0] * 5, missing, 0, 0])))
    numbers = emit(op.expand_dims(emit(op.arange(0, places.length, 1, "int64")), 0))
    place = emit(op.subtract(numbers, emit(op.expand_dims(places.starts, 1))))
    zero, end = context.dim_expr(0), context.dim_expr(count)
    is_before, is_behind = emit(op.less(place, zero)), emit(op.greater_equal(place, end))
    is_old = emit(op.logical_or(is_before, is_behind)) if keeps else is_before
    new = rows_at(context, fresh, place)
    kept, later = (emit(op.expand_dims(item, [2, 3])) for item in (is_old, is_behind))
    empty = context.constant(0, str(fresh.struct_info.dtype)).expr
    return emit(op.where(kept, old, emit(op.where(later, empty, new))))


def rows_at(context: Context, keys: Expr, places: Expr) -> Expr:
    """The keys of each sequence at places (batch, length); the first or last outside of them."""
    emit = context.emit
    last = context.dim_expr(length_of(context, keys), -1)
    inside = emit(op.minimum(emit(op.maximum(places, context.dim_expr(0))), last))
    return emit(op.gather_nd(keys, emit(op.expand_dims(inside, 2)), 1))


def queries_of(context: Context, places: Places, length: Dim) -> Expr:
    """The places of the queries: (batch, length), or (1, length) where all begin at 0."""
    emit = context.emit
    steps = emit(op.expand_dims(emit(op.arange(0, length, 1, "int64")), 0))
    if places.starts is None:
        return steps
    return emit(op.add(emit(op.expand_dims(places.starts, 1)), steps))


def seen_keys(
    context: Context, places: Places, length: Dim, is_causal: bool, window: int | None
) -> Expr:
    """Which keys each query sees: (batch, queries, keys)."""
    emit = context.emit
    keys = emit(op.reshape(emit(op.arange(0, places.length, 1, "int64")), [1, 1, places.length]))
    seen = emit(op.less(keys, emit(op.expand_dims(places.counts, [1, 2]))))
    if not is_causal:
        return seen
    last = emit(op.expand_dims(queries_of(context, places, length), 2))
    seen = emit(op.logical_and(seen, emit(op.less_equal(keys, last))))
    if window is None:
        return seen
    first = emit(op.subtract(last, context.dim_expr(window)))
    return emit(op.logical_and(seen, emit(op.greater(keys, first))))
