"""Special functions, orthogonal polynomials and histograms of torch in terms of other operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import Tensor

from weft.relax.frontend.torch.bessel_decompositions import BESSEL_DECOMPOSITIONS
from weft.relax.frontend.torch.gamma_decompositions import GAMMA_DECOMPOSITIONS

ATEN: Final = torch.ops.aten


def spherical_bessel_j0(x: Tensor) -> Tensor:
    """sin(x) / x."""
    return torch.sinc(x / math.pi)


Step = Callable[[Tensor, int, Tensor, Tensor], Tensor]


def _polynomial(first: Callable[[Tensor], Tensor], step: Step) -> Callable[[Tensor, float], Tensor]:
    """The n-th of 1, first(x) ... where step(x, k, p_k, p_k-1) gives the polynomial after p_k."""

    def value(x: Tensor, n: float) -> Tensor:
        if n < 0:
            return torch.zeros_like(x)
        before, now = torch.ones_like(x), first(x)
        for k in range(1, int(n)):
            before, now = now, step(x, k, now, before)
        return now if n >= 1 else before

    return value


def _chebyshev(x: Tensor, _k: int, now: Tensor, before: Tensor) -> Tensor:
    return 2 * x * now - before


POLYNOMIALS: Final = {
    ATEN.special_chebyshev_polynomial_t.n_scalar: _polynomial(lambda x: x, _chebyshev),
    ATEN.special_chebyshev_polynomial_u.n_scalar: _polynomial(lambda x: 2 * x, _chebyshev),
    ATEN.special_chebyshev_polynomial_v.n_scalar: _polynomial(lambda x: 2 * x - 1, _chebyshev),
    ATEN.special_chebyshev_polynomial_w.n_scalar: _polynomial(lambda x: 2 * x + 1, _chebyshev),
    ATEN.special_hermite_polynomial_h.n_scalar: _polynomial(
        lambda x: 2 * x, lambda x, k, now, before: 2 * x * now - 2 * k * before
    ),
    ATEN.special_hermite_polynomial_he.n_scalar: _polynomial(
        lambda x: x, lambda x, k, now, before: x * now - k * before
    ),
    ATEN.special_laguerre_polynomial_l.n_scalar: _polynomial(
        lambda x: 1 - x,
        lambda x, k, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1),
    ),
    ATEN.special_legendre_polynomial_p.n_scalar: _polynomial(
        lambda x: x,
        lambda x, k, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1),
    ),
}
"""Polynomials of a degree that is a number, by their recurrences."""


def histogram_of_edges(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """(how many elements, or which weight of them, lie in each bin; the edges)."""
    x, count = self.reshape(-1), bins.shape[0] - 1
    place = torch.searchsorted(bins, x, right=True) - 1
    place = place.clamp(0, count - 1)  # the last edge belongs to the last bin
    is_inside = (x >= bins[0]) & (x <= bins[-1])
    amount = torch.ones_like(x) if weight is None else weight.reshape(-1)
    amount = torch.where(is_inside, amount, torch.zeros_like(amount))
    counts = torch.zeros_like(bins[1:]).index_add(0, place, amount)
    if density:
        counts = counts / (counts.sum() * bins.diff())
    return counts, bins


def histogram(
    self: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,  # noqa: A002 - torch's name
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """(what lies in each bin, the edges), for bins of one width, over all elements by default."""
    if range is not None:
        low, high = range
        is_point = low == high
        edges = torch.linspace(
            low - 0.5 * is_point, high + 0.5 * is_point, bins + 1, dtype=self.dtype
        )
    else:
        least, most = self.min(), self.max()
        half = 0.5 * (least == most).to(self.dtype)
        edges = _between(least - half, most + half, bins)
    return histogram_of_edges(self, edges, weight=weight, density=density)


def _between(low: Tensor, high: Tensor, bins: int) -> Tensor:
    """As ``linspace``, whose second half counts from the end."""
    step = (high - low) / bins
    place = torch.arange(bins + 1, dtype=low.dtype)
    return torch.where(place < (bins + 1) // 2, low + step * place, high - step * (bins - place))


SPECIAL_DECOMPOSITIONS: Final[Mapping[torch._ops.OperatorBase, Callable[..., object]]] = {
    **BESSEL_DECOMPOSITIONS,
    **GAMMA_DECOMPOSITIONS,
    ATEN.special_spherical_bessel_j0.default: spherical_bessel_j0,
    ATEN.histogram.bin_ct: histogram,
    ATEN.histogram.bins_tensor: histogram_of_edges,
    **POLYNOMIALS,
}
"""Overload -> a function of its arguments."""
