"""Bessel functions of torch in terms of other operators; they are computed in float64.

"AS" stands for Abramowitz and Stegun, Handbook of Mathematical Functions (1964).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch import Tensor

ATEN: Final = torch.ops.aten
_ANGLES: Final = 40
"""Angles of the means that are Bessel functions; exact in float64 up to ``_NEAR``."""
_NEAR: Final = 25.0
_TERMS: Final = 12
"""Terms of the expansion for large arguments."""
_EULER: Final = 0.57721566490153286
_SMALL: Final = 2.0
_SERIES_TERMS: Final = 14
"""Terms of the power series that are above the rounding of float64 up to ``_SMALL``."""
_STEPS: Final = 24
"""Steps of the trapezoidal rule; exact in float64 from ``_SMALL``."""
_LARGE: Final = 1e300
"""The scaled function is 0 beyond, to rounding."""
_EXPONENT: Final = 40.0
"""exp of minus this is below the rounding of float64."""


def _in_double(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function of a float64, rounded to the argument's type or to torch's default."""

    @functools.wraps(function)
    def value(x: Tensor) -> Tensor:
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        return function(x.double()).to(dtype)

    return value


def _first_kind(order: int, x: Tensor) -> Tensor:
    """Bessel's function of the first kind, of order 0 or 1.

    It is the mean of cos(order t - x sin t) over all angles t (AS 9.1.18), and a wave of falling
    height far from 0 (AS 9.2.5).
    """
    size = x.abs()
    near = _waves(order, size).mean(-1)
    even, odd = _far_parts(order, size.clamp(min=_NEAR))
    far = even * torch.cos(_phase(order, size)) - odd * torch.sin(_phase(order, size))
    value = torch.where(size < _NEAR, near, far)
    return torch.copysign(value, x * value) if order else value


def _second_kind(order: int, x: Tensor) -> Tensor:
    """Bessel's function of the second kind, of order 0 or 1; -inf at 0 and NaN below.

    Near 0 it is the logarithm times the function of the first kind, and Neumann's series of
    functions of the first kind (AS 9.1.88, 9.1.89), each of which is a mean of the same waves: the
    series is one mean, with weights. Far from 0 it is a wave (AS 9.2.6).
    """
    small = x.clamp(max=_NEAR)
    logarithm = torch.log(small / 2)[..., None] + (_EULER - order) - _neumann(order)
    near = (_waves(order, small) * logarithm).mean(-1)
    if order:
        near = near - _waves(0, small).mean(-1) / small
    even, odd = _far_parts(order, x.clamp(min=_NEAR))
    far = even * torch.sin(_phase(order, x)) + odd * torch.cos(_phase(order, x))
    value = torch.where(x < _NEAR, near * (2 / math.pi), far)
    return torch.where(x == 0, -math.inf, value)


def _angles() -> Tensor:
    """The middles of equal parts of a quarter turn."""
    return (torch.arange(_ANGLES, dtype=torch.float64) + 0.5) * (math.pi / 2 / _ANGLES)


def _waves(order: int, x: Tensor) -> Tensor:
    """cos(x sin t), or sin(x sin t) sin t, for all angles t along a new last axis."""
    sines = torch.sin(_angles())
    angle = x[..., None] * sines
    return torch.sin(angle) * sines if order else torch.cos(angle)


def _neumann(order: int) -> Tensor:
    """The weight of the wave of each angle in Neumann's series."""
    k, t = torch.arange(1, _ANGLES, dtype=torch.float64), _angles()[:, None]
    sign = torch.cos(math.pi * k)
    if order == 0:
        return (sign * 2 / k * torch.cos(2 * k * t)).sum(-1)
    height = sign * (2 * k + 1) / (k * (k + 1))
    return (height * torch.sin((2 * k + 1) * t)).sum(-1) / torch.sin(_angles())


def _phase(order: int, x: Tensor) -> Tensor:
    return x - (order / 2 + 0.25) * math.pi


def _far_parts(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q times sqrt(2 / (pi x)), where P + i Q is a sum of falling powers of x (AS 9.2.9)."""
    even, odd, term = torch.ones_like(x), torch.zeros_like(x), torch.ones_like(x)
    for k in range(1, _TERMS):
        term = term * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * x)
        sign = -1 if k // 2 % 2 else 1
        even, odd = (even, odd + sign * term) if k % 2 else (even + sign * term, odd)
    height = torch.sqrt(2 / (math.pi * x))
    return even * height, odd * height


def _scaled_modified_second_kind(order: int, x: Tensor) -> Tensor:
    """exp(x) times the modified function of the second kind; inf at 0 and NaN below.

    Up to 2 it is a power series (AS 9.6.11, 9.6.13), beyond the integral over t of
    exp(-x cosh t) cosh(order t) (AS 9.6.24) by the trapezoidal rule, whose error falls
    exponentially with the number of steps (Trefethen and Weideman, SIAM Review 56, 2014).
    """
    near = _modified_series(order, x.clamp(max=_SMALL)) * torch.exp(x.clamp(max=_SMALL))
    large = x.clamp(_SMALL, _LARGE)
    excess = _EXPONENT / large
    step = torch.log1p(excess + torch.sqrt(excess * (2 + excess))) / _STEPS  # acosh(1 + excess)
    half = torch.sinh(step[..., None] * (torch.arange(_STEPS, dtype=torch.float64) / 2))
    square = 2 * half * half  # cosh t - 1 keeps its digits so
    height = torch.exp(-large[..., None] * square)
    total = (height * (1 + square) if order else height).sum(-1) - 0.5  # half of the first
    value = torch.where(x < _SMALL, near, total * step)
    return torch.where(x == 0, math.inf, value)


def _modified_series(order: int, x: Tensor) -> Tensor:
    """The modified function of the second kind of a small argument, of order 0 or 1."""
    quarter, first, second = x * x / 4, torch.zeros_like(x), torch.zeros_like(x)
    for k in range(_SERIES_TERMS - 1, -1, -1):
        size = 1 / (math.factorial(k) * math.factorial(k + order))
        harmonic = [math.fsum(1 / n for n in range(1, end + 1)) for end in (k, k + order)]
        digamma = sum(harmonic) / 2 - _EULER
        first, second = first * quarter + size, second * quarter + size * digamma
    logarithm = torch.log(x / 2)
    if order == 0:
        return second - logarithm * first
    return 1 / x + x / 2 * (logarithm * first - second)


def _modified_second_kind(order: int, x: Tensor) -> Tensor:
    return _scaled_modified_second_kind(order, x) * torch.exp(-x)


def _overloads(
    name: str, function: Callable[[int, Tensor], Tensor]
) -> dict[str, Callable[[Tensor], Tensor]]:
    """The overloads of order 0 and 1."""
    return {
        f"special_{name}{order}": _in_double(functools.partial(function, order)) for order in (0, 1)
    }


BESSEL_DECOMPOSITIONS: Final[Mapping[torch._ops.OperatorBase, Callable[..., object]]] = {
    getattr(ATEN, name).default: function
    for name, function in {
        **_overloads("bessel_j", _first_kind),
        **_overloads("bessel_y", _second_kind),
        **_overloads("modified_bessel_k", _modified_second_kind),
        **_overloads("scaled_modified_bessel_k", _scaled_modified_second_kind),
    }.items()
}
"""Overload -> a function of its argument."""
