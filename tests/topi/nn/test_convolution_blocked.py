"""Convolutions of channels in blocks, against the plain ones."""

import numpy as np
import pytest

import weft
from weft import te, topi
from weft.support.errors import IRValueError
from weft.topi.nn.convolution_blocked import conv_blocked

RNG = np.random.default_rng(0)


def test_conv2d_nchwc():
    x, w = RNG.integers(-3, 4, (2, 8, 5, 6)), RNG.integers(-3, 4, (6, 8, 3, 3))
    data = te.placeholder((2, 2, 5, 6, 4), "float32", "data")
    kernel = te.placeholder((3, 2, 3, 3, 4, 2), "float32", "kernel")
    made = topi.nn.conv2d_NCHWc(data, kernel, 1, 1, 1, "NCHW4c", "NCHW2c")
    assert [int(extent) for extent in made.shape] == [2, 3, 5, 6, 2]
    plain = te.placeholder(x.shape, "float32", "x"), te.placeholder(w.shape, "float32", "w")
    expected = topi.nn.conv2d(*plain, 1, 1, 1)
    out = weft.nd.empty((2, 3, 5, 6, 2))
    blocks = x.reshape(2, 2, 4, 5, 6).transpose(0, 1, 3, 4, 2)
    filters = w.reshape(3, 2, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    call = weft.build(te.create_prim_func([data, kernel, made]))
    call(*[weft.nd.array(part.astype("float32")) for part in (blocks, filters)], out)
    want = weft.nd.empty((2, 6, 5, 6))
    call = weft.build(te.create_prim_func([*plain, expected]))
    call(*[weft.nd.array(part.astype("float32")) for part in (x, w)], want)
    joined = out.numpy().transpose(0, 1, 4, 2, 3).reshape(2, 6, 5, 6)
    np.testing.assert_array_equal(joined, want.numpy())


@pytest.mark.parametrize(
    ("data", "kernel", "layouts", "message"),
    [
        ((1, 2, 5, 5, 4), (2, 2, 3, 3, 4), ("NCHW4c", "OIHW4i", "NCHW4c"),
         "2 is not known to be a multiple of the block 4 of axis C"),
        ((1, 2, 5, 5, 3), (4, 2, 3, 3, 4), ("NCHW4c", "OIHW4i", "NCHW"),
         "expected an extent of 4 for the axis 4c"),
        ((1, 2, 5, 5, 4), (4, 3, 3, 3, 4), ("NCHW4c", "OIHW4i", "NCHW"),
         r"has 8 channels, the kernel .* wants 12 \* groups 1"),
        ((1, 2, 5, 5, 4), (4, 2, 3, 3), ("NCHW4c", "OIHW4i", "NCHW"), "expected 5 dimensions, got"),
        ((1, 2, 5, 5, 4), (4, 8, 3, 3), ("NCHW4w", "OIHW", "NCHW"), "only channels and the batch"),
        ((1, 2, 5, 5, 4), (4, 8, 3, 3), ("NCHWc", "OIHW", "NCHW"), "expected a layout of the lett"),
    ],
)  # fmt: skip
def test_errors(data, kernel, layouts, message):
    tensors = [te.placeholder(shape, "float32") for shape in (data, kernel)]
    with pytest.raises(IRValueError, match=message):
        conv_blocked(*tensors, 1, 0, 1, 1, layouts)


def test_groups_that_do_not_divide_the_filters_are_refused():
    data, kernel = te.placeholder((1, 3, 5, 5, 4)), te.placeholder((4, 1, 3, 3, 4))
    with pytest.raises(IRValueError, match="groups"):
        conv_blocked(data, kernel, 1, 0, 1, 3, ("NCHW4c", "OIHW4i", "NCHW"))
