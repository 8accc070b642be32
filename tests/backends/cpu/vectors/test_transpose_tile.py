"""TransposeTile: what two loops transpose goes through vectors, and results stay."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.backends.cpu.vectors.transpose_tile import interleaved
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.expr import Ramp, Shuffle
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.tir.transform import TransposeTile


def transposing(rows, lanes, dtype="float32", nbytes=1):
    @T.prim_func
    def func(x: T.Buffer((lanes, rows), dtype), y: T.Buffer((rows, lanes), dtype)):
        for i in T.serial(rows, annotations={"tir.transpose_tile": nbytes}):
            for j in T.vectorized(lanes):
                y[i, j] = x[j, i]

    return func


def passed(func):
    return TransposeTile()(weft.IRModule({"main": func}))["main"]


@pytest.mark.parametrize("nbytes", [1, 64])
@pytest.mark.parametrize(
    ("rows", "lanes", "dtype"),
    [
        (4, 4, "float32"), (16, 16, "float32"), (8, 16, "float32"), (16, 4, "float32"),
        (7, 13, "float32"), (1, 8, "float32"), (8, 1, "float32"), (3, 2, "float32"),
        (5, 6, "float64"), (16, 32, "float16"), (9, 17, "int16"), (33, 64, "int8"),
        (2, 3, "uint8"),
    ],
)  # fmt: skip
def test_results_stay(rows, lanes, dtype, nbytes):
    data = (np.arange(rows * lanes) % 120).reshape(lanes, rows).astype(dtype)
    func = transposing(rows, lanes, dtype, nbytes)
    out = np.zeros((rows, lanes), dtype)
    run(passed(func), data, out)
    np.testing.assert_array_equal(out, data.T)
    native = weft.nd.array(np.zeros((rows, lanes), dtype))
    weft.build(func)["func"](weft.nd.array(data), native)
    np.testing.assert_array_equal(native.numpy(), data.T)


def test_a_tile_of_powers_of_two_has_vectors_only():
    made = passed(transposing(4, 8))
    assert not collect(made.body, For)
    shuffles = collect(made.body, Shuffle)
    assert len(shuffles) == 4 + 2 * 4  # rows put together, then two rounds of four
    assert {int(ramp.stride) for ramp in collect(made.body, Ramp)} == {1}


def test_a_line_of_cache_is_read_at_once_where_that_is_asked_for():
    made = passed(transposing(16, 16, nbytes=64))
    assert {int(ramp.lanes) for ramp in collect(made.body, Ramp)} == {16}
    assert len(collect(made.body, Shuffle)) == 4 * 16


def test_what_is_computed_of_it_is_computed_in_vectors():
    @T.prim_func
    def func(
        x: T.Buffer((8, 4), "float32"), scale: T.Buffer((8,), "float32"),
        bias: T.Buffer((4,), "float32"), y: T.Buffer((4, 8), "float32"),
    ):  # fmt: skip
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(8):
                y[i, j] = T.max(x[j, i] * scale[j] + bias[i] + x[7 - j, i], T.float32(0))

    x, scale, bias = [
        np.random.default_rng(0).normal(size=size).astype("float32") for size in ((8, 4), 8, 4)
    ]
    expected = np.maximum(x.T * scale + bias[:, None] + x[::-1].T, 0)
    made = passed(func)
    assert not collect(made.body, For)
    out = np.zeros((4, 8), "float32")
    run(made, x, scale, bias, out)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_what_is_added_to_in_place_is_read_where_it_is_stored():
    @T.prim_func
    def func(x: T.Buffer((8, 4), "float32"), y: T.Buffer((4, 8), "float32")):
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(8):
                y[i, j] = x[j, i] + y[i, j]

    x, y = [np.random.default_rng(0).normal(size=size).astype("float32") for size in ((8, 4),
            (4, 8))]  # fmt: skip
    expected = x.T + y
    made = passed(func)
    assert not collect(made.body, For)
    run(made, x, y)
    np.testing.assert_array_equal(y, expected)


def test_what_is_no_transpose_is_an_ordinary_loop():
    @T.prim_func
    def in_place(x: T.Buffer((4, 4), "float32")):
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(4):
                x[i, j] = x[j, i]

    @T.prim_func
    def straight(x: T.Buffer((4, 4), "float32"), y: T.Buffer((4, 4), "float32")):
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(4):
                y[i, j] = x[i, j]

    @T.prim_func
    def tested(x: T.Buffer((4, 4), "float32"), y: T.Buffer((4, 4), "float32")):
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(4):
                if i < j:
                    y[i, j] = x[j, i]

    @T.prim_func
    def far(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 4), "float32")):
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(4):
                y[i, j] = x[j, i * 2]

    @T.prim_func
    def padded(x: T.Buffer((3, 4), "float32"), y: T.Buffer((4, 4), "float32")):
        for i in T.serial(4, annotations={"tir.transpose_tile": 1}):
            for j in T.vectorized(4):
                y[i, j] = T.if_then_else(j < 3, x[j, i], T.float32(0))

    for func in (in_place, straight, tested, far, padded):
        made = passed(func)
        assert [len(loop.annotations) for loop in collect(made.body, For)] == [0, 0]
        assert not collect(made.body, Shuffle)


def test_two_vectors_are_interleaved_within_groups():
    assert interleaved(8, 4) == ([0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15])
    assert interleaved(2, 2) == ([0, 2], [1, 3])
