"""Maxima of windows over images of symbolic size: no padded copy, the same results."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import weft
from weft import relax, te, tir, topi
from weft.ir.functor import collect
from weft.relax.reference import run
from weft.tir.stmt import Block

H, W = tir.Var("h", "int64"), tir.Var("w", "int64")


def pool(size, stride, padding, ceil_mode, dilation=1, layout="NHWC"):
    """The PrimFunc of a maximum over an image of symbolic size, with three channels."""
    shape = {"NHWC": (2, H, W, 3), "NCHW": (2, 3, H, W), "NCHW4c": (2, 1, H, W, 4)}[layout]
    x = te.placeholder(shape, name="x")
    options = {"ceil_mode": ceil_mode, "layout": layout}
    pooled = topi.nn.pool2d(x, size, stride, dilation, padding, "max", **options)
    return te.create_prim_func([x, pooled])


@functools.cache
def compiled(*options):
    """The code of ``pool(*options)`` for images of all sizes: as written, and as scheduled."""
    func = pool(*options)
    new = weft.dlight.cpu.Default().apply(func, weft.target.Target("llvm"), False).mod["main"]
    return [weft.build(version, "llvm")["main"] for version in (func, new)]


def is_copied(func):
    return "pad_temp" in [block.name_hint for block in collect(func.body, Block)]


@pytest.mark.parametrize(
    "options",
    [
        ((3, 3), (2, 2), (0, 0, 0, 0), True),
        ((3, 3), (2, 2), (1, 1, 1, 1), False),
        ((3, 3), (2, 2), (1, 0, 0, 1), True),
        ((2, 3), (2, 1), (1, 2, 0, 2), False),
        ((2, 2), (2, 2), (0, 0, 0, 0), True),
        ((1, 5), (1, 3), (0, 4, 0, 2), True),
    ],
)
@pytest.mark.parametrize("size", [(3, 5), (4, 4), (7, 13), (13, 2), (16, 17), (2, 1)])
def test_results_are_those_of_the_padded_image(options, size):
    assert not is_copied(pool(*options))
    window, strides, padding, ceil_mode = options
    if size[1] + padding[1] + padding[3] + (strides[1] - 1) * ceil_mode < window[1]:
        pytest.skip("no window fits")
    x = np.random.default_rng(0).standard_normal((2, *size, 3), np.float32)
    x[0, 0, 0, 0] = np.nan
    info = relax.TensorStructInfo(x.shape, "float32")
    builder = relax.BlockBuilder()
    with builder.function("main", [data := relax.Var("x", info)]):
        pooled = relax.op.nn.max_pool2d(
            data, window, strides, padding, ceil_mode=ceil_mode, layout="NHWC"
        )
        builder.emit_func_output(builder.emit(pooled))
    expected = run(builder.get(), "main", x)
    for version in compiled(*options):
        out = weft.nd.empty(expected.shape, "float32")
        version(weft.nd.array(x), out)
        np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize(
    "options",
    [
        {"layout": "NCHW", "padding": (1, 1, 1, 1)},  # windows lie along vectors
        {"dilation": 2, "padding": (1, 1, 1, 1)},  # the nearest pixel is none of the window
        {"padding": (3, 0, 0, 0)},  # a window may miss the image
        {"padding": (1, 1, 2, 2), "ceil_mode": True},
    ],
)
def test_others_are_padded(options):
    assert is_copied(pool(**{"size": (3, 3), "stride": (2, 2), "ceil_mode": False, **options}))


def test_images_of_known_size_are_padded():
    x = te.placeholder((1, 8, 8, 3), name="x")
    pooled = topi.nn.pool2d(x, (3, 3), (2, 2), 1, (1, 1, 1, 1), "max", layout="NHWC")
    assert is_copied(te.create_prim_func([x, pooled]))
