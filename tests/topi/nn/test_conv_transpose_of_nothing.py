"""Transposed convolutions of an axis that turns out to be empty."""

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.tir.interp import run


@pytest.mark.parametrize("size", [0, 1, 3])
def test_what_is_spread_out_is_never_smaller_than_nothing(size):
    n = tir.SizeVar("n", "int64")
    data, kernel = te.placeholder((1, 1, n), name="data"), te.placeholder((1, 2, 2), name="kernel")
    made = topi.nn.conv1d_transpose_ncw(data, kernel, (2,), (0,), "float32", (0,))
    func = te.create_prim_func([data, kernel, made])
    x = np.arange(size, dtype="float32").reshape(1, 1, size)
    weights = np.array([[[1, 2], [3, 4]]], "float32")
    expected = (x[0, 0][None, :, None] * weights[0][:, None, :]).reshape(1, 2, 2 * size)
    found = np.zeros_like(expected)
    run(func, x, weights, found)
    np.testing.assert_allclose(found, expected)
    native = weft.nd.array(np.zeros_like(expected))
    weft.build(func)["main"](weft.nd.array(x), weft.nd.array(weights), native)
    np.testing.assert_allclose(native.numpy(), expected)
