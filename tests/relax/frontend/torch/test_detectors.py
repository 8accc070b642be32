"""Whole detectors of torchvision: small backbones, random weights, two images of two sizes."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

import weft
from tests.lib.zoo import import_torchvision, stir
from weft.relax.frontend.torch import detectors, keypoints
from weft.relax.frontend.torch.stand_ins import stand_ins

pytestmark = pytest.mark.torch

SIZES = {"min_size": 64, "max_size": 96}
PROPOSALS = {
    "rpn_pre_nms_top_n_test": 100, "rpn_post_nms_top_n_test": 30, "box_score_thresh": 0.05,
    "box_detections_per_img": 10,
}  # fmt: skip
DENSE = {"score_thresh": 0.01, "detections_per_img": 20, "topk_candidates": 50}


class Pyramid(torch.nn.Module):
    """Two feature maps of one width."""

    def __init__(self, width=8):
        super().__init__()
        self.out_channels = width
        self.first = torch.nn.Conv2d(3, width, 3, stride=4, padding=1)
        self.second = torch.nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.third = torch.nn.Conv2d(width, width, 3, stride=2, padding=1)

    def forward(self, x):
        """Features at an eighth and at a sixteenth of the size."""
        second = torch.relu(self.second(torch.relu(self.first(x))))
        return {"0": second, "1": torch.relu(self.third(second))}


def suppressed(boxes, scores, threshold):
    """Greedy suppression, the best box first."""
    order = torch.argsort(scores, descending=True, stable=True)
    ranked = boxes[order].numpy()
    areas = (ranked[:, 2:] - ranked[:, :2]).prod(1)
    alive = np.ones(len(ranked), bool)
    for best in range(len(ranked)):
        if alive[best]:
            low = np.maximum(ranked[best, :2], ranked[:, :2])
            high = np.minimum(ranked[best, 2:], ranked[:, 2:])
            shared = np.maximum(high - low, 0).prod(1)
            with np.errstate(invalid="ignore"):  # a box without an area overlaps nothing
                overlaps = shared / (areas[best] + areas - shared)
            alive[best + 1 :] &= ~(overlaps[best + 1 :] > threshold)
    return order[torch.from_numpy(alive)]


@pytest.fixture(scope="module")
def vision():
    """torchvision, whose operators get kernels in Python where its own do not fit this torch."""
    vision = import_torchvision()
    if vision.extension._has_ops():
        yield vision
        return
    align = importlib.import_module("torchvision.ops.roi_align")
    meta = importlib.import_module("torchvision._meta_registrations")
    library = torch.library.Library("torchvision", "FRAGMENT")
    library.impl("nms", suppressed, "CPU")
    library.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    library.impl("roi_align", align._roi_align.__wrapped__, "CPU")
    torch.library.register_fake("torchvision::roi_align", meta.meta_roi_align, lib=library)
    with pytest.MonkeyPatch.context() as patch:
        for module in (align, vision.ops.boxes):
            patch.setattr(module, "_assert_has_ops", lambda: None)
        patch.setattr(align, "_has_ops", lambda: True)
        yield vision
    library._destroy()


def detector(kind, **options):
    """A detector of a kind, its boxes and classes far apart."""
    torch.manual_seed(0)
    detection = importlib.import_module("torchvision.models.detection")
    model = stir(_MAKERS[kind](detection, options))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3 if weight.ndim > 1 else 1)
    return model.eval()


def _anchors(detection, scales=((16,), (32,)), ratios=(0.5, 1.0, 2.0)):
    return detection.anchor_utils.AnchorGenerator(scales, (ratios,) * 2)


def _spread(model):
    """Larger weights, since with its own a dense head gives every box nearly the same score."""
    for weight in model.head.parameters():
        if weight.ndim > 1:
            torch.nn.init.kaiming_normal_(weight)
            weight.data.div_(3)
    return model


def _retina(detection, options):
    options = {**SIZES, **DENSE, **options}
    anchors = _anchors(detection)
    return _spread(detection.RetinaNet(Pyramid(), 4, anchor_generator=anchors, **options))


def _fcos(detection, options):
    anchors = _anchors(detection, ((8,), (16,)), (1.0,))
    options = {**SIZES, **DENSE, **options}
    return _spread(detection.FCOS(Pyramid(32), 4, anchor_generator=anchors, **options))


def _heads(detection, size):
    pool = importlib.import_module("torchvision.ops").MultiScaleRoIAlign
    faster = detection.faster_rcnn
    return {
        "rpn_anchor_generator": _anchors(detection),
        "box_roi_pool": pool(["0", "1"], size, 2, canonical_scale=24),
        "box_head": faster.TwoMLPHead(8 * size * size, 16),
        "box_predictor": faster.FastRCNNPredictor(16, 4),
    }


def _faster(detection, options):
    heads = _heads(detection, 3)
    return detection.FasterRCNN(Pyramid(), **SIZES, **heads, **{**PROPOSALS, **options})


def _mask(detection, options):
    pool = importlib.import_module("torchvision.ops").MultiScaleRoIAlign
    mask = detection.mask_rcnn
    heads = {
        "mask_roi_pool": pool(["0", "1"], 4, 2, canonical_scale=24),
        "mask_head": mask.MaskRCNNHeads(8, (8,), 1),
        "mask_predictor": mask.MaskRCNNPredictor(8, 8, 4),
        **_heads(detection, 3),
    }
    return detection.MaskRCNN(Pyramid(), **SIZES, **heads, **{**PROPOSALS, **options})


def _keypoint(detection, options):
    pool = importlib.import_module("torchvision.ops").MultiScaleRoIAlign
    keypoint = detection.keypoint_rcnn
    heads = {
        "keypoint_roi_pool": pool(["0", "1"], 4, 2, canonical_scale=24),
        "keypoint_head": keypoint.KeypointRCNNHeads(8, (8,)),
        "keypoint_predictor": keypoint.KeypointRCNNPredictor(8, 3),
        **_heads(detection, 3),
    }
    return detection.KeypointRCNN(Pyramid(), **SIZES, **heads, **{**PROPOSALS, **options})


_MAKERS = {
    "retina": _retina, "fcos": _fcos, "faster": _faster, "mask": _mask, "keypoint": _keypoint,
}  # fmt: skip


def pair(seed):
    torch.manual_seed(seed)
    return [torch.rand(3, 64, 80), torch.rand(3, 72, 64)]


def assert_agree(compiled, model, images):
    """The same detections, in the same order; how many there were."""
    with torch.no_grad():
        expected = model(images)
    found = compiled(images)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    return sum(len(item["scores"]) for item in expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["faster", "fcos", "keypoint", "mask", "retina"])
def test_detections_of_two_images(vision, kind):
    model = detector(kind)
    compiled = weft.compile(model, (pair(0),), cache=False)
    for seed in range(3):
        assert assert_agree(compiled, model, pair(seed))


def random_boxes(count):
    corners = torch.rand(count, 2) * 40
    return torch.cat([corners, corners + 1 + torch.rand(count, 2) * 20], 1)


@pytest.mark.parametrize("count", [1, 60, 1200])
def test_suppression_within_classes(vision, count):
    """With few boxes torchvision makes one pass, with over a thousand one for each class."""
    torch.manual_seed(count)
    boxes, scores = random_boxes(count), torch.rand(count)
    classes = torch.randint(0, 5, (count,))
    expected = vision.ops.boxes.batched_nms(boxes, scores, classes, 0.4)
    assert torch.equal(detectors.batched_nms(boxes, scores, classes, 0.4), expected)


@pytest.mark.parametrize("count", [0, 6])
def test_masks_in_an_image(vision, count):
    """Boxes lie inside of the image and beyond its borders, wide, high and of one pixel."""
    torch.manual_seed(0)
    heads = importlib.import_module("torchvision.models.detection.roi_heads")
    masks = torch.rand(count, 1, 14, 14)
    boxes = torch.tensor([
        [3.2, 4.1, 17.5, 12.0], [-6.0, -3.5, 8.0, 40.0], [20.0, 10.0, 45.0, 30.0],
        [5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 31.0, 23.0], [30.5, 22.5, 31.0, 23.0],
    ])[:count]  # fmt: skip
    expected = heads.paste_masks_in_image(masks, boxes, (24, 32))
    found = detectors.paste_masks_in_image(masks, boxes, (24, 32))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [0, 4])
def test_keypoints_of_regions(vision, count):
    """Regions that are wide, high, below a pixel, and of the size of the maps."""
    torch.manual_seed(0)
    heads = importlib.import_module("torchvision.models.detection.roi_heads")
    extents = torch.tensor([[5.3, 20.1], [30.0, 2.5], [0.3, 0.2], [14.0, 14.0]])
    corners = torch.rand(4, 2) * 20
    given = torch.randn(4, 3, 14, 14)[:count], torch.cat([corners, corners + extents], 1)[:count]
    expected = heads.heatmaps_to_keypoints(*given)
    found = keypoints.heatmaps_to_keypoints(*given)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_regions_of_levels(vision):
    torch.manual_seed(0)
    poolers = importlib.import_module("torchvision.ops.poolers")
    features = [torch.randn(2, 3, 16, 16), torch.randn(2, 3, 8, 8)]
    boxes = [random_boxes(5), random_boxes(4)]
    mapper = poolers.initLevelMapper(2, 3, canonical_scale=10, canonical_level=3)
    given = (features, boxes, (2, 3), 2, [0.25, 0.125], mapper)
    assert len(set(mapper(boxes).tolist())) == 2
    expected = poolers._multiscale_roi_align(*given)
    torch.testing.assert_close(detectors.multiscale_roi_align(*given), expected)
    single = (features[:1], boxes, (2, 3), 2, [0.25], mapper)
    expected = poolers._multiscale_roi_align(*single)
    torch.testing.assert_close(detectors.multiscale_roi_align(*single), expected)


def test_boxes_from_codes(vision):
    torch.manual_seed(0)
    coder = importlib.import_module("torchvision.models.detection._utils").BoxCoder((1, 1, 2, 2))
    codes, boxes = torch.randn(7, 12), [random_boxes(3), random_boxes(4)]
    torch.testing.assert_close(detectors.decode(coder, codes, boxes), coder.decode(codes, boxes))


def test_functions_are_put_back(vision):
    """Also under the name by which another module imported one."""
    boxes, original = vision.ops.boxes, vision.ops.boxes.batched_nms
    with pytest.raises(KeyError), stand_ins():
        assert boxes.batched_nms is vision.ops.batched_nms is detectors.batched_nms
        raise KeyError
    assert boxes.batched_nms is vision.ops.batched_nms is original
