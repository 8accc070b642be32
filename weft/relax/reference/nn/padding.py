"""Padding in all modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.relax.reference.rule import convert, table

_MODE: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(data: Any, pad_width: Any, pad_mode: str = "constant", pad_value: float = 0.0) -> Any:
    sides = list(zip(pad_width[0::2], pad_width[1::2], strict=True))
    if pad_mode == "constant":
        return np.pad(data, sides, constant_values=convert(pad_value, data.dtype.name))
    return np.pad(data, sides, _MODE[pad_mode])


TABLE = table({"nn.pad": _pad})
