"""Convolutions and their transposes: the sum of one matrix product for each kernel element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.nn import windows
from weft.relax.op.reference.nn.layout import from_canonical, to_canonical
from weft.relax.op.reference.rule import Reference, convert, quiet, wide
from weft.support.errors import IRValueError

_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _by_group(x: np.ndarray, w: np.ndarray, groups: int) -> np.ndarray:
    """The product of (batch, in, ...) and (out, in / groups), group by group."""
    batch, channels, *space = x.shape
    out = w.shape[0]
    x = x.reshape(batch, groups, channels // groups, math.prod(space))
    w = w.reshape(groups, out // groups, channels // groups)
    return np.asarray(np.matmul(w, x).reshape(batch, out, *space))


def _operands(
    data: np.ndarray, weight: np.ndarray, layouts: Sequence[tuple[str, str]], out: str | None
) -> tuple[np.ndarray, np.ndarray]:
    x, w = convert(data, out), convert(weight, out)
    return wide(to_canonical(x, *layouts[0])), wide(to_canonical(w, *layouts[1]))


def conv(rank: int) -> Reference:
    """The reference of a convolution over ``rank`` spatial axes."""
    data_order, kernel_order = f"NC{_SPATIAL[rank]}", f"OI{_SPATIAL[rank]}"

    def run(
        data: np.ndarray,
        weight: np.ndarray,
        *,
        strides: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        data_layout: str,
        kernel_layout: str,
        out_layout: str,
        out_dtype: str | None = None,
    ) -> np.ndarray:
        layouts = ((data_layout, data_order), (kernel_layout, kernel_order))
        x, w = _operands(data, weight, layouts, out_dtype)
        sides = [(padding[axis], padding[rank + axis]) for axis in range(rank)]
        x = np.pad(x, [(0, 0), (0, 0), *sides])
        reach = [(w.shape[2 + axis] - 1) * dilation[axis] + 1 for axis in range(rank)]
        space = [windows.count(*sizes) for sizes in zip(x.shape[2:], reach, strides, strict=True)]
        total = np.zeros((x.shape[0], w.shape[0], *space), x.dtype)
        for place in np.ndindex(*w.shape[2:]):
            window = windows.taps(place, dilation, space, strides)
            total += _by_group(windows.part(x, window), windows.part(w, place), groups)
        return from_canonical(total, out_layout, data_order)

    return quiet(run)


def conv_transpose(rank: int) -> Reference:
    """The reference of a transposed convolution over ``rank`` spatial axes."""
    data_order, kernel_order = f"NC{_SPATIAL[rank]}", f"IO{_SPATIAL[rank]}"

    def run(
        data: np.ndarray, weight: np.ndarray, *, strides: Sequence[int], padding: Sequence[int],
        output_padding: Sequence[int], dilation: Sequence[int], groups: int, data_layout: str,
        kernel_layout: str, out_layout: str, out_dtype: str | None = None,
    ) -> np.ndarray:  # fmt: skip
        layouts = ((data_layout, data_order), (kernel_layout, kernel_order))
        x, w = _operands(data, weight, layouts, out_dtype)
        each = w.shape[0] // groups
        # (in, out / groups, ...) as (out, in / groups, ...)
        w = np.concatenate(
            [np.swapaxes(w[group * each : (group + 1) * each], 0, 1) for group in range(groups)]
        )
        whole = [
            (x.shape[2 + axis] - 1) * strides[axis]
            + (w.shape[2 + axis] - 1) * dilation[axis]
            + output_padding[axis]
            + 1
            for axis in range(rank)
        ]
        total = np.zeros((x.shape[0], w.shape[0], *whole), x.dtype)
        for place in np.ndindex(*w.shape[2:]):
            window = windows.taps(place, dilation, x.shape[2:], strides)
            part = windows.part(total, window)
            part += _by_group(x, windows.part(w, place), groups)
        for axis in range(rank):
            if whole[axis] < padding[axis] + padding[rank + axis]:  # as in infer_conv_transpose
                raise IRValueError(
                    f"axis {axis}: the padding takes more than the {whole[axis]} elements there are"
                )
        kept = [slice(padding[axis], whole[axis] - padding[rank + axis]) for axis in range(rank)]
        return from_canonical(windows.part(total, kept), out_layout, data_order)

    return quiet(run)
