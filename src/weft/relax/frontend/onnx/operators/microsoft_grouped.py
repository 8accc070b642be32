"""GroupQueryAttention of com.microsoft: keys in a buffer, windows, soft caps, sinks.

Its meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md) and of its
kernels for CPUs. Tensors are (batch, length, heads, features) here, those of the past and present
(batch, heads, length, features).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.attention import split_heads, turned
from weft.relax.frontend.onnx.operators.microsoft_attention import (
    FILTER,
    added_to_scores,
    merged,
    packed_heads,
    padding_bias,
    rotated,
)
from weft.relax.frontend.onnx.operators.microsoft_cache import (
    Places,
    cached,
    length_of,
    queries_of,
    rows_at,
    seen_keys,
)
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir


class GroupedAttributes(TypedDict, total=False):
    """The attributes of a node, but its numbers of heads."""

    scale: float
    do_rotary: int
    rotary_interleaved: int
    local_window_size: int
    softcap: float
    smooth_softmax: int
    causal: int
    sliding_window_cache: int


@converter(
    "GroupQueryAttention",
    domain=MICROSOFT,
    ignores=["qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"],
    neutral={
        "qk_output": (0,), "kv_cache_bit_width": (0,), "k_quant_type": ("NONE",),
        "v_quant_type": ("NONE",),
    },
)  # fmt: skip
def group_query_attention(  # noqa: PLR0913 - the inputs of the operator
    context: Context,
    query: Value,
    key: Value | None,
    value: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    lengths: Value,
    total: Value | None = None,
    cos: Value | None = None,
    sin: Value | None = None,
    positions: Value | None = None,
    bias: Value | None = None,
    sink: Value | None = None,
    *others: Value | None,
    num_heads: int,
    kv_num_heads: int,
    **how: Unpack[GroupedAttributes],
) -> list[Expr]:
    """Causal attention with fewer heads of keys; ``lengths`` is each sequence's length less 1."""
    if any(item is not None for item in others):
        context.fail("its inputs after head_sink (scales, norms, lengths) are not supported")
    if key is None or value is None:
        query, key, value = packed_heads(context, query, num_heads, kv_num_heads)
    q = split_heads(context, query, num_heads)
    k, v = (split_heads(context, item, kv_num_heads) for item in (key, value))
    places = _places(context, q, past_key, lengths, total)
    if how.get("do_rotary"):
        tables = _tables(context, q, (cos, sin), positions, places)
        turns = bool(how.get("rotary_interleaved"))
        q, k = (rotated(context, item, tables, turns) for item in (q, k))
    past = None if past_key is None or past_value is None else (past_key, past_value)
    if how.get("sliding_window_cache"):
        places, present, k, v = _in_window(context, (k, v), past, places, how)
        if bias is not None:
            context.fail("its input attention_bias is not supported with sliding_window_cache=1")
    elif past is None or places.starts is None:
        present = [turned(context, k), turned(context, v)]
    else:
        k, v = (cached(context, *pair, places, False) for pair in zip(past, (k, v), strict=True))
        present = [turned(context, k), turned(context, v)]
    return [merged(context, _mixed(context, (q, k, v), places, bias, sink, how)), *present]


def _in_window(
    context: Context,
    fresh: tuple[Expr, Expr],
    past: tuple[Value, Value] | None,
    places: Places,
    how: GroupedAttributes,
) -> tuple[Places, list[Expr], Expr, Expr]:
    """Keys and values of which the buffers keep the last ones only, and where they lie.

    How many stay after a step follows from how many there have been: a full buffer loses as many
    at once as it has places beyond the window.
    """
    if past is None or places.starts is None:
        context.fail("sliding_window_cache=1: its inputs past_key and past_value are missing")
    emit, capacity = context.emit, context.shape(past[0], "past_key")[2]
    length = length_of(context, fresh[0])
    window = how.get("local_window_size", -1)
    before = _resident(context, places.starts, capacity, window)
    added = emit(op.subtract(places.counts, places.starts))
    counts = emit(op.add(before, added))
    inner = Places(before, counts, simplified(as_prim(capacity) + as_prim(length)))
    k, v = (cached(context, *pair, inner, False) for pair in zip(past, fresh, strict=True))
    kept = _resident(context, places.counts, capacity, window)
    dropped = emit(op.expand_dims(emit(op.subtract(counts, kept)), 1))
    numbers = emit(op.expand_dims(emit(op.arange(0, capacity, 1, "int64")), 0))
    last = emit(op.add(numbers, dropped))
    return inner, [turned(context, rows_at(context, item, last)) for item in (k, v)], k, v


def _resident(context: Context, counts: Expr, capacity: Dim, window: int) -> Expr:
    """How many of the last keys a buffer keeps, of as many as there have been."""
    emit = context.emit
    group = simplified(as_prim(capacity) - window + 1)
    beyond = emit(op.subtract(counts, context.dim_expr(simplified(as_prim(capacity) - group + 1))))
    groups = emit(op.floor_divide(beyond, context.dim_expr(group)))
    lost = emit(op.multiply(emit(op.maximum(groups, context.dim_expr(0))), context.dim_expr(group)))
    return emit(op.subtract(counts, lost))


def _places(
    context: Context, q: Expr, past: Value | None, lengths: Value, total: Value | None
) -> Places:
    emit = context.emit
    fresh = length_of(context, q)
    counts = emit(op.add(context.as_type(lengths.expr, "int64"), context.dim_expr(1)))
    counts = emit(op.reshape(counts, [-1]))
    before: Dim = 0 if past is None else context.shape(past, "past_key")[2]
    if isinstance(before, int) and before == 0:
        return Places(None, counts, fresh)
    whole = simplified(as_prim(before) + as_prim(fresh))
    end = whole if total is None else context.sizes(total, "total_sequence_length")[0]
    # a call with as many tokens as there are in all begins at the front, however long the past is
    is_later = tir.if_then_else(as_prim(fresh) == as_prim(end), 0, 1)
    earlier = emit(op.subtract(counts, context.dim_expr(fresh)))
    starts = emit(op.multiply(earlier, context.dim_expr(simplified(tir.cast("int64", is_later)))))
    return Places(starts, counts, simplified(tir.max(as_prim(before), as_prim(end))))


def _tables(
    context: Context,
    q: Expr,
    tables: tuple[Value | None, Value | None],
    positions: Value | None,
    places: Places,
) -> list[Expr]:
    """The rows of cos and sin for the places of a call: (length, pairs), or one for each batch."""
    emit, length = context.emit, length_of(context, q)
    cos, sin = tables
    if cos is None or sin is None:
        context.fail("do_rotary: its inputs cos_cache and sin_cache are missing")
    if positions is None and places.starts is None:
        rows = [emit(op.strided_slice(item.expr, [0], [0], [length])) for item in (cos, sin)]
        # checked when it runs: the tables hold as many places as there are
        return [context.matched(item, [length, length_of(context, item)]) for item in rows]
    if positions is not None:
        index = context.as_type(positions.expr, "int64")
    else:
        index = queries_of(context, places, length)
    return [emit(op.take(item.expr, index, 0)) for item in (cos, sin)]


def _mixed(
    context: Context,
    tensors: tuple[Expr, Expr, Expr],
    places: Places,
    bias: Value | None,
    sink: Value | None,
    how: GroupedAttributes,
) -> Expr:
    """Attention; in a kernel of one piece where Relax's operator says what is asked for."""
    q, k, v = tensors
    size, is_causal = how.get("local_window_size", -1), bool(how.get("causal", 1))
    window = size if size > 0 else None
    softcap, scale = how.get("softcap", 0.0), how.get("scale") or None
    smooth = how.get("smooth_softmax", 0) > 0
    is_plain = not (softcap or smooth or sink is not None)
    dtype = str(q.struct_info.dtype)
    if is_plain and is_causal and places.starts is None:
        ends = context.value(places.counts)
        batch = length_of(context, q, 0)
        masked = padding_bias(context, ends, places.length, dtype, FILTER, batch)
        added = _with_bias(context, masked, bias, places.length)
        return context.emit(op.nn.attention(q, k, v, added, scale, "BottomRight", window))
    seen = seen_keys(context, places, length_of(context, q), is_causal, window)
    masked = context.emit(op.expand_dims(added_to_scores(context, seen, dtype, FILTER), 1))
    added = _with_bias(context, masked, bias, places.length)
    if is_plain:
        return context.emit(op.nn.attention(q, k, v, added, scale))
    sinks = sink.expr if sink is not None else context.constant([0.0], dtype).expr
    return _explicit(context, tensors, added, scale, softcap, sinks if smooth or sink else None)


def _with_bias(context: Context, masked: Expr, bias: Value | None, keys: Dim) -> Expr:
    """A mask and a bias for as many keys as there are; buffers may have more places than it."""
    if bias is None:
        return masked
    known, given = context.shape(bias, "attention_bias")[3], bias.expr
    missing = simplified(as_prim(keys) - as_prim(known))
    if getattr(missing, "value", None) != 0:
        given = context.emit(op.nn.pad(given, [*[0] * 7, missing]))
    return context.emit(op.add(masked, given))


def _explicit(
    context: Context,
    tensors: tuple[Expr, Expr, Expr],
    bias: Expr,
    scale: float | None,
    softcap: float,
    sinks: Expr | None,
) -> Expr:
    """Attention step by step: a soft cap on the scores, and a sink beside the keys."""
    emit = context.emit
    q, k, v = tensors
    dtype = str(q.struct_info.dtype)
    batch, queries, heads, features = context.shape(context.value(q), "query")
    owners = context.number(length_of(context, k, 2), context.value(k), "key")
    group = context.number(heads, context.value(q), "query") // owners
    grouped = emit(op.reshape(q, [batch, queries, owners, group, features]))
    rows = emit(op.permute_dims(grouped, [0, 2, 3, 1, 4]))
    columns = emit(op.expand_dims(emit(op.permute_dims(k, [0, 2, 3, 1])), 2))
    factor = scale or context.number(features, context.value(q), "query") ** -0.5
    scores = emit(op.multiply(emit(op.matmul(rows, columns)), context.constant(factor, dtype).expr))
    if softcap:
        cap = context.constant(softcap, dtype).expr
        scores = emit(op.multiply(emit(op.tanh(emit(op.divide(scores, cap)))), cap))
    scores = emit(op.add(scores, _by_group(context, bias, owners, group)))
    shares = _shares(context, scores, sinks, (owners, group))
    values = emit(op.expand_dims(emit(op.permute_dims(v, [0, 2, 1, 3])), 2))
    mixed = emit(op.permute_dims(emit(op.matmul(shares, values)), [0, 3, 1, 2, 4]))
    return emit(op.reshape(mixed, [batch, queries, heads, features]))


def _by_group(context: Context, bias: Expr, owners: int, group: int) -> Expr:
    """A bias (batch, heads or 1, queries, keys) with its heads in groups."""
    batch, heads, queries, keys = context.shape(context.value(bias), "attention_bias")
    apart = [1, 1] if isinstance(heads, int) and heads == 1 else [owners, group]
    return context.emit(op.reshape(bias, [batch, *apart, queries, keys]))


def _shares(context: Context, scores: Expr, sinks: Expr | None, heads: Sequence[int]) -> Expr:
    """The softmax over the keys, and the sink of a head if there is one, which gets no value."""
    emit = context.emit
    if sinks is None:
        return emit(op.nn.softmax(scores, -1))
    shape = context.shape(context.value(scores), "scores")
    count = context.number(context.shape(context.value(sinks), "head_sink")[0],
                           context.value(sinks), "head_sink")  # fmt: skip
    apart = [1, *([1, 1] if count == 1 else heads), 1, 1]
    column = emit(op.broadcast_to(emit(op.reshape(sinks, apart)), [*shape[:-1], 1]))
    whole = emit(op.nn.softmax(emit(op.concat([scores, column], -1)), -1))
    return emit(op.strided_slice(whole, [4], [0], [shape[-1]]))
