import itertools

import numpy as np
import pytest

from weft import te, topi
from weft.support.errors import IRValueError
from weft.tir.interp import run


def blocked(x, axis, factor):
    """numpy's version: the axis in blocks, their elements last, missing ones zero."""
    pad = [(0, -n % factor if i == axis else 0) for i, n in enumerate(x.shape)]
    x = np.pad(x, pad)
    shape = [*x.shape[:axis], x.shape[axis] // factor, factor, *x.shape[axis + 1 :]]
    return np.moveaxis(x.reshape(shape), axis + 1, -1)


@pytest.mark.parametrize(("channels", "factor"), list(itertools.product((1, 4, 6), (1, 2, 4))))
def test_channels_in_blocks_and_back(check, floats, channels, factor):
    x = floats(2, channels, 3, 1)
    wanted = blocked(x, 1, factor)
    check(topi.layout_transform, [x], wanted, "NCHW", f"NCHW{factor}c")
    full = np.zeros((2, wanted.shape[1] * factor, 3, 1), "float32")
    full[:, :channels] = x
    check(topi.layout_transform, [wanted], full, f"NCHW{factor}c", "NCHW")


def test_axes_in_another_order_and_other_blocks(check, floats):
    x = floats(2, 8, 3, 5)
    check(topi.layout_transform, [x], x.transpose(0, 2, 3, 1), "NCHW", "NHWC")
    four, two = blocked(x, 1, 4), blocked(x, 1, 2)
    check(topi.layout_transform, [four], two, "NCHW4c", "NCHW2c")
    check(topi.layout_transform, [x.astype("int8")], x.astype("int8"), "NCHW", "NCHW")


def test_full_blocks_are_read_without_a_condition():
    for channels, conditions in ((8, 0), (6, 1)):
        x = te.placeholder((2, channels, 3), name="x")
        text = te.create_prim_func([x, topi.layout_transform(x, "NCW", "NCW4c")]).script()
        assert text.count("if_then_else") == conditions


def test_an_extent_that_is_a_symbol(floats):
    n = te.var("n", "int64")
    x = te.placeholder((n, 4), name="x")
    func = te.create_prim_func([x, topi.layout_transform(x, "NC", "CN8n")])
    assert func.script().count("if_then_else") == 1
    for rows in (1, 8, 11):
        data = floats(rows, 4)
        out = np.full((4, -(-rows // 8), 8), np.nan, "float32")
        run(func, data, out)
        np.testing.assert_array_equal(out, np.moveaxis(blocked(data, 0, 8), 1, 0))


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [("NC", "NH", "same axes"), ("NCH", "NHC", "has 3 axes, got 2"), ("NCc", "NC", "a number")],
)
def test_texts_that_do_not_fit(source, target, fault):
    with pytest.raises(IRValueError, match=fault):
        topi.layout_transform(te.placeholder((2, 4)), source, target)
