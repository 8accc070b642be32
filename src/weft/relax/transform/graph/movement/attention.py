"""Attention: removes the repetition of heads that share keys and values, and a bias of zeros."""

from __future__ import annotations

from typing import Final

from weft.relax import op
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, same_dim, same_dims
from weft.relax.transform.graph.movement.scope import (
    MOVEMENTS,
    PERMUTE,
    RESHAPE,
    Scope,
    axes_of,
    constant_of,
    dims_of,
    is_unit,
    permuted,
    producer,
)

_SWAP: Final = [0, 2, 1, 3]
"""(batch, heads, length, features) to (batch, length, heads, features)."""


@MOVEMENTS.of("nn.attention", "nn.attention_bias")
def attention(scope: Scope, call: Call) -> Expr | None:
    """The same attention without repeated heads and without a bias of zeros; None: unchanged."""
    query, key, value, *bias = call.args
    kept = [extent for extent in bias if not _is_zero(extent)]
    shared = _shared(scope, key, value)
    if len(kept) == len(bias) and shared is None:
        return None
    shared_key, shared_value = shared or (key, value)
    attrs = call.attrs
    scale, mask, window = attrs["scale"], attrs["causal_mask"], attrs["window_size"]
    left = kept[0] if kept else None
    return op.nn.attention(query, shared_key, shared_value, left, scale, mask, window)


def _is_zero(bias: Expr) -> bool:
    array = constant_of(bias)
    return array is not None and not array.any()


def _shared(scope: Scope, key: Expr, value: Expr) -> tuple[Expr, Expr] | None:
    """Keys and values before the repetition of heads, if it is the same for both."""
    keys, values = _before_repetition(scope, key), _before_repetition(scope, value)
    if keys is None or values is None:
        return None
    heads = [dims_of(keys), dims_of(values)]
    if heads[0] is None or heads[1] is None or not same_dim(heads[0][1], heads[1][1]):
        return None
    return permuted(scope, keys, _SWAP), permuted(scope, values, _SWAP)


def _before_repetition(scope: Scope, heads: Expr) -> Expr | None:
    """The tensor of (batch, owners, length, features) whose heads are repeated ``times`` times in
    a tensor of (batch, length, owners * times, features); None if it is no repetition.
    """
    outer = producer(scope, heads, PERMUTE)
    if outer is None or axes_of(outer) != _SWAP:
        return None
    merged = producer(scope, outer.args[0], RESHAPE)
    spread = None if merged is None else producer(scope, merged.args[0], "relax.broadcast_to")
    if merged is None or spread is None:
        return None
    wide, whole = dims_of(spread), dims_of(merged)
    narrow = dims_of(spread.args[0])
    if wide is None or whole is None or narrow is None or len(wide) != 5 or len(narrow) != 5:
        return None
    batch, owners, times, length, features = wide
    repeats = is_unit(narrow[2]) and constant_value(times) is not None
    alike = same_dims(narrow, [batch, owners, 1, length, features])
    joined = same_dims(whole, [batch, owners * times, length, features])
    if not (repeats and alike and joined):
        return None
    return scope.emit(op.reshape(spread.args[0], [batch, owners, length, features]))
