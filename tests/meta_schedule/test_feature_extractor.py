"""Features of candidates: what a row says of a store, by hand-computed numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

import weft
from tests.lib.tuning_programs import matmul, matmul_relu, tiled
from weft import te, tir
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.feature_extractor import (
    FeatureExtractor,
    PerStoreFeature,
    PyFeatureExtractor,
    RandomFeatureExtractor,
)
from weft.support.errors import IRValueError, UnsupportedError
from weft.target import Target
from weft.tir.store_features.numbers import bounds_of, coefficient_of

LLVM = SimpleNamespace(target=Target("llvm"), mod=None)
ACCESS = 57
"""Where the first access of a row begins."""


def rows(sch, **options):
    extractor = PerStoreFeature(**options)
    [matrix] = extractor.extract_from(LLVM, [MeasureCandidate(sch, [])])
    assert matrix.shape[1] == extractor.feature_vector_length
    return matrix.numpy()


def undo(value):
    """From the logarithm of 1 + x to x."""
    return round(2**value - 1)


def access(row, number):
    return row[ACCESS + 18 * number : ACCESS + 18 * (number + 1)]


@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({}, 164),
        ({"buffers_per_store": 2}, 110),
        ({"arith_intensity_curve_num_samples": 3}, 157),
        ({"extract_workload": True}, 172),
    ],
)
def test_the_length_of_a_row(options, length):
    assert PerStoreFeature(**options).feature_vector_length == length


def test_operations_of_a_product():
    [row] = rows(tir.Schedule(matmul(16)))
    counts = [undo(value) for value in row[:16]]
    # one addition and one multiplication in each of 16 x 16 x 16 runs; none of integers
    assert counts == [0, 4096, 4096, *[0] * 13]


def test_loops_of_each_kind():
    sch = tir.Schedule(matmul(16))
    i, j, k = sch.get_loops("matmul")
    outer, inner = sch.split(j, [None, 4])
    sch.reorder(i, outer, k, inner)
    sch.parallel(i)
    sch.unroll(k)
    sch.vectorize(inner)
    sch.annotate(outer, "pragma_auto_unroll_max_step", 64)
    [row] = rows(sch)
    none, mixed = [1.0] + [0.0] * 7, [0.0] * 7 + [1.0]
    for begin, extent in ((16, 4), (27, 16), (38, 16)):  # vectorised, unrolled, parallel
        assert [undo(value) for value in row[begin : begin + 3]] == [1, extent, extent]
        assert list(row[begin + 3 : begin + 11]) == mixed
    assert [undo(value) for value in row[-3:]] == [4096, 4, 64]
    [plain] = rows(tir.Schedule(matmul(16)))
    assert list(plain[16:27]) == [0.0, 0.0, 0.0, *none]
    assert undo(plain[-1]) == 0


def test_accesses_of_a_product():
    """C[i, j] += A[i, k] * B[k, j] over i, j, k of 16: the accesses with most lines come first."""
    [row] = rows(tir.Schedule(matmul(16)))
    by_stride = {undo(access(row, number)[17]): access(row, number) for number in range(3)}
    of_c, of_a, of_b = by_stride[0], by_stride[1], by_stride[16]
    assert list(of_c[:3]) == [0.0, 0.0, 1.0]  # read and written
    assert list(of_a[:3]) == list(of_b[:3]) == [1.0, 0.0, 0.0]
    for each in (of_a, of_b, of_c):
        assert undo(each[3]) == 4096 * 4  # bytes
        assert undo(each[4]) == 16 * 16 * 4  # different ones
    assert undo(of_a[5]) == 4096 * 4 // 64  # lines: steps of one float of 4 bytes
    assert undo(of_b[5]) == 4096  # steps of a row of 16 floats: a line each
    assert undo(of_c[5]) == 16  # k does not move; j does by 4 bytes
    # reuse: C in k, A in j, B in i
    assert [list(each[7:10]) for each in (of_a, of_b, of_c)] == [[1.0, 0.0, 0.0]] * 3
    assert [undo(each[10]) for each in (of_c, of_a, of_b)] == [1, 16, 256]
    assert [undo(each[12]) for each in (of_c, of_a, of_b)] == [16, 16, 16]
    assert not access(row, 3).any()


def test_the_curve_of_intensity_ends_with_all_operations_per_byte():
    [row] = rows(tir.Schedule(matmul(16)))
    curve = row[ACCESS + 90 : ACCESS + 100]
    assert curve[-1] == pytest.approx(math.log2(1 + 8192 / (3 * 1024)))
    assert (np.diff(curve) >= 0).all()


def test_a_row_for_each_buffer_in_the_order_of_stores():
    first, second = rows(tir.Schedule(matmul_relu(16)))
    assert undo(first[1]) == 4096
    assert undo(second[4]) == 256  # max is a comparison
    # the product is allocated once, 16 x 16 floats; relu is a parameter
    assert [undo(value) for value in first[-7:-3]] == [1024, 256, 1, 4096]
    assert [undo(value) for value in second[-7:-3]] == [1024, 256, 1, 256]


def test_a_tile_in_a_cache_is_allocated_where_it_is_used():
    sch = tir.Schedule(matmul(16))
    i, _, _ = sch.get_loops("matmul")
    copy = sch.cache_write("matmul", 0, "global")
    sch.reverse_compute_at(copy, i)
    product, _ = rows(sch)
    assert [undo(value) for value in product[-7:-4]] == [16 * 4, 16 * 16, 16]


def test_schedules_differ_and_copies_do_not():
    one, same, other = (rows(tiled(matmul(16), inner)) for inner in (4, 4, 8))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert np.isfinite(one).all()


def test_a_program_that_only_fills_has_no_row():
    ones = te.compute((4, 4), lambda i, j: tir.const(1.0, "float32"), name="ones")
    sch = tir.Schedule(weft.IRModule({"main": te.create_prim_func([ones])}))
    assert rows(sch).shape == (0, 164)


def test_threads_of_a_gpu():
    sch = tir.Schedule(matmul(16))
    i, j, _ = sch.get_loops("matmul")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    gpu = SimpleNamespace(target=Target("cuda"), mod=None)
    [matrix] = PerStoreFeature().extract_from(gpu, [MeasureCandidate(sch, [])])
    assert [undo(value) for value in matrix.numpy()[0][49:57]] == [1, 16, 1, 1, 16, 1, 1, 1]


def test_the_kind_of_the_task_by_names_of_blocks():
    context = SimpleNamespace(target=Target("llvm"), mod=matmul_relu())
    extractor = PerStoreFeature(extract_workload=True)
    [matrix] = extractor.extract_from(context, [MeasureCandidate(tiled(matmul_relu()), [])])
    assert matrix.numpy()[:, -8:].tolist() == [[0, 0, 0, 0, 1, 0, 0, 0]] * 2


def test_a_context_without_a_target_is_refused():
    with pytest.raises(IRValueError, match="expected a context with a target"):
        PerStoreFeature().extract_from(SimpleNamespace(target=None), [])


def test_bounds_and_coefficients_of_indices():
    i, j = (tir.Var(name, "int32") for name in "ij")
    bounds = {i: (0, 7), j: (-2, 3)}
    for expr, expected in [
        (i * 8 + j, (-2, 59)), (i - j, (-3, 9)), (i // 4, (0, 1)), (j % 4, (0, 3)),
        (i % 16, (0, 7)), (tir.min(i, 3), (0, 3)), (tir.max(j, 0), (0, 3)), (j * -1, (-3, 2)),
    ]:  # fmt: skip
        assert bounds_of(expr, bounds) == expected, expr
    for expr, expected in [
        (i, 1), (i + j, 1), (i * 4 + j, 4), (j + i * 4, 4), (j * 2, 0), ((i + j) * 4, 1),
    ]:  # fmt: skip
        assert coefficient_of(expr, i) == expected, expr


def test_random_features_follow_the_seed():
    extractor = RandomFeatureExtractor(feature_size=6, max_block_num=3, seed=1)
    state = extractor.random_state
    matrices = extractor.extract_from(None, [None] * 20)
    assert {matrix.shape[1] for matrix in matrices} == {6}
    assert {matrix.shape[0] for matrix in matrices} == {1, 2, 3}
    extractor.random_state = state
    for matrix, again in zip(matrices, extractor.extract_from(None, [None] * 20), strict=True):
        np.testing.assert_array_equal(matrix.numpy(), again.numpy())
    with pytest.raises(IRValueError, match="max_block_num of at least 1, got 0"):
        RandomFeatureExtractor(max_block_num=0)


def test_kinds_and_classes_of_users():
    assert isinstance(FeatureExtractor.create("per-store-feature"), PerStoreFeature)
    with pytest.raises(IRValueError, match="expected a kind of 'per-store-feature'"):
        FeatureExtractor.create("neural")
    with pytest.raises(UnsupportedError, match="override it in a class of your own"):
        PyFeatureExtractor().extract_from(None, [])
    assert str(PyFeatureExtractor()).startswith("meta_schedule.FeatureExtractor(0x")
