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
    check_model(
        Model(
            special.bessel_j0, special.bessel_j1, special.spherical_bessel_j0,
            special.modified_bessel_i0, special.modified_bessel_i1,
        ),
        torch.randn(3, 4) * 5,
    )  # fmt: skip
    check_model(Model(special.bessel_j0, special.bessel_j1), torch.arange(-3, 4))


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
