"""References of operators for object detection."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from weft.relax.op.reference.index import check_indices
from weft.relax.op.reference.rule import by_wide


def _overlap(box: np.ndarray, other: np.ndarray) -> float:
    """Intersection over union of two boxes given by opposite corners; 0 for boxes without area."""
    low, high = np.sort(box.reshape(2, 2), axis=0)
    its_low, its_high = np.sort(other.reshape(2, 2), axis=0)
    reach = np.maximum(np.minimum(high, its_high) - np.maximum(low, its_low), 0)
    shared = np.prod(reach)
    union = np.prod(high - low) + np.prod(its_high - its_low) - shared
    return float(shared / union) if union > 0 else 0.0


def _kept(
    boxes: np.ndarray, scores: np.ndarray, most: int, threshold: float, least: float
) -> list[int]:
    """The boxes of one class that are kept, by descending score."""
    kept: list[int] = []
    for box in np.argsort(-scores, kind="stable").tolist():
        if not scores[box] > least or len(kept) >= most:
            continue
        if all(_overlap(boxes[box], boxes[other]) <= threshold for other in kept):
            kept.append(box)
    return kept


def non_max_suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    most: np.ndarray,
    threshold: np.ndarray,
    least: np.ndarray,
    output_format: str = "onnx",
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of every batch and class that overlap no box of a higher score."""
    del output_format  # infer_nms accepts only "onnx"
    limits = (int(most.item()), float(threshold.item()), float(least.item()))
    rows = [
        (batch, number, box)
        for batch in range(scores.shape[0])
        for number in range(scores.shape[1])
        for box in _kept(boxes[batch], scores[batch, number], *limits)
    ]
    kept = np.zeros((scores.size, 3), "int64")
    kept[: len(rows)] = np.array(rows, "int64").reshape(-1, 3)
    return kept, np.array([len(rows)], "int64")


def _neighbours(image: np.ndarray, row: float, column: float) -> np.ndarray:
    """The weighted neighbours (channels, 4) of a point; 0 if it is over a pixel outside."""
    height, width = image.shape[1:]
    if not (-1 <= row <= height and -1 <= column <= width):
        return np.zeros((image.shape[0], 4))
    row, column = min(max(row, 0), height - 1), min(max(column, 0), width - 1)
    top, left = int(row), int(column)
    rows, columns = [top, min(top + 1, height - 1)], [left, min(left + 1, width - 1)]
    weights = np.outer([1 - (row - top), row - top], [1 - (column - left), column - left])
    return np.asarray((image[:, rows][:, :, columns] * weights).reshape(-1, 4))


@by_wide
def roi_align(
    data: np.ndarray,
    rois: np.ndarray,
    pooled_size: Sequence[int],
    spatial_scale: float,
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
    mode: str = "avg",
) -> np.ndarray:
    """The mean or the maximum of interpolated samples in each bin of each region."""
    images = data.transpose([layout.index(letter) for letter in "NCHW"])
    aligned_regions = np.zeros((len(rois), images.shape[1], *pooled_size))
    check_indices(rois[:, 0].astype(np.int64), 0, len(images), "roi_align")
    for number, region in enumerate(rois):
        corners = region[1:] * spatial_scale - (0.5 if aligned else 0.0)
        starts, lengths = corners[1::-1], (corners[2:] - corners[:2])[::-1]
        steps = (lengths if aligned else np.maximum(lengths, 1)) / np.array(pooled_size)
        counts = [sample_ratio if sample_ratio > 0 else max(math.ceil(s), 0) for s in steps]
        for place in np.ndindex(*pooled_size):
            points = [
                starts + steps * (np.array(place) + (np.array(sample) + 0.5) / np.array(counts))
                for sample in np.ndindex(*counts)
            ]
            parts = [_neighbours(images[int(region[0])], *point) for point in points]
            values = [part.max(1) if mode == "max_neighbour" else part.sum(1) for part in parts]
            empty = np.full(images.shape[1], 0.0 if mode == "avg" else -np.inf)
            pooled = np.mean(values or [empty], 0) if mode == "avg" else np.max([*values, empty], 0)
            aligned_regions[(number, slice(None), *place)] = pooled
    return aligned_regions.transpose(["NCHW".index(letter) for letter in layout])


def _bin_edges(low: int, high: int, bins: int, extent: int) -> list[tuple[int, int]]:
    """For each bin, its first pixel and the one after its last; bins are rounded outwards."""
    length = max(high - low + 1, 1)
    return [
        (
            min(max(low + index * length // bins, 0), extent),
            min(max(low - (-(index + 1) * length // bins), 0), extent),
        )
        for index in range(bins)
    ]


def roi_pool(
    data: np.ndarray, rois: np.ndarray, pooled_size: Sequence[int], spatial_scale: float = 1.0
) -> np.ndarray:
    """The largest element of each bin of each region, whose edges are rounded; 0 if it is empty."""
    pooled = np.zeros((len(rois), data.shape[1], *pooled_size), data.dtype)
    check_indices(rois[:, 0].astype(np.int64), 0, len(data), "roi_pool")
    for number, region in enumerate(rois):
        left, top, right, bottom = np.rint(region[1:] * rois.dtype.type(spatial_scale)).astype(int)
        rows = _bin_edges(top, bottom, pooled_size[0], data.shape[2])
        columns = _bin_edges(left, right, pooled_size[1], data.shape[3])
        for place in np.ndindex(*pooled_size):
            (first, last), (start, end) = rows[place[0]], columns[place[1]]
            part = data[int(region[0]), :, first:last, start:end]
            if part.size:
                pooled[(number, slice(None), *place)] = part.max((1, 2))
    return pooled
