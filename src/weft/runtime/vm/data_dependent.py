"""Operators whose result has a size that only the data tell: unique and nonzero.

No kernel can be made for them ahead of time; LegalizeOps calls these functions of numpy under the
names that TVM 0.20 gives them. Importing the module registers them; the virtual machine does.
"""

from __future__ import annotations

import numpy as np

# Each registers functions. `from weft.runtime import random` would first look for an old name.
import weft.runtime.images
import weft.runtime.linear_algebra
import weft.runtime.ngrams
import weft.runtime.onnx_nodes
import weft.runtime.random
import weft.runtime.texts  # noqa: F401 - all six register
from weft.runtime.ndarray import NDArray, array
from weft.runtime.registry import register_func


def unique(
    x: np.ndarray, by_value: bool, parts: tuple[bool, bool, bool], axis: int | None
) -> list[np.ndarray]:
    """The distinct elements (slices along an axis) in order of value, or of first appearance.

    ``parts`` asks for the index of each one's first appearance, for where each element of ``x``
    went, and for how often each one appears; all are int64 vectors. NaNs count as one value.
    """
    values, index, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not by_value:
        order = np.argsort(index, kind="stable")
        values = np.take(values, order, axis=0 if axis is None else axis)
        index, counts = index[order], counts[order]
        inverse = np.argsort(order, kind="stable")[inverse]
    optional = (index, inverse, counts)
    wanted = [part for part, on in zip(optional, parts, strict=True) if on]
    return [values, *[part.astype(np.int64) for part in wanted]]


def nonzero(x: np.ndarray) -> np.ndarray:
    """The indices of elements that are not zero: (dimensions, number of them), int64."""
    return np.stack(np.atleast_1d(x).nonzero()).astype(np.int64)


@register_func("relax.run.unique", override=True)
def run_unique(
    x: NDArray,
    by_value: bool,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: int | None = None,
) -> NDArray | tuple[NDArray, ...]:
    """``unique`` of NDArrays: one, or a tuple of those asked for."""
    parts = (bool(return_index), bool(return_inverse), bool(return_counts))
    place = None if axis is None else int(axis)
    results = [array(part) for part in unique(x.numpy(), bool(by_value), parts, place)]
    return results[0] if len(results) == 1 else tuple(results)


@register_func("relax.run.nonzero", override=True)
def run_nonzero(x: NDArray) -> NDArray:
    """``nonzero`` of an NDArray."""
    return array(nonzero(x.numpy()))
