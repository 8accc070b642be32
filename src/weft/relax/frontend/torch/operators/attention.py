"""Scaled dot product attention (Vaswani et al., 2017), as torch's functions and its fused forms."""

from __future__ import annotations

import math

from weft.ir.expr import Extent
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.errors import UnsupportedError

_ORDER = [0, 2, 1, 3]


@converter("aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(
    context: Context,
    query: Expr,
    key: Expr,
    value: Expr,
    attn_mask: Expr | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Expr:
    """softmax(query key^T * scale + mask) value.

    A query whose mask allows no key (False, or -inf, for all of them) gets zeros.
    """
    _check_dropout(dropout_p)
    shape = context.shape
    batch = shape[:-3]
    mask = None if attn_mask is None else _four_dimensional(context, attn_mask, batch)
    bias = None if mask is None else _as_bias(context, mask, key, context.dtype_of(query))
    q, k, v = (_by_length(context, tensor, batch) for tensor in (query, key, value))
    factor, causal = None if scale is None else float(scale), "TopLeft" if is_causal else None
    by_length = context.emit(op.nn.attention(q, k, v, bias, factor, causal))
    mixed = context.emit(op.permute_dims(by_length, _ORDER))
    if mask is not None:
        mixed = _without_blind_rows(context, mixed, mask)
    return mixed if len(shape) == 4 else op.reshape(mixed, shape)


def _check_dropout(probability: float) -> None:
    if probability:
        raise UnsupportedError(
            f"scaled_dot_product_attention: dropout_p={probability} drops weights at random; "
            "call model.eval() before the model is captured"
        )


def _by_length(context: Context, tensor: Expr, batch: list[Extent]) -> Expr:
    """(batch, length, heads, features) of (..., heads, length, features)."""
    dims = context.dims(tensor)
    if len(dims) == 2:
        dims = [1, *dims]
    if len(dims) != 4 or len(context.dims(tensor)) != 4:
        tensor = op.reshape(tensor, [product(batch), *dims[-3:]])
    return context.emit(op.permute_dims(tensor, _ORDER))


def product(extents: list[Extent]) -> Extent:
    """The product of extents; 1 of none."""
    total: Extent = 1
    for extent in extents:
        total = total * extent
    return total


def _four_dimensional(context: Context, mask: Expr, batch: list[Extent]) -> Expr:
    """A mask with (batch or 1, heads or 1, queries or 1, keys or 1)."""
    dims = context.dims(mask)
    if len(dims) < 4:
        return context.emit(op.reshape(mask, [*[1] * (4 - len(dims)), *dims]))
    if len(dims) == 4:
        return mask
    spread = op.broadcast_to(mask, [*batch, *dims[-3:]])
    return context.emit(op.reshape(spread, [product(batch), *dims[-3:]]))


def _as_bias(context: Context, mask: Expr, key: Expr, dtype: str) -> Expr:
    """What is added to the scores: nothing where a boolean mask allows, else the lowest number."""
    if context.dtype_of(mask) == "bool":
        lowest = -65504.0 if dtype == "float16" else -1e30
        mask = context.emit(
            op.where(mask, context.operand(0.0, dtype), context.operand(lowest, dtype))
        )
    mask = context.cast(mask, dtype)
    dims, keys = context.dims(mask), context.dims(key)[-2]
    if isinstance(dims[3], int) and dims[3] == 1 and not (isinstance(keys, int) and keys == 1):
        mask = context.emit(op.broadcast_to(mask, [*dims[:3], keys]))
    return mask


def _without_blind_rows(context: Context, mixed: Expr, mask: Expr) -> Expr:
    """Zeros for queries that may look at no key."""
    if context.dtype_of(mask) == "bool":
        mask = context.emit(op.astype(mask, "int8"))
    dtype = context.dtype_of(mask)
    blind = context.operand(0 if dtype == "int8" else -math.inf, dtype)
    sees = op.greater(op.max(mask, [3], keepdims=True), blind)
    return context.emit(op.where(sees, mixed, context.operand(0, context.dtype_of(mixed))))


@converter("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention_for_cpu(
    context: Context,
    query: Expr,
    key: Expr,
    value: Expr,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Expr | None = None,
    scale: float | None = None,
) -> list[Expr | None]:
    """(attention, logarithm of each query's sum of exponentials)."""
    mixed = scaled_dot_product_attention(
        context, query, key, value, attn_mask, dropout_p, is_causal, scale
    )
    sums = _log_sums(context, query, key, attn_mask, (is_causal, scale))
    return [context.emit(mixed), sums]


def _log_sums(
    context: Context, query: Expr, key: Expr, mask: Expr | None, how: tuple[bool, float | None]
) -> Expr | None:
    if not context.is_read(1):
        return None
    is_causal, scale = how
    shape, dtype = context.results[1]
    factor = 1 / math.sqrt(expect(context.dims(query)[-1], int)) if scale is None else scale
    shared, heads = context.dims(query)[1], context.dims(key)[1]
    if shared is not heads and shared != heads:
        key = context.emit(op.repeat(key, expect(shared, int) // expect(heads, int), 1))
    products = op.matmul(query, op.permute_dims(key, [0, 1, 3, 2]), out_dtype=dtype)
    scores = context.emit(op.multiply(products, context.operand(factor, dtype)))
    if mask is not None:
        bias = _as_bias(context, _four_dimensional(context, mask, []), key, dtype)
        scores = context.emit(op.add(scores, bias))
    if is_causal:
        allowed = op.tril(op.ones_like(scores), 0)
        low = context.operand(-1e30, dtype)
        scores = context.emit(op.where(op.greater(allowed, context.operand(0, dtype)), scores, low))
    top = context.emit(op.max(scores, [-1], keepdims=True))
    total = op.sum(op.exp(op.subtract(scores, top)), [-1], keepdims=True)
    return op.reshape(op.add(op.log(total), top), shape)
