"""Attention as com.microsoft has it: Attention, MultiHeadAttention, GroupQueryAttention, rotations.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md): a scale
of 0 is the default, 1 / sqrt(features). Tensors are (batch, length, heads, features) here.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import PrimExpr, constant_value
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.attention import split_heads, turned
from weft.relax.frontend.onnx.operators.microsoft_cache import (
    Places,
    cached,
    length_of,
    seen_keys,
)
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir

FILTER = -10000.0
"""What ONNX Runtime adds to the scores of keys that a mask leaves out."""


def _batch(context: Context, x: Expr) -> Dim:
    return length_of(context, x, 0)


def merged(context: Context, x: Expr) -> Expr:
    """(batch, length, heads * features)."""
    batch, length, heads, features = context.shape(context.value(x), "output")
    return context.emit(op.reshape(x, [batch, length, as_prim(heads) * as_prim(features)]))


def padding_bias(
    context: Context, mask: Value, keys: Dim, dtype: str, filler: float, batch: Dim
) -> Expr:
    """What a mask of keys adds to scores.

    Masks are flags (batch[, queries], keys), or (batch) where the keys of each sequence end, or
    (2 * batch) where they end and then where they begin.
    """
    emit = context.emit
    rank = context.rank(mask, "mask")
    if rank == 1:
        seen = _between(context, mask, keys, batch)
    elif rank in (2, 3):
        seen = context.as_type(mask.expr, "bool")
    else:
        context.fail(f"mask: expected 1 to 3 dimensions, got {rank}")
    axes = [1] if rank == 3 else [1, 2]
    return added_to_scores(context, emit(op.expand_dims(seen, axes)), dtype, filler)


def added_to_scores(context: Context, seen: Expr, dtype: str, filler: float) -> Expr:
    """What is added to scores: nothing where a key is seen, else a number far below."""
    zero, low = (context.constant(value, dtype).expr for value in (0.0, filler))
    return context.emit(op.where(seen, zero, low))


def _between(context: Context, mask: Value, keys: Dim, batch: Dim) -> Expr:
    """Which keys (batch, keys) stand before the ends, and behind the beginnings if there are."""
    emit = context.emit
    places = emit(op.reshape(emit(op.arange(0, keys, 1, "int64")), [1, keys]))
    limits = context.as_type(mask.expr, "int64")
    count = as_prim(context.shape(mask, "mask")[0])
    ends = emit(op.expand_dims(emit(op.strided_slice(limits, [0], [0], [batch])), 1))
    seen = emit(op.less(places, context.matched(ends, [batch, 1])))
    is_double = simplified(count == as_prim(batch) * 2)
    if constant_value(is_double) == 0 or constant_value(simplified(count == as_prim(batch))) == 1:
        return seen
    begin = simplified(tir.if_then_else(is_double, as_prim(batch), 0))
    begins = emit(op.strided_slice(limits, [0], [begin], [begin + as_prim(batch)]))
    begins = emit(op.expand_dims(context.matched(begins, [batch]), 1))
    if constant_value(is_double) is None:  # the run tells whether there are beginnings
        begins = emit(op.multiply(begins, context.dim_expr(_flag(is_double))))
    return emit(op.logical_and(seen, emit(op.less_equal(begins, places))))


def _flag(condition: PrimExpr) -> PrimExpr:
    """1 where a condition holds, else 0."""
    return simplified(tir.cast("int64", tir.if_then_else(condition, 1, 0)))


def _with_past(context: Context, parts: Sequence[Expr], past: Sequence[Expr]) -> list[Expr]:
    """Keys and values after those of the past, (batch, heads, length, features)."""
    return [
        context.emit(op.concat([turned(context, old), new], 1))
        for old, new in zip(past, parts, strict=True)
    ]


def _total(context: Context, biases: Sequence[Expr | None]) -> Expr | None:
    terms = [item for item in biases if item is not None]
    if not terms:
        return None
    total = terms[0]
    for item in terms[1:]:
        total = context.emit(op.add(total, item))
    return total


@converter("Attention", domain=MICROSOFT, ignores=["rotary_embedding_dim"],
           neutral={"do_rotary": (0,), "past_present_share_buffer": (0,)})  # fmt: skip
def attention(
    context: Context,
    x: Value,
    weights: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    past: Value | None = None,
    more: Value | None = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    scale: float | None = None,
    mask_filter_value: float = FILTER,
) -> list[Expr]:
    """Queries, keys and values by one product, then attention; the keys and values that it used."""
    whole = context.emit(op.matmul(x.expr, weights.expr))
    if bias is not None:
        whole = context.emit(op.add(whole, bias.expr))
    width = context.extent(weights, 1, "weights")
    sizes = list(qkv_hidden_sizes or [width // 3] * 3)
    return attention_of(
        context,
        whole,
        sizes,
        mask,
        past,
        more,
        num_heads,
        bool(unidirectional),
        scale,
        mask_filter_value,
    )


def attention_of(
    context: Context,
    whole: Expr,
    sizes: Sequence[int],
    mask: Value | None,
    past: Value | None,
    more: Value | None,
    heads: int,
    causal: bool,
    scale: float | None,
    filler: float,
) -> list[Expr]:
    """Attention of queries, keys and values that lie side by side, and the keys and values used."""
    emit = context.emit
    parts = emit(op.split(whole, [sizes[0], sizes[0] + sizes[1]], 2))
    q, k, v = (split_heads(context, context.value(parts[index]), heads) for index in range(3))
    if past is not None:
        old = [emit(op.take(past.expr, context.constant(i, "int64").expr, 0)) for i in range(2)]
        k, v = _with_past(context, [k, v], old)
    masked = None
    if mask is not None:
        dtype = str(whole.struct_info.dtype)
        masked = padding_bias(
            context, mask, length_of(context, k), dtype, filler, _batch(context, q)
        )
    bias = _total(context, [masked, None if more is None else more.expr])
    mixed = emit(op.nn.attention(q, k, v, bias, scale or None, "BottomRight" if causal else None))
    if not context.wants(1):
        return [merged(context, mixed)]
    return [merged(context, mixed), emit(op.stack([turned(context, k), turned(context, v)], 0))]


@converter("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(  # noqa: PLR0913 - the inputs and attributes of the operator
    context: Context,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    mask: Value | None = None,
    more: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_length: Value | None = None,
    indirection: Value | None = None,
    *,
    num_heads: int,
    scale: float | None = None,
    mask_filter_value: float = FILTER,
    unidirectional: int = 0,
) -> list[Expr]:
    """Attention of queries, keys and values, which may be packed; also the keys and values used."""
    emit, is_causal = context.emit, bool(unidirectional)
    if indirection is not None:
        context.fail("its input cache_indirection, of a search by beams, is not supported")
    q, k, v = _unpacked(context, (query, key, value), num_heads)
    if bias is not None:
        has_own = key is not None and key.rank == 4  # such keys and values have their bias
        q, k, v = (*_biased(context, [q] if has_own else [q, k, v], bias), k, v)[:3]
    past = None
    if past_key is not None and past_value is not None:
        past = (past_key, past_value)
    k, v, places = _with_all(context, (q, k, v), past, past_length)
    masked, keys = None, length_of(context, k)
    if mask is not None:
        flags = mask if places is None else _as_long(context, mask, keys)
        batch = _batch(context, q)
        masked = padding_bias(context, flags, keys, query.dtype, mask_filter_value, batch)
    order = "BottomRight" if is_causal and places is None else None
    unseen = None
    if places is not None:
        seen = seen_keys(context, places, length_of(context, q), is_causal, None)
        unseen = emit(op.expand_dims(added_to_scores(context, seen, query.dtype, FILTER), 1))
    bias_sum = _total(context, [masked, unseen, None if more is None else more.expr])
    mixed = merged(context, emit(op.nn.attention(q, k, v, bias_sum, scale or None, order)))
    present = [turned(context, k), turned(context, v)] if context.wants(1) else []
    return [mixed, *present]


@converter("DecoderMaskedMultiHeadAttention", domain=MICROSOFT,
           ignores=["past_present_share_buffer"], neutral={"output_qk": (0,)})  # fmt: skip
def decoder_masked_attention(  # noqa: PLR0913 - the inputs and attributes of the operator
    context: Context,
    query: Value,
    key: Value | None,
    value: Value | None,
    mask: Value | None = None,
    more: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_length: Value | None = None,
    beams: Value | None = None,  # noqa: ARG001 - of use with an indirection only
    indirection: Value | None = None,
    bias: Value | None = None,
    *,
    num_heads: int,
    scale: float | None = None,
    mask_filter_value: float = FILTER,
) -> list[Expr]:
    """MultiHeadAttention of one token, with its inputs in another order."""
    return multi_head_attention(
        context, query, key, value, bias, mask, more, past_key, past_value, past_length,
        indirection, num_heads=num_heads, scale=scale, mask_filter_value=mask_filter_value,
    )  # fmt: skip


def _with_all(
    context: Context,
    tensors: tuple[Expr, Expr, Expr],
    past: tuple[Value, Value] | None,
    past_length: Value | None,
) -> tuple[Expr, Expr, Places | None]:
    """Keys and values with those of the past: behind them, or in a buffer, whose places follow."""
    q, k, v = tensors
    if past is None:
        return k, v, None
    if past_length is None:
        k, v = _with_past(context, [k, v], [item.expr for item in past])
        return k, v, None
    count = context.emit(op.reshape(context.as_type(past_length.expr, "int64"), [1]))
    starts = context.emit(op.broadcast_to(count, [_batch(context, q)]))
    ends = context.emit(op.add(starts, context.dim_expr(length_of(context, q))))
    places = Places(starts, ends, context.shape(past[0], "past_key")[2])
    k, v = (
        cached(context, old, fresh, places, True) for old, fresh in zip(past, (k, v), strict=True)
    )
    return k, v, places


def _as_long(context: Context, mask: Value, keys: Dim) -> Value:
    """Flags for all places of a buffer, where there are such for those that are taken."""
    if context.rank(mask, "mask") == 1:
        return mask
    known = context.shape(mask, "mask")[-1]
    missing = simplified(as_prim(keys) - as_prim(known))
    return context.value(op.nn.pad(mask.expr, [*[0] * (2 * mask.rank - 1), missing]))


def _unpacked(context: Context, tensors: Sequence[Value | None], heads: int) -> list[Expr]:
    """Queries, keys and values from tensors of their own, or packed in one of five dimensions."""
    query, key, value = tensors
    assert query is not None
    if key is None:
        return _slices(context, query, 3)
    q = split_heads(context, query, heads)
    if value is None:
        return [q, *_slices(context, key, 2)]
    if key.rank == 4:
        return [q, turned(context, key.expr), turned(context, value.expr)]
    return [q, split_heads(context, key, heads), split_heads(context, value, heads)]


def _slices(context: Context, packed: Value, count: int) -> list[Expr]:
    if context.rank(packed, "query") != 5:
        context.fail(f"expected packed tensors of 5 dimensions, got {packed.rank}")
    return [
        context.emit(op.take(packed.expr, context.constant(index, "int64").expr, 3))
        for index in range(count)
    ]


def _biased(context: Context, parts: Sequence[Expr], bias: Value) -> list[Expr]:
    """The parts with their pieces of a bias."""
    sums, start = [], 0
    for part in parts:
        heads, features = (
            context.number(dim, bias, "bias") for dim in context.shape(context.value(part), "q")[2:]
        )
        end = start + heads * features
        piece = context.emit(op.strided_slice(bias.expr, [0], [start], [end]))
        piece = context.emit(op.reshape(piece, [heads, features]))
        sums.append(context.emit(op.add(part, piece)))
        start = end
    return sums


def packed_heads(
    context: Context, packed: Value, heads: int, owners: int
) -> tuple[Value, Value, Value]:
    """Queries, keys and values that lie side by side in one tensor."""
    features = context.extent(packed, 2, "query") // (heads + 2 * owners)
    places = [heads * features, (heads + owners) * features]
    parts = context.emit(op.split(packed.expr, places, 2))
    first, second, third = (context.value(parts[index]) for index in range(3))
    return first, second, third


def rotated(context: Context, x: Expr, tables: Sequence[Expr], interleaved: bool) -> Expr:
    """Features turned in pairs by angles: (length, pairs) or (batch, length, pairs) tables."""
    emit = context.emit
    dims = context.shape(context.value(x), "input")
    pairs = context.shape(context.value(tables[0]), "cos_cache")[-1]
    features = dims[3]
    cos, sin = (emit(op.expand_dims(table, table.struct_info.ndim - 1)) for table in tables)
    turned_part, rest = x, None
    width = pairs * 2
    if not (isinstance(features, int) and isinstance(width, int) and features == width):
        turned_part = emit(op.strided_slice(x, [3], [0], [width]))
        rest = emit(op.strided_slice(x, [3], [width], [features]))
    if interleaved:
        split = emit(op.reshape(turned_part, [*dims[:3], pairs, 2]))
        first, second = (
            emit(op.take(split, context.constant(index, "int64").expr, 4)) for index in range(2)
        )
    else:
        first = emit(op.strided_slice(turned_part, [3], [0], [pairs]))
        second = emit(op.strided_slice(turned_part, [3], [pairs], [width]))
    real = emit(op.subtract(emit(op.multiply(first, cos)), emit(op.multiply(second, sin))))
    imaginary = emit(op.add(emit(op.multiply(first, sin)), emit(op.multiply(second, cos))))
    if interleaved:
        joined = emit(op.reshape(emit(op.stack([real, imaginary], 4)), [*dims[:3], width]))
    else:
        joined = emit(op.concat([real, imaginary], 3))
    return joined if rest is None else emit(op.concat([joined, rest], 3))


@converter(
    "RotaryEmbedding",
    domain=MICROSOFT,
    ignores=["rotary_embedding_dim"],
    neutral={"is_packed_batching": (0,)},
)
def rotary_embedding(
    context: Context,
    x: Value,
    places: Value,
    cos: Value,
    sin: Value,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    scale: float = 1.0,
) -> Expr:
    """Features turned by the angles of their places (batch, length), or from a first place on.

    How many features are turned is twice the columns of the tables.
    """
    if scale != 1:
        context.fail(f"scale: expected 1, got {scale}")
    emit, rank = context.emit, context.rank(x, "input")
    if rank == 4:
        data = turned(context, x.expr)
    else:
        pairs = context.extent(cos, 1, "cos_cache")
        heads = num_heads or context.extent(x, 2, "input") // (2 * pairs)
        data = split_heads(context, x, heads)
    index = context.as_type(places.expr, "int64")
    if places.rank == 1:
        steps = emit(op.arange(0, length_of(context, data), 1, "int64"))
        index = emit(op.expand_dims(emit(op.add(steps, index)), 0))
    tables = [emit(op.take(item.expr, index, 0)) for item in (cos, sin)]
    features = rotated(context, data, tables, bool(interleaved))
    return turned(context, features) if rank == 4 else merged(context, features)
