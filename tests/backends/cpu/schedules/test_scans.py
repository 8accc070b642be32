"""Values that run along an axis: their schedules keep the result, and have the form they should."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import dlight, te, tir, topi
from weft.backends.cpu.schedules import default
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.interp import run
from weft.tir.stmt import For, ForKind
from weft.topi.scan import running_extreme

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")
"""Few lanes, so that small shapes have whole tiles and tails."""


def scheduled(func, target=SMALL):
    return default.schedule(tir.Schedule(func), machine_of(target), ()).mod["main"]


def sums(shape, axis, dtype="float32", **more):
    x = te.placeholder(shape, dtype, name="x")
    return te.create_prim_func([x, topi.cumsum(x, axis, **more)])


def loops_of_kind(func, kind):
    return [int(loop.extent) for loop in collect(func.body, For) if loop.kind is kind]


def marked(func):
    return len([loop for loop in collect(func.body, For) if TRANSPOSE in loop.annotations])


def assert_kept(func, data):
    """The results as written, lowered and interpreted, and native, are the same."""
    made = scheduled(func)
    outputs = [func.buffer_map[param] for param in func.params[1:]]
    expected, lowered, native = [
        [np.full(data.shape, 7, str(buffer.dtype)) for buffer in outputs] for _ in range(3)
    ]
    run(func, data, *expected)
    run(lower_tir()(weft.IRModule({"main": made}))["main"], data, *lowered)
    given = [weft.nd.array(item) for item in native]
    weft.build(made, SMALL)["main"](weft.nd.array(data), *given)
    for before, after, computed in zip(expected, lowered, given, strict=True):
        np.testing.assert_array_equal(after, before)
        np.testing.assert_array_equal(computed.numpy(), before)
    return made


CASES = {
    # what, shape, axis, how many loops of a tile are transposed
    "rows of whole tiles": ((8, 16), 1, 2),
    "rows that no tile divides": ((9, 11), 1, 2),
    "seven rows": ((7, 9), 1, 2),
    "the last axis is short": ((5, 2, 7), 2, 2),
    "few rows": ((3, 20), 1, 0),
    "few steps": ((20, 3), 1, 0),
    "one row": ((1, 20), 1, 0),
    "one axis": ((20,), 0, 0),
    "one step": ((20, 1), 1, 0),
    "rows side by side": ((9, 40), 0, 0),
    "rows side by side with a rest": ((9, 43), 0, 0),
    "the middle": ((3, 7, 17), 1, 0),
    "the middle of four": ((2, 5, 3, 2), 1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    shape, axis, tiles = CASES[name]
    data = np.random.default_rng(3).normal(size=shape).astype("float32")
    made = assert_kept(sums(shape, axis, exclusive=len(shape) == 3), data)
    assert marked(made) == tiles


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "bool"])
def test_types_have_tiles_of_32_bytes(dtype):
    made = scheduled(sums((32, 64), 1, dtype))
    bits = np.dtype(dtype).itemsize * 8
    lanes = [] if dtype == "bool" else [max(4, min(16, 256 // bits))] * 4
    assert loops_of_kind(made, ForKind.VECTORIZED) == lanes
    if dtype in ("float16", "bool"):
        data = np.random.default_rng(3).integers(0, 2, (7, 9)).astype(dtype)
        assert_kept(sums((7, 9), 1, dtype), data)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("largest", [True, False])
def test_running_extremes(axis, largest):
    x = te.placeholder((5, 9), name="x")
    func = te.create_prim_func([x, *running_extreme(x, axis, largest)])
    data = np.random.default_rng(3).integers(0, 5, (5, 9)).astype("float32")
    data[4, 5], data[0, 3] = np.nan, -np.inf
    made = assert_kept(func, data)
    assert marked(made) == (3 if axis else 0)


@pytest.mark.parametrize(("shape", "axis"), [(("n", 9), 0), ((9, "n"), 0), (("n", "m"), 1)])
def test_symbolic_sizes(shape, axis):
    func = sums([te.var(item) if isinstance(item, str) else item for item in shape], axis)
    built = weft.build(scheduled(func), SMALL)["main"]
    for size in (0, 1, 7, 17):
        sizes = [item if isinstance(item, int) else size for item in shape]
        data = np.random.default_rng(3).normal(size=sizes).astype("float32")
        result = weft.nd.array(np.full_like(data, 7))
        built(weft.nd.array(data), result)
        expected = np.cumsum(data, axis, "float64").astype("float32")
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("target", ["haswell", "skylake-avx512", "cortex-a72"])
def test_the_form_for_each_kind_of_processor(target):
    triple = " -mtriple=aarch64-linux-gnu" if target == "cortex-a72" else ""
    machine = weft.target.Target(f"llvm -mcpu={target}{triple} -num-cores=2")
    made = scheduled(sums((64, 512), 1), machine)
    assert loops_of_kind(made, ForKind.PARALLEL) == [8]
    assert loops_of_kind(made, ForKind.VECTORIZED) == [8] * 4
    assert marked(made) == 2
    lanes = 8 * machine_of(machine).lanes(64)
    beside = scheduled(sums((64, 512), 0), machine)
    assert loops_of_kind(beside, ForKind.PARALLEL) == [512 // lanes]
    assert loops_of_kind(beside, ForKind.VECTORIZED) == [lanes] * 2


def test_loops_of_a_user_stay_as_they_are():
    func = sums((16, 24), 1).with_attr("global_symbol", "main")
    func.provenance = ""
    mod = weft.IRModule({"main": func})
    kept = dlight.ScheduleGeneratedFunctions(dlight.cpu.Default())(mod)
    assert kept["main"] is mod["main"]
