"""Attention, of tensors (batch, length, heads, features). A query without a key gets zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import in_float64


def _allowed(
    length: int, keys: int, causal_mask: str | None, window_size: int | None
) -> Any:
    """The pairs that the masks leave, or None."""
    if causal_mask is None and window_size is None:
        return None
    i, j = np.mgrid[:length, :keys]
    i = i + (abs(keys - length) if causal_mask == "BottomRight" else 0)
    made = np.ones((length, keys), bool)
    if causal_mask is not None:
        made &= j <= i
    if window_size is not None:
        made &= j > i - window_size
    return made


def _attended(
    query: Any, key: Any, value: Any, bias: Any, scale: float | None, allowed: Any
) -> Any:
    heads = query.shape[2]
    q, k, v = [item.transpose(0, 2, 1, 3) for item in (query, key, value)]
    k, v = [np.repeat(item, heads // item.shape[1], 1) for item in (k, v)]
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    scores = scores if bias is None else scores + bias
    scores = scores if allowed is None else np.where(allowed, scores, -math.inf)
    if not scores.size:
        return np.zeros((*query.shape[:3], value.shape[3]))
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    total = powers.sum(-1, keepdims=True)
    return ((powers / np.where(total == 0, 1, total)) @ v).transpose(0, 2, 1, 3)


@in_float64
def attention(
    query: Any, key: Any, value: Any, bias: Any = None, scale: float | None = None,
    causal_mask: str | None = None, window_size: int | None = None,
) -> Any:  # fmt: skip
    """The values, weighted by the softmax of the scores."""
    allowed = _allowed(query.shape[1], key.shape[1], causal_mask, window_size)
    return _attended(query, key, value, bias, scale, allowed)


@in_float64
def attention_var_len(
    queries: Any, keys: Any, values: Any, seqstart_q: Any, seqstart_k: Any, *_lengths: Any,
    scale: float | None = None, causal_mask: str | None = None, window_size: int | None = None,
) -> Any:  # fmt: skip
    """Attention of each sequence by itself."""
    made = np.zeros((*queries.shape[:3], values.shape[3]))
    for number in range(len(seqstart_q) - 1):
        rows = slice(int(seqstart_q[number]), int(seqstart_q[number + 1]))
        own = slice(int(seqstart_k[number]), int(seqstart_k[number + 1]))
        made[:, rows] = attention(
            queries[:, rows], keys[:, own], values[:, own], None, scale, causal_mask, window_size
        )
    return made
