"""Transposes of axes whose extent only a call knows: tiles, and the same results at every size."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import SMALL, scheduled
from weft import te, tir
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.tir.expr import Shuffle
from weft.tir.interp import run
from weft.tir.stmt import For

N, H, W = (tir.Var(name, "int64") for name in "nhw")


def to_blocks(dtype):
    x = te.placeholder((N, 8, H, W), dtype, name="x")
    return x, te.compute((N, 2, H, W, 4), lambda n, c, h, w, b: x[n, c * 4 + b, h, w])


def from_blocks(dtype):
    x = te.placeholder((N, 2, H, W, 4), dtype, name="x")
    return x, te.compute((N, 8, H, W), lambda n, c, h, w: x[n, c // 4, h, w, c % 4])


def channels_last(dtype):
    x = te.placeholder((N, 12, H, W), dtype, name="x")
    return x, te.compute((N, H, W, 12), lambda n, h, w, c: x[n, c, h, w])


def channels_first(dtype):
    x = te.placeholder((N, H, W, 8), dtype, name="x")
    two = te.const(2, dtype)
    return x, te.compute((N, 8, H, W), lambda n, c, h, w: x[n, h, w, c] * two)


def both_unknown(dtype):
    x = te.placeholder((N, H, W), dtype, name="x")
    return x, te.compute((N, W, H), lambda n, w, h: x[n, h, w])


PROGRAMS = [to_blocks, from_blocks, channels_last, channels_first, both_unknown]


@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_kept_at_every_size(program, dtype):
    x, y = program(dtype)
    func = te.create_prim_func([x, y])
    new = scheduled(func)
    assert any(TRANSPOSE in loop.annotations for loop in collect(new.body, For))
    lowered = lower_tir()(weft.IRModule({"main": new}))["main"]
    native = weft.build(new, SMALL)["main"]
    for n, h, w in [(1, 1, 1), (2, 3, 2), (1, 2, 3), (2, 4, 4), (1, 3, 7), (2, 5, 16), (1, 17, 19),
                    (0, 2, 4), (1, 0, 5), (2, 2, 0)]:  # fmt: skip
        sizes = {N: n, H: h, W: w}
        shapes = [[sizes.get(e, e) for e in tensor.shape] for tensor in (x, y)]
        shape, result = [[int(extent) for extent in each] for each in shapes]
        given = np.random.default_rng(1).integers(-60, 60, shape).astype(dtype)
        out = [np.full(result, 7, dtype) for _ in range(3)]
        for number, item in enumerate((func, new, lowered)):
            run(item, given, out[number])
        last = weft.nd.array(np.full(result, 7, dtype))
        native(weft.nd.array(given), last)
        for values in (out[1], out[2], last.numpy()):
            np.testing.assert_array_equal(values, out[0])


def test_the_vectors_of_a_tile_are_shuffled():
    x, y = to_blocks("float32")
    lowered = lower_tir()(weft.IRModule({"main": scheduled(te.create_prim_func([x, y]))}))["main"]
    assert len(collect(lowered.body, Shuffle)) >= 4


@pytest.mark.parametrize(
    "shape", [(N, 3, H, W), (N, 7, H, W)], ids=["three channels", "a prime number of channels"]
)
def test_few_or_odd_channels_are_no_tiles(shape):
    x = te.placeholder(shape, name="x")
    y = te.compute((N, H, W, shape[1]), lambda n, h, w, c: x[n, c, h, w])
    func = scheduled(te.create_prim_func([x, y]))
    assert not any(TRANSPOSE in loop.annotations for loop in collect(func.body, For))
