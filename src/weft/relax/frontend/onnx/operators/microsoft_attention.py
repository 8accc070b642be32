"""Attention as com.microsoft has it: Attention, MultiHeadAttention, GroupQueryAttention, rotations.

Their meaning is that of ONNX Runtime's operator documentation (docs/ContribOperators.md): a scale
of 0 is the default, 1 / sqrt(features). Tensors are (batch, length, heads, features) here.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.attention import split_heads, turned
from weft.relax.frontend.onnx.registry import MICROSOFT, converter
from weft.relax.frontend.onnx.value import Dim, Value, as_prim
from weft.relax.ir.shape_arith import simplified

FILTER = -10000.0
"""What ONNX Runtime adds to the scores of keys that a mask leaves out."""


def _length(context: Context, x: Expr, axis: int = 1) -> Dim:
    return context.shape(context.value(x), "input")[axis]


def _batch(context: Context, x: Expr) -> Dim:
    return _length(context, x, 0)


def _merged(context: Context, x: Expr) -> Expr:
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
    seen = emit(op.expand_dims(seen, axes))
    zero, low = (context.constant(value, dtype).expr for value in (0.0, filler))
    return emit(op.where(seen, zero, low))


def _between(context: Context, mask: Value, keys: Dim, batch: Dim) -> Expr:
    """Which keys (batch, keys) stand before the ends, and behind the beginnings if there are."""
    emit = context.emit
    places = emit(op.reshape(emit(op.arange(0, keys, 1, "int64")), [1, keys]))
    limits = context.as_type(mask.expr, "int64")
    (count,) = context.shape(mask, "mask")
    is_double = getattr(simplified(as_prim(count) - as_prim(batch) * 2), "value", None) == 0
    if not is_double:
        return emit(op.less(places, emit(op.expand_dims(limits, 1))))
    columns = emit(op.expand_dims(emit(op.reshape(limits, [2, batch])), 2))
    ends, begins = (
        emit(op.take(columns, context.constant(index, "int64").expr, 0)) for index in range(2)
    )
    return emit(op.logical_and(emit(op.less(places, ends)), emit(op.less_equal(begins, places))))


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
        masked = padding_bias(context, mask, _length(context, k), dtype, filler, _batch(context, q))
    bias = _total(context, [masked, None if more is None else more.expr])
    mixed = emit(op.nn.attention(q, k, v, bias, scale or None, "BottomRight" if causal else None))
    if not context.wants(1):
        return [_merged(context, mixed)]
    return [_merged(context, mixed), emit(op.stack([turned(context, k), turned(context, v)], 0))]


@converter("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    context: Context,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    mask: Value | None = None,
    more: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    *,
    num_heads: int,
    scale: float | None = None,
    mask_filter_value: float = FILTER,
    unidirectional: int = 0,
) -> list[Expr]:
    """Attention of queries, keys and values, which may be packed; also the keys and values used."""
    emit = context.emit
    parts = _unpacked(context, (query, key, value), num_heads)
    if bias is not None:
        parts = _biased(context, parts, bias)
    q, k, v = parts
    if past_key is not None and past_value is not None:
        k, v = _with_past(context, [k, v], [past_key.expr, past_value.expr])
    masked = None
    if mask is not None:
        masked = padding_bias(
            context, mask, _length(context, k), query.dtype, mask_filter_value, _batch(context, q)
        )
    bias_sum = _total(context, [masked, None if more is None else more.expr])
    order = "BottomRight" if unidirectional else None
    mixed = _merged(context, emit(op.nn.attention(q, k, v, bias_sum, scale or None, order)))
    present = [turned(context, k), turned(context, v)] if context.wants(1) else []
    return [mixed, *present]


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


@converter("GroupQueryAttention", domain=MICROSOFT,
           neutral={"softcap": (0.0,), "smooth_softmax": (0, -1), "qk_output": (0,)})  # fmt: skip
def group_query_attention(  # noqa: PLR0913 - the inputs and attributes of the operator
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
    *,
    num_heads: int,
    kv_num_heads: int,
    scale: float | None = None,
    do_rotary: int = 0,
    rotary_interleaved: int = 0,
    local_window_size: int = -1,
) -> list[Expr]:
    """Causal attention with fewer heads of keys; ``lengths`` is each sequence's length less 1."""
    emit = context.emit
    if key is None or value is None:
        query, key, value = _packed_heads(context, query, num_heads, kv_num_heads)
    q = split_heads(context, query, num_heads)
    k, v = (split_heads(context, item, kv_num_heads) for item in (key, value))
    offset: Dim = 0 if past_key is None else context.shape(past_key, "past_key")[2]
    if do_rotary:
        assert cos is not None
        assert sin is not None
        length = _length(context, q)
        end = simplified(as_prim(offset) + as_prim(length))
        rows = [emit(op.strided_slice(item.expr, [0], [offset], [end])) for item in (cos, sin)]
        # checked when it runs: the tables hold as many places as there are
        tables = [context.matched(item, [length, _length(context, item)]) for item in rows]
        q, k = (rotated(context, item, tables, bool(rotary_interleaved)) for item in (q, k))
    if past_key is not None and past_value is not None:
        k, v = _with_past(context, [k, v], [past_key.expr, past_value.expr])
    counts = emit(op.add(lengths.expr, context.constant(1, lengths.dtype).expr))
    ends = context.value(op.reshape(counts, [-1]))
    bias = padding_bias(context, ends, _length(context, k), query.dtype, FILTER, _batch(context, q))
    window = local_window_size if local_window_size > 0 else None
    mixed = emit(op.nn.attention(q, k, v, bias, scale or None, "BottomRight", window))
    return [_merged(context, mixed), turned(context, k), turned(context, v)]


def _packed_heads(
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
        steps = emit(op.arange(0, _length(context, data), 1, "int64"))
        index = emit(op.expand_dims(emit(op.add(steps, index)), 0))
    tables = [emit(op.take(item.expr, index, 0)) for item in (cos, sin)]
    features = rotated(context, data, tables, bool(interleaved))
    return turned(context, features) if rank == 4 else _merged(context, features)
