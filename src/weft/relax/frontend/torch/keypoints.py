"""What stands for torchvision's search for keypoints in the heat maps of each region.

Torchvision resizes the maps of a region to the region's own size, in a Python loop over the
regions, whose number torch.export does not know. Here it is a loop of the program; each of its
steps has the extents of the largest region, of which a region uses as many pixels as it has.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

_SHARPNESS = -0.75
"""The free number of Keys' cubic kernel (1981), as PyTorch's bicubic resizing has it."""


def heatmaps_to_keypoints(maps: Tensor, rois: Tensor) -> tuple[Tensor, Tensor]:
    """The highest place of each map: (x, y, 1) for each of (n, k), and the heights (n, k).

    ``maps`` is (n, k, height, width), ``rois`` (n, 4) the corners of each region.
    """
    sizes = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    pixels = sizes.ceil()
    columns, rows = _pixels_of_the_largest(pixels)

    def is_left(index: Tensor, points: Tensor, scores: Tensor) -> Tensor:
        return index < rois.shape[0]

    def step(index: Tensor, points: Tensor, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at = index[None]
        (size,), (exact,), (corner,) = (x.index_select(0, at) for x in (pixels, sizes, rois[:, :2]))
        score, place = _highest(maps.index_select(0, at)[0], size, columns, rows)
        point = place * (exact / size) + corner
        return index + 1, points.index_copy(0, at, point[None]), scores.index_copy(0, at, score)

    count = maps.shape[:2]
    start = torch.zeros((), dtype=torch.int64), maps.new_zeros(*count, 2), maps.new_zeros(count)
    _, points, scores = while_loop(is_left, step, start)
    return torch.cat([points, torch.ones_like(scores)[:, :, None]], 2), scores


def _pixels_of_the_largest(pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of the columns and rows of the largest region; a single one of no region."""
    largest = torch.cat([pixels, pixels.new_ones(1, 2)]).amax(0).to(torch.int64)
    extents = largest[0].item(), largest[1].item()
    for extent in extents:
        torch._check(extent >= 1)
    return torch.arange(extents[0]), torch.arange(extents[1])


def _highest(maps: Tensor, size: Tensor, columns: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The height (1, k) and the place (k, 2), x before y, of the highest pixel of resized maps."""
    width, height = size.unbind()
    down = _resizing(rows, height, maps.shape[-2])
    across = _resizing(columns, width, maps.shape[-1])
    is_inside = (rows < height)[:, None] & (columns < width)
    resized = torch.where(is_inside, down @ maps @ across.T, float("-inf")).flatten(1)
    best = resized.argmax(1)
    place = torch.stack([best % columns.shape[0], best // columns.shape[0]], 1) + 0.5
    return resized.gather(1, best[:, None]).T, place


def _resizing(pixels: Tensor, size: Tensor, count: int) -> Tensor:
    """Weights (pixels, count) that stretch ``count`` values over ``size`` pixels, bicubically.

    Each pixel takes four values; beyond the first and the last value these repeat.
    """
    place = (pixels + 0.5) * (count / size) - 0.5
    first = place.floor()
    weights = []
    for tap in range(-1, 3):
        at = (first + tap).clamp(0, count - 1)
        weight = _cubic((place - first - tap).abs(), is_near=tap in (0, 1))
        weights.append(weight[:, None] * (at[:, None] == torch.arange(count)))
    return weights[0] + weights[1] + weights[2] + weights[3]


def _cubic(distance: Tensor, *, is_near: bool) -> Tensor:
    """The cubic kernel at distances up to one, or from one to two."""
    a = _SHARPNESS
    if is_near:
        return ((a + 2) * distance - (a + 3)) * distance * distance + 1
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
