"""Special functions against Python's math, known values and each other's identities."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.topi import special
from weft.topi.histogram import histogram
from weft.topi.integers import gcd, integer_power
from weft.topi.scan import running_extreme
from weft.topi.shared import sharing


def run(function, *arrays):
    """A topi function of arrays, natively."""
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    made = function(*inputs)
    outputs = list(made) if isinstance(made, list | tuple) else [made]
    kernel = weft.build(te.create_prim_func([*inputs, *outputs]), target="llvm")
    results = [weft.nd.empty([int(e) for e in out.shape], str(out.dtype)) for out in outputs]
    kernel(*map(weft.nd.array, arrays), *results)
    found = [result.numpy() for result in results]
    return found if len(found) > 1 else found[0]


def of(function, values):
    return run(lambda x: topi.math.elementwise(x, function), np.array(values, "float64"))


POINTS = [-29.5, -7.25, -2.5, -1.0, -0.3, -1e-9, 1e-9, 0.2, 0.5, 1.0, 2.0, 3.75, 12.5, 26.0]
AGAINST_MATH = [
    (special.erfc, math.erfc, POINTS),
    (special.lgamma, math.lgamma, [x for x in POINTS if x != -1.0]),
    (special.normal_cdf, lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), POINTS),
]


@pytest.mark.parametrize(("function", "reference", "points"), AGAINST_MATH)
def test_functions_that_python_has(function, reference, points):
    np.testing.assert_allclose(of(function, points), [*map(reference, points)], rtol=2e-13)


def test_quantiles_of_the_normal_distribution():
    areas = np.array([1e-300, 1e-30, 1e-12, 1e-3, 0.07, 0.2, 0.5, 0.6, 0.93, 1 - 1e-12])
    found = of(special.normal_quantile, areas)
    exact = [NormalDist().inv_cdf(area) for area in areas]
    np.testing.assert_allclose(found, exact, rtol=1e-13)
    np.testing.assert_allclose(of(special.normal_cdf, found), areas, rtol=1e-11)
    ends = of(special.normal_quantile, [0.0, -0.0, 1.0, -1e-30, 1.5, math.nan, math.inf])
    np.testing.assert_array_equal(ends, [-math.inf, -math.inf, math.inf, *[math.nan] * 4])


EULER = 0.5772156649015329
KNOWN = [
    (special.digamma, [1, 2, 0.5, 10], [-EULER, 1 - EULER, -EULER - 2 * math.log(2),
                                       2.251752589066721]),
    (special.trigamma, [1, 0.5, -0.5], [math.pi**2 / 6, math.pi**2 / 2, math.pi**2 / 2 + 4]),
    (lambda x: special.polygamma(3, x), [1], [math.pi**4 / 15]),
    (lambda x: special.zeta(x, tir.const(1.0, "float64")), [2, 4, 3],
     [math.pi**2 / 6, math.pi**4 / 90, 1.2020569031595942]),
    (special.bessel_i0, [0, 1, -2.5, 20], [1, 1.2660658777520084, 3.2898391440501231,
                                          43558282.559553534]),
    (special.bessel_i1, [0, 1, -2.5, 20], [0, 0.5651591039924851, -2.5167162452886984,
                                          42454973.385127776]),
    (special.bessel_i0e, [1000], [0.012617240455891257]),
    (special.bessel_i1e, [1000], [0.012610930256928628]),
    (special.erfcx, [0, 10, 1e8], [1, 0.056140992743822586, 5.6418958354775629e-9]),
    (special.erfinv, [0.5, -0.9], [0.4769362762044699, -1.1630871536766743]),
    (special.normal_quantile, [0.975], [1.959963984540054]),
    (special.log_normal_cdf, [-40, 0], [-804.6084420137538, math.log(0.5)]),
    (special.sinc, [0, 0.5, 1], [1, 2 / math.pi, 0]),
    (special.logit, [0.5, 0.75], [0, math.log(3)]),
    (special.entropy, [0, 0.5, -1], [0, 0.5 * math.log(2), -math.inf]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "points", "expected"), KNOWN)
def test_known_values(function, points, expected):
    np.testing.assert_allclose(of(function, points), expected, rtol=1e-12, atol=1e-15)


def test_erfinv_undoes_erf():
    points = np.linspace(-4, 4, 33)
    found = of(lambda x: special.erfinv(tir.erf(x)), points)
    np.testing.assert_allclose(found, points, rtol=1e-7, atol=1e-15)


def test_erfinv_is_exact_for_small_numbers():
    points = np.array([1e-300, 3e-30, -1e-17, 1e-9, 0.49, 0.51])
    roots = points * math.sqrt(math.pi) / 2  # the first term of its series
    np.testing.assert_allclose(of(special.erfinv, points)[:4], roots[:4], rtol=4e-16)
    near = of(lambda x: tir.erf(special.erfinv(x)), points)
    np.testing.assert_allclose(near, points, rtol=1e-15)


@pytest.mark.parametrize(("function", "point", "expected"), [
    (special.erfinv, 1, math.inf), (special.erfinv, -1, -math.inf), (special.erfinv, 2, math.nan),
    (special.digamma, 0.0, -math.inf), (special.digamma, -2, math.nan),
    (special.lgamma, -2, math.inf), (special.lgamma, -math.inf, math.inf),
    (special.erfc, math.inf, 0), (special.erfc, math.nan, math.nan),
])  # fmt: skip
def test_ends_and_poles(function, point, expected):
    np.testing.assert_array_equal(of(function, [point]), [expected])


def test_values_that_are_used_twice_are_named():
    @sharing
    def fourth(bind, x):
        square = bind(x * x)
        return square * square

    x = tir.Var("x", "float64")
    made = fourth(x + 1.0)
    assert isinstance(made, tir.Let)
    np.testing.assert_array_equal(of(fourth, [1, 2, 3]), [1, 16, 81])


def test_powers_of_integers_wrap_and_truncate():
    base = np.array([[2, -3, 10, 0, -1, 1, 2, 7]])
    exponent = np.array([[10, 3, 30, 0, -3, -2, -1, 0], [63, 0, 1, 5, -4, 9, 64, 1]])
    with np.errstate(all="ignore"):
        expected = base ** np.maximum(exponent, 0)
    expected[0, 4:7] = [-1, 1, 0]
    expected[1, 4] = 1
    np.testing.assert_array_equal(run(integer_power, base, exponent), expected)


def test_greatest_common_divisors():
    a, b = np.array([[12], [0], [-18]]), np.array([[8, 0, -27]])
    np.testing.assert_array_equal(run(gcd, a, b), np.gcd(a, b))


def test_running_extremes_take_the_last_of_equal_ones_and_keep_nan():
    x = np.array([[1.0, 3.0, 3.0, 2.0], [5.0, math.nan, 9.0, 9.0]])
    values, places = run(lambda t: running_extreme(t, 1, True), x)
    np.testing.assert_array_equal(values, [[1, 3, 3, 3], [5, math.nan, math.nan, math.nan]])
    np.testing.assert_array_equal(places, [[0, 1, 2, 2], [0, 1, 1, 1]])


def test_a_histogram_leaves_out_what_lies_outside():
    x = np.array([0.0, 0.1, 0.5, 0.99, 1.0, -1.0, 2.0, math.nan])
    counts = run(lambda t, low, high: histogram(t, low, high, 4), x, np.array(0.0), np.array(1.0))
    np.testing.assert_array_equal(counts, [2, 0, 1, 2])
