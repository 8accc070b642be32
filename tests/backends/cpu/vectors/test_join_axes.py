"""JoinAxes: rows of symbolic length are walked without divisions, and errors stay errors."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.backends.cpu.vectors.join_axes import JoinAxes
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.expr import FloorDiv, FloorMod
from weft.tir.interp import run


def joined(func):
    return JoinAxes()(weft.IRModule({"main": func}))["main"]


@T.prim_func
def added(a: T.handle, b: T.handle):
    h, w = T.int64(), T.int64()
    A = T.match_buffer(a, (T.int64(2), h, w, T.int64(4)))
    B = T.match_buffer(b, (T.int64(2), h, w, T.int64(4)))
    for c, i, j in T.grid(T.int64(2), h * w, T.int64(4)):
        B[c, i // w, i % w, j] = A[c, i // w, i % w, j] + A[c, 0, 0, j]


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (7, 1), (1, 8), (0, 3), (3, 0), (13, 5)])
def test_quotient_and_remainder_become_one_index(size):
    made = joined(added)
    assert not collect(made.body, (FloorDiv, FloorMod))
    data = np.random.default_rng(0).standard_normal((2, *size, 4), np.float32)
    out = np.zeros_like(data)
    run(made, data, out)
    np.testing.assert_array_equal(out, data + data[:, :1, :1])


@T.prim_func
def fused(a: T.handle, b: T.handle):
    h, w = T.int64(), T.int64()
    A = T.match_buffer(a, (h, T.int64(5), w, T.int64(3)))
    B = T.match_buffer(b, (h, T.int64(5), w, T.int64(3)))
    for i in range(w * h * T.int64(15)):
        B[i // (w * T.int64(15)), i % (w * T.int64(15)) // (w * T.int64(3)),
          i % (w * T.int64(3)) // T.int64(3), i % T.int64(3)] = T.float32(2) * A[
              i // (T.int64(5) * w * T.int64(3)), i // (w * T.int64(3)) % T.int64(5),
              i % (w * T.int64(3)) // T.int64(3), i % T.int64(3)]  # fmt: skip


@pytest.mark.parametrize("size", [(1, 1), (3, 7), (0, 3), (3, 0)])
def test_many_axes_become_one_index(size):
    """As fusing loops writes it, whatever the order of factors."""
    made = joined(fused)
    assert not collect(made.body, (FloorDiv, FloorMod))
    data = np.random.default_rng(0).standard_normal((size[0], 5, size[1], 3), np.float32)
    out = np.zeros_like(data)
    run(made, data, out)
    np.testing.assert_array_equal(out, data * 2)


@T.prim_func
def marked(a: T.handle, p: T.int64):
    h, w = T.int64(), T.int64()
    A = T.match_buffer(a, (h, w))
    A[p // w, p % w] = T.float32(1)


@pytest.mark.parametrize("size", [(3, 7), (1, 1), (2, 3)])
def test_places_outside_are_errors(size):
    made, count = joined(marked), size[0] * size[1]
    assert not collect(made.body, (FloorDiv, FloorMod))
    native = weft.build(marked, "llvm")["marked"]
    for func in (marked, made):
        for place in (-1, count, count + 5):
            with pytest.raises(weft.TVMError):
                run(func, np.zeros(size, "float32"), place)
            with pytest.raises(weft.TVMError):
                native(weft.nd.array(np.zeros(size, "float32")), place)
        out = np.zeros(size, "float32")
        run(func, out, count - 1)
        assert out[-1, -1] == out.sum() == 1


def test_other_accesses_stay():
    @T.prim_func
    def before(a: T.handle, b: T.handle, n: T.int64):
        h, w = T.int64(), T.int64()
        A = T.match_buffer(a, (h, w))
        B = T.match_buffer(b, (6, 10))
        for i in range(60):
            B[i // 10, i % 10] = A[i // n, i % n]  # rows are not of that length
        for i in range(w):
            B[0, 0] = A[i // w, (i + 1) % w]
        for i in range(h):
            B[0, 0] = A[i % h, i // h]

    assert joined(before) is before
