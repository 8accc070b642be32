"""Matrix products. Floats are multiplied and summed in float64; integers wrap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.rule import convert, quiet, wide


@quiet
def matmul(x1: np.ndarray, x2: np.ndarray, out_dtype: str | None = None) -> np.ndarray:
    """The matrix product; operands are first converted to ``out_dtype``."""
    return np.asarray(np.matmul(wide(convert(x1, out_dtype)), wide(convert(x2, out_dtype))))


@quiet
def grouped_matmul(data: np.ndarray, weight: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """A product for each group of rows."""
    whole = np.zeros((len(data), weight.shape[2]), wide(data).dtype)
    for group, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        whole[start:end] = matmul(data[start:end], weight[group])
    return whole


@quiet
def block_scaled_matmul(data: np.ndarray, weight: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The product with the matrix of all blocks."""
    matrix = weight.astype("float64") * scales.astype("float64")[:, None, :]
    return matmul(wide(data), matrix.reshape(-1, weight.shape[2]))


def einsum(operands: Sequence[np.ndarray], subscripts: str) -> np.ndarray:
    """numpy's einsum."""
    return np.asarray(np.einsum(subscripts, *[wide(item) for item in operands]))
