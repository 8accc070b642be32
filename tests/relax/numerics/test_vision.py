"""Non-maximum suppression, RoIAlign and RoI pooling against their definitions in numpy."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Table, row, t

N = ({"n": 0}, {"n": 1}, {"n": 7})


def overlap(a, b):
    (top, left), (bottom, right) = np.sort(a.reshape(2, 2), 0)
    (its_top, its_left), (its_bottom, its_right) = np.sort(b.reshape(2, 2), 0)
    height = max(min(bottom, its_bottom) - max(top, its_top), 0.0)
    width = max(min(right, its_right) - max(left, its_left), 0.0)
    shared = height * width
    union = (bottom - top) * (right - left) + (its_bottom - its_top) * (its_right - its_left)
    return shared / (union - shared) if union > shared else 0.0


def nms(boxes, scores, most, threshold, least):
    batches, classes, count = scores.shape
    rows = []
    for batch in range(batches):
        for number in range(classes):
            kept = []
            for box in np.argsort(-scores[batch, number], kind="stable"):
                if scores[batch, number, box] <= least.item() or len(kept) >= most.item():
                    continue
                near = [overlap(boxes[batch, box], boxes[batch, k]) for k in kept]
                if not [value for value in near if value > threshold.item()]:
                    kept.append(box)
            rows += [(batch, number, box) for box in kept]
    made = np.zeros((batches * classes * count, 3), "int64")
    made[: len(rows)] = np.array(rows).reshape(-1, 3)
    return [made, np.array([len(rows)])]


def corners(generator, shape):
    return generator.uniform(0, 3, shape)


def suppressions():
    def given(batch, classes, boxes, most=3, threshold=0.3, least=-0.5):
        return [
            t(batch, boxes, 4, fill=corners), t(batch, classes, boxes),
            t(dtype="int64", fill=[most]), t(fill=[threshold]), t(fill=[least]),
        ]  # fmt: skip

    name = "vision.all_class_non_max_suppression"
    yield row(name, given(2, 3, "n"), nms, sizes=N)
    yield row(name, given("n", 1, 5, 100, 0.0), nms, sizes=N, note="no overlap at all")
    yield row(name, given(1, 2, 5, 0), nms, note="no box wanted")
    yield row(name, given(1, 2, 5, 5, 1.0, 9.0), nms, note="no box good enough")
    same = [t(1, 4, 4, fill=[0.0, 0.0, 1.0, 1.0]), t(1, 1, 4, fill=[0.5]),
            t(1, dtype="int32", fill=[9]), t(1, fill=[0.5]), t(1, fill=[0.0])]  # fmt: skip
    yield row(name, same, nms, note="equal boxes and scores")
    flat = [t(1, 3, 4, fill=[1.0, 1.0, 1.0, 1.0]), *same[1:]]
    flat[1] = t(1, 1, 3, fill=[0.1, 0.3, 0.2])
    yield row(name, flat, nms, note="boxes without area")


def bilinear(image, y, x, join=sum):
    height, width = image.shape[-2:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(image.shape[0])
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, u = y - top, x - left
    return join([
        image[:, top, left] * (1 - u) * (1 - v), image[:, top, right] * u * (1 - v),
        image[:, bottom, left] * (1 - u) * v, image[:, bottom, right] * u * v,
    ])  # fmt: skip


def align(data, rois, size, scale, ratio=-1, aligned=False, mode="avg"):
    made = np.zeros((len(rois), data.shape[1], *size))
    for number, (batch, *box) in enumerate(rois):
        x1, y1, x2, y2 = [edge * scale - (0.5 if aligned else 0.0) for edge in box]
        lengths = [y2 - y1, x2 - x1]
        lengths = lengths if aligned else [max(length, 1.0) for length in lengths]
        steps = [length / extent for length, extent in zip(lengths, size, strict=True)]
        grid = [ratio if ratio > 0 else max(math.ceil(step), 0) for step in steps]
        for ph, pw in np.ndindex(*size):
            values = [
                bilinear(
                    data[int(batch)],
                    y1 + steps[0] * (ph + (iy + 0.5) / grid[0]),
                    x1 + steps[1] * (pw + (ix + 0.5) / grid[1]),
                    sum if mode != "max_neighbour" else lambda parts: np.max(parts, 0),
                )
                for iy in range(grid[0])
                for ix in range(grid[1])
            ]
            made[number, :, ph, pw] = np.mean(values, 0) if mode == "avg" else np.max(values, 0)
    return made


def regions(generator, shape):
    corner = generator.uniform(-1, 4, (shape[0], 2))
    ends = corner + generator.uniform(0.3, 6, (shape[0], 2))
    return np.concatenate([generator.integers(0, 2, (shape[0], 1)), corner, ends], 1)


def alignments():
    given = [t(2, 3, 6, 7), t("n", 5, fill=regions)]
    for aligned in (False, True):
        for ratio, mode in ((-1, "avg"), (2, "avg"), (1, "max"), (0, "max"), (2, "max_neighbour")):
            yield row(
                "vision.roi_align", given,
                lambda x, r, ratio=ratio, a=aligned, m=mode: align(x, r, (3, 2), 0.7, ratio, a, m),
                (3, 2), 0.7, ratio, aligned, mode=mode, sizes=N, note=f"{aligned} {ratio} {mode}",
            )  # fmt: skip
    yield row(
        "vision.roi_align", [t(2, 6, 7, 3), t(4, 5, fill=regions)],
        lambda x, r: align(x.transpose(0, 3, 1, 2), r, (2, 2), 1.0).transpose(0, 2, 3, 1),
        2, 1.0, layout="NHWC",
    )  # fmt: skip
    yield row("vision.roi_align", [t(2, 1, 1, 1), t(3, 5, fill=regions)],
              lambda x, r: align(x, r, (1, 1), 1.0), 1, 1.0, note="one pixel")  # fmt: skip


def pool(data, rois, size, scale=1.0):
    """The largest pixel of each bin, whose edges are rounded outwards from the region's pixels."""
    made = np.zeros((len(rois), data.shape[1], *size), data.dtype)
    for number, (batch, *box) in enumerate(rois):
        x1, y1, x2, y2 = [int(np.round(np.float32(edge) * np.float32(scale))) for edge in box]
        for ph, pw in np.ndindex(*size):
            spans = []
            for low, high, index, count in ((y1, y2, ph, size[0]), (x1, x2, pw, size[1])):
                step = max(high - low + 1, 1) / count
                spans.append((low + math.floor(index * step + 1e-9),
                              low + math.ceil((index + 1) * step - 1e-9)))  # fmt: skip
            pixels = [
                data[int(batch), :, y, x] for y in range(*spans[0]) for x in range(*spans[1])
                if 0 <= y < data.shape[2] and 0 <= x < data.shape[3]
            ]  # fmt: skip
            if pixels:
                made[number, :, ph, pw] = np.max(pixels, 0)
    return made


def pools():
    for dtype in ("float32", "float16"):
        yield row("vision.roi_pool", [t(2, 3, 6, 7, dtype=dtype), t("n", 5, dtype=dtype,
                  fill=regions)], lambda x, r: pool(x, r, (3, 2), 0.5), (3, 2), 0.5,
                  sizes=N)  # fmt: skip
    far = t(2, 5, fill=[0.0, 9.0, 9.0, 12.0, 12.0, 0.0, -3.0, 2.0, 1.0, 1.0])
    yield row("vision.roi_pool", [t(1, "c", 4, 4), far], lambda x, r: pool(x, r, (2, 2)), 2,
              sizes=({"c": 0}, {"c": 3}), note="bins without pixels")  # fmt: skip


TABLE = Table([*suppressions(), *alignments(), *pools()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_detection(case):
    TABLE.check(case)
