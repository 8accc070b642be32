"""RewriteConvTranspose: transposed convolutions by convolutions of stride 1."""

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout.rewrite_conv_transpose import RewriteConvTranspose

OPERATORS = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose, 3: op.nn.conv3d_transpose}


def module_of(data, weights, dtype="float32", **attrs):
    """One transposed convolution; the weights are an argument too."""
    x, w = [
        relax.Var(name, relax.TensorStructInfo(dims, dtype))
        for name, dims in (("x", data), ("w", weights))
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            made = builder.emit_output(OPERATORS[len(data) - 2](x, w, **attrs))
        builder.emit_func_output(made)
    return builder.get()


def arrays_for(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


def names(mod):
    return {getattr(call.op, "name", "") for call in collect(mod["main"].body, Call)}


CASES = [
    ((2, 3, 5, 4), (3, 2, 4, 4), {"strides": 2, "padding": 1}),
    ((1, 3, 5, 4), (3, 2, 3, 3), {"strides": 2, "padding": 1, "output_padding": 1}),
    ((1, 3, 5, 4), (3, 2, 2, 2), {"strides": 2}),
    ((1, 3, 1, 1), (3, 2, 1, 5), {"strides": (3, 2)}),
    ((1, 3, 4, 5), (3, 2, 2, 3), {"strides": (3, 1), "padding": (0, 1, 1, 0)}),
    ((1, 3, 4, 5), (3, 2, 3, 3), {"padding": 1}),
    ((1, 6, 4, 5), (6, 2, 4, 3), {"strides": 2, "padding": (2, 0), "groups": 3}),
    ((1, 4, 5, 3), (4, 1, 4, 4), {"strides": 2, "padding": 1, "groups": 4}),
    ((2, 3, 7), (3, 4, 5), {"strides": 3, "padding": 2, "output_padding": 2}),
    ((1, 2, 3, 2, 3), (2, 3, 3, 2, 2), {"strides": (2, 2, 1), "padding": (1, 0, 1)}),
]


@pytest.mark.parametrize(("data", "weights", "attrs"), CASES)
def test_the_results_are_the_same(data, weights, attrs):
    before = module_of(data, weights, **attrs)
    after = RewriteConvTranspose()(before)
    assert well_formed(after)
    assert not [name for name in names(after) if "transpose" in name]
    arrays = arrays_for(data, weights)
    np.testing.assert_allclose(
        run(after, "main", *arrays), run(before, "main", *arrays), rtol=1e-5, atol=1e-5
    )


def test_sizes_may_be_symbolic():
    n, h = tir.Var("n", "int64"), tir.Var("h", "int64")
    before = module_of((n, 3, h, 4), (3, 2, 4, 3), strides=2, padding=1, output_padding=1)
    compiled = weft.compile(before)
    for shape in ((1, 3, 5, 4), (2, 3, 1, 4), (0, 3, 2, 4)):
        arrays = arrays_for(shape, (3, 2, 4, 3))
        np.testing.assert_allclose(
            compiled(*arrays), run(before, "main", *arrays), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize(
    ("window", "attrs"),
    [
        (3, {"padding": 1}),
        (2, {"padding": (1, 0)}),
        (6, {"strides": 2, "padding": 2}),
        (4, {"strides": 2, "padding": 1}),
        (2, {"strides": 2}),
    ],
)
def test_an_image_without_pixels_has_an_empty_result(window, attrs):
    w = tir.Var("w", "int64")
    before = module_of((1, 2, w), (2, 3, window), **attrs)
    after = RewriteConvTranspose()(before)
    assert not [name for name in names(after) if "transpose" in name]
    compiled = weft.compile(before, cache=False)
    for width in (0, 1, 4):
        arrays = arrays_for((1, 2, width), (2, 3, window))
        expected = run(before, "main", *arrays)
        assert width or expected.shape == (1, 3, 0)
        for found in (run(after, "main", *arrays), compiled(*arrays)):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_one_convolution_has_no_more_products_than_results_need():
    after = RewriteConvTranspose()(module_of((1, 8, 6, 6), (8, 4, 4, 4), strides=2, padding=1))
    (conv,) = [
        call for call in collect(after["main"].body, Call)
        if getattr(call.op, "name", "") == "relax.nn.conv2d"
    ]  # fmt: skip
    assert [int(dim) for dim in conv.args[1].struct_info.shape.values] == [16, 8, 2, 2]
    assert [int(dim) for dim in conv.struct_info.shape.values] == [1, 16, 7, 7]


@pytest.mark.parametrize(
    ("data", "weights", "attrs"),
    [
        ((1, 3, 5, 4), (3, 2, 3, 3), {"strides": 2, "dilation": 2}),
        ((1, 3, 9, 9), (3, 2, 2, 2), {"strides": 2, "padding": 2}),
        ((1, 5, 4, 3), (3, 2, 3, 3), {"data_layout": "NHWC"}),
        ((1, 2, 2), (2, 3, 3), {"padding": 2}),  # an empty result
    ],
)
def test_others_stay(data, weights, attrs):
    before = module_of(data, weights, **attrs)
    assert RewriteConvTranspose()(before) is before
