"""The product with a transposed weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.reference.rule import convert, quiet, table, wide


def _dense(x: Any, weight: Any, out_dtype: str | None = None) -> Any:
    return np.matmul(wide(convert(x, out_dtype)), wide(convert(weight, out_dtype)).T)


TABLE = table({"nn.dense": quiet(_dense)})
