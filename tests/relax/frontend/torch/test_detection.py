"""Operators of torchvision: boxes that overlap no better one, and regions of images."""

from __future__ import annotations

import importlib

import pytest
import torch

import weft
from tests.lib.aten import check_overload
from tests.lib.zoo import import_torchvision

pytestmark = pytest.mark.torch


class Kept(torch.nn.Module):
    """What a detector does with its boxes in the end."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, boxes, scores):
        """The boxes that are kept and their scores, best first."""
        kept = torch.ops.torchvision.nms(boxes, scores, self.threshold)
        return boxes[kept], scores[kept] * 2, kept


def by_hand(boxes, scores, threshold):
    """Greedy: the best box, then the best one that overlaps none of those, and so on."""
    kept = []
    for index in torch.argsort(scores, descending=True, stable=True).tolist():
        if all(overlap(boxes[index], boxes[other]) <= threshold for other in kept):
            kept.append(index)
    return torch.tensor(kept, dtype=torch.int64)


def overlap(first, second):
    """Intersection over union."""
    low, high = torch.maximum(first[:2], second[:2]), torch.minimum(first[2:], second[2:])
    shared = (high - low).clamp(min=0).prod()
    areas = [(box[2:] - box[:2]).prod() for box in (first, second)]
    return float(shared / (sum(areas) - shared))


def boxes_of(count, seed):
    torch.manual_seed(seed)
    corners = torch.rand(count, 2) * 10
    return torch.cat([corners, corners + 1 + torch.rand(count, 2) * 6], 1), torch.randn(count)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0])
def test_boxes_that_overlap_no_better_one(threshold):
    import_torchvision()
    model = Kept(threshold).eval()
    compiled = weft.compile(model, boxes_of(17, 0), cache=False)
    for seed in range(4):
        boxes, scores = boxes_of(17, seed)
        kept = by_hand(boxes, scores, threshold)
        chosen, doubled, places = compiled(boxes, scores)
        assert torch.equal(places, kept)
        assert torch.equal(chosen, boxes[kept])
        assert torch.equal(doubled, scores[kept] * 2)


def test_any_number_of_boxes():
    import_torchvision()
    count = torch.export.Dim("count", min=2, max=100)
    compiled = weft.compile(
        Kept(0.3).eval(), boxes_of(5, 0), dynamic_shapes=({0: count}, {0: count}), cache=False
    )
    for size in (2, 5, 33):
        boxes, scores = boxes_of(size, size)
        assert torch.equal(compiled(boxes, scores)[2], by_hand(boxes, scores, 0.3))


@pytest.fixture(scope="module")
def declared():
    """torchvision, whose own Python stands in for the kernel of roi_align where it has none."""
    import_torchvision()
    if hasattr(torch.ops.torchvision, "roi_align"):
        yield
        return
    written_out = importlib.import_module("torchvision.ops.roi_align")._roi_align.__wrapped__
    library = torch.library.Library("torchvision", "FRAGMENT")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("roi_align", written_out, "CompositeExplicitAutograd")
    yield
    library._destroy()


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [2, -1])
def test_regions_of_images(declared, aligned, ratio):
    torch.manual_seed(0)
    images = torch.randn(2, 3, 13, 9)
    regions = torch.tensor([[0, 1.0, 2.0, 14.0, 9.5], [1, 0.0, 0.0, 3.0, 25.0], [1, 5, 5, 5, 5]])
    check_overload("torchvision.roi_align.default", images, regions, 0.5, 3, 2, ratio, aligned)
