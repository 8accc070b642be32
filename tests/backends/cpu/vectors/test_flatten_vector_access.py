"""FlattenVectorAccess: vectors across rows are runs of memory, and results stay."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import native_source
from weft import te, tir, topi
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.buffer import BufferLoad
from weft.tir.expr import FloorDiv, FloorMod
from weft.tir.interp import run
from weft.tir.stmt import For
from weft.tir.transform import FlattenVectorAccess


def test_a_fused_loop_over_rows():
    @T.prim_func
    def before(x: T.Buffer((6, 10), "float32"), y: T.Buffer((6, 10), "float32")):
        for i in range(15):
            for j in T.vectorized(4):
                y[(i * 4 + j) // 10, (i * 4 + j) % 10] = x[(i * 4 + j) // 10, (i * 4 + j) % 10]

    made = FlattenVectorAccess()(weft.IRModule({"main": before}))["main"]
    assert not collect(made.body, (FloorDiv, FloorMod))
    data, out = np.arange(60, dtype="float32").reshape(6, 10), np.zeros((6, 10), "float32")
    run(made, data, out)
    np.testing.assert_array_equal(out, data)


def test_other_places_and_serial_loops_stay():
    @T.prim_func
    def before(x: T.Buffer((6, 10), "float32"), y: T.Buffer((60,), "float32")):
        for i in range(15):
            for j in range(4):
                y[i * 4 + j] = x[(i * 4 + j) // 10, (i * 4 + j) % 10]
        for i in range(15):
            for j in T.vectorized(4):
                y[i * 4 + j] = x[(i * 4 + j) % 6, (i * 4 + j) // 6]
        for i in range(15):
            for j in T.vectorized(4):
                y[i * 4 + j] = x[(i * 4 + j) // 10 - 1, (i * 4 + j) % 10]
        for i in range(15):
            for j in T.vectorized(4):
                y[i * 4 + j] = x[(i * 4 + j) // 10, (i * 4 + j) % 10 - 1]

    made = FlattenVectorAccess()(weft.IRModule({"main": before}))["main"]
    assert weft.ir.structural_equal(made, before)


def test_a_first_index_outside_stays_an_error():
    """It needs no proof if it is the same in all lanes: the flat index is outside, too."""

    @T.prim_func
    def before(x: T.Buffer((3, 6, 10), "float32"), y: T.Buffer((60,), "float32"), first: T.int32):
        for i in range(15):
            for j in T.vectorized(4):
                y[i * 4 + j] = x[first, (i * 4 + j) // 10, (i * 4 + j) % 10]

    made = FlattenVectorAccess()(weft.IRModule({"main": before}))["main"]
    assert not collect(made.body, (FloorDiv, FloorMod))
    data, out = np.arange(180, dtype="float32").reshape(3, 6, 10), np.zeros(60, "float32")
    run(made, data, out, 2)
    np.testing.assert_array_equal(out, data[2].reshape(60))
    for first in (3, -1):
        with pytest.raises(weft.TVMError, match="outside"):
            run(made, data, out, first)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_axes_inside_a_symbolic_one_are_flat(batch):
    """Element by element and reduced: no lane divides, whatever the batch."""

    @T.prim_func
    def before(p: T.handle, q: T.handle):
        n = T.int64()
        x = T.match_buffer(p, (n, 6, 5, 7))
        y = T.match_buffer(q, (n * 2,))
        for f in range(n * 2):
            y[f] = T.float32(0)
            for k in T.serial(105, annotations={"tir.vector_reduction": [4, 1]}):
                y[f] = y[f] + x[f // 2, f % 2 * 3 + k // 35, k % 35 // 7, k % 7]

    made = FlattenVectorAccess()(weft.IRModule({"main": before}))["main"]
    assert not collect(made.body, (FloorDiv, FloorMod))
    data = np.random.default_rng(1).normal(size=(batch, 6, 5, 7)).astype("float32")
    out = np.zeros(batch * 2, "float32")
    run(made, data, out)
    expected = data.reshape(batch * 2, 105).sum(1)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 8, 7, 9), (5, 3)])
def test_element_by_element_is_one_loop_of_vectors(shape):
    x = te.placeholder(shape, name="x")
    func = te.create_prim_func([x, topi.nn.relu(x)])
    sch = tir.Schedule(func)
    loop = sch.fuse(*sch.get_loops(sch.get_block("compute")))
    _, lanes = sch.split(loop, [None, 16])
    sch.vectorize(lanes)
    lowered = lower_tir()(sch.mod)["main"]
    assert len(collect(lowered.body, For)) <= 2  # of vectors, and of what is left
    data = np.random.default_rng(1).normal(size=shape).astype("float32")
    out = np.zeros(shape, "float32")
    run(lowered, data, out)
    np.testing.assert_array_equal(out, np.maximum(data, 0))


def test_axes_of_one_element_behind_the_lanes_go():
    @T.prim_func
    def before(w: T.Buffer((12, 1, 1), "float32"), y: T.Buffer((12, 1), "float32")):
        for i in range(3):
            for j in T.vectorized(4):
                y[i * 4 + j, 0] = y[i * 4 + j, 0] + w[i * 4 + j, 0, 0]

    made = FlattenVectorAccess()(weft.IRModule({"main": before}))["main"]
    shapes = {load.buffer.name: len(load.indices) for load in collect(made.body, BufferLoad)}
    assert shapes == {"w": 1, "y": 2}
    data, out = np.arange(12, dtype="float32"), np.ones((12, 1), "float32")
    run(made, data.reshape(12, 1, 1), out)
    np.testing.assert_array_equal(out[:, 0], data + 1)


def test_a_product_with_one_column_is_of_vectors():
    n, one, depth = te.size_var("n", "int64"), T.int64(1), T.int64(64)
    x = te.placeholder((n, depth), "uint8", name="x")
    w = te.placeholder((depth, one), "int8", name="w")
    k = te.reduce_axis((0, depth), name="k")
    y = te.compute(
        (n, one),
        lambda i, j: te.sum(x[i, k].astype("int32") * w[k, j].astype("int32"), axis=k),
        name="y",
    )
    mod, text = native_source(te.create_prim_func([x, w, y]), "llvm", "ll")
    assert re.search(r"mul (nsw )?<\d+ x i32>", text)
    rng = np.random.default_rng(0)
    for rows in (0, 1, 5):
        a, b = rng.integers(0, 256, (rows, 64)), rng.integers(-128, 128, (64, 1))
        out = weft.nd.array(np.full((rows, 1), 7, "int32"))
        given = [weft.nd.array(a.astype("uint8")), weft.nd.array(b.astype("int8"))]
        weft.build(mod, "llvm")["main"](*given, out)
        np.testing.assert_array_equal(out.numpy(), a @ b)
