"""Special functions, polynomials and histograms, for which torch has no decomposition."""

from __future__ import annotations

import functools
import math

import pytest
import torch

import weft
from tests.lib.aten import check_model

pytestmark = pytest.mark.torch
special = torch.special


class Model(torch.nn.Module):
    """Functions of tensors as a model."""

    def __init__(self, *functions):
        super().__init__()
        self.functions = functions

    def forward(self, *args):
        return [function(*args) for function in self.functions]


def check_compiled(model, *args):
    """The results beside those of torch, some of which have 8 digits only in float64."""
    results = weft.compile(model, args, cache=False)(*args)
    for result, expected in zip(results, model(*args), strict=True):
        torch.testing.assert_close(result, expected, rtol=2e-6, atol=2e-6, equal_nan=True)


def mean_over_angles(order, x):
    """Bessel's integral, whose sum over 400 angles is exact to rounding below 100."""
    t = torch.arange(400, dtype=torch.float64) * (2 * math.pi / 400)
    return torch.cos(order * t - x[:, None] * torch.sin(t)).mean(-1)


def test_bessel_functions_in_float64():
    """Closer than torch, whose coefficients give 7 digits near 5."""
    x = torch.cat([torch.linspace(-60, 60, 241), torch.tensor([0.0, 24.99, 25.01])]).double()
    model = Model(special.bessel_j0, special.bessel_j1)
    for order, found in enumerate(weft.compile(model, (x,), cache=False)(x)):
        torch.testing.assert_close(found, mean_over_angles(order, x), rtol=0, atol=2e-14)


def test_bessel_functions_of_other_types():
    check_compiled(
        Model(
            special.bessel_j0, special.bessel_j1, special.spherical_bessel_j0,
            special.modified_bessel_i0, special.modified_bessel_i1,
        ),
        torch.randn(3, 4) * 5,
    )  # fmt: skip
    check_compiled(Model(special.bessel_j0, special.bessel_j1), torch.arange(-3, 4))


def test_bessel_functions_of_the_second_kind_fulfil_wronskis_identity():
    """J1 Y0 - J0 Y1 = 2 / (pi x) and I0 K1 + I1 K0 = 1 / x (AS 9.1.16, 9.6.15)."""
    x = torch.cat([torch.linspace(0.25, 60, 240), torch.tensor([24.99, 25.01])]).double()
    model = Model(
        lambda x: special.bessel_j1(x) * special.bessel_y0(x),
        lambda x: special.bessel_j0(x) * special.bessel_y1(x),
        lambda x: special.i0e(x) * special.scaled_modified_bessel_k1(x),
        lambda x: special.i1e(x) * special.scaled_modified_bessel_k0(x),
    )
    first, second, third, fourth = weft.compile(model, (x,), cache=False)(x)
    torch.testing.assert_close(first - second, 2 / (math.pi * x), rtol=1e-11, atol=0)
    torch.testing.assert_close(third + fourth, 1 / x, rtol=1e-10, atol=0)


SECOND_KIND = [
    *("bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_bessel_functions_of_the_second_kind(dtype):
    x = torch.tensor([1e-30, 1e-3, 0.4, 1, 1.999, 2, 2.001, 4.5, 24.9, 25, 70, 600])
    ends = torch.tensor([0.0, -1, math.inf, math.nan])
    x = x if dtype == torch.int64 else torch.cat([x, ends])
    check_compiled(Model(*(getattr(special, name) for name in SECOND_KIND)), x.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_incomplete_gamma_functions(dtype):
    a = torch.tensor([[1e-4], [0.3], [1], [2.5], [9.9], [10], [33], [1000], [1e5]])
    ratio = torch.tensor([1e-9, 0.01, 0.5, 0.99, 1, 1.01, 1.3, 2, 40])
    ends = torch.tensor([0, 1, -1, math.inf, math.nan])
    ends, others = (part.reshape(-1) for part in torch.meshgrid(ends, ends, indexing="ij"))
    shapes = torch.cat([a.expand(9, 9).reshape(-1), ends])
    x = torch.cat([(a * ratio).reshape(-1), others])
    model = Model(special.gammainc, special.gammaincc)
    check_compiled(model, shapes.to(dtype), x.to(dtype))


def test_incomplete_gamma_functions_of_whole_numbers_in_float64():
    """Q(n, x) is exp(-x) times the first n terms of the series of exp(x) (AS 6.5.13)."""
    count, x = torch.arange(1, 30).double(), torch.linspace(0.5, 80, 40).double()
    n = torch.arange(30).double()
    terms = torch.exp(n * torch.log(x[:, None]) - torch.lgamma(n + 1) - x[:, None])
    expected = terms.cumsum(-1)[:, :29]
    model = Model(special.gammainc, special.gammaincc)
    lower, upper = weft.compile(model, (count, x[:, None]), cache=False)(count, x[:, None])
    torch.testing.assert_close(upper, expected, rtol=1e-12, atol=1e-300)
    torch.testing.assert_close(lower, 1 - expected, rtol=1e-11, atol=1e-14)


def _of_degree(function, degree, x):
    return function(x, degree)


@pytest.mark.parametrize("degree", [-1, 0, 1, 5])
def test_polynomials(degree):
    names = [
        *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"), "hermite_polynomial_h",
        "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
    ]  # fmt: skip
    functions = [functools.partial(_of_degree, getattr(special, name), degree) for name in names]
    check_model(Model(*functions), torch.rand(3, 4) * 1.8 - 0.9)


def test_histograms():
    x, weight = torch.randn(40), torch.rand(40)
    x[:3] = torch.tensor([-1.0, 1.0, float("nan")])
    edges = torch.tensor([-2.0, -0.5, 0.0, 1.0, 3.0])
    check_model(
        Model(
            lambda x, w, e: torch.histogram(x[3:], 5),
            lambda x, w, e: torch.histogram(x, 4, range=(-1.0, 1.0)),
            lambda x, w, e: torch.histogram(x, 4, range=(-1.0, 1.0), weight=w, density=True),
            lambda x, w, e: torch.histogram(x, 3, range=(1.0, 1.0)),
            lambda x, w, e: torch.histogram(x, e),
            lambda x, w, e: torch.histogram(x, e, weight=w),
            lambda x, w, e: torch.histogram(0 * w, 6),
        ),
        x, weight, edges,
    )  # fmt: skip
