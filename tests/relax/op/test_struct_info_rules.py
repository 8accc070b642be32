"""Struct-info rules: every operator on static, symbolic, rank-only and unknown shapes; errors."""

import re

import numpy as np
import pytest

from weft import relax
from weft.relax import op
from weft.relax.ir.lattice import BaseCheckResult, struct_info_base_check
from weft.relax.op.definition import FUNCTIONS
from weft.relax.op.selection import masked_fill
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.script import tir as T
from weft.support.errors import IRIndexError, IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N, M = TirVar("n", "int64"), TirVar("m", "int64")
X = TensorStructInfo((2, 3, 4), "float32")
MATRIX = TensorStructInfo((3, 4), "float32")
VECTOR = TensorStructInfo((3,), "float32")
INDICES = TensorStructInfo((5,), "int64")
IMAGE = TensorStructInfo((2, 3, 6, 5), "float32")
WEIGHT = TensorStructInfo((4, 3, 3, 2), "float32")
BOOLS = TensorStructInfo((2, 3, 4), "bool")
SCALAR = TensorStructInfo((), "float32")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


RULES = {
    "add": (op.add, [X, MATRIX], X),
    "greater": (op.greater, [X, VECTOR.__class__((4,))], BOOLS),
    "logical_and": (op.logical_and, [BOOLS, BOOLS], BOOLS),
    "bitwise_xor": (op.bitwise_xor, [INDICES, INDICES], INDICES),
    "exp": (op.exp, [X], X),
    "isnan": (op.isnan, [X], BOOLS),
    "clip": (lambda x: op.clip(x, 0, 1), [X], X),
    "where": (op.where, [BOOLS, X, MATRIX], X),
    "ewise_fma": (op.ewise_fma, [X, X, X], X),
    "astype": (lambda x: op.astype(x, "bool"), [X], BOOLS),
    "sum": (lambda x: op.sum(x, [0, 2]), [X], VECTOR),
    "mean": (lambda x: op.mean(x, -1, True), [X], tensor(2, 3, 1)),
    "max": (op.max, [X], SCALAR),
    "argmax": (lambda x: op.argmax(x, 0), [X], tensor(3, 4, dtype="int64")),
    "cumsum": (op.cumsum, [X], tensor(24)),
    "matmul": (op.matmul, [X, tensor(4, 5)], tensor(2, 3, 5)),
    "matmul_vectors": (op.matmul, [tensor(4), tensor(4)], SCALAR),
    "matmul_batches": (op.matmul, [tensor(7, 1, 2, 3), tensor(5, 3, 4)], tensor(7, 5, 2, 4)),
    "dense": (op.nn.dense, [X, tensor(5, 4)], tensor(2, 3, 5)),
    "einsum": (lambda x, y: op.einsum([x, y], "bij,jk->bik"), [X, tensor(4, 5)], tensor(2, 3, 5)),
    "outer": (op.outer, [VECTOR, tensor(4)], MATRIX),
    "broadcast_to": (lambda x: op.broadcast_to(x, (2, 3, 4)), [MATRIX], X),
    "reshape": (lambda x: op.reshape(x, (6, 4)), [X], tensor(6, 4)),
    "flatten": (op.flatten, [X], tensor(24)),
    "concat": (lambda x, y: op.concat([x, y], -1), [X, X], tensor(2, 3, 8)),
    "stack": (lambda x, y: op.stack([x, y], 1), [MATRIX, MATRIX], tensor(3, 2, 4)),
    "expand_dims": (lambda x: op.expand_dims(x, [0, -1]), [MATRIX], tensor(1, 3, 4, 1)),
    "permute_dims": (op.permute_dims, [X], tensor(4, 3, 2)),
    "split": (lambda x: op.split(x, 3, 1), [X], TupleStructInfo([tensor(2, 1, 4)] * 3)),
    "split_at": (lambda x: op.split(x, [1], 2), [X],
                 TupleStructInfo([tensor(2, 3, 1), tensor(2, 3, 3)])),
    "squeeze": (lambda x: op.squeeze(x, [0]), [tensor(1, 3, 4)], MATRIX),
    "repeat": (lambda x: op.repeat(x, 2, 0), [MATRIX], tensor(6, 4)),
    "tile": (lambda x: op.tile(x, (2, 1, 3)), [MATRIX], tensor(2, 3, 12)),
    "flip": (lambda x: op.flip(x, 0), [X], X),
    "take": (lambda x, i: op.take(x, i, 1), [X, INDICES], tensor(2, 5, 4)),
    "strided_slice": (lambda x: op.strided_slice(x, [1], [0], [3], [2]), [X], tensor(2, 2, 4)),
    "gather_elements": (lambda x, i: op.gather_elements(x, i), [VECTOR, INDICES], tensor(5)),
    "gather_nd": (op.gather_nd, [X, tensor(5, 2, dtype="int64")], tensor(5, 4)),
    "scatter_elements": (op.scatter_elements, [VECTOR, INDICES, tensor(5)], VECTOR),
    "scatter_nd": (op.scatter_nd, [X, tensor(5, 2, dtype="int64"), tensor(5, 4)], X),
    "index_tensor": (lambda x, i, j: op.index_tensor(x, [i, j]),
                     [X, tensor(5, 1, dtype="int64"), tensor(6, dtype="int32")], tensor(5, 6, 4)),
    "index_put": (lambda x, i, v: op.index_put(x, [i], v), [X, INDICES, tensor(5, 1, 4)], X),
    "slice_scatter": (lambda x, s: op.slice_scatter(x, s, 0, 3, 2, 1), [X, tensor(2, 2, 4)], X),
    "masked_scatter": (op.masked_scatter, [X, BOOLS, tensor(5)], X),
    "meshgrid": (lambda x, y: op.meshgrid([x, y], "xy"), [VECTOR, tensor(4)],
                 TupleStructInfo([tensor(4, 3)] * 2)),
    "median": (lambda x: op.median(x, [0, 2], True), [X], tensor(1, 3, 1)),
    "median_axis": (lambda x: op.median(x, -1), [X],
                    TupleStructInfo([tensor(2, 3), tensor(2, 3, dtype="int64")])),
    "multinomial": (op.multinomial_from_uniform,
                    [MATRIX, tensor(5, 1), tensor(5, 1, dtype="int64")],
                    tensor(5, 1, dtype="int64")),
    "masked_fill": (lambda x, m: masked_fill(x, m, 0.0), [X, BOOLS], X),
    "std": (lambda x: op.std(x, [1]), [X], tensor(2, 4)),
    "variance": (op.variance, [X], SCALAR),
    "prod": (lambda x: op.prod(x, [-1]), [X], tensor(2, 3)),
    "min": (lambda x: op.min(x, keepdims=True), [X], tensor(1, 1, 1)),
    "argmin": (lambda x: op.argmin(x, -1, True), [X], tensor(2, 3, 1, dtype="int64")),
    "cumprod": (lambda x: op.cumprod(x, 1, "float64"), [X], tensor(2, 3, 4, dtype="float64")),
    "triu": (op.triu, [X], X),
    "eye_like": (lambda x: op.eye_like(x, 1, "int8"), [MATRIX], tensor(3, 4, dtype="int8")),
    "ones_like": (op.ones_like, [X], X),
    "collapse_sum_to": (lambda x: op.collapse_sum_to(x, (3, 1)), [X], tensor(3, 1)),
    "collapse_sum_like": (op.collapse_sum_like, [X, tensor(1, 4)], tensor(1, 4)),
    "linear": (op.linear, [X, tensor(5, 4), tensor(5)], tensor(2, 3, 5)),
    "left_shift": (op.left_shift, [INDICES, INDICES], INDICES),
    "log_add_exp": (op.log_add_exp, [X, MATRIX], X),
    "nonzero": (op.nonzero, [X], TensorStructInfo(None, "int64", ndim=2)),
    "unique": (lambda x: op.unique(x, return_counts=True), [X],
               TupleStructInfo([TensorStructInfo(None, "float32", ndim=1),
                                TensorStructInfo(None, "int64", ndim=1)])),
    "dynamic_strided_slice": (op.dynamic_strided_slice,
                              [X, *[tensor(3, dtype="int64")] * 3],
                              TensorStructInfo(None, "float32", ndim=3)),
    "layout_transform": (lambda x: op.layout_transform(x, lambda i, j: (j, i // 2, i % 2)),
                         [tensor(6, 4)], tensor(4, 3, 2)),
    "one_hot": (lambda i: op.one_hot(i, relax.PrimValue(1), relax.PrimValue(0), 7), [INDICES],
                tensor(5, 7, dtype="int64")),
    "full_like": (lambda x: op.full_like(x, 1.0), [X], X),
    "zeros_like": (lambda x: op.zeros_like(x, "bool"), [X], BOOLS),
    "tril": (op.tril, [X], X),
    "sort": (op.sort, [X], X),
    "argsort": (op.argsort, [X], tensor(2, 3, 4, dtype="int32")),
    "topk": (lambda x: op.topk(x, 2, 1), [X],
             TupleStructInfo([tensor(2, 2, 4), tensor(2, 2, 4, dtype="int32")])),
    "bucketize": (op.bucketize, [X, VECTOR], tensor(2, 3, 4, dtype="int64")),
    "shape_of": (op.shape_of, [X], ShapeStructInfo((2, 3, 4))),
    "relu": (op.nn.relu, [X], X),
    "softmax": (op.nn.softmax, [X], X),
    "prelu": (op.nn.prelu, [X, VECTOR], X),
    "conv2d": (lambda x, w: op.nn.conv2d(x, w, 2, (1, 0)), [IMAGE, WEIGHT], tensor(2, 4, 3, 2)),
    "conv2d_groups": (lambda x, w: op.nn.conv2d(x, w, groups=3),
                      [IMAGE, tensor(6, 1, 3, 3)], tensor(2, 6, 4, 3)),
    "conv2d_nhwc": (lambda x, w: op.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO",
                                              out_layout="NCHW"),
                    [tensor(2, 6, 5, 3), tensor(3, 2, 3, 4)], tensor(2, 4, 4, 4)),
    "conv2d_blocked": (lambda x, w: op.nn.conv2d(x, w, data_layout="NCHW4c",
                                                 kernel_layout="OIHW4o"),
                       [tensor(2, 2, 6, 5, 4), tensor(2, 8, 3, 2, 4)], tensor(2, 2, 4, 4, 4)),
    "conv2d_transpose": (lambda x, w: op.nn.conv2d_transpose(x, w, strides=2),
                         [IMAGE, tensor(3, 4, 3, 3)], tensor(2, 4, 13, 11)),
    "max_pool2d": (lambda x: op.nn.max_pool2d(x, 2, 2, ceil_mode=True), [IMAGE],
                   tensor(2, 3, 3, 3)),
    "adaptive_avg_pool2d": (lambda x: op.nn.adaptive_avg_pool2d(x, 1), [IMAGE], tensor(2, 3, 1, 1)),
    "batch_norm": (lambda *a: op.nn.batch_norm(*a, axis=1), [X, VECTOR, VECTOR, VECTOR, VECTOR],
                   TupleStructInfo([X, VECTOR, VECTOR])),
    "layer_norm": (lambda *a: op.nn.layer_norm(*a, axes=[1, 2]), [X, MATRIX, MATRIX], X),
    "group_norm": (lambda *a: op.nn.group_norm(*a, 3, 1, [2, 3]), [IMAGE, VECTOR, VECTOR], IMAGE),
    "rms_norm": (lambda *a: op.nn.rms_norm(*a, axes=-2), [X, VECTOR], X),
    "dropout": (op.nn.dropout, [X], TupleStructInfo([X, X])),
    "attention": (op.nn.attention, [tensor(2, 3, 4, 5), tensor(2, 7, 4, 5), tensor(2, 7, 4, 6)],
                  tensor(2, 3, 4, 6)),
    "nll_loss": (op.nn.nll_loss, [MATRIX, tensor(3, dtype="int64")], SCALAR),
    "cross_entropy": (op.nn.cross_entropy_with_logits, [MATRIX, MATRIX], SCALAR),
    "pad": (lambda x: op.nn.pad(x, [(0, 0), (1, 2), (0, 0)]), [X], tensor(2, 6, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_static_shapes(name, infer):
    make, infos, expected = RULES[name]
    assert infer(make, *infos) == expected


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize("kind", ["rank", "unknown", "dtype"])
def test_less_known_input_gives_a_more_general_result(name, kind, infer):
    make, infos, expected = RULES[name]
    for index, info in enumerate(infos):
        less = {
            "rank": TensorStructInfo(None, info.dtype, ndim=info.ndim),
            "unknown": TensorStructInfo(None, info.dtype),
            "dtype": TensorStructInfo(info.shape, ""),
        }[kind]
        general = infer(make, *infos[:index], less, *infos[index + 1 :])
        assert general.is_base_of(expected), f"argument {index}: {general}"


@pytest.mark.parametrize("name", sorted(RULES))
def test_symbolic_dimension_contradicts_nothing(name, infer):
    make, infos, expected = RULES[name]
    for index, info in enumerate(infos):
        for axis in range(info.ndim):
            dims = list(info.shape.values)
            dims[axis] = TirVar("n", "int64")
            less = TensorStructInfo(dims, info.dtype)
            general = infer(make, *infos[:index], less, *infos[index + 1 :])
            check = struct_info_base_check(general, expected)
            assert check != BaseCheckResult.FAIL_L0, f"argument {index} axis {axis}: {general}"


@pytest.mark.parametrize(
    ("make", "info", "expected"),
    [
        (lambda x: op.concat([x, x]), tensor(N, 4), tensor(N * 2, 4)),
        (lambda x: op.reshape(x, (-1, 2)), tensor(N, 4), tensor(N * 2, 2)),
        (op.flatten, tensor(N, 4), tensor(N * 4)),
        (lambda x: op.matmul(x, op.permute_dims(x)), tensor(N, 4), tensor(N, N)),
        (lambda x: op.nn.conv1d(x, op.zeros((5, 3, 3), "float32"), padding=1), tensor(2, 3, N),
         tensor(2, 5, N)),
        (lambda x: op.nn.max_pool1d(op.concat([x, x], 2), 2, 2), tensor(2, 3, N), tensor(2, 3, N)),
        (lambda x: relax.TupleGetItem(op.split(op.concat([x, x]), 2), 0), tensor(N), tensor(N)),
        (lambda x: op.strided_slice(x, [0], [1], [N]), tensor(N), None),
        (lambda x: op.add(x, x), tensor(N, M), tensor(N, M)),
        (lambda x: op.tile(x, [3]), tensor(N), tensor(N * 3)),
        (lambda x: op.repeat(x, 2, 0), tensor(N + 1, 3), tensor(N * 2 + 2, 3)),
        (lambda x: op.reshape(x, (-1, 4)), tensor(N * 4), tensor(N, 4)),
        (lambda x: op.reshape(x, (M, 2, -1)), tensor(N, M * 4), tensor(M, 2, N * 2)),
        (lambda x: op.argmax(x, keepdims=True), tensor(N, M), tensor(1, 1, dtype="int64")),
        (lambda x: op.strided_slice(x, [0], [M], [8]), tensor(8),
         tensor(8 - T.min(T.max(T.if_then_else(M < 0, M + 8, M), 0), 8))),
        (lambda x: op.split(x, 1), tensor(N, M), tensor(N, M)),
        (lambda x: op.less(x, op.zeros((N,), "int32")), tensor(N), tensor(N, dtype="bool")),
        (lambda x: op.reshape(x, (N // 2, -1)), tensor(N // 2 * 3), tensor(N // 2, 3)),
        (lambda x: op.strided_slice(x, [0], [0], [N]), tensor(N + 1), None),
        (lambda x: op.strided_slice(x, [0], [1], [1 << 40], [2]), tensor(N * 2), None),
        (lambda x: op.sum(x, 1, True), tensor(N + 1, M), tensor(N + 1, 1)),
        (lambda x: op.stack([x, x], -1), tensor(N // 2), tensor(N // 2, 2)),
        (lambda x: op.index_tensor(x, [op.zeros((N, 1), "int64"), op.zeros((M,), "int32")]),
         tensor(7, 8, M), tensor(N, M, M)),
        (lambda x: op.take(x, op.zeros((M, 2), "int64"), 0), tensor(N * 4, 3), tensor(M, 2, 3)),
        (lambda x: op.one_hot(x, relax.PrimValue(1.0), relax.PrimValue(0.0), 5, 0),
         tensor(N + 1, dtype="int32"), tensor(5, N + 1)),
        (lambda x: relax.TupleGetItem(op.meshgrid([x, x]), 1), tensor(N * 2), tensor(N * 2, N * 2)),
        (lambda x: op.matmul(x, op.zeros((M, 3), "float32")), tensor(2, N + 1, M),
         tensor(2, N + 1, 3)),
        (lambda x: op.einsum([x, x], "ij,kj->ik"), tensor(N * 4, M), tensor(N * 4, N * 4)),
        (lambda x: op.outer(x, x), tensor(N // 2), tensor(N // 2, N // 2)),
        (lambda x: op.collapse_sum_to(x, (1, M)), tensor(N + 1, M), tensor(1, M)),
        (lambda x: op.median(x, [0, 1]), tensor(N, M), SCALAR),
        (lambda x: op.slice_scatter(x, op.zeros((N,), "float32"), 0, N), tensor(N + 1),
         tensor(N + 1)),
        (lambda x: op.hamming_window(N + 1, True, 0.5, 0.5, "float32"), tensor(N), tensor(N + 1)),
        (lambda x: op.gather_nd(x, op.zeros((M, 1), "int64")), tensor(N, 4), tensor(M, 4)),
        (lambda x: op.layout_transform(x, lambda i, j: (j, i)), tensor(N + 1, 4), tensor(4, N + 1)),
    ],
)  # fmt: skip
def test_symbolic_results(make, info, expected, infer):
    symbols = ShapeStructInfo((N, M))
    got = infer(lambda x, _: make(x), info, symbols)
    assert got.ndim == 1 if expected is None else got == expected


def test_made_from_nothing(infer):
    assert infer(lambda x: op.full((2, N), 1.0, "int8"), tensor(N)) == tensor(2, N, dtype="int8")
    assert infer(lambda x: op.arange(3, 10, 2), X) == tensor(4, dtype="int64")
    assert infer(lambda x: op.arange(N), tensor(N)) == tensor(N, dtype="int64")
    assert infer(lambda x: op.arange(0.0, 1.0, 0.25), X) == tensor(4)
    assert infer(lambda x: op.eye(2, 3, dtype="int32"), X) == tensor(2, 3, dtype="int32")
    assert infer(lambda x: op.ones((2,), "bool"), X) == tensor(2, dtype="bool")


def test_numbers_take_the_tensor_dtype(infer):
    half = tensor(2, dtype="float16")
    assert infer(lambda x: 2 * x + 1.5, half) == half
    assert infer(lambda x: -x / 3 - 1, half) == half
    assert infer(lambda x: x >= 0, half) == tensor(2, dtype="bool")


def test_reshape_completes_the_shape(infer):
    assert infer(lambda x: op.reshape(x, (0, -1)), X) == tensor(2, 12)
    assert infer(lambda x: op.reshape(x, -1), X) == tensor(24)


def test_calls_across_levels(infer):
    out = infer(lambda x: op.call_dps_packed("env.f", (x,), X), X)
    assert out == X
    out = infer(lambda x: op.call_dps_packed("env.f", x, [X, MATRIX]), X)
    assert out == TupleStructInfo([X, MATRIX])
    out = infer(lambda x: op.call_pure_packed("env.f", x, 3, "text", sinfo_args=MATRIX), X)
    assert out == MATRIX


ERRORS = [
    (lambda x: op.add(x, op.zeros((2, 3), "float32")), IRValueError,
     "relax.add: cannot broadcast the shapes (2, 3, 4) and (2, 3): 4 and 3 at axis -1"),
    (lambda x: op.add(x, op.astype(x, "int8")), IRTypeError,
     "relax.add: the data types must be equal, got float32 and int8; use astype"),
    (lambda x: op.sum(x, 3), IRIndexError,
     "relax.sum: axis 3 is out of range for a tensor of 3 dimensions, expected -3 <= axis < 3"),
    (lambda x: op.sum(x, [1, 1]), IRValueError, "axis [1, 1] names one axis twice"),
    (lambda x: op.matmul(x, op.zeros((3, 4), "float32")), IRValueError,
     "relax.matmul: the inner dimensions 4 and 3 of (2, 3, 4) and (3, 4) must be equal"),
    (lambda x: op.nn.dense(x, op.zeros((5, 3), "float32")), IRValueError,
     "relax.nn.dense: the last dimension of x is 4, that of weight 3"),
    (lambda x: op.reshape(x, (5, 5)), IRValueError,
     "relax.reshape: cannot reshape (2, 3, 4) of 24 elements to (5, 5) of 25"),
    (lambda x: op.reshape(x, (5, -1)), IRValueError,
     "relax.reshape: 24 elements of (2, 3, 4) are not a multiple of 5"),
    (lambda x: op.reshape(x, (-1, -1)), IRValueError, "only one extent may be -1"),
    (lambda x: op.concat([x, op.zeros((2, 4, 4), "float32")], 0), IRValueError,
     "relax.concat: tensor 1 has the shape (2, 4, 4), the first one (2, 3, 4); they may differ "
     "along axis 0 only"),
    (lambda x: op.squeeze(x, [1]), IRValueError, "relax.squeeze: axis 1 has the extent 3"),
    (lambda x: op.permute_dims(x, [0, 1]), IRValueError, "has 2 entries for a tensor of 3"),
    (lambda x: op.exp(op.astype(x, "int8")), IRTypeError,
     "relax.exp: expected a floating-point type, got int8"),
    (lambda x: op.logical_not(x), IRTypeError, "relax.logical_not: expected booleans, got float32"),
    (lambda x: op.bitwise_and(x, x), IRTypeError, "expected integers or booleans, got float32"),
    (lambda x: op.nn.conv2d(x, x), IRValueError,
     "relax.nn.conv2d: data: expected 4 dimensions, got 3"),
    (lambda x: op.nn.conv2d(op.expand_dims(x, 0), op.zeros((1, 3, 1, 1), "float32")), IRValueError,
     "the data has 2 channels, the weight (1, 3, 1, 1) with groups=1 needs 3"),
    (lambda x: op.nn.conv1d(x, op.zeros((1, 3, 5), "float32")), IRValueError,
     "axis 0: the kernel reaches over"),
    (lambda x: op.nn.conv1d_transpose(op.zeros((1, 3, 1), "float32"),
                                      op.zeros((3, 2, 3), "float32"), padding=2), IRValueError,
     "axis 0: the padding takes more than the 3 elements there are"),
    (lambda x: op.nn.conv1d(x, x, data_layout="NHW"), IRValueError,
     "relax.nn.conv1d: data_layout: expected a layout with the axes NCW, got 'NHW'"),
    (lambda x: op.nn.softmax(x, axis=3), IRIndexError, "axis 3 is out of range"),
    (lambda x: op.nn.layer_norm(x, op.zeros((3,), "float32"), op.zeros((3,), "float32"), -1),
     IRValueError, "gamma: expected (4), got (3)"),
    (lambda x: op.take(x, op.zeros((2,), "float32"), 0), IRTypeError,
     "relax.take: indices: expected integers, got float32"),
    (lambda x: op.take(x, op.zeros((2,), "int32")), IRValueError, "axis None needs a tensor of 1"),
    (lambda x: op.split(x, 0), IRValueError, "expected at least 1 section, got 0"),
    (lambda x: op.where(x, x, x), IRTypeError, "condition: expected booleans, got float32"),
    (lambda x: op.zeros((2,), None), IRValueError, "relax.zeros: dtype: expected a data type"),
    (lambda x: op.broadcast_to(x, (3, 4)), IRValueError, "cannot broadcast 3 dimensions to 2"),
    (lambda x: op.sum(op.astype(x, "bool")), IRTypeError,
     "relax.sum: expected numbers, got bool; use astype to count"),
    (lambda x: op.median(x, 5), IRIndexError, "relax.median: axis 5 is out of range"),
    (lambda x: op.gather_elements(x, op.zeros((2, 3), "int64")), IRValueError,
     "relax.gather_elements: expected tensors of one rank"),
    (lambda x: op.gather_elements(x, x), IRTypeError,
     "relax.gather_elements: indices: expected integers, got float32"),
    (lambda x: op.gather_nd(x, op.zeros((2, 4), "int64")), IRValueError,
     "relax.gather_nd: index vectors of 4 after 0 batch dimensions, data has 3"),
    (lambda x: op.gather_nd(x, op.zeros((2,), "int64"), 1), IRValueError,
     "batch_dims: 1 does not fit the indices"),
    (lambda x: op.scatter_elements(x, op.zeros((1, 3, 4), "int64"), x), IRValueError,
     "relax.scatter_elements: updates: expected the shape (1, 3, 4), got (2, 3, 4)"),
    (lambda x: op.full_like(x, op.zeros((1,), "float32")), IRTypeError,
     "relax.full_like: fill_value: expected a scalar tensor, got R.Tensor((1,)"),
    (lambda x: op.reshape(x, (-2, -3, -4)), IRValueError, "expected extents of -1, 0 or more"),
    (lambda x: op.split(x, N), IRTypeError, "expected a constant number of sections, got n"),
    (lambda x: op.collapse_sum_to(x, (2, 2, 4)), IRValueError,
     "relax.collapse_sum_to: cannot collapse (2, 3, 4) to (2, 2, 4)"),
    (lambda x: op.collapse_sum_like(x, relax.ShapeExpr([3, 4])), IRTypeError,
     "relax.collapse_sum_like: collapse_target: expected a tensor, got R.Shape"),
    (lambda x: op.layout_transform(op.astype(x, "int8"), lambda i, j, k: (i, j, k), 1.5),
     IRTypeError, "pad_value: expected int8 as the tensor, got 1.5"),
    (lambda x: op.ewise_fma(x, x, op.zeros((3, 4), "float32")), IRValueError,
     "relax.ewise_fma: expected one shape, got (2, 3, 4) and (3, 4)"),
    (lambda x: op.strided_slice(x, [0], [0], [1], [0]), IRValueError,
     "relax.strided_slice: strides: a stride must not be 0"),
    (lambda x: op.strided_slice(x, [0, 1], [0], [1]), IRValueError,
     "axes, begin and end must be of one length, got [2, 1, 1]"),
    (lambda x: op.dynamic_strided_slice(x, x, x, x), IRTypeError,
     "relax.dynamic_strided_slice: begin: expected integers, got float32"),
    (lambda x: op.take(x, op.zeros((2,), "int32"), 0, "far"), IRValueError,
     "relax.take: mode: expected fast, clip, wrap, nan, got 'far'"),
    (lambda x: op.repeat(x, -1), IRValueError, "relax.repeat: repeats: expected 0 or more, got -1"),
    (lambda x: op.tile(x, [2, -1]), IRValueError, "relax.tile: repeats: expected 0 or more"),
    (lambda x: op.concat([x, op.astype(x, "int8")]), IRTypeError,
     "relax.concat: the data types must be equal, got float32 and int8"),
    (lambda x: op.scatter_nd(x, op.zeros((5, 2), "int64"), op.zeros((5, 3), "float32")),
     IRValueError, "relax.scatter_nd: updates: expected the shape (5, 4), got (5, 3)"),
    (lambda x: op.index_tensor(x, [op.zeros((2,), "bool")]), IRTypeError,
     "relax.index_tensor: indices[0]: expected integers, got bool"),
    (lambda x: op.index_tensor(x, [op.zeros((2,), "int64")] * 4), IRValueError,
     "relax.index_tensor: 4 index tensors for data of 3 dimensions"),
    (lambda x: op.index_tensor(x, []), IRValueError, "expected at least one index tensor"),
    (lambda x: op.index_put(x, [op.zeros((2,), "int64")], op.zeros((4, 3, 4), "float32")),
     IRValueError, "relax.index_put: values: cannot broadcast (4, 3, 4) to (2, 3, 4)"),
    (lambda x: op.slice_scatter(x, x, 0, 1), IRValueError,
     "relax.slice_scatter: src: expected the shape (1, 3, 4), got (2, 3, 4)"),
    (lambda x: op.slice_scatter(x, x, 0, 1, 0), IRValueError, "step: expected 1 or more, got 0"),
    (lambda x: op.masked_scatter(x, x, x), IRTypeError,
     "relax.masked_scatter: mask: expected bool, got float32"),
    (lambda x: op.masked_scatter(x, op.zeros((2, 3), "bool"), x), IRValueError,
     "relax.masked_scatter: mask: expected the shape (2, 3, 4), got (2, 3)"),
    (lambda x: op.meshgrid([x, x]), IRValueError, "vector 0: expected at most 1 dimension"),
    (lambda x: op.meshgrid([], "ij"), IRValueError, "expected at least one vector"),
    (lambda x: op.meshgrid([op.zeros((2,), "float32")], "ji"), IRValueError,
     "relax.meshgrid: indexing: expected 'ij' or 'xy', got 'ji'"),
    (lambda x: op.hamming_window(0, True, 0.5, 0.5, "float32"), IRValueError,
     "window_size: expected 1 or more, got 0"),
    (lambda x: op.hamming_window(4, True, 0.5, 0.5, "int32"), IRTypeError,
     "relax.hamming_window: dtype: expected a float type, got int32"),
    (lambda x: op.one_hot(x, relax.PrimValue(1), relax.PrimValue(0), 3), IRTypeError,
     "relax.one_hot: indices: expected integers, got float32"),
    (lambda x: op.one_hot(op.zeros((2,), "int8"), relax.PrimValue(1), relax.PrimValue(0.0), 3),
     IRTypeError, "relax.one_hot: the data types must be equal, got int64 and float32"),
    (lambda x: op.multinomial_from_uniform(x, x, op.zeros((2, 1), "int64")), IRValueError,
     "relax.multinomial_from_uniform: prob: expected 2 dimensions, got 3"),
    (lambda x: op.assert_op(x), IRTypeError, "relax.assert_op: expected a boolean scalar"),
    (lambda x: op.nn.pad(x, (1, 1)), IRValueError, "pad_width: expected 6 numbers for 3"),
    (lambda x: op.add(x, relax.ShapeExpr([2])), IRTypeError, "x2: expected a tensor, got R.Shape"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), ERRORS)
def test_errors_name_the_numbers(make, error, message, infer):
    with pytest.raises(error, match=re.escape(message)) as caught:
        infer(make, X)
    assert len(str(caught.value).splitlines()) <= 10


def test_errors_of_the_call_itself():
    x = relax.Var("x", X)
    with pytest.raises(IRTypeError, match=r"relax\.add: missing a required argument: 'x2'"):
        op.add(x)
    with pytest.raises(IRTypeError, match=r"relax\.sum: axis: expected an int, got 1\.5"):
        op.sum(x, axis=1.5)
    with pytest.raises(IRTypeError, match=r"relax\.add: x1: expected a tensor, got None"):
        op.add(None, x)
    with pytest.raises(IRTypeError, match="call_packed: sinfo_args"):
        op.call_packed("env.f", x)
    with pytest.raises(IRTypeError, match="call_tir: expected a GlobalVar"):
        op.call_tir(3, (x,), X)


def test_tensor_like_arguments_become_constants():
    x = relax.Var("x", X)
    call = op.add(x, np.ones(4, "float32"))
    assert isinstance(call.args[1], relax.Constant)
    assert isinstance(op.take(x, relax.PrimValue(1), 0).args[1].struct_info, PrimStructInfo)


def test_every_operator_has_a_rule_a_doc_and_its_function():
    for name, function in FUNCTIONS.items():
        assert function.__doc__, name
        if name == "call_packed":
            continue
        operator = relax.op.nn.relu.__globals__["Op"].get(f"relax.{name}")
        assert operator.get_attr("infer_struct_info") is not None, name
        assert operator.get_attr("function") is function, name
        assert operator.get_attr("pure") is not None, name


def test_pad_checks_its_mode_and_how_far_it_reflects(infer):
    def make(width, mode):
        return lambda x: op.nn.pad(x, [0, 0, 0, width], pad_mode=mode)

    assert infer(make(3, "reflect"), MATRIX) == tensor(3, 7)
    with pytest.raises(IRValueError, match="axis 1: reflection takes less than the 4 elements"):
        infer(make(4, "reflect"), MATRIX)
    assert infer(make(4, "reflect"), tensor(3, N)).ndim == 2
    with pytest.raises(IRValueError, match="pad_mode: expected constant, .* got 'mirror'"):
        infer(make(1, "mirror"), MATRIX)
