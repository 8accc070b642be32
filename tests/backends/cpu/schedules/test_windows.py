"""Windows along contiguous rows: results at awkward sizes, and what is laid out for them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import assert_results_are_kept, floats
from weft import te, tir, topi
from weft.backends.cpu.schedules import default, windows
from weft.dlight.nest import Nest, blocks_of
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.stmt import Allocate

pytestmark = pytest.mark.sampled(3)


def depthwise(channels, height, width, size, stride, padding):
    x = te.placeholder((1, channels, height, width), name="x")
    w = te.placeholder((channels, 1, size, size), name="w")
    return [x, w, topi.nn.relu(topi.nn.group_conv2d_nchw(x, w, stride, padding, 1, channels))]


def pool(channels, height, width, stride, padding, kind, dilation=1):
    x = te.placeholder((2, channels, height, width), name="x")
    return [x, topi.nn.pool2d(x, (3, 3), (stride, stride), (dilation,) * 2, (padding,) * 4, kind)]


CASES = {
    "small images, several together": lambda: depthwise(6, 2, 3, 3, 1, 1),
    "one channel": lambda: depthwise(1, 5, 7, 3, 1, 1),
    "one row": lambda: depthwise(3, 1, 5, 3, 1, 1),
    "two apart, an even width": lambda: depthwise(2, 5, 10, 3, 2, 1),
    "two apart, an odd width": lambda: depthwise(1, 5, 17, 3, 2, 1),
    "three apart": lambda: depthwise(1, 8, 13, 3, 3, 1),
    "five wide, two apart": lambda: depthwise(1, 6, 8, 5, 2, 2),
    "nothing around": lambda: depthwise(1, 5, 10, 3, 1, 0),
    "largest, two apart": lambda: pool(1, 6, 10, 2, 1, "max"),
    "largest, in half a vector": lambda: pool(1, 9, 24, 1, 1, "max"),
    "largest, pixels apart": lambda: pool(1, 9, 11, 1, 2, "max", 2),
    "mean": lambda: pool(1, 4, 6, 1, 1, "avg"),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    tensors = CASES[name]()
    sch = tir.Schedule(te.create_prim_func(tensors))
    found = any(windows.fits(Nest(sch, block)) for block in blocks_of(sch))
    assert found is (name != "one row")  # whose weights differ from row to row: channels
    assert_results_are_kept(tensors)


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
@pytest.mark.parametrize(("size", "stride"), [(112, 1), (112, 2), (28, 2), (7, 1)])
def test_what_is_padded_stays_in_the_first_cache(cpu, size, stride):
    machine = machine_of(f"llvm -mcpu={cpu} -num-cores=2 -l1d-cache-bytes=32768")
    func = te.create_prim_func(depthwise(64, size, size, 3, stride, 1))
    made = default.schedule(tir.Schedule(func, debug_mask="none"), machine, ()).mod
    allocated = [np.prod([int(extent) for extent in one.extents]) * 4
                 for one in collect(lower_tir()(made)["main"], Allocate)]  # fmt: skip
    assert max(allocated) <= 32768


def test_filters_that_share_windows_are_left_to_others():
    x, w = te.placeholder((1, 2, 6, 7), name="x"), te.placeholder((3, 2, 3, 3), name="w")
    sch = tir.Schedule(te.create_prim_func([x, w, topi.nn.conv2d_nchw(x, w, 1, 1, 1)]))
    assert not any(windows.fits(Nest(sch, block)) for block in blocks_of(sch))


@pytest.mark.parametrize("width", [7, 14])
def test_rows_of_a_part_of_a_vector_touch_nothing_else(width):
    """Natively on this machine's vectors: AVX-512 leaves lanes of an access out."""
    func = te.create_prim_func(depthwise(2, 4, width, 3, 1, 1))
    made = default.schedule(tir.Schedule(func), machine_of("llvm"), ()).mod["main"]
    data, weights = floats(1, 2, 4, width), floats(2, 1, 3, 3)
    memory = np.full(data.size + 16, 7, "float32")
    result = memory[: data.size].reshape(data.shape)
    weft.build(made, "llvm")["main"](data, weights, result)
    expected = np.zeros_like(data)
    tir.interp.run(func, data, weights, expected)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(memory[data.size :], 7)


def test_a_pool_combines_pixels_of_a_row_once():
    """Seven rows of windows two apart see 15 rows of pixels."""
    func = te.create_prim_func(pool(1, 112, 112, 2, 1, "max"))
    made = default.schedule(tir.Schedule(func), machine_of("llvm -mcpu=skylake-avx512"), ()).mod
    text = weft.build(made, "llvm -mcpu=skylake-avx512").get_source("asm")
    maxima = len([line for line in text.splitlines() if "\tvmaxps" in line])
    assert maxima == 2 * 2 * (15 * 2 + 7 * 2)  # of whole vectors and half ones, in both orders
