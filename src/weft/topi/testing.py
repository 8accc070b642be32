"""``topi.testing``: what operators compute, by numpy, for tests.

The names are TVM's; each takes and returns numpy arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.support.errors import IRValueError


def softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """exp(a) over its sum along an axis, in the shape of ``a_np``.

    >>> softmax_python(np.zeros((1, 2), "float32")).tolist()
    [[0.5, 0.5]]
    """
    powers = np.exp(a_np - np.max(a_np, axis=axis, keepdims=True))
    shares: np.ndarray = powers / powers.sum(axis=axis, keepdims=True)
    return shares


def log_softmax_python(a_np: np.ndarray, axis: int = 1) -> np.ndarray:
    """The logarithm of softmax along an axis."""
    moved = a_np - np.max(a_np, axis=axis, keepdims=True)
    logarithms: np.ndarray = moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))
    return logarithms


def batch_matmul(
    x: np.ndarray,
    y: np.ndarray,
    out_dtype: str | None = None,
    trans_x: bool = False,
    trans_y: bool = True,
) -> np.ndarray:
    """(batch, m, k) times (batch, n, k), or (batch, k, n) without ``trans_y``: (batch, m, n).

    A batch of 1 is broadcast.
    """
    kind = out_dtype or x.dtype
    lhs = np.swapaxes(x, 1, 2) if trans_x else x
    rhs = np.swapaxes(y, 1, 2) if trans_y else y
    product: np.ndarray = np.matmul(lhs.astype(kind), rhs.astype(kind))
    return product


def strided_slice_python(
    data: np.ndarray,
    begin: Sequence[int],
    end: Sequence[int],
    strides: int | Sequence[int] | None,
    slice_mode: str = "end",
    axes: Sequence[int] | None = None,
) -> np.ndarray:
    """``data[begin:end:strides]`` along the axes (all, if none is named).

    With ``slice_mode="size"`` ``end`` holds numbers of elements, -1 for all that follow.

    >>> strided_slice_python(np.arange(6), [1], [5], [2]).tolist()
    [1, 3]
    """
    if slice_mode not in ("end", "size"):
        raise IRValueError(f"strided_slice_python: expected end or size, got {slice_mode!r}")
    steps = [strides] * len(begin) if isinstance(strides, int) else list(strides or [])
    places = [slice(None)] * data.ndim
    for number, axis in enumerate(range(len(begin)) if axes is None else axes):
        step = steps[number] if number < len(steps) else 1
        stop: int | None = end[number] if number < len(end) else None
        if slice_mode == "size" and stop is not None:
            step, stop = 1, None if stop == -1 else begin[number] + stop
        places[axis] = slice(begin[number], stop, step)
    return data[tuple(places)]


def attention_python(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    bias: np.ndarray | None,
    qk_scale: float | str,
    causal: str = "none",
    window_size: int | None = None,
    layout: str = "BSNH",
) -> np.ndarray:
    """softmax(q kᵀ * scale + bias) v, for each batch and head, in the layout of ``q``.

    ``layout`` names the axes: batch (B), positions (S), heads (N), features (H). If there are fewer
    heads of keys, consecutive heads of queries share one. ``qk_scale`` "none" is 1 / sqrt(H).
    ``causal`` is none, TopLeft or BottomRight; a window of w leaves the last w of the visible keys.
    """
    if sorted(layout) != sorted("BSNH"):
        raise IRValueError(f"attention_python: expected a layout of BSNH, got {layout!r}")
    if causal not in ("none", "TopLeft", "BottomRight"):
        raise IRValueError(
            f"attention_python: causal: expected none, TopLeft or BottomRight, got {causal!r}"
        )
    query, key, value = (x.transpose([layout.index(axis) for axis in "BNSH"]) for x in (q, k, v))
    shared = query.shape[1] // key.shape[1]
    key, value = (np.repeat(x, shared, axis=1) for x in (key, value))
    scale = 1 / np.sqrt(query.shape[-1]) if isinstance(qk_scale, str) else qk_scale
    scores = query @ np.swapaxes(key, 2, 3) * scale
    if bias is not None:
        scores = scores + bias
    if causal != "none":
        rows, columns = np.indices(scores.shape[-2:])
        last = rows + (abs(scores.shape[-2] - scores.shape[-1]) if causal == "BottomRight" else 0)
        is_seen = (columns <= last) & (columns > last - (window_size or scores.shape[-1] + 1))
        scores = np.where(is_seen, scores, -np.inf)
    attended: np.ndarray = softmax_python(scores, -1) @ value
    return attended.transpose(["BNSH".index(axis) for axis in layout])
