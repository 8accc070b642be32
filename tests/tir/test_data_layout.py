"""Layouts as texts: their axes, and positions and shapes in two of them."""

import numpy as np
import pytest

from weft import tir
from weft.support.errors import IRIndexError, IRTypeError, IRValueError


def test_axes_of_a_layout():
    plain, blocked = tir.layout("NCHW"), tir.layout("NCHW16c")
    assert (len(plain), len(blocked)) == (4, 5)
    assert [blocked[i] for i in range(5)] == list("NCHWc")
    assert blocked[-1] == "c"
    assert ("c" in plain, "c" in blocked, "16" in blocked) == (False, True, False)
    assert [blocked.index_of(axis) for axis in "CcX"] == [1, 4, -1]
    assert [blocked.factor_of(axis) for axis in "CcN"] == [16, 16, -1]
    assert plain == tir.layout("NCHW")
    assert plain != blocked


@pytest.mark.parametrize("text", ["NCHWc", "NCHW0c", "4NCHW", "NN", "NCHW4c4c", "NHW4c", "N HW"])
def test_texts_that_are_no_layout(text):
    with pytest.raises(IRValueError, match="layout: expected each axis once, as a capital letter"):
        tir.layout(text)


LAYOUTS = [("NCHW", "NHWC"), ("NCHW", "NCHW4c"), ("NHWC", "NCHW4c"), ("NCHW4c", "NCHW8c")]


@pytest.mark.parametrize(("src", "dst"), LAYOUTS)
def test_positions_in_two_layouts(src, dst):
    both = tir.bijective_layout(src, tir.layout(dst))
    full = {"N": 2, "C": 16, "H": 3, "W": 1}
    shapes = []
    for side in (both.src_layout, both.dst_layout):
        parts = {c: n // max(side.factor_of(c), 1) for c, n in full.items()}
        shapes.append([parts.get(axis, side.factor_of(axis)) for axis in side.axes])
    assert [int(extent) for extent in both.forward_shape(shapes[0])] == shapes[1]
    assert [int(extent) for extent in both.backward_shape(shapes[1])] == shapes[0]
    places = set()
    for index in np.ndindex(*shapes[0]):
        place = [int(i) for i in both.forward_index(index)]
        assert all(0 <= i < extent for i, extent in zip(place, shapes[1], strict=True))
        assert tuple(int(i) for i in both.backward_index(place)) == index
        places.add(tuple(place))
    assert len(places) == np.prod(shapes[0])


def test_symbols_and_blocks_that_are_not_full():
    both = tir.bijective_layout("NCHW", "NCHW16c")
    n, c = tir.Var("n", "int64"), tir.Var("c", "int32")
    shape = both.forward_shape([n, 33, 7, 7])
    assert shape[0] is n
    assert [int(extent) for extent in shape[1:]] == [3, 7, 7, 16]
    index = both.forward_index([0, c, 1, 2])
    assert (str(index[1]), str(index[4])) == ("c // 16", "c % 16")


def test_what_is_refused():
    with pytest.raises(IRValueError, match="the same axes, got NCHW and NCW"):
        tir.bijective_layout("NCHW", "NCW")
    with pytest.raises(IRValueError, match="layout NCHW has 4 axes, got 3 values"):
        tir.bijective_layout("NCHW", "NHWC").forward_index([0, 1, 2])
    with pytest.raises(IRIndexError, match="layout NCHW has 4 axes, got 4"):
        tir.layout("NCHW")[4]
    with pytest.raises(IRTypeError, match="layout: expected a text, got int"):
        tir.layout(5)
