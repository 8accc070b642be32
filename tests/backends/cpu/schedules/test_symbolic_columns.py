"""Products whose columns run along an axis of which only the run tells the length."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import SMALL, floats, results_of, scheduled
from weft import te, tir, topi
from weft.backends.cpu.schedules import default
from weft.target.machine import machine_of

pytestmark = pytest.mark.sampled(3)

LENGTHS = [1, 2, 15, 16, 17, 50, 131]


def convolution_of_a_signal(batch, channels, filters, dilation):
    n = te.size_var("n", "int64")
    x = te.placeholder((batch, channels, n), name="x")
    w = te.placeholder((filters, channels, 3), name="w")
    y = topi.nn.conv1d(x, w, 1, dilation, dilation)
    return te.create_prim_func([x, w, topi.nn.relu(y)])


def convolved(x, w, dilation):
    length = x.shape[2]
    padded = np.pad(x, [(0, 0), (0, 0), (dilation, dilation)])
    windows = np.stack([padded[..., at * dilation :][..., :length] for at in range(3)], -1)
    return np.maximum(np.einsum("bcnk,fck->bfn", windows, w), 0)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("batch", "channels", "filters", "dilation"),
                         [(1, 5, 24, 1), (1, 5, 24, 4), (2, 3, 17, 2), (1, 7, 1, 1)])  # fmt: skip
def test_a_convolution_of_a_signal_of_any_length(batch, channels, filters, dilation, length):
    func = convolution_of_a_signal(batch, channels, filters, dilation)
    x, w = floats(batch, channels, length), floats(filters, channels, 3)
    _, _, interpreted, native = results_of(func, [x, w], (batch, filters, length))
    wanted = convolved(x, w, dilation)
    np.testing.assert_allclose(interpreted, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("filters", [17, 24, 64, 130])
def test_the_guard_of_the_last_tile_tests_a_loop_of_its_own(filters):
    """Fused with the loop over filters, it was in a remainder, and a test for each lane."""
    text = scheduled(convolution_of_a_signal(1, 5, filters, 2)).script()
    tests = [test for line in re.findall(r"T\.where\((.*)\)", text) for test in line.split(" and ")]
    mine = [test for test in tests if test.endswith("< n")]
    assert mine
    assert not any("//" in test or "%" in test for test in mine)
    assert all(extent.isdigit() for extent in re.findall(r"T\.parallel\((.*?)\)", text))


@pytest.mark.parametrize("length", LENGTHS)
def test_filters_in_panels_leave_the_last_tile_whole(length):
    """Signals lie in no panel that ends with zeros: filled up, each lane would have a test."""
    func = convolution_of_a_signal(1, 5, 24, 4)
    filters = func.buffer_map[func.params[1]]
    new = default.schedule(tir.Schedule(func), machine_of(SMALL), [filters]).mod["main"]
    assert "layout_rewrite_preproc" in new.script()
    assert "pragma_fill_tail" not in new.script()
    x, w = floats(1, 5, length), floats(24, 5, 3)
    out = weft.nd.array(np.full((1, 24, length), 7, "float32"))
    weft.build(new, SMALL)["main"](weft.nd.array(x), weft.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), convolved(x, w, 4), rtol=1e-4, atol=1e-5)
