"""Matrix products. Floats are multiplied and summed in float64; integers wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.relax.op.reference.rule import convert, quiet, wide


@quiet
def matmul(x1: Any, x2: Any, out_dtype: str | None = None) -> Any:
    """The matrix product of both, converted first."""
    return np.matmul(wide(convert(x1, out_dtype)), wide(convert(x2, out_dtype)))


def einsum(operands: Sequence[Any], subscripts: str) -> Any:
    """numpy's einsum."""
    return np.einsum(subscripts, *[wide(item) for item in operands])
