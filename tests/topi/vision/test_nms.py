import numpy as np
import pytest

from weft import te, topi


def scalar(value, dtype="float32"):
    return np.array(value, dtype)


def test_overlapping_boxes_of_a_class_are_dropped(check):
    """The first two boxes overlap by 0.6, the third one is apart; each class is for itself."""
    boxes = np.array([[[0, 0, 4, 4], [0, 1, 4, 5], [9, 9, 5, 5]]], "float32")
    scores = np.array([[[0.9, 0.8, 0.1], [0.2, 0.3, 0.4]]], "float32")
    rows = np.zeros((6, 3), "int64")
    rows[:4] = [[0, 0, 0], [0, 0, 2], [0, 1, 2], [0, 1, 1]]
    operands = [boxes, scores, scalar(9, "int64"), scalar(0.5), scalar(0.0)]
    check(topi.vision.all_class_non_max_suppression, operands, [rows, np.array([4])])


def test_limits(check):
    boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]], "float32")
    scores = np.array([[[0.9, 0.8, 0.7]]], "float32")
    most = [boxes, scores, scalar(2, "int64"), scalar(0.5), scalar(0.0)]
    check(topi.vision.all_class_non_max_suppression, most,
          [np.array([[0, 0, 0], [0, 0, 1], [0, 0, 0]]), np.array([2])])  # fmt: skip
    least = [boxes, scores, scalar(9, "int64"), scalar(0.5), scalar(0.85)]
    check(topi.vision.all_class_non_max_suppression, least,
          [np.zeros((3, 3)), np.array([1])])  # fmt: skip


def test_shapes_that_do_not_fit():
    one = te.placeholder((), "float32")
    with pytest.raises(ValueError, match=r"expected boxes \(batch, n, 4\) and scores"):
        topi.vision.all_class_non_max_suppression(
            te.placeholder((1, 3, 4)), te.placeholder((1, 2, 5)), one, one, one
        )
