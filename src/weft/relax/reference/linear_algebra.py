"""Matrix products. Floats are multiplied and summed in float64; integers wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.relax.reference.rule import by_wide, convert, quiet, table, wide


def _matmul(x1: Any, x2: Any, out_dtype: str | None = None) -> Any:
    return np.matmul(wide(convert(x1, out_dtype)), wide(convert(x2, out_dtype)))


def _einsum(operands: Sequence[Any], subscripts: str) -> Any:
    return np.einsum(subscripts, *[wide(item) for item in operands])


TABLE = table(
    {
        "matmul": quiet(_matmul),
        "einsum": quiet(_einsum),
        "outer": quiet(by_wide(np.outer)),
    }
)
