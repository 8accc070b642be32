"""Keys and values in buffers: where those of a call lie, and which of them each query sees.

Tensors of a call are (batch, length, heads, features), buffers (batch, heads, length, features).
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.attention import turned
from weft.relax.frontend.onnx.value import Dim, Value
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op as tir
from weft.tir.expr import Var


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

    Behind those stand zeros, or what stood there before if the buffer ``keeps`` it.
    """
    if places.starts is None:
        return turned(context, fresh)
    batch, _, heads, features = context.shape(context.value(fresh), "key")
    before = context.shape(past, "past_key")[2]
    known = context.matched(past.expr, [batch, heads, before, features])
    shape = [batch, heads, places.length, features]

    def keys_in_place(old: Tensor, new: Tensor, starts: Tensor) -> Tensor:
        before, count = old.shape[2], new.shape[1]

        def element(b: Var, h: Var, at: Var, i: Var) -> PrimExpr:
            place = at - starts[b]
            is_old = tir.any(place < 0, place >= count) if keeps else place < 0
            kept = tir.if_then_else(at < before, old[b, h, at, i], tir.const(0, old.dtype))
            later = tir.if_then_else(place < count, new[b, place, h, i], tir.const(0, new.dtype))
            return tir.if_then_else(is_old, kept, later)

        return compute(shape, element, "keys_in_place")

    return context.builder.emit_te(keys_in_place, known, fresh, places.starts)


def from_place(context: Context, buffer: Expr, starts: Expr, length: Dim) -> Expr:
    """As many keys of a buffer from a place (batch) on, zeros behind its end."""
    batch, heads, _, features = context.shape(context.value(buffer), "key")

    def later_keys(keys: Tensor, first: Tensor) -> Tensor:
        def element(b: Var, h: Var, at: Var, i: Var) -> PrimExpr:
            place = at + first[b]
            zero = tir.const(0, keys.dtype)
            return tir.if_then_else(place < keys.shape[2], keys[b, h, place, i], zero)

        return compute([batch, heads, length, features], element, "later_keys")

    return context.builder.emit_te(later_keys, buffer, starts)


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
