"""Mean and variance over axes, where one-pass forms lose digits."""

import numpy as np
import pytest

from weft import te
from weft.driver.build import build
from weft.runtime.ndarray import array, empty
from weft.topi.extents import compute_ax
from weft.topi.moments import Moments


def statistics(x, axes):
    """Mean and variance of an array over axes, compiled."""
    data = te.placeholder(x.shape, str(x.dtype), name="x")
    moments = Moments(data, axes, "x")
    mean = compute_ax(moments.outer_shape, lambda *i: moments.mean(i), "mean")
    variance = compute_ax(moments.outer_shape, lambda *i: moments.variance(i), "variance")
    func = te.create_prim_func([data, mean, variance])
    shape = [n for i, n in enumerate(x.shape) if i not in axes]
    made = [empty(shape, str(moments.dtype)) for _ in range(2)]
    build(func, "llvm")(array(x), *made)
    return [item.numpy() for item in made]


@pytest.mark.parametrize("mean", [0, 300, 3000])
@pytest.mark.parametrize("first", [None, -1000, 1e4])
def test_moments_when_the_mean_or_the_first_is_far(mean, first):
    x = (np.random.default_rng(0).standard_normal((3, 1000)) + mean).astype("float32")
    if first is not None:
        x[:, 0] = first
    exact = x.astype("float64")
    found_mean, found_variance = statistics(x, [1])
    np.testing.assert_allclose(found_mean, exact.mean(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found_variance, exact.var(1), rtol=1e-5)


def test_moments_when_all_elements_are_equal():
    for value in (0.1, 1e4 / 3, 7e30):
        mean, variance = statistics(np.full((2, 777), value, "float32"), [1])
        np.testing.assert_array_equal(mean, np.float32(value))
        np.testing.assert_array_equal(variance, 0)


@pytest.mark.parametrize(
    ("shape", "axes"), [((), []), ((3,), []), ((2, 3, 4), [0, 2]), ((1, 1), [1]), ((0, 3), [1])]
)
def test_moments_when_shapes_are_small(shape, axes):
    x = np.random.default_rng(1).standard_normal(shape).astype("float16")
    exact = x.astype("float64")
    mean, variance = statistics(x, axes)
    np.testing.assert_allclose(mean, exact.mean(tuple(axes)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, exact.var(tuple(axes)), rtol=1e-5, atol=1e-6)


def test_moments_of_nothing_are_nan():
    for found in statistics(np.zeros((2, 0), "float32"), [1]):
        assert np.isnan(found).all()


def test_moments_when_a_nan_or_an_infinity_is_there():
    for found in statistics(np.array([[1, np.nan], [1, np.inf], [1, 1]], "float32"), [1])[1:]:
        np.testing.assert_array_equal(np.isnan(found), [True, True, False])
