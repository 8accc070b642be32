"""Vectors of elements that lie apart: the same elements, and no memory behind the last."""

from __future__ import annotations

import numpy as np
import pytest

from weft.script import tir as T


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
def test_vectors_of_elements_that_are_apart(native, step, lanes):
    """The last element that is read is the last of the buffer: nothing behind it is touched."""
    size = (lanes - 1) * step + 1

    @T.prim_func
    def main(x: T.Buffer((size,), "float32"), y: T.Buffer((lanes,), "float32")):
        T.func_attr({"global_symbol": "main"})
        y[T.Ramp(0, 1, lanes)] = x[T.Ramp(0, step, lanes)]

    data, out = np.arange(size, dtype="float32"), np.zeros(lanes, "float32")
    native(main)(data, out)
    np.testing.assert_array_equal(out, data[::step])
