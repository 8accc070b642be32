"""The product with a transposed weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.op.reference.rule import convert, quiet, wide


@quiet
def dense(x: Any, weight: Any, out_dtype: str | None = None) -> Any:
    """The product with the transposed weight."""
    return np.matmul(wide(convert(x, out_dtype)), wide(convert(weight, out_dtype)).T)
