"""Windows of several sizes: their schedules keep the result, and leave no position to compute."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.backends.cpu.schedules import default, ragged
from weft.dlight.nest import Nest, blocks_of
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.expr import Div, FloorDiv
from weft.tir.interp import run
from weft.tir.stmt import BufferStore

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")


def pool(shape, size, kind="avg", layout="NCHW", dtype="float32"):
    x = te.placeholder(shape, dtype, name="x")
    return te.create_prim_func([x, topi.nn.adaptive_pool(x, size, kind, layout)])


def scheduled(func):
    return default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]


CASES = {
    "uneven both ways": ((2, 3, 10, 11), (3, 4), "NCHW"),
    "even one way": ((1, 3, 10, 9), (4, 3), "NCHW"),
    "one column": ((1, 3, 10, 9), (4, 1), "NCHW"),
    "more results than pixels": ((1, 2, 3, 2), (5, 7), "NCHW"),
    "too many to unroll": ((1, 1, 5, 150), (2, 90), "NCHW"),
    "channels last": ((1, 7, 11, 6), (3, 4), "NHWC"),
    "no image": ((0, 3, 10, 11), (3, 4), "NCHW"),
}


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("case", CASES)
def test_windows_of_several_sizes_keep_their_result(case, kind):
    shape, size, layout = CASES[case]
    func = pool(shape, size, kind, layout)
    data = np.random.default_rng(7).standard_normal(shape).astype("float32")
    data[..., :5, :] = -np.inf if kind == "max" else 1
    output = func.buffer_map[func.params[-1]]
    sizes = tuple(int(extent) for extent in output.shape)
    written, lowered = [np.full(sizes, 7, "float32") for _ in range(2)]
    new = scheduled(func)
    run(func, data, written)
    run(lower_tir()(weft.IRModule({"main": new}))["main"], data, lowered)
    native = weft.nd.array(np.full(sizes, 7, "float32"))
    weft.build(new, SMALL)["main"](weft.nd.array(data), native)
    np.testing.assert_allclose(lowered, written, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(native.numpy(), written, rtol=1e-6, atol=1e-6)


def test_windows_along_the_last_axis_fit_and_others_do_not():
    sch = tir.Schedule(pool((2, 3, 10, 11), (3, 4)))
    fitting = [ragged.fits(Nest(sch, block)) for block in blocks_of(sch)]
    assert fitting == [False, True, False]  # along the height, along the width, the average


def test_windows_of_one_size_are_reduced_at_once():
    sch = tir.Schedule(pool((2, 3, 12, 8), (3, 4)))
    assert [len(Nest(sch, block).reduced) for block in blocks_of(sch)] == [2, 0]


def quotients_in_rows(func):
    """How many quotients depend on a place in a row of the result."""
    lowered = lower_tir()(weft.IRModule({"main": func}))["main"]
    stores = collect(lowered.body, BufferStore)
    values = [store.value for store in stores if store.buffer.name == "adaptive_pool_max"]
    return len(collect(values, (FloorDiv, Div)))


def test_positions_of_few_windows_are_constants():
    func = pool((2, 32, 20, 20), (7, 7), "max")
    assert quotients_in_rows(func) > 0
    assert quotients_in_rows(scheduled(func)) == 0
