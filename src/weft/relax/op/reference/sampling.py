"""Draws from distributions, given uniform random numbers."""

from __future__ import annotations

import numpy as np

from weft.relax.op.reference.index import check_indices
from weft.relax.op.reference.rule import convert, wide


def multinomial_from_uniform(
    prob: np.ndarray, uniform_sample: np.ndarray, sample_indices: np.ndarray, dtype: str = "int64"
) -> np.ndarray:
    """For each number, the first index whose running sum of probabilities exceeds it."""
    rows = sample_indices[:, 0].astype(np.int64)
    check_indices(rows, 0, prob.shape[0], "multinomial_from_uniform")
    running = np.cumsum(wide(prob), 1)[rows]
    passed = (running <= wide(uniform_sample)).sum(1, keepdims=True)
    return convert(np.minimum(passed, prob.shape[1] - 1), dtype)
