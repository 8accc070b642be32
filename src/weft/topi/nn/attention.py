"""Attention. Scores, weights and sums are float32 where the tensors are narrower.

A query whose mask allows no key gets zeros, as in PyTorch and in fused libraries.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from weft import te
from weft.ir.expr import Extent, PrimExpr, constant_value
from weft.te.tensor import Tensor
from weft.tir.expr import Select
from weft.tir.op import abs as tir_abs
from weft.tir.op import all as tir_all
from weft.tir.op import const as tir_const
from weft.tir.op import exp as tir_exp
from weft.tir.op import floordiv, if_then_else, min_value
from weft.tir.op import max as tir_max
from weft.tir.op import min as tir_min
from weft.topi import broadcast
from weft.topi import math as topi_math
from weft.topi.extents import is_const
from weft.topi.moments import wide
from weft.topi.simplify import simplified

_LARGER = te.comm_reducer(
    lambda x, y: Select(y > x, y, x), lambda kind: tir_const(-math.inf, kind), name="larger"
)
"""The largest score; one instruction, while ``te.max``, which propagates NaN, needs three."""

Allowed = Callable[[PrimExpr, PrimExpr], PrimExpr]
"""(i, j) -> whether the query at position i may see the key at position j."""
Shifted = Callable[[PrimExpr, PrimExpr, Extent], PrimExpr]
"""(i, j, shift) -> the same, with the diagonal shifted to the right."""


def masked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scale: float | None,
    allowed: Allowed | None,
    is_any_allowed: bool = True,
) -> Tensor:
    """softmax(query key^T * scale + bias) value, per batch and head.

    ``is_any_allowed`` says that the mask leaves at least one key for every query.
    """
    batch, length, heads, features = query.shape
    keys, kind, owner = key.shape[1], wide(query.dtype), _owner(heads, key.shape[2])
    feature = te.reduce_axis((0, features), name="feature")
    scores = te.compute(
        [batch, heads, length, keys],
        lambda b, h, i, j: te.sum(
            query(b, i, h, feature.var).astype(kind)
            * key(b, j, owner(h), feature.var).astype(kind),
            axis=feature,
        ),
        name="scores",
    )
    scores = _scaled(scores, scale, features)
    if bias is not None:
        bias = bias if bias.dtype == kind else topi_math.cast(bias, str(kind))
        scores = broadcast.add(scores, bias)
    if allowed is not None:
        scores = _masked(scores, allowed, min_value(kind))
    powers, total = _powers(scores)
    if allowed is not None and not is_any_allowed:
        powers = _masked(powers, allowed, tir_const(0, kind))
    out = _combined(powers, value, owner)
    share = te.compute(
        total.shape,
        lambda b, h, i: tir_const(1, kind) / _not_zero(total(b, h, i), keys),
        name="share",
    )
    return te.compute(
        out.shape,
        lambda b, i, h, d: (out(b, i, h, d) * share(b, h, i)).astype(query.dtype),
        name="attention",
    )


def _powers(scores: Tensor) -> tuple[Tensor, Tensor]:
    """exp(score - largest of its row), and their sum in every row.

    The largest score may miss a NaN; but the power of the NaN is NaN, and so is the sum.

    Instead of the powers, their products with the values are divided by the sums, as these have
    fewer elements (Dao, Fu, Ermon, Rudra and Re, "FlashAttention", NeurIPS 2022).
    """
    rows, keys = scores.shape[:3], scores.shape[3]
    seen, added = te.reduce_axis((0, keys), name="j"), te.reduce_axis((0, keys), name="j")
    top = te.compute(
        rows, lambda b, h, i: _LARGER(scores(b, h, i, seen.var), axis=seen), name="largest"
    )
    powers = te.compute(
        scores.shape, lambda b, h, i, j: tir_exp(scores(b, h, i, j) - top(b, h, i)), name="powers"
    )
    total = te.compute(
        rows, lambda b, h, i: te.sum(powers(b, h, i, added.var), axis=added), name="total"
    )
    return powers, total


def _combined(weights: Tensor, value: Tensor, owner: Callable[[PrimExpr], PrimExpr]) -> Tensor:
    """The sum of the values by their weights: (batch, length, heads, features)."""
    batch, heads, length, keys = weights.shape
    j = te.reduce_axis((0, keys), name="j")
    return te.compute(
        [batch, length, heads, value.shape[3]],
        lambda b, i, h, d: te.sum(
            weights(b, h, i, j.var) * value(b, j.var, owner(h), d).astype(weights.dtype), axis=j
        ),
        name="combined",
    )


def _not_zero(total: PrimExpr, keys: PrimExpr) -> PrimExpr:
    """A sum of powers as a divisor: 1 instead of 0 if there are no keys."""
    if constant_value(keys):
        return total  # the largest power is 1, so the sum is not 0
    return Select(total.equal(tir_const(0, total.dtype)), tir_const(1, total.dtype), total)


def _owner(heads: PrimExpr, owners: PrimExpr) -> Callable[[PrimExpr], PrimExpr]:
    """The function from a head of queries to its head of keys and values."""
    group = _group(heads, owners)
    return lambda head: head if group is None else floordiv(head, group)


def _group(heads: PrimExpr, owners: PrimExpr) -> Extent | None:
    """How many heads of queries share a head of keys; None if each has its own."""
    mine, its = constant_value(heads), constant_value(owners)
    if is_const(simplified(heads - owners), 0):
        return None
    return floordiv(heads, owners) if mine is None or not its else mine // its


def _scaled(scores: Tensor, scale: float | None, features: PrimExpr) -> Tensor:
    """Scores times the scale, by default 1 / sqrt(features)."""
    known = constant_value(features)
    if scale is None and known is None:
        width = te.compute([1], lambda i: features.astype(scores.dtype), name="width")
        return broadcast.divide(scores, topi_math.sqrt(width))
    factor = 1.0 / math.sqrt(known or 1) if scale is None else float(scale)
    return broadcast.multiply(scores, tir_const(factor, scores.dtype))


def _masked(scores: Tensor, allowed: Allowed, filler: PrimExpr) -> Tensor:
    """Scores, and the filler for forbidden pairs."""
    return te.compute(
        scores.shape,
        lambda b, h, i, j: if_then_else(allowed(i, j), scores(b, h, i, j), filler),
        name="masked",
    )


def _in_order(causal_mask: str | None, window: int | None) -> Shifted | None:
    """The condition of the masks on (i, j, how far the diagonal is shifted), or None."""
    if causal_mask is None and window is None:
        return None

    def condition(i: PrimExpr, j: PrimExpr, shift: Extent) -> PrimExpr:
        parts = []
        if causal_mask is not None:
            parts.append(j <= i + shift)
        if window is not None:
            parts.append(j > i + shift - window)
        return tir_all(*parts)

    return condition


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None,
    causal_mask: str | None,
    window_size: int | None,
) -> Tensor:
    """softmax(query key^T * scale) value."""
    return attention_bias(query, key, value, None, scale, causal_mask, window_size)


def attention_bias(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    scale: float | None,
    causal_mask: str | None,
    window_size: int | None,
) -> Tensor:
    """softmax(query key^T * scale + bias) value, for the pairs that the masks allow."""
    condition = _in_order(causal_mask, window_size)
    shift = tir_abs(key.shape[1] - query.shape[1]) if causal_mask == "BottomRight" else 0
    allowed = None if condition is None else lambda i, j: condition(i, j, shift)
    return masked_attention(query, key, value, bias, scale, allowed, window_size is None)


def _segment(starts: Tensor, length: PrimExpr, name: str) -> Tensor:
    """The number of the sequence that each position belongs to."""
    part = te.reduce_axis((0, starts.shape[0]), name=f"{name}_part")

    def number(i: PrimExpr) -> PrimExpr:
        begun = Select(starts(part.var).astype("int64") <= i.astype("int64"), 1, 0)
        return te.sum(begun.astype("int32"), axis=part)

    return te.compute([length], number, name=name)


def attention_var_len(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts_q: Tensor,
    starts_k: Tensor,
    scale: float | None,
    causal_mask: str | None,
    window_size: int | None,
) -> Tensor:
    """Attention in which a query sees the keys of its own sequence."""
    condition, shifted = _in_order(causal_mask, window_size), causal_mask == "BottomRight"
    mine = _segment(starts_q, query.shape[1], "sequence_q")
    its = _segment(starts_k, key.shape[1], "sequence_k")

    def begin(starts: Tensor, number: PrimExpr) -> PrimExpr:
        return starts(tir_max(number - 1, 0)).astype("int64")

    def extent(starts: Tensor, number: PrimExpr) -> PrimExpr:
        end = starts(tir_min(number, starts.shape[0].astype("int32") - 1)).astype("int64")
        return end - begin(starts, number)

    def allowed(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        number = mine(i)  # 0 before the first sequence, the length of starts after the last
        same = tir_all(its(j) == number, number > 0, number < starts_q.shape[0])
        if condition is None:
            return same
        shift = tir_abs(extent(starts_k, number) - extent(starts_q, number)) if shifted else 0
        row, column = i - begin(starts_q, number), j - begin(starts_k, number)
        return tir_all(same, condition(row, column, shift))

    return masked_attention(query, key, value, None, scale, allowed, is_any_allowed=False)
