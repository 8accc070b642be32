"""The product with a transposed weight."""

from __future__ import annotations

import numpy as np

from weft.relax.op.reference.rule import convert, quiet, wide


@quiet
def dense(x: np.ndarray, weight: np.ndarray, out_dtype: str | None = None) -> np.ndarray:
    """The product with the transposed weight."""
    return np.asarray(np.matmul(wide(convert(x, out_dtype)), wide(convert(weight, out_dtype)).T))
