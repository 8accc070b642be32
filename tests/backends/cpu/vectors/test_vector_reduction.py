"""VectorizeReduction: loops that accumulate in lanes give what they gave one by one."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.backends.cpu.vectors.vector_reduction import ROWS_TOGETHER, VECTOR_REDUCTION
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.interp import run
from weft.tir.stmt import Allocate
from weft.tir.transform import VectorizeReduction

pytestmark = pytest.mark.sampled(3)

RNG = np.random.default_rng(3)


def annotated(result, given, shape):
    """The function with the last loop of its only block annotated, its start before the loop."""
    sch = tir.Schedule(te.create_prim_func([*given, result]))
    [name] = [block.name_hint for block in collect(sch.mod["main"].body, tir.Block)
              if block.init is not None]  # fmt: skip
    block = sch.get_block(name)
    for result in sch.get_consumers(block):  # argmax takes one of two results
        sch.compute_at(block, sch.get_loops(result)[-1])
    loop = sch.get_loops(block)[-1]
    sch.decompose_reduction(block, loop)
    sch.annotate(loop, VECTOR_REDUCTION, shape)
    return sch.mod["main"]


REDUCTIONS = {
    "sum": topi.sum, "product": topi.prod, "largest": topi.max, "smallest": topi.min,
    "argmax": topi.argmax, "argmin": topi.argmin, "all": topi.all, "any": topi.any,
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 4, 7, 8, 21, 64])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_results_are_kept(name, size):
    dtype = "bool" if name in ("all", "any") else "float32"
    x = te.placeholder((3, size), dtype, name="x")
    func = annotated(REDUCTIONS[name](x, axis=1), [x], [4, 2])
    lowered = lower_tir()(weft.IRModule({"main": func}))["main"]
    lanes = {item.buffer_var.name for item in collect(lowered.body, Allocate)}
    assert size == 1 or any(name.endswith("_lanes") for name in lanes)
    data = RNG.integers(0, 3, (3, size)).astype(dtype) if dtype == "bool" else (
        RNG.normal(size=(3, size)).round(1).astype(dtype)
    )  # fmt: skip
    out = [np.zeros(3, func.buffer_map[func.params[1]].dtype) for _ in range(3)]
    run(func, data, out[0])
    run(lowered, data, out[1])
    np.testing.assert_allclose(out[1], out[0], rtol=1e-6, atol=1e-6)
    if size == 21:  # rounds, single vectors and a rest
        native = weft.nd.array(out[2])
        weft.build(func)["main"](weft.nd.array(data), native)
        np.testing.assert_allclose(native.numpy(), out[0], rtol=1e-6, atol=1e-6)


def test_the_largest_of_values_that_are_all_endless():
    x = te.placeholder((1, 9), name="x")
    func = annotated(topi.max(x, axis=1), [x], [4, 1])
    out = weft.nd.array(np.zeros(1, "float32"))
    weft.build(func)["main"](weft.nd.array(np.full((1, 9), -np.inf, "float32")), out)
    assert out.numpy()[0] == -np.inf


@pytest.mark.parametrize("size", [0, 3, 8, 29])
def test_an_extent_that_is_not_known(size):
    n = tir.Var("n", "int64")
    x = te.placeholder((2, n), name="x")
    func = annotated(topi.sum(x, axis=1), [x], [4, 2])
    data, out = RNG.normal(size=(2, size)).astype("float32"), np.ones(2, "float32")
    run(lower_tir()(weft.IRModule({"main": func}))["main"], data, out)
    np.testing.assert_allclose(out, data.sum(1), rtol=1e-5, atol=1e-6)


def test_what_else_the_loop_stores_is_computed_in_the_same_vectors():
    @T.prim_func
    def main(x: T.Buffer((11,), "float32"), y: T.Buffer((11,), "float32"),
             s: T.Buffer((1,), "float32")):  # fmt: skip
        s[0] = T.float32(0)
        for k in T.serial(11, annotations={VECTOR_REDUCTION: [4, 1]}):
            y[k] = x[k] * T.float32(2)
            s[0] = s[0] + y[k]

    data, doubled, total = np.arange(11, dtype="float32"), np.zeros(11, "float32"), np.zeros(1, "f")
    made = VectorizeReduction()(weft.IRModule({"main": main}))["main"]
    assert len(collect(made.body, Allocate)) == 1
    run(made, data, doubled, total)
    np.testing.assert_array_equal(doubled, data * 2)
    assert total[0] == 110


def test_a_loop_whose_iterations_meet_elsewhere_stays():
    @T.prim_func
    def prefix(x: T.Buffer((12,), "float32"), s: T.Buffer((1,), "float32")):
        for k in T.serial(11, annotations={VECTOR_REDUCTION: [4, 1]}):
            s[0] = s[0] + x[k]
            x[k + 1] = x[k] + s[0]

    @T.prim_func
    def scan(x: T.Buffer((12,), "float32")):
        for k in T.serial(11, annotations={VECTOR_REDUCTION: [4, 1]}):
            x[k + 1] = x[k] + x[k + 1]

    for func in (prefix, scan):
        made = VectorizeReduction()(weft.IRModule({"main": func}))["main"]
        assert not collect(made.body, Allocate)
        assert "vector_reduction" not in str(made)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("compute", [topi.argmax, topi.argmin])
def test_of_equal_values_and_of_nan_the_right_one_counts(compute, last, dtype):
    """A lane meets places in order, so that it does not compare them; lanes among each other do."""
    x = te.placeholder((40, 29), dtype, name="x")
    func = annotated(compute(x, 1, select_last_index=last), [x], [4, 2])
    data = RNG.integers(0, 4, (40, 29)).astype(dtype)
    if dtype == "float32":
        data[10:20][data[10:20] == 2] = np.nan
        data[20:, ::2] = np.inf if compute is topi.argmin else -np.inf
        data[30:] = data[30:, :1]
    out = [np.zeros(40, "int32") for _ in range(3)]
    run(func, data, out[0])
    run(lower_tir()(weft.IRModule({"main": func}))["main"], data, out[1])
    weft.build(func)["main"](data, out[2])
    np.testing.assert_array_equal(out[1], out[0])
    np.testing.assert_array_equal(out[2], out[0])
    if not last:
        numpy = np.argmax if compute is topi.argmax else np.argmin
        np.testing.assert_array_equal(out[0], numpy(data, 1))


def rows_together(name, dtype, rows, size, count):
    """A reduction of rows, so many of them together; the last rows are fewer."""
    x = te.placeholder((rows, size), dtype, name="x")
    func = te.create_prim_func([x, REDUCTIONS[name](x, axis=1)])
    sch = tir.Schedule(func)
    [name] = [block.name_hint for block in collect(sch.mod["main"].body, tir.Block)
              if block.init is not None]  # fmt: skip
    block = sch.get_block(name)
    row, steps = sch.get_loops(block)
    _, inner = sch.split(row, [None, count])
    sch.decompose_reduction(block, steps)
    sch.annotate(steps, VECTOR_REDUCTION, [count, 2])
    sch.annotate(inner, ROWS_TOGETHER, 1)
    return func, sch.mod["main"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("name", ["sum", "product", "largest"])
def test_rows_whose_lanes_are_joined_together(name, dtype):
    """Of nine rows, two rounds together and one row alone; sizes with and without rests."""
    for size, count in ((1, 4), (7, 4), (8, 4), (21, 2)):
        func, made = rows_together(name, dtype, 9, size, count)
        data = RNG.integers(-2, 3, (9, size)).astype(dtype)
        lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
        together = [item for item in collect(lowered.body, Allocate)
                    if item.buffer_var.name.endswith("_rows")]  # fmt: skip
        assert len(together) == 1
        out = [np.zeros(9, func.buffer_map[func.params[1]].dtype) for _ in range(3)]
        run(func, data, out[0])
        run(lowered, data, out[1])
        weft.build(made)["main"](data, out[2])
        np.testing.assert_array_equal(out[1], out[0])
        np.testing.assert_array_equal(out[2], out[0])


def test_rows_that_start_from_what_others_leave_stay_apart():
    @T.prim_func
    def main(x: T.Buffer((4, 8), "float32"), s: T.Buffer((5,), "float32")):
        for r in T.serial(4, annotations={ROWS_TOGETHER: 1}):
            s[r + 1] = s[r]
            for k in T.serial(8, annotations={VECTOR_REDUCTION: [4, 1]}):
                s[r + 1] = s[r + 1] + x[r, k]

    data, out = np.arange(32, dtype="float32").reshape(4, 8), np.zeros(5, "float32")
    run(VectorizeReduction()(weft.IRModule({"main": main}))["main"], data, out)
    np.testing.assert_array_equal(out[1:], np.cumsum(data.sum(1)))
