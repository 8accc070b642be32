"""Extents that are a smallest or largest of numbers: guards of kernels name them whole."""

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import blocked, floats, results_of
from weft import te, tir, topi
from weft.relax.transform.fusion.name_extents import name_extents
from weft.tir.function import PrimFunc

SIZES = [0, 1, 2, 5, 16, 61]


def padded() -> tuple[PrimFunc, tir.Var]:
    """A frame of ones around ``min(max(n // 2, 1), (n + 5) // 3)`` rows, added to twice them."""
    n = tir.SizeVar("n", "int64")
    rows = tir.min(tir.max(n // 2, 1), (n + 5) // 3)
    x = te.placeholder((rows, 3), "float32", "x")
    frame = topi.nn.pad(x, [1, 0], [1, 0], 1.0)
    y = te.compute((rows, 3), lambda i, j: frame[i, j] + frame[i + 2, j] + x[i, j], "y")
    return te.create_prim_func([x, y, n], "int64"), n


def rows_of(n: int) -> int:
    return min(max(n // 2, 1), (n + 5) // 3)


@pytest.mark.parametrize("n", SIZES)
def test_a_guard_of_such_an_extent(n):
    func, _ = padded()
    rows = rows_of(n)
    x = np.arange(rows * 3, dtype="float32").reshape(rows, 3)
    y = weft.nd.empty((rows, 3), "float32")
    weft.build(func)(weft.nd.array(x), y, n)
    frame = np.pad(x, [(1, 1), (0, 0)], constant_values=1)
    np.testing.assert_array_equal(y.numpy(), frame[:-2] + frame[2:] + x)


def test_the_extent_gets_a_name_for_which_the_kernel_needs_no_number():
    func, n = padded()
    assert n in func.params
    named = name_extents(func)
    assert len(named.params) == 2
    assert "min" not in named.script()


def test_a_simplified_condition_keeps_the_extent():
    n = tir.SizeVar("n", "int64")
    rows = tir.min(n, 7)
    x = te.placeholder((rows,), "float32", "x")
    y = te.compute((12,), lambda i: tir.if_then_else(i < rows + 0, x[i], 0.0), "y")
    text = te.create_prim_func([x, y, n], "int64").script()
    assert "v_i < T.min(n, T.int64(7))" in text


@pytest.mark.parametrize("n", SIZES)
def test_a_convolution_over_such_an_extent_has_vectors(n):
    """It ran element by element: the tail of a tile was not proved to be one of its block."""
    size = tir.SizeVar("n", "int64")
    columns = tir.min(tir.max(size // 2, 1), (size + 5) // 3)
    layouts = ("NCHW4c", "OIHW4i4o", "NCHW4c")
    (x, w), y = blocked((1, 2, 5, columns, 4), (2, 2, 3, 3, 4, 4), layouts)()
    func = name_extents(te.create_prim_func([x, w, y, size], "int64"))
    arrays = [floats(1, 2, 5, rows_of(n), 4), floats(2, 2, 3, 3, 4, 4)]
    made, expected, interpreted, native = results_of(func, arrays, (1, 2, 5, rows_of(n), 4))
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)
    lines = made.script().split("\n")
    update = next(at for at, line in enumerate(lines) if '_update"' in line)
    assert "T.vectorized" in lines[update - 1]
