"""Functions that only move elements: numpy gives what compiled code gives, or leaves them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.relax.transform.graph.fold_moves import moved_by_numpy
from weft.script import tir as T


@T.prim_func
def blocks_of_columns(a: T.Buffer((6, 32), "float32"), b: T.Buffer((2, 6, 16), "float32")):
    for i, j in T.grid(6, 32):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vj // 16, vi, vj % 16] = a[vi, vj]


@T.prim_func
def transposed_by_other_loops(a: T.Buffer((6, 5), "int8"), b: T.Buffer((5, 6), "int8")):
    for j, i in T.grid(5, 6):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vj, vi] = a[vi, vj]


@T.prim_func
def two_moves(
    a: T.Buffer((4, 3), "float32"), b: T.Buffer((8,), "int8"),
    c: T.Buffer((3, 4), "float32"), d: T.Buffer((4, 2), "int8"),
):  # fmt: skip
    for i in range(8):
        with T.block("d"):
            vi = T.axis.spatial(8, i)
            d[vi // 2, vi % 2] = b[vi]
    for i, j in T.grid(4, 3):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            c[vj, vi] = a[vi, vj]


@T.prim_func
def padded(a: T.Buffer((5,), "float32"), b: T.Buffer((2, 3), "float32")):
    for i in range(5):
        with T.block("b"):
            vi = T.axis.spatial(5, i)
            b[vi // 3, vi % 3] = a[vi]


@T.prim_func
def half_of_it(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(2):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[vi]


@T.prim_func
def shifted(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[3 - vi]


@T.prim_func
def doubled(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[vi] * T.float32(2)


@T.prim_func
def guarded(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            T.where(i < 3)
            b[vi] = a[vi]


@T.prim_func
def written_twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[vi]
    for i in range(4):
        with T.block("c"):
            vi = T.axis.spatial(4, i)
            b[vi] = a[vi]


def arrays_of(func, count):
    random = np.random.default_rng(0)
    buffers = [func.buffer_map[param] for param in func.params]
    shapes = [tuple([int(extent) for extent in buffer.shape]) for buffer in buffers]
    arrays = [random.integers(0, 100, shape) for shape in shapes]
    typed = [array.astype(str(buffer.dtype)) for array, buffer in zip(arrays, buffers, strict=True)]
    return typed[:count], typed[count:]


@pytest.mark.parametrize(
    ("func", "count"), [(blocks_of_columns, 1), (transposed_by_other_loops, 1), (two_moves, 2)]
)
def test_numpy_moves_as_compiled_code_does(func, count):
    inputs, outputs = arrays_of(func, count)
    moved = moved_by_numpy(func, [weft.nd.array(array) for array in inputs])
    assert moved is not None
    weft.build(func, target="llvm")(*inputs, *outputs)
    for result, output in zip(moved, outputs, strict=True):
        assert result.dtype == output.dtype
        assert np.array_equal(result.numpy(), output)


@pytest.mark.parametrize("func", [padded, half_of_it, shifted, doubled, guarded, written_twice])
def test_other_functions_are_left(func):
    inputs, _outputs = arrays_of(func, 1)
    assert moved_by_numpy(func, list(map(weft.nd.array, inputs))) is None


def test_sources_that_are_no_inputs_are_left():
    """Of one array given, the second parameter is an output, which nothing may read."""
    inputs, _outputs = arrays_of(two_moves, 1)
    assert moved_by_numpy(two_moves, list(map(weft.nd.array, inputs))) is None
