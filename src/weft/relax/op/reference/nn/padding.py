"""Padding in all modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from weft.relax.op.reference.rule import convert
from weft.support.errors import IRValueError

_MODE: dict[str, Literal["reflect", "edge", "wrap"]] = {
    "reflect": "reflect", "replicate": "edge", "circular": "wrap"
}  # fmt: skip


def pad(
    data: np.ndarray, pad_width: Sequence[int], pad_mode: str = "constant", pad_value: float = 0.0
) -> np.ndarray:
    """numpy's pad."""
    sides = list(zip(pad_width[0::2], pad_width[1::2], strict=True))
    if pad_mode == "constant":
        return np.pad(data, sides, constant_values=convert(pad_value, data.dtype.name))
    if pad_mode == "reflect":
        for axis, (width, extent) in enumerate(zip(sides, data.shape, strict=True)):
            if max(width) >= extent:  # infer_pad refuses this where the extent is known
                raise IRValueError(
                    f"nn.pad: axis {axis}: reflection takes less than the {extent} elements of "
                    f"the axis, got {max(width)}"
                )
    return np.pad(data, sides, _MODE[pad_mode])
