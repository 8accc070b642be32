"""Lanes that a condition does not want read nothing, also behind a shuffle."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import from_source
from weft.script import tir as T
from weft.tir import interp

SOURCE = """
@T.prim_func
def f(a: T.handle, c: T.Buffer(({lanes},), "float32"), k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    c[0:{lanes}] = T.Select(
        T.Ramp(0, 1, {lanes}) < T.Broadcast(k, {lanes}),
        T.Shuffle([{read}], {order}), T.Broadcast(T.float32(-1), {lanes}),
    )
"""


@pytest.mark.parametrize(
    ("read", "order"),
    [
        ("A[0:4]", [3, 1, 0, 2]),
        ("A[0:4]", [0, 0, 1, 1, 2, 2, 3, 3]),
        ("A[0:8]", [1, 3, 5, 7]),
        ("A[0:4], A[4:8]", [0, 4, 1, 5]),
        ("A[0:2], A[2:4], A[4:6]", [4, 2, 0, 5]),
        ("A[0:2], A[2:6]", [5, 0, 3, 1]),
        ("T.Select(T.Ramp(0, 1, 2) < T.Broadcast(1, 2), A[0:2], A[2:4])", [0, 1, 0, 1]),
    ],
)  # fmt: skip
def test_lanes_that_are_not_wanted(read, order):
    """A has as many elements as the wanted lanes need: any other would be out of bounds."""
    lanes = len(order)
    kernel = weft.build(from_source(SOURCE.format(lanes=lanes, read=read, order=order)))
    source = np.arange(10, 18, dtype="float32")
    places = [0, 3] if read.startswith("T.Select") else range(8)  # what lane each one is
    for wanted in range(lanes + 1):
        needed = [places[lane] for lane in order[:wanted]]
        given = weft.nd.array(source[: max(needed, default=0) + 1].copy())
        result = weft.nd.array(np.zeros(lanes, "float32"))
        kernel(given, result, wanted)
        expected = [*source[needed], *[-1.0] * (lanes - wanted)]
        np.testing.assert_array_equal(result.numpy(), np.array(expected, "float32"))


@T.prim_func
def divided(a: T.Buffer((64,), "int32"), n: T.int32, c: T.Buffer((5, 64), "int32")):
    for i in T.vectorized(64):
        c[0, i] = T.if_then_else(a[i] != 0, 100 // a[i], -1)
    for i in T.vectorized(64):
        c[1, i] = T.if_then_else(a[i] == 0, -1, T.truncmod(100, a[i]))
    for i in T.vectorized(64):
        c[2, i] = T.if_then_else(a[i] > 99, 100 % n, 3)
    for i in T.vectorized(64):
        c[3, i] = T.if_then_else(a[i] != 0 and 100 // a[i] > 7, 1, 2)
    for i in T.vectorized(64):
        c[4, i] = T.if_then_else(a[i] == 0 or 100 // a[i] > 7, 1, 2)


def test_a_guard_over_lanes_keeps_divisions_from_faulting():
    a, c, d = np.arange(64, dtype="int32"), np.zeros((5, 64), "int32"), np.zeros((5, 64), "int32")
    weft.build(divided)(a, 0, c)
    interp.run(divided, a, 0, d)
    np.testing.assert_array_equal(c, d)
    a[40] = 100
    with pytest.raises(ZeroDivisionError, match="integer division by zero"):
        weft.build(divided)(a, 0, c)


@T.prim_func
def scalars(
    a: T.handle, at: T.Buffer((3,), "int32"), c: T.Buffer((3, 4), "int32"),
    b: T.Buffer((4, 3, 4), "int32"), k: T.int32,
):  # fmt: skip
    """Elements that are the same in all lanes: of ``k`` rows, or at places that are given."""
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "int32")
    for i in range(3):
        for j in T.vectorized(4):
            b[0, i, j] = T.Select(c[i, j] > 0, A[0, at[i]], -1)
        for j in T.vectorized(4):
            b[1, i, j] = T.if_then_else(c[i, j] > 0, A[i // k, 0] + A[0, i % m], -1)
        for j in T.vectorized(4):
            b[2, i, j] = T.if_then_else(c[i, j] > 0, A[0, (i + j) % m], -1)
        for j in T.vectorized(4):
            b[3, i, j] = T.if_then_else(c[i, j] > 0 and A[0, at[i]] > c[i, j], 1, 0)


@pytest.mark.parametrize(
    ("shape", "at", "wanted"),
    [
        ((1, 4), [0, 10**8, -(10**8)], [[1, 0, 1, 0], [0] * 4, [0] * 4]),
        ((0, 0), [0, 1, 2], [[0] * 4] * 3),
        ((1, 0), [0, 1, 2], [[0] * 4] * 3),
        ((2, 3), [2, -1, 1], [[1] * 4, [0] * 4, [0, 0, 0, 1]]),
    ],
)
def test_elements_of_all_lanes_are_read_where_one_lane_wants_them(shape, at, wanted):
    """Also where the place is a quotient, whose divisor may be anything if it is not wanted."""
    a = np.arange(np.prod(shape), dtype="int32").reshape(shape) * 10
    at, wanted = np.array(at, "int32"), np.array(wanted, "int32")
    results = np.full((2, 4, 3, 4), 7, "int32")
    weft.build(scalars)(a, at, wanted, results[0], 2)
    interp.run(scalars, a, at, wanted, results[1], 2)
    np.testing.assert_array_equal(*results)
    at[2], wanted[2, 1] = a.shape[1], 1
    with pytest.raises(IndexError, match="out of bounds for buffer A"):
        weft.build(scalars)(a, at, wanted, results[0], 2)
