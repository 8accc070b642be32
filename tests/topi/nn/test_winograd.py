"""Winograd's algorithms: the matrices, exactly, and the function of all stages."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from weft.tir.interp import run
from weft.topi.nn.winograd import in_panels, transformed_weights, winograd_function
from weft.topi.nn.winograd_form import BATCH, HEIGHT, WIDTH, Form
from weft.topi.nn.winograd_matrices import TILES, matrices

RNG = np.random.default_rng(5)


def exact(matrix):
    return np.array([[Fraction(entry) for entry in row] for row in matrix], dtype=object)


@pytest.mark.parametrize("tile", TILES)
def test_the_matrices_are_a_convolution(tile):
    """Data and results are exact in binary; only the weights' matrix has thirds, which are near."""
    known = matrices(tile)
    taps, data = [Fraction(n) for n in (2, -3, 5)], [Fraction(n * n + 1) for n in range(tile + 2)]
    products = (exact(known.weights) @ taps) * (exact(known.data) @ data)
    expected = [sum(data[i + j] * taps[j] for j in range(3)) for i in range(tile)]
    found = exact(known.results) @ products
    assert [float(value) for value in found] == pytest.approx([float(v) for v in expected], 1e-14)
    small = np.array(known.data, "float32"), np.array(known.results, "float32")
    assert (small[0] == known.data).all()
    assert (small[1] == known.results).all()


def convolution(data, weights, padding):
    """In float64: (n, c, h, w) by (o, c, 3, 3)."""
    top, left, bottom, right = padding
    padded = np.pad(data.astype("float64"), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weights.astype("float64"))


def in_blocks(data, block):
    n, c, h, w = data.shape
    return np.ascontiguousarray(data.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2))


FORMS = {
    "rows by themselves": Form(4, 1, (1, 1, 1, 1), (1, 2, 7, 6, 2), 4, 2, 4),
    "an image is a band": Form(2, 3, (1, 0, 0, 1), (2, 1, 7, 6, 4), 8, 4, 4),
    "all images are a band": Form(4, 6, (0, 1, 0, 1), (3, 2, 9, 4, 2), 2, 2, 2),
    "one pixel": Form(2, 1, (1, 1, 1, 1), (1, 1, 1, 1, 4), 4, 4, 4),
}
ALL = frozenset([BATCH, HEIGHT, WIDTH])
SYMBOLIC = {
    "any batch": Form(4, 2, (1, 1, 1, 1), (1, 2, 7, 6, 2), 4, 2, 4, symbols=frozenset([BATCH])),
    "any width": Form(
        4, 1, (1, 1, 0, 1), (2, 1, 5, 16, 4), 8, 4, 4, symbols=frozenset([WIDTH]), groups=2
    ),
    "any image": Form(2, 2, (1, 1, 1, 1), (1, 1, 8, 8, 4), 4, 4, 4, symbols=ALL, groups=3),
}
SIZES = [(0, 7, 6), (1, 1, 1), (1, 7, 2), (2, 3, 17), (3, 4, 12), (1, 12, 6)]


@pytest.mark.parametrize("name", FORMS)
def test_the_stages_are_a_convolution(name):
    form = FORMS[name]
    batch, blocks, height, width, block = form.data
    data = RNG.normal(size=(batch, blocks * block, height, width)).astype("float32")
    weights = RNG.normal(size=(form.filters, blocks * block, 3, 3)).astype("float32")
    expected = in_blocks(convolution(data, weights, form.padding), form.block)
    found = np.full(expected.shape, np.nan, "float32")
    transformed = in_panels(transformed_weights(weights, form.tile), form.panel)
    assert transformed.shape == form.weights
    run(winograd_function(form), in_blocks(data, block), transformed, found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_a_function_of_any_size_is_a_convolution_at_each(name):
    form = SYMBOLIC[name]
    func = winograd_function(form)
    for sizes in SIZES:
        batch, height, width = [
            size if axis in form.symbols else form.data[axis]
            for axis, size in zip((BATCH, HEIGHT, WIDTH), sizes, strict=True)
        ]
        data = RNG.normal(size=(batch, form.data[1] * form.data[4], height, width))
        data = data.astype("float32")
        weights = RNG.normal(size=(form.filters, data.shape[1], 3, 3)).astype("float32")
        expected = in_blocks(convolution(data, weights, form.padding), form.block)
        found = np.full(expected.shape, np.nan, "float32")
        transformed = in_panels(transformed_weights(weights, form.tile), form.panel)
        run(func, in_blocks(data, form.data[4]), transformed, found)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("tile", TILES)
def test_a_function_may_transform_the_kernel(tile):
    form = Form(tile, 2, (1, 1, 1, 1), (1, 2, 7, 6, 2), 8, 2, 4, takes_kernel=True)
    data = RNG.normal(size=(1, 4, 7, 6)).astype("float32")
    weights = RNG.normal(size=(8, 4, 3, 3)).astype("float32")
    expected = in_blocks(convolution(data, weights, form.padding), form.block)
    found = np.full(expected.shape, np.nan, "float32")
    kernel = weights.reshape(4, 2, 2, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    assert kernel.shape == form.kernel
    run(winograd_function(form), in_blocks(data, 2), np.ascontiguousarray(kernel), found)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    [panels] = [buffer for buffer in winograd_function(form).body.block.alloc_buffers
                if buffer.name == "weights"]  # fmt: skip
    assert tuple(map(int, panels.shape)) == (form.side**2, *form.weights[2:])
