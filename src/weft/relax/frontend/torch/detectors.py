"""What stands for functions of torchvision's detectors that torch.export cannot capture.

How many boxes a detector keeps depends on its input, so that torch.export has a symbol without a
value for their number. Five functions of torchvision ask for the value: they branch on it, or loop
over the boxes in Python. The functions here have the same results; ``stand_ins`` exchanges them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import torch
from torch import Tensor

_NUMBERS_OF_ONE_PASS: Final = 4000
"""Up to so many coordinates torchvision moves the boxes of different classes apart, for one pass of
suppression; with more of them it treats each class on its own."""


class BoxCoder(Protocol):
    """The method of torchvision's ``BoxCoder`` that ``decode`` is made of."""

    def decode_single(self, rel_codes: Tensor, boxes: Tensor) -> Tensor:
        """Boxes (n, 4 k) from k codes of each box."""


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """Suppression among boxes of the same class, in one pass for any number of boxes.

    Each class is moved to a place of its own. For few boxes that is a sum in their own type, which
    rounds as torchvision's does; for many it is in float64, where the boxes keep their sizes.
    """
    wide = boxes.to(torch.float64)
    reach = boxes.max()
    rounded = boxes + (idxs.to(boxes) * (reach + 1))[:, None]
    exact = wide + (idxs.to(wide) * (reach.to(wide) + 1))[:, None]
    is_many = torch.scalar_tensor(boxes.numel(), dtype=torch.int64) > _NUMBERS_OF_ONE_PASS
    apart = torch.where(is_many, exact, rounded.to(wide))
    kept: Tensor = torch.ops.torchvision.nms(apart, scores.to(wide), iou_threshold)
    return kept


def topk_min(input: Tensor, orig_kval: int, axis: int) -> int | torch.SymInt:
    """The number of best elements, at most as many as there are."""
    smaller: int | torch.SymInt = torch.sym_min(orig_kval, input.size(axis))
    return smaller


def decode(self: BoxCoder, rel_codes: Tensor, boxes: Sequence[Tensor]) -> Tensor:
    """Boxes (n, k, 4) from codes (n, 4 k); torchvision leaves the last axis out where n is 0."""
    together = torch.cat(list(boxes), 0)
    return self.decode_single(rel_codes.flatten(1), together).unflatten(1, (-1, 4))


def multiscale_roi_align(
    x_filtered: Sequence[Tensor],
    boxes: Sequence[Tensor],
    output_size: Sequence[int],
    sampling_ratio: int,
    scales: Sequence[float],
    mapper: Callable[[Sequence[Tensor]], Tensor],
) -> Tensor:
    """Each region pooled from the feature map whose level fits the region's size."""
    poolers = sys.modules["torchvision.ops.poolers"]
    regions = poolers._convert_to_roi_format(boxes)

    def pooled(level: int, chosen: Tensor) -> Tensor:
        result: Tensor = poolers.roi_align(
            x_filtered[level], chosen, tuple(output_size), scales[level], sampling_ratio
        )
        return result

    if len(x_filtered) == 1:
        return pooled(0, regions)
    levels = mapper(boxes)
    shape = [regions.shape[0], x_filtered[0].shape[1], *output_size]
    whole = x_filtered[0].new_zeros(shape)
    for level in range(len(x_filtered)):
        places = torch.where(levels == level)[0]
        whole = whole.index_copy(0, places, pooled(level, regions[places]))
    return whole


def paste_masks_in_image(
    masks: Tensor, boxes: Tensor, img_shape: tuple[int, int], padding: int = 1
) -> Tensor:
    """Each mask (n, 1, m, m) resized to its box in an image of zeros: (n, 1, height, width).

    Resizing is linear, so it is a product with a matrix for the rows of an image and with another
    for its columns, whose rows are zeros outside of the box.
    """
    heads = sys.modules["torchvision.models.detection.roi_heads"]
    masks, scale = heads.expand_masks(masks, padding=padding)
    corners = heads.expand_boxes(boxes, scale).to(torch.int64)
    height, width = img_shape
    rows = _resizing(corners[:, 1], corners[:, 3], height, masks)
    columns = _resizing(corners[:, 0], corners[:, 2], width, masks)
    return (rows @ masks[:, 0] @ columns.transpose(1, 2))[:, None]


def _resizing(first: Tensor, last: Tensor, extent: int, masks: Tensor) -> Tensor:
    """Weights (n, extent, m) that stretch m values over the pixels from ``first`` to ``last``.

    A pixel's place among the values is that of ``interpolate(mode="bilinear")``. The weight of a
    value falls from 1 to 0 at a distance of one: place 2.25 -> 0, 0, 0.75, 0.25, 0.
    """
    size = masks.shape[-1]
    pixels = torch.arange(extent) - first[:, None]
    length = (last - first + 1).clamp(min=1)[:, None]
    place = ((pixels + 0.5) * (size / length) - 0.5).clamp(0, size - 1)
    weights = (1 - (place[:, :, None] - torch.arange(size)).abs()).clamp(min=0)
    is_inside = (pixels >= 0) & (pixels < length)
    return torch.where(is_inside[:, :, None], weights, 0.0).to(masks.dtype)
