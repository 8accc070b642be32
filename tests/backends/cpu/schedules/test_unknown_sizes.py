"""Tiles of sizes that only a call knows are as small, and end in as whole vectors, as others."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax, te, tir, topi
from weft.backends.cpu.schedules import default
from weft.backends.cpu.vectors.vector_reduction import ROWS_TOGETHER
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.interp import run

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")
RNG = np.random.default_rng(3)


@pytest.fixture(scope="module", params=[True, False], ids=["rows by rows", "rows by columns"])
def products(request):
    """``A @ B`` of n rows by m columns: as written, lowered, and native."""
    n, m, is_transposed = tir.Var("n", "int64"), tir.Var("m", "int64"), request.param
    a = te.placeholder((n, 6), name="A")
    b = te.placeholder((m, 6) if is_transposed else (6, m), name="B")
    func = te.create_prim_func([a, b, topi.matmul(a, b, transp_b=is_transposed)])
    made = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    return func, lowered, weft.build(made, SMALL)["main"], is_transposed


@pytest.mark.parametrize(("n", "m"), [(1, 1), (0, 7), (7, 0), (8, 12), (17, 13), (5, 40)])
def test_products(products, n, m):
    func, lowered, native, is_transposed = products
    shapes = (n, 6), (m, 6) if is_transposed else (6, m)
    arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
    out = [np.full((n, m), 7, "float32") for _ in range(3)]
    run(func, *arrays, out[0])
    run(lowered, *arrays, out[1])
    given = [weft.nd.array(array) for array in (*arrays, out[2])]
    native(*given)
    np.testing.assert_allclose(out[1], out[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(given[-1].numpy(), out[0], rtol=1e-4, atol=1e-5)


def test_the_last_columns_are_summed_in_whole_vectors(products):
    lowered = products[1]
    sums = [store for store in collect(lowered.body, tir.BufferStore)
            if store.buffer.scope() == "local"]  # fmt: skip
    assert sums
    assert 1 not in {store.value.dtype.lanes for store in sums}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_last_columns_are_whole_vectors_whatever_the_batch(dtype):
    """Columns end in a tile that is cut off, around sets of rows of an unknown number."""
    batch = tir.Var("b", "int64")
    depth, columns, rows = [tir.IntImm(dtype, size) for size in (72, 20, 16)]
    a = te.placeholder((batch, rows, depth), name="A")
    b = te.placeholder((depth, columns), name="B")
    func = te.create_prim_func([a, b, topi.matmul(a, b)])
    scheduled = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    lowered = lower_tir()(weft.IRModule({"main": scheduled}))["main"]
    assert min(store.value.dtype.lanes for store in collect(lowered.body, tir.BufferStore)) == 4
    native = weft.build(scheduled, SMALL)["main"]
    for size in (0, 1, 3):
        arrays = [RNG.standard_normal(s).astype("float32") for s in ((size, 16, 72), (72, 20))]
        result = weft.nd.array(np.zeros((size, 16, 20), "float32"))
        native(*[weft.nd.array(array) for array in arrays], result)
        np.testing.assert_allclose(result.numpy(), arrays[0] @ arrays[1], rtol=1e-4, atol=1e-4)


def test_rows_of_a_computed_number_are_summed_as_exactly():
    """The first element is most of each sum: added one by one, the others would be cut off."""
    builder = relax.BlockBuilder()
    m, n = [tir.SizeVar(name, "int64") for name in "mn"]
    x = relax.Var("x", relax.TensorStructInfo([m, n, 20000], "float32"))
    with builder.function("main", [x]):
        every_eighth = builder.emit(relax.op.strided_slice(x, [1], [0], [n], [8]))
        builder.emit_func_output(builder.emit(relax.op.nn.softmax(every_eighth, 2)))
    data = np.full((2, 17, 20000), -12.0, "float32")
    data[..., 0] = 0
    result = np.asarray(weft.compile(builder.get(), target="llvm", cache=False)(data))
    assert result.shape == (2, 3, 20000)
    np.testing.assert_allclose(result.astype("float64").sum(-1), 1, atol=1e-4)


@pytest.mark.parametrize("columns", [None, 40])
def test_a_softmax_is_computed_row_by_row(columns):
    """Rows along two axes, of which only the call knows the lengths, stay in the cache."""
    n, t = [tir.Var(name, "int64") for name in "nt"]
    width = t if columns is None else tir.IntImm("int64", columns)
    x = te.placeholder((n, tir.IntImm("int64", 3), t, width), name="x")
    func = te.create_prim_func([x, topi.nn.softmax(x)])
    scheduled = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    parallel = [
        loop for loop in collect(scheduled.body, tir.For) if loop.kind is tir.ForKind.PARALLEL
    ]
    assert len(parallel) == 1
    native = weft.build(scheduled, SMALL)["main"]
    for size in (0, 1, 5, 70):
        shape = (2, 3, size, size if columns is None else columns)
        array = RNG.standard_normal(shape).astype("float32")
        result = weft.nd.array(np.zeros(shape, "float32"))
        native(weft.nd.array(array), result)
        powers = np.exp(array - array.max(-1, keepdims=True, initial=-np.inf))
        expected = powers / powers.sum(-1, keepdims=True)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [16, 6])
def test_short_rows_of_any_batch_run_together(rows):
    """Groups lie along the last axis of rows, whose length is known: of 6 rows there are none."""
    n = tir.Var("n", "int64")
    x = te.placeholder((n, tir.IntImm("int64", rows), tir.IntImm("int64", 24)), name="x")
    func = te.create_prim_func([x, topi.nn.softmax(x)])
    scheduled = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    together = [loop for loop in collect(scheduled.body, tir.For)
                if ROWS_TOGETHER in loop.annotations]  # fmt: skip
    assert bool(together) == (rows == 16)
    native = weft.build(scheduled, SMALL)["main"]
    for size in (0, 1, 3):
        array = RNG.standard_normal((size, rows, 24)).astype("float32")
        result = weft.nd.array(np.zeros((size, rows, 24), "float32"))
        native(weft.nd.array(array), result)
        powers = np.exp(array - array.max(-1, keepdims=True))
        expected = powers / powers.sum(-1, keepdims=True)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)
