"""Windows that slide over data: how many there are, and what each of their elements reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.support.errors import IRValueError


def count(padded: int, reach: int, stride: int, ceil: bool = False) -> int:
    """How many windows there are; raises IRValueError where the rule of the operator would."""
    room = padded - reach
    steps = (-(-room // stride) if ceil else room // stride) + 1
    if room < 0 and (padded or steps < 0):
        raise IRValueError(
            f"the window reaches over {reach} elements, the padded data has {padded}"
        )
    return steps


def part(x: np.ndarray, place: Sequence[np.ndarray | slice]) -> np.ndarray:
    """The part of x at indices or slices of its last axes."""
    return x[(..., *place)]


def taps(
    place: Sequence[int], dilation: Sequence[int], counts: Sequence[int], strides: Sequence[int]
) -> tuple[slice, ...]:
    """The slices of the padded data that the element ``place`` of all windows reads."""
    sizes = zip(place, dilation, counts, strides, strict=True)
    return tuple([
        slice(tap * step, tap * step + (times - 1) * stride + 1 if times else 0, stride)
        for tap, step, times, stride in sizes
    ])  # fmt: skip
