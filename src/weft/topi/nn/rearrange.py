"""Operators that move elements from channels to spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import Shape, compute_ax, const_int, shape_text
from weft.topi.simplify import simplified


def pixel_shuffle(data: Tensor, upscale_factor: int) -> Tensor:
    """(..., c * r * r, h, w) to (..., c, h * r, w * r): r * r channels become one image.

    The sub-pixel convolution's last step (Shi et al., 2016).
    """
    factor = const_int(upscale_factor, "pixel_shuffle: upscale_factor")
    if data.ndim < 3 or factor < 1:
        raise IRValueError(
            f"pixel_shuffle: expected at least 3 dimensions and a factor of 1 or more, got "
            f"{shape_text(data.shape)} and {factor}"
        )
    *outer, channels, height, width = data.shape
    if isinstance(channels, IntImm) and channels.value % factor**2:
        raise IRValueError(
            f"pixel_shuffle: {channels} channels do not divide into images of {factor**2}"
        )
    kept = simplified(op.floordiv(channels, factor**2))
    shape = [*outer, kept, simplified(height * factor), simplified(width * factor)]

    def element(*point: PrimExpr) -> PrimExpr:
        *front, channel, row, column = point
        part = op.floormod(row, factor) * factor + op.floormod(column, factor)
        place = (op.floordiv(row, factor), op.floordiv(column, factor))
        return data(*front, channel * factor**2 + part, *place)

    return compute_ax(shape, element, "T_pixel_shuffle", tag=tag.INJECTIVE)


def interleave(
    data: Tensor,
    factors: Sequence[int],
    starts: Sequence[int],
    shape: Shape,
    groups: int = 1,
) -> Tensor:
    """Images whose neighbouring elements come from different channels of the data.

    Each group of channels of the data holds ``prod(factors)`` small images for each channel of the
    result, one for each remainder. Along an axis, element ``p`` of the result is element
    ``(p + start) // factor`` of the small image ``(p + start) % factor``. ``shape`` is that of the
    result, (n, channels, spatial).
    """
    channels = simplified(op.floordiv(shape[1], groups))
    parts = math.prod(factors)

    def element(*point: PrimExpr) -> PrimExpr:
        batch, channel, *places = point
        moved = [place + start for place, start in zip(places, starts, strict=True)]
        part: Extent = 0
        for place, factor in zip(moved, factors, strict=True):
            part = part * factor + op.floormod(place, factor)
        own = channel if groups == 1 else op.floormod(channel, channels)
        before = 0 if groups == 1 else op.floordiv(channel, channels) * (channels * parts)
        source = [op.floordiv(p, factor) for p, factor in zip(moved, factors, strict=True)]
        return data(batch, before + part * channels + own, *source)

    return compute_ax(list(shape), element, "T_interleave", tag=tag.INJECTIVE)
