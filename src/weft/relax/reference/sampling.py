"""Draws from distributions, given uniform random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.reference.index import check_indices
from weft.relax.reference.rule import convert, table, wide


def _multinomial(prob: Any, uniform_sample: Any, sample_indices: Any, dtype: str = "int64") -> Any:
    rows = sample_indices[:, 0].astype(np.int64)
    check_indices(rows, 0, prob.shape[0], "multinomial_from_uniform")
    running = np.cumsum(wide(prob), 1)[rows]
    passed = (running <= wide(uniform_sample)).sum(1, keepdims=True)
    return convert(np.minimum(passed, prob.shape[1] - 1), dtype)


TABLE = table({"multinomial_from_uniform": _multinomial})
