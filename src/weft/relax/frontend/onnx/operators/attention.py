"""Attention (opset 23 on) on Relax's own operator, with extents of any kind.

What Relax's operator does not have (soft caps, windows, lengths without padding, the scores as a
result, sums in 16 bits) is expanded by ONNX's own definition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict, Unpack

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import FLOAT, SMALL
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Dim, Result, Value, as_prim
from weft.relax.ir.shape_arith import simplified
from weft.tir import op as tir

MINUS_INFINITY = -math.inf


class AttentionAttributes(TypedDict, total=False):
    """The attributes of a node."""

    is_causal: int
    kv_num_heads: int
    left_window_size: int
    q_num_heads: int
    qk_matmul_output_mode: int
    right_window_size: int
    scale: float
    softcap: float
    softmax_precision: int


@converter("Attention", since=23)
def attention(
    context: Context,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
    **attributes: Unpack[AttentionAttributes],
) -> Result:
    """softmax(query key^T * scale + mask) value, and keys and values with those of the past."""
    inputs = [query, key, value, mask, past_key, past_value, lengths]
    if lengths is not None or _needs_expansion(context, query, attributes):
        while inputs and inputs[-1] is None:
            inputs.pop()
        return context.translator.expanded(context, inputs)
    rank = context.rank(query, "Q")
    owners = attributes.get("kv_num_heads")
    heads = [attributes.get("q_num_heads"), owners, owners]
    q, k, v = (
        split_heads(context, item, count) if rank == 3 else turned(context, item.expr)
        for item, count in zip((query, key, value), heads, strict=True)
    )
    offset: Dim = 0
    if past_key is not None and past_value is not None:
        offset = context.shape(past_key, "past_key")[2]
        k = context.emit(op.concat([turned(context, past_key.expr), k], 1))
        v = context.emit(op.concat([turned(context, past_value.expr), v], 1))
    causal = bool(attributes.get("is_causal"))
    mixed = attended(context, (q, k, v), (mask, offset), (attributes.get("scale"), causal))
    if rank == 3:
        shape = context.shape(context.value(mixed), "Y")
        merged = as_prim(shape[2]) * as_prim(shape[3])
        result = context.emit(op.reshape(mixed, [shape[0], shape[1], merged]))
    else:
        result = turned(context, mixed)
    return [result, turned(context, k), turned(context, v)]


def _needs_expansion(context: Context, query: Value, attributes: AttentionAttributes) -> bool:
    narrow = query.dtype not in ("float32", "float64")
    dims = query.shape or []
    return (
        context.wants(3)
        or bool(attributes.get("softcap"))
        or attributes.get("softmax_precision") not in (None, FLOAT)
        or attributes.get("left_window_size", -1) >= 0
        or attributes.get("right_window_size", -1) >= 0
        or (narrow and all(isinstance(dim, int) for dim in dims))
    )


def turned(context: Context, x: Expr) -> Expr:
    """From (batch, heads, length, features) to (batch, length, heads, features), and back."""
    return context.emit(op.permute_dims(x, [0, 2, 1, 3]))


def split_heads(context: Context, x: Value, heads: int | None) -> Expr:
    """(batch, length, heads * features) as (batch, length, heads, features)."""
    if not heads:
        context.fail("expected the number of heads for tensors of 3 dimensions")
    batch, length, width = context.shape(x, "input")
    features = width // heads if isinstance(width, int) else tir.floordiv(as_prim(width), heads)
    return context.emit(op.reshape(x.expr, [batch, length, heads, features]))


def attended(
    context: Context,
    tensors: Sequence[Expr],
    masks: tuple[Value | None, Dim],
    how: tuple[float | None, bool],
) -> Expr:
    """Attention of (batch, length, heads, features); a query that may see no key gives 0.

    ``masks`` are the mask (booleans, or what is added to scores; up to 4 dimensions) and how many
    keys come before the first query; ``how`` the scale and whether queries see no later keys.
    """
    (mask, offset), (scale, causal) = masks, how
    q, k, v = tensors
    if mask is None:
        order = None
        if causal:
            order = "TopLeft" if isinstance(offset, int) and offset == 0 else "BottomRight"
        return context.emit(op.nn.attention(q, k, v, None, scale, order))
    bias = mask_bias(context, mask, (q, k), offset if causal else None)
    mixed = context.emit(op.nn.attention(q, k, v, bias, scale))
    lowest = context.emit(op.max(bias, [3], True))
    limit = context.constant(MINUS_INFINITY, str(q.struct_info.dtype)).expr
    blind = context.emit(op.equal(lowest, limit))
    blind = context.emit(op.permute_dims(blind, [0, 2, 1, 3]))
    zero = context.constant(0, str(q.struct_info.dtype)).expr
    return context.emit(op.where(blind, zero, mixed))


def mask_bias(
    context: Context, mask: Value, tensors: tuple[Expr, Expr], offset: Dim | None
) -> Expr:
    """What a mask adds to scores: (batch or 1, heads or 1, queries or 1, keys).

    Keys after the mask's end, and with an offset those after the query's place, are forbidden.
    """
    context.refuse_small(*([mask] if mask.elem in SMALL else []))
    kind = str(tensors[0].struct_info.dtype)
    queries, keys = (context.shape(context.value(item), "input")[1] for item in tensors)
    missing, emit = 4 - context.rank(mask, "attn_mask"), context.emit
    mask_expr = mask.expr
    if missing:
        mask_expr = emit(op.expand_dims(mask_expr, list(range(missing))))
    known = context.shape(context.value(mask_expr), "attn_mask")[3]
    lowest = context.constant(MINUS_INFINITY, kind).expr
    if mask.dtype == "bool":
        bias = emit(op.where(mask_expr, context.constant(0, kind).expr, lowest))
    else:
        bias = mask_expr if mask.dtype == kind else emit(op.astype(mask_expr, kind))
    if not _same(known, keys):
        missing_keys = simplified(as_prim(keys) - as_prim(known))
        bias = emit(op.nn.pad(bias, [*[0] * 7, missing_keys], "constant", MINUS_INFINITY))
    if offset is None:
        return bias
    last = emit(op.arange(as_prim(queries), dtype="int64")) + context.dim_expr(offset)
    seen = op.less_equal(
        emit(op.arange(as_prim(keys), dtype="int64")), emit(op.expand_dims(emit(last), [1]))
    )
    return emit(op.where(emit(seen), bias, lowest))


def _same(lhs: Dim, rhs: Dim) -> bool:
    return lhs is rhs or (isinstance(lhs, int) and isinstance(rhs, int) and lhs == rhs)
