"""Struct-info rules of images and of object detection."""

import re

import pytest

from tests.lib.rule_cases import check_rule
from weft.relax import op
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N, M = TirVar("n", "int64"), TirVar("m", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


IMAGE = tensor(2, 3, 6, 5)
NMS = [tensor(2, 7, 4), tensor(2, 3, 7), tensor(dtype="int64"), tensor(), tensor(1)]

RULES = {
    "resize1d": (lambda x: op.image.resize1d(x, 9), [tensor(2, 3, 6)], tensor(2, 3, 9)),
    "resize2d": (lambda x: op.image.resize2d(x, (8, 9)), [IMAGE], tensor(2, 3, 8, 9)),
    "resize2d_nhwc": (lambda x: op.image.resize2d(x, [8], layout="NHWC", out_dtype="float64"),
                      [tensor(2, 6, 5, 3)], tensor(2, 8, 8, 3, dtype="float64")),
    "resize3d": (lambda x: op.image.resize3d(x, (7, 8, 9)), [tensor(2, 3, 4, 6, 5)],
                 tensor(2, 3, 7, 8, 9)),
    "grid_sample": (op.image.grid_sample, [IMAGE, tensor(2, 2, 8, 9)], tensor(2, 3, 8, 9)),
    "grid_sample_volume": (lambda x, g: op.image.grid_sample(x, g, layout="NDHWC"),
                           [tensor(2, 4, 5, 6, 3), tensor(2, 3, 7, 8, 9)],
                           tensor(2, 7, 8, 9, 3)),
    "affine_grid": (lambda x: op.image.affine_grid(x, (8, 9)), [tensor(2, 2, 3)],
                    tensor(2, 2, 8, 9)),
    "affine_grid_volume": (lambda x: op.image.affine_grid(x, (7, 8, 9)), [tensor(2, 3, 4)],
                           tensor(2, 3, 7, 8, 9)),
    "roi_align": (lambda x, r: op.vision.roi_align(x, r, (3, 4), 0.5), [IMAGE, tensor(9, 5)],
                  tensor(9, 3, 3, 4)),
    "nms": (op.vision.all_class_non_max_suppression, NMS,
            TupleStructInfo([tensor(42, 3, dtype="int64"), tensor(1, dtype="int64")])),
}  # fmt: skip

SYMBOLIC = [
    (lambda x: op.image.resize2d(x, (N, N * 2)), [tensor(2, 3, N, M)], tensor(2, 3, N, N * 2)),
    (lambda x: op.image.affine_grid(x, M), [tensor(N, 2, M)], tensor(N, 2, M, M)),
    (op.image.grid_sample, [tensor(N, 3, 6, 5), tensor(N, 2, M, M)], tensor(N, 3, M, M)),
    (lambda x, r: op.vision.roi_align(x, r, 2, 1.0), [tensor(1, M, 4, 4), tensor(N, 5)],
     tensor(N, M, 2, 2)),
]  # fmt: skip

ERRORS = [
    (lambda x: op.image.resize2d(x, (1, 2, 3)), [IMAGE], IRValueError,
     "relax.image.resize2d: size: expected 2 extents, got 3"),
    (lambda x: op.image.resize2d(x, 3, method="area"), [IMAGE], IRValueError,
     "method: expected nearest_neighbor, linear, cubic, got 'area'"),
    (lambda x: op.image.resize2d(x, 3, coordinate_transformation_mode="half"), [IMAGE],
     IRValueError, "coordinate_transformation_mode: expected half_pixel, align_corners"),
    (lambda x: op.image.resize3d(x, 3), [IMAGE], IRValueError, "expected 5 dimensions, got 4"),
    (lambda x: op.image.resize2d(x, op.zeros((2,), "int64")), [IMAGE], IRTypeError,
     "size: expected a shape"),
    (op.image.grid_sample, [IMAGE, tensor(2, 8, 9, 2)], IRValueError,
     "relax.image.grid_sample: grid: expected 2 coordinates along axis 1, got (2, 8, 9, 2)"),
    (op.image.grid_sample, [IMAGE, tensor(3, 2, 8, 9)], IRValueError,
     "the batches of data and grid must be equal, got 2 and 3"),
    (lambda x, g: op.image.grid_sample(x, g, "bicubic", "NCDHW"),
     [tensor(1, 1, 2, 2, 2), tensor(1, 3, 2, 2, 2)], IRValueError,
     "method: expected nearest, bilinear, got 'bicubic'"),
    (lambda x, g: op.image.grid_sample(x, g, padding_mode="wrap"), [IMAGE, tensor(2, 2, 8, 9)],
     IRValueError, "padding_mode: expected zeros, border, reflection, got 'wrap'"),
    (lambda x: op.image.affine_grid(x, (2, 2)), [tensor(2, 3, 4)], IRValueError,
     "expected (batch, 2, 3) for 2 extents, got (2, 3, 4)"),
    (lambda x: op.image.affine_grid(x, 2), [tensor(2, 2, 3, dtype="int32")], IRTypeError,
     "expected a floating-point type, got int32"),
    (lambda x, r: op.vision.roi_align(x, r, 2, 1.0), [IMAGE, tensor(9, 4)], IRValueError,
     "relax.vision.roi_align: rois: expected (regions, 5), got (9, 4)"),
    (lambda x, r: op.vision.roi_align(x, r, 2, 1.0, mode="sum"), [IMAGE, tensor(9, 5)],
     IRValueError, "mode: expected avg, max or max_neighbour, got 'sum'"),
    (lambda x, r: op.vision.roi_align(x, r, 0, 1.0), [IMAGE, tensor(9, 5)], IRValueError,
     "pooled_size: expected numbers of 1 or more"),
    (lambda x, r: op.vision.roi_pool(x, r, 0), [IMAGE, tensor(9, 5)], IRValueError,
     "relax.vision.roi_pool: pooled_size: expected numbers of 1 or more"),
    (lambda x, r: op.vision.roi_pool(x, r, 2), [IMAGE, tensor(9, 4)], IRValueError,
     "relax.vision.roi_pool: rois: expected (regions, 5), got (9, 4)"),
    (lambda x, r: op.vision.roi_pool(x, r, 2), [IMAGE, tensor(9, 5, dtype="float16")],
     IRTypeError, "the data types must be equal, got float32 and float16"),
    (op.image.weighted_taps, [tensor(4, 3), tensor(5, 2), tensor(5, 2)], IRTypeError,
     "relax.image.weighted_taps: indices: expected integers, got float32"),
    (op.image.weighted_taps, [tensor(4, 3), tensor(5, 2, dtype="int64"), tensor(5, 1)],
     IRValueError, "weights: expected the shape (5, 2), got (5, 1)"),
    (op.image.weighted_taps, [tensor(), tensor(5, 2, dtype="int64"), tensor(5, 2)], IRValueError,
     "data: expected at least 1 dimension, got 0"),
    (op.vision.all_class_non_max_suppression, [tensor(2, 8, 4), *NMS[1:]], IRValueError,
     "boxes (2, 8, 4) and scores (2, 3, 7)"),
    (op.vision.all_class_non_max_suppression, [tensor(2, 7, 5), *NMS[1:]], IRValueError,
     "boxes: expected (batch, boxes, 4), got (2, 7, 5)"),
    (op.vision.all_class_non_max_suppression, [*NMS[:2], tensor(), *NMS[3:]], IRTypeError,
     "max_output_boxes_per_class: expected an integer, got float32"),
    (op.vision.all_class_non_max_suppression, [*NMS[:4], tensor(2)], IRValueError,
     "score_threshold: expected a scalar"),
    (lambda *a: op.vision.all_class_non_max_suppression(*a, output_format="tensorflow"), NMS,
     IRValueError, "output_format: expected onnx, got 'tensorflow'"),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule(name, infer):
    make, infos, expected = RULES[name]
    check_rule(infer, make, infos, expected)


@pytest.mark.parametrize(("make", "infos", "expected"), SYMBOLIC)
def test_symbolic_results(make, infos, expected, infer):
    assert infer(make, *infos) == expected


@pytest.mark.parametrize(("make", "infos", "error", "message"), ERRORS)
def test_errors_name_the_operator_and_the_numbers(make, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(make, *infos)
