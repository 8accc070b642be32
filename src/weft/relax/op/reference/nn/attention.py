"""Attention of tensors (batch, length, heads, features). A query without any key gives zeros."""

from __future__ import annotations

import math

import numpy as np

from weft.relax.op.reference.rule import in_float64


def _allowed(
    length: int, keys: int, causal_mask: str | None, window_size: int | None
) -> np.ndarray | None:
    """The matrix (query, key) of pairs that the masks allow; None if there is no mask."""
    if causal_mask is None and window_size is None:
        return None
    i, j = np.mgrid[:length, :keys]
    i = i + (abs(keys - length) if causal_mask == "BottomRight" else 0)
    allowed = np.ones((length, keys), bool)
    if causal_mask is not None:
        allowed &= j <= i
    if window_size is not None:
        allowed &= j > i - window_size
    return allowed


def _attended(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    bias: np.ndarray | None,
    scale: float | None,
    allowed: np.ndarray | None,
) -> np.ndarray:
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
    return np.asarray(((powers / np.where(total == 0, 1, total)) @ v).transpose(0, 2, 1, 3))


@in_float64
def attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    bias: np.ndarray | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> np.ndarray:
    """The values, weighted by the softmax of the scores."""
    allowed = _allowed(query.shape[1], key.shape[1], causal_mask, window_size)
    return _attended(query, key, value, bias, scale, allowed)


@in_float64
def attention_var_len(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    seqstart_q: np.ndarray,
    seqstart_k: np.ndarray,
    *_lengths: np.ndarray,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> np.ndarray:
    """Attention of each sequence for itself."""
    attended = np.zeros((*queries.shape[:3], values.shape[3]))
    for number in range(len(seqstart_q) - 1):
        rows = slice(int(seqstart_q[number]), int(seqstart_q[number + 1]))
        own = slice(int(seqstart_k[number]), int(seqstart_k[number + 1]))
        attended[:, rows] = attention(
            queries[:, rows], keys[:, own], values[:, own], None, scale, causal_mask, window_size
        )
    return attended
