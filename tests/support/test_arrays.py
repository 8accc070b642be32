"""Copies in order: the same elements, whichever way they lay before."""

from __future__ import annotations

import numpy as np
import pytest

from weft.support.arrays import in_order

VIEWS = {
    "transposed": lambda: np.arange(70 * 1000, dtype="float32").reshape(70, 1000).T,
    "transposed, not whole slabs": lambda: np.arange(301 * 300, dtype="int8").reshape(301, 300).T,
    "blocks": lambda: np.arange(64 * 96 * 16).reshape(64, 6, 16, 16).transpose(1, 0, 3, 2),
    "backwards": lambda: np.arange(300 * 300).reshape(300, 300)[::-1, ::-1].T,
    "broadcast": lambda: np.broadcast_to(np.arange(300)[:, None], (300, 300)),
    "in order": lambda: np.arange(300 * 300).reshape(300, 300),
    "small": lambda: np.arange(6).reshape(2, 3).T,
    "no elements": lambda: np.zeros((0, 300), "float16").T,
    "one element": lambda: np.array(3.5),
}


@pytest.mark.parametrize("name", VIEWS)
def test_elements_stay(name):
    view = VIEWS[name]()
    copy = in_order(view)
    assert copy.dtype == view.dtype
    assert copy.flags.c_contiguous
    assert copy.flags.writeable
    assert not np.shares_memory(copy, view)
    assert np.array_equal(copy, view)
