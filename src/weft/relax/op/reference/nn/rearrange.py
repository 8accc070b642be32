"""Elements moved between channels and space."""

from __future__ import annotations

import numpy as np


def pixel_shuffle(data: np.ndarray, upscale_factor: int) -> np.ndarray:
    """Split two factors off the channels, and merge them into height and width."""
    *outer, channels, height, width = data.shape
    factor = upscale_factor
    split = data.reshape(*outer, channels // factor**2, factor, factor, height, width)
    first = len(outer)
    order = [*range(first), *[first + place for place in (0, 3, 1, 4, 2)]]
    moved = split.transpose(order)
    return moved.reshape(*outer, channels // factor**2, height * factor, width * factor)
