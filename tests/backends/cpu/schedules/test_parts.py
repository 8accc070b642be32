"""Long sums in parts: which ones, that results are kept, and how much nearer they are."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import (
    SMALL,
    blocked,
    convolution,
    floats,
    matmul,
    of_one,
    product_and_relu,
    results_of,
    scheduled,
)
from weft import te, topi
from weft.backends.cpu.schedules import parts


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        ([511], None), ([512], (0, 128)), ([520], (0, 130)), ([2 * 509], (0, 509)), ([521], None),
        ([5, 521], None), ([3, 3, 512], (2, 128)), ([32, 3, 3, 16], (1, 3)), ([7, 96], (0, 1)),
        ([64, 8, 1], (0, 16)), ([1, 600, 1], (1, 120)), ([4, 128], (1, 128)), ([None], None),
        ([None, 128], None), ([], None),
    ],
)  # fmt: skip
def test_where_a_reduction_is_cut(sizes, cut):
    assert parts.cut_of(sizes) == cut


CASES = {
    "product": matmul(9, 11, 8), "product of one row": matmul(1, 17, 12),
    "batched product": matmul(5, 6, 8, (2,)),
    "transposed product, bias, relu": product_and_relu(7, 10, 20),
    "convolution": convolution((1, 4, 3, 5), (2, 4, 3, 1), padding=0),
    "blocked convolution": blocked(
        (1, 2, 3, 3, 4), (1, 2, 1, 1, 4, 4), ("NCHW4c", "OIHW4i4o", "NCHW4c")
    ),
    "sum over the middle": of_one((5, 9, 7), lambda x: topi.sum(x, axis=1)),
    "mean of a blocked image": of_one(
        (1, 3, 4, 6, 4), lambda x: topi.nn.adaptive_pool(x, (1, 1), "avg", "NCHWc")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name, monkeypatch):
    """With parts so short that these sums have several."""
    monkeypatch.setattr(parts, "_PART", 4)
    monkeypatch.setattr(parts, "_LONG", 8)
    given, result = CASES[name]()
    func = te.create_prim_func([*given, result])
    shapes = [[int(extent) for extent in tensor.shape] for tensor in (*given, result)]
    arrays = [floats(*shape) for shape in shapes[:-1]]
    made, expected, interpreted, native = results_of(func, arrays, shapes[-1])
    assert has_parts(made)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def has_parts(func):
    return any(buffer.name.endswith("_rf") for buffer in func.body.block.alloc_buffers)


@pytest.mark.parametrize(
    ("dtype", "reduce", "expected"),
    [
        ("float32", topi.sum, True), ("float64", topi.sum, True), ("float32", topi.max, False),
        ("int32", topi.sum, False), ("float32", topi.prod, False),
    ],
)  # fmt: skip
def test_only_sums_of_floats_are_cut(dtype, reduce, expected):
    """Integers are exact, as is the largest; any order of factors has about the same error."""
    x = te.placeholder((600, 5), dtype, "x")
    assert has_parts(scheduled(te.create_prim_func([x, reduce(x, axis=0)]))) == expected


def test_a_long_sum_is_near_the_exact_one():
    """One chain rounds a total that grows to the sum of all in each of its steps."""
    [a, b], c = matmul(4, 8, 4096)()
    made = scheduled(te.create_prim_func([a, b, c]))
    left, right = np.abs(floats(4, 4096)), np.abs(floats(4096, 8))
    given = [weft.nd.array(array) for array in (left, right, np.zeros((4, 8), "float32"))]
    weft.build(made, SMALL)["main"](*given)
    exact = left.astype("float64") @ right
    chain = np.zeros((4, 8), "float32")
    for step in range(4096):
        chain += left[:, step, None] * right[step]
    far = [np.abs(found / exact - 1).max() for found in (given[-1].numpy(), chain)]
    assert far[0] < 5e-7
    assert far[0] < far[1] / 3
