"""UnclampVectors: before and after, and the same results at every size."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import dlight, te, tir, topi
from weft.codegen.backend import backend_of
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Ramp
from weft.tir.interp import run
from weft.tir.stmt import IfThenElse
from weft.tir.transform import UnclampVectors


def test_vectors_inside_of_the_row_have_no_clamps(becomes):
    @T.prim_func
    def before(x: T.handle, y: T.handle):
        n, m = T.int64(), T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c = T.match_buffer(y, (m,), "float32")
        for i in range(m // 8):
            c[i * 8 : i * 8 + 8] = a[
                T.min(
                    T.max(
                        T.Broadcast(i * 4, 8)
                        + T.Ramp(T.int64(-1), T.int64(2), 8) // T.Broadcast(T.int64(4), 8),
                        T.Broadcast(T.int64(0), 8),
                    ),
                    T.Broadcast(n - 1, 8),
                )
            ]

    @T.prim_func
    def expected(x: T.handle, y: T.handle):
        n, m = T.int64(), T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c = T.match_buffer(y, (m,), "float32")
        for i in range(m // 8):
            if T.int64(1) <= i and i * T.int64(4) + T.int64(4) <= n:
                c[i * 8 : i * 8 + 8] = a[
                    T.Broadcast(i * 4, 8)
                    + T.Ramp(T.int64(-1), T.int64(2), 8) // T.Broadcast(T.int64(4), 8)
                ]
            else:
                c[i * 8 : i * 8 + 8] = a[
                    T.min(
                        T.max(
                            T.Broadcast(i * 4, 8)
                            + T.Ramp(T.int64(-1), T.int64(2), 8) // T.Broadcast(T.int64(4), 8),
                            T.Broadcast(T.int64(0), 8),
                        ),
                        T.Broadcast(n - 1, 8),
                    )
                ]

    becomes(UnclampVectors(), before, expected)


def test_vectors_that_always_lie_inside_are_tested_for_nothing(becomes):
    """Padding by copies of the edge, whose middle vectors are clamped to a row that they meet."""

    @T.prim_func
    def before(x: T.Buffer((32,), "float32"), y: T.Buffer((24,), "float32")):
        for i in range(3):
            y[i * 8 : i * 8 + 8] = x[T.min(T.Ramp(i * 8 + 3, 1, 8), T.Broadcast(31, 8))]

    @T.prim_func
    def expected(x: T.Buffer((32,), "float32"), y: T.Buffer((24,), "float32")):
        for i in range(3):
            y[i * 8 : i * 8 + 8] = x[T.Ramp(i * 8 + 3, 1, 8)]

    becomes(UnclampVectors(), before, expected)


@pytest.mark.parametrize("size", [16, 23, 32])
def test_images_are_padded_by_their_edges(size):
    data = np.random.default_rng(size).random((1, 1, size, size), "float32")
    x = te.placeholder(data.shape, "float32", name="x")
    out = np.empty((1, 1, size + 2, size + 2), "float32")
    padded = te.compute(
        out.shape,
        lambda n, c, h, w: x[
            n, c, tir.max(tir.min(h - 1, size - 1), 0), tir.max(tir.min(w - 1, size - 1), 0)
        ],
    )
    module = weft.IRModule({"main": te.create_prim_func([x, padded])})
    target = weft.target.Target("llvm -num-cores=1")
    with target:
        module = dlight.ApplyDefaultSchedule(*backend_of(target).schedules(target))(module)
    array = weft.nd.empty(out.shape, "float32")
    weft.build(module, target)["main"](weft.nd.array(data), array)
    edges = [(0, 0), (0, 0), (1, 1), (1, 1)]
    np.testing.assert_array_equal(array.numpy(), np.pad(data, edges, mode="edge"))


def test_a_test_that_follows_from_another_is_left_out():
    """Of a position and the next one, the first decides at the start, the second at the end."""

    @T.prim_func
    def both(x: T.handle, y: T.handle):
        n = T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c = T.match_buffer(y, (n,), "float32")
        for i in range(n // 8):
            c[i * 8 : i * 8 + 8] = (
                a[T.max(T.Ramp(i * 8 - 1, T.int64(1), 8), T.Broadcast(T.int64(0), 8))]
                + a[T.max(T.Ramp(i * 8 - 2, T.int64(1), 8), T.Broadcast(T.int64(0), 8))]
            )  # fmt: skip

    after = UnclampVectors()(weft.IRModule({"main": both}))["main"]
    (branch,) = collect(after.body, IfThenElse)
    assert str(branch.condition) == "T.int64(1) <= i"


def test_a_number_beside_clamped_vectors_stays():
    @T.prim_func
    def scaled(x: T.handle, s: T.Buffer((), "float32"), c: T.Buffer((8,), "float32")):
        n = T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c[0:8] = a[T.max(T.Ramp(n - 9, T.int64(1), 8), T.Broadcast(T.int64(0), 8))] * T.Broadcast(
            s[()], 8
        )

    after = UnclampVectors()(weft.IRModule({"main": scaled}))["main"]
    assert len(collect(after.body, IfThenElse)) == 1


@pytest.mark.parametrize("place", ["falls", "unknown", "masked"])
def test_other_vectors_stay(place, becomes):
    @T.prim_func
    def falls(x: T.handle, c: T.Buffer((8,), "float32")):
        n = T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c[0:8] = a[T.max(T.Ramp(n - 2, T.int64(-1), 8), T.Broadcast(T.int64(0), 8))]

    @T.prim_func
    def unknown(x: T.handle, t: T.Buffer((8,), "int64"), c: T.Buffer((8,), "float32")):
        n = T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c[0:8] = a[T.min(T.max(t[0:8], T.Broadcast(T.int64(0), 8)), T.Broadcast(n - T.int64(1), 8))]

    @T.prim_func
    def masked(x: T.handle, c: T.Buffer((8,), "float32")):
        n = T.int64()
        a = T.match_buffer(x, (n,), "float32")
        c.vstore(
            [T.Ramp(0, 1, 8)],
            a[T.max(T.Ramp(n - 9, T.int64(1), 8), T.Broadcast(T.int64(0), 8))],
            predicate=T.Ramp(T.int64(0), T.int64(1), 8) < T.Broadcast(n, 8),
        )

    func = {"falls": falls, "unknown": unknown, "masked": masked}[place]
    becomes(UnclampVectors(), func, func)


SIZES = [1, 2, 7, 8, 9, 16, 17, 23, 40]


@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_images_of_any_size_are_resized_in_runs(factor, method):
    n, m = weft.tir.SizeVar("n", "int64"), weft.tir.SizeVar("m", "int64")

    def kernel(height, width):
        x = weft.te.placeholder((2, height, width), "float32", "x")
        data = topi.expand_dims(x, 0)
        y = topi.image.resize2d(data, None, (height * factor, width * factor), method=method)
        return weft.te.create_prim_func([x, y])

    target = weft.target.Target("llvm -num-cores=1")
    scheduled = dlight.cpu.Default().apply(kernel(n, m), target, False)
    assert scheduled is not None
    loads = collect(weft.lower(scheduled.mod)["main"].body, BufferLoad)
    # Where a tile starts in three times the size is no constant distance from its neighbours.
    assert factor == 3 or any(isinstance(load.indices[-1], Ramp) for load in loads)
    native = weft.build(scheduled.mod, target)["main"]
    for size in SIZES:
        x = np.random.default_rng(size).standard_normal((2, 3, size)).astype("float32")
        resized, expected = np.zeros((2, 1, 2, 3 * factor, size * factor), "float32")
        native(x, resized)
        run(kernel(n, m), x, expected)
        np.testing.assert_allclose(resized, expected, atol=2e-6)
