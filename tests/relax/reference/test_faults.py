"""What has no meaning is an error of the reference too, as it is of rules and kernels."""

import numpy as np
import pytest

from weft.ir.op import Op
from weft.relax.reference import reference_of
from weft.support.errors import IRValueError


def test_reflection_of_more_than_there_is():
    pad = reference_of(Op.get("relax.nn.pad"))
    x = np.zeros((1, 3), "float32")
    with pytest.raises(IRValueError, match="axis 0: reflection takes less than the 1 elements"):
        pad(x, pad_width=[1, 0, 0, 0], pad_mode="reflect")
    assert pad(x, pad_width=[0, 0, 2, 2], pad_mode="reflect").shape == (1, 7)


@pytest.mark.parametrize("name", ["max_pool1d", "avg_pool1d"])
def test_windows_that_fit_nowhere(name):
    """As the rules say it where extents are known; into nothing no window has to fit."""
    pool = reference_of(Op.get(f"relax.nn.{name}"))
    options = {"strides": [2], "padding": [0, 0], "dilation": [1], "ceil_mode": False,
               "count_include_pad": True, "layout": "NCW", "out_layout": "NCW"}  # fmt: skip
    with pytest.raises(IRValueError, match="the window reaches over 2 elements, the padded data"):
        pool(np.zeros((1, 1, 1), "float32"), pool_size=[2], **options)
    assert pool(np.zeros((1, 1, 0), "float32"), pool_size=[2], **options).shape == (1, 1, 0)


def test_a_transposed_convolution_of_fewer_elements_than_its_padding():
    options = {"strides": [2], "padding": [2, 2], "output_padding": [0], "dilation": [1],
               "groups": 1, "data_layout": "NCW", "kernel_layout": "IOW",
               "out_layout": "NCW"}  # fmt: skip
    convolution = reference_of(Op.get("relax.nn.conv1d_transpose"))
    x, w = np.zeros((1, 1, 1), "float32"), np.zeros((1, 2, 3), "float32")
    with pytest.raises(IRValueError, match="axis 0: the padding takes more than the 3 elements"):
        convolution(x, w, **options)
    assert convolution(np.zeros((1, 1, 2), "float32"), w, **options).shape == (1, 2, 1)


def test_the_median_of_nothing():
    with pytest.raises(IRValueError, match="median: expected at least one element"):
        reference_of(Op.get("relax.median"))(np.zeros((2, 0), "float32"), axis=[1])


def test_more_parts_than_there_are_elements_for():
    split = reference_of(Op.get("relax.split"))
    with pytest.raises(IRValueError, match="cannot split an extent of 1 into 3 sections"):
        split(np.zeros((1, 2)), indices_or_sections=3, axis=0)
    assert [part.shape for part in split(np.zeros(5), indices_or_sections=3)] == [(2,), (2,), (1,)]
    assert [part.shape for part in split(np.zeros(0), indices_or_sections=2)] == [(0,), (0,)]
