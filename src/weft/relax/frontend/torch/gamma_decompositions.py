"""Incomplete gamma functions of torch in terms of other operators; they are computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch import Tensor

ATEN: Final = torch.ops.aten
_HALF: Final = 40
_STEP: Final = 3.0 / _HALF
"""Nodes of the tanh-sinh rule are at -40 to 40 steps."""
_EXPONENT: Final = 42.0
"""exp of minus this is below the rounding of float64."""
_SHIFT: Final = 10
"""Steps of the recurrence in a."""
_LARGE: Final = 1e100


def gammainc(self: Tensor, other: Tensor) -> Tensor:
    """P(a, x), the share of the integral of t^(a - 1) exp(-t) up to x."""
    return _incomplete_gamma(self, other)[0]


def gammaincc(self: Tensor, other: Tensor) -> Tensor:
    """Q(a, x), the share of the integral of t^(a - 1) exp(-t) from x."""
    return _incomplete_gamma(self, other)[1]


def _incomplete_gamma(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q, rounded to the type of the arguments: the smaller one is an integral.

    With t = x exp(-u) or x exp(u) both integrands fall from u = 0 on, and the rule of Takahasi and
    Mori (Double exponential formulas for numerical integration, 1974) takes the same nodes for all
    elements of the tensors, scaled to where the integrand vanishes.
    """
    dtype = torch.result_type(a, x)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    a, x = torch.broadcast_tensors(a.to(dtype).double(), x.to(dtype).double())
    shape, size = a.clamp(max=_LARGE), x.clamp(max=_LARGE)
    below, above = _lower(shape, size), _upper(shape, size)
    is_low = (size <= shape) | (size < 0.3)
    lower = torch.where(is_low, below, 1 - above).clamp(0, 1)
    upper = torch.where(is_low, 1 - below, above).clamp(0, 1)
    is_wrong = (a < 0) | (x < 0) | ((a == 0) & ~(x > 0)) | (torch.isinf(a) & torch.isinf(x))
    is_wrong = is_wrong | (torch.isnan(x) & ~torch.isinf(a))
    is_all = (a == 0) | torch.isinf(x)
    is_none = (x == 0) | torch.isinf(a)
    results = []
    for value, end in ((lower, 1.0), (upper, 0.0)):
        value = torch.where(is_all, end, torch.where(is_none, 1 - end, value))
        results.append(torch.where(is_wrong, math.nan, value).to(dtype))
    return results[0], results[1]


def _lower(a: Tensor, x: Tensor) -> Tensor:
    """P(a, x) of x below a or small: the integral for a + 10, and ten terms of its series in x.

    a u - x (1 - exp(-u)) is more than (a - x) u + x u^2 / (2 + u), which gives the end.
    """
    x = torch.where((x <= a) | (x < 0.3), x, a)
    b = a + _SHIFT
    term = total = _density(a, x) / a
    for step in range(1, _SHIFT):
        term = term * (x / (a + step))
        total = total + term
    half = b - x - _EXPONENT / 2
    end = (torch.sqrt(half * half + 2 * _EXPONENT * b) - half) / b
    whole = _integral(end, lambda u: -(b[..., None] * u + x[..., None] * torch.expm1(-u)))
    return total + term * (x / b) * b * whole


def _upper(a: Tensor, x: Tensor) -> Tensor:
    """Q(a, x) of x above a that is not small.

    x (exp(u) - 1) - a u is more than (x - a) u + x u^2 / 2, which gives one end; the other is
    where x (exp(u) - 1) / 2 is large.
    """
    x = torch.where((x > a) & (x >= 0.3), x, a + 1)
    rise = x - a
    end = 2 * _EXPONENT / (rise + torch.sqrt(rise * rise + 2 * _EXPONENT * x))
    other = torch.log1p(2 * _EXPONENT / x).clamp(min=1.26)
    whole = _integral(
        torch.minimum(end, other), lambda u: a[..., None] * u - x[..., None] * torch.expm1(u)
    )
    return _density(a, x) * whole


def _density(a: Tensor, x: Tensor) -> Tensor:
    """x^a exp(-x) / gamma(a); by Stirling's series (AS 6.1.41) where a is large."""
    small, large = a.clamp(max=_SHIFT), a.clamp(min=_SHIFT)
    near = torch.exp(torch.xlogy(small, x) - x - torch.lgamma(small))
    ratio = (x - large) / large
    logarithm = torch.where(ratio < -0.5, torch.log(x / large), torch.log1p(ratio))
    square = 1 / (large * large)
    series = 1 / 1260 - square * (1 / 1680 - square / 1188)
    series = (1 / 12 - square * (1 / 360 - square * series)) / large
    height = torch.sqrt(large / (2 * math.pi))
    far = height * torch.exp(large * (logarithm - ratio) - series)
    return torch.where(a < _SHIFT, near, far)


def _integral(end: Tensor, exponent: Callable[[Tensor], Tensor]) -> Tensor:
    """The integral of exp(exponent(u)) from 0 to the end."""
    place = (torch.arange(2 * _HALF + 1, dtype=torch.float64) - _HALF) * _STEP
    angle = math.pi / 2 * torch.sinh(place)
    nodes = 1 / (1 + torch.exp(-2 * angle))
    weights = math.pi / 4 * _STEP * torch.cosh(place) / torch.cosh(angle) ** 2
    return (weights * torch.exp(exponent(end[..., None] * nodes))).sum(-1) * end


GAMMA_DECOMPOSITIONS: Final[Mapping[torch._ops.OperatorBase, Callable[..., object]]] = {
    ATEN.igamma.default: gammainc,
    ATEN.igammac.default: gammaincc,
}
"""Overload -> a function of its arguments."""
