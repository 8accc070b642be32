"""Whether an answer of a network is right: the rules that explain what differs from float64.

``RULES`` lists them, the strictest first; an element of an answer that none of them covers is
wrong.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from weft.testing.float64_judge import MORE_SAMPLES, SAMPLED, SAMPLES, Judge, widened_tensor

ULPS: Final = 8
"""How many units in the last place an answer may be off without a reason."""
OF_REFERENCES: Final = 4
"""How many times as far as the references an answer may be, ..."""
REFERENCE_ULPS: Final = 1024
"""... as long as that is not more than so many units in the last place."""
WIDER: Final = 2
"""How many times as far as the farthest sample an answer may be."""
UNDETERMINED: Final = 0.5
"""Where samples spread by more than this share of their middle, no digit of it is determined: the
network divides by about 0 there, and no number of samples bounds what comes of it."""
RULES: Final[Mapping[str, str]] = {
    "accurate": "within 8 units in the last place of float64's answer, or 4 times as far from it "
    "as PyTorch and ONNX Runtime are",
    "as a reference": "equal to PyTorch's or ONNX Runtime's answer, which are far from float64's",
    "rounding": "the network multiplies rounding: perturbed by 2 units in the last place at every "
    "inexact operator, float64 gives such answers (cancellation, steep functions, poles)",
    "tie": "a floor, rounding, cast, comparison or place of a maximum stands so near its jump that "
    "the same perturbation moves it",
    "range": "a result on the way leaves the range of its type (float16 above 65504, ...): "
    "infinite or NaN if it is rounded there, finite if a fused kernel keeps it wider",
    "undefined": "a float that is NaN, infinite or out of range became an integer, or an infinite "
    "value is interpolated with the weight 0 (NaN where it is multiplied, nothing where left out), "
    "or GELU read -inf (0 as the limit, NaN as the product)",
}
"""What explains an element of an answer: rules in order, each with its meaning."""


@dataclass(frozen=True)
class Verdict:
    """How many elements each rule explains, and where those are that none does."""

    explained: Mapping[str, int]
    wrong: torch.Tensor

    @property
    def right(self) -> bool:
        return not bool(self.wrong.any())


def judged(
    judge: Judge, output: str, answer: torch.Tensor, references: Sequence[torch.Tensor]
) -> Verdict:
    """An answer for one output, each element by the first rule that covers it.

    ``references``: what PyTorch and ONNX Runtime answer, of the shape and dtype of ``answer``.
    """
    exact, open_ = judge.exact[output], torch.ones(answer.shape, dtype=torch.bool)
    explained: dict[str, int] = {}
    counts = [(rule, SAMPLES) for rule in RULES] + [(rule, MORE_SAMPLES) for rule in SAMPLED]
    for rule, count in counts:
        if rule == "accurate":
            covered = _accurate(answer, exact, references)
        elif rule == "as a reference":
            covered = _as_one_of(answer, references)
        else:
            runs = judge.samples(rule, count)
            covered = _among(answer, exact, [run[output] for run in runs])
        if number := int((open_ & covered).sum()):
            explained[rule] = explained.get(rule, 0) + number
        open_ = open_ & ~covered
        if not bool(open_.any()):
            break
    return Verdict(explained, open_)


def _epsilon(dtype: torch.dtype) -> float:
    """The unit in the last place of 1; 0 for integers, which are equal or not."""
    return torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0


def _same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Equal, infinities too, or both NaN (of complex numbers: both in some part)."""
    return (one == other) | (one.isnan() & other.isnan())


def _distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far apart; 0 where the two are the same, infinite where only one is a number."""
    apart = (one - other).abs()
    return torch.where(_same(one, other), 0.0, apart.nan_to_num(torch.inf, torch.inf))


def _floor_of(dtype: torch.dtype) -> float:
    """The spacing of the smallest numbers: what vanishes is right within it."""
    return torch.finfo(dtype).smallest_normal if _epsilon(dtype) else 0.0


def _accurate(
    answer: torch.Tensor, exact: torch.Tensor, references: Sequence[torch.Tensor]
) -> torch.Tensor:
    epsilon = _epsilon(answer.dtype)
    if not epsilon:
        return answer == exact
    size = exact.abs()
    wide = [_distance(widened_tensor(reference), exact) for reference in references]
    farthest = functools.reduce(torch.maximum, wide, torch.zeros(answer.shape).double())
    allowed = torch.minimum(OF_REFERENCES * farthest, REFERENCE_ULPS * epsilon * size)
    allowed = torch.maximum(allowed, ULPS * epsilon * size + _floor_of(answer.dtype))
    apart = _distance(widened_tensor(answer), exact)
    return (apart == 0) | (apart <= allowed.nan_to_num(0.0, 0.0))


def _as_one_of(answer: torch.Tensor, references: Sequence[torch.Tensor]) -> torch.Tensor:
    covered, epsilon = torch.zeros(answer.shape, dtype=torch.bool), _epsilon(answer.dtype)
    for reference in references:
        if not epsilon:
            covered |= answer == reference
            continue
        other = widened_tensor(reference)
        allowed = ULPS * epsilon * other.abs() + _floor_of(answer.dtype)
        apart = _distance(widened_tensor(answer), other)
        covered |= (apart == 0) | (apart <= allowed.nan_to_num(0.0, 0.0))
    return covered


def _among(
    answer: torch.Tensor, exact: torch.Tensor, samples: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Whether an answer lies among the samples, or not much further out than they do."""
    if answer.is_complex():
        parts = [torch.view_as_real(value) for value in (answer, exact, *samples)]
        return _among(parts[0], parts[1], parts[2:]).all(-1)
    found, stacked = widened_tensor(answer), torch.stack([exact, *samples])
    if not stacked.is_floating_point():
        numbers = stacked.to(torch.int64) if stacked.dtype is torch.bool else stacked
        given = found.to(numbers.dtype)
        return (given >= numbers.amin(0)) & (given <= numbers.amax(0))
    return _among_floats(found, stacked, answer.dtype)


def _among_floats(found: torch.Tensor, samples: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same of floats: finite ones within reach, others where a sample leaves the dtype too.

    At the edge of a domain (asin, sqrt: some samples are NaN) a function moves by the square root
    of what its argument does.
    """
    finite, largest = samples.isfinite(), torch.finfo(dtype).max
    low = torch.where(finite, samples, torch.inf).amin(0)
    high = torch.where(finite, samples, -torch.inf).amax(0)
    middle, spread = (high + low) / 2, (high - low) / 2
    reach = WIDER * spread + ULPS * _epsilon(dtype) * middle.abs() + _floor_of(dtype)
    is_edge = samples.isnan().any(0) & finite.any(0)
    reach = reach + torch.where(is_edge, 4 * math.sqrt(_epsilon(dtype)) * middle.abs(), 0.0)
    pole = spread > UNDETERMINED * middle.abs()
    beyond = pole & (found.abs() >= samples.abs().nan_to_num(torch.inf).amin(0))
    number = ((found - middle).abs() <= reach) | beyond
    not_a_number = samples.isnan().any(0) | (pole & ~finite.all(0))
    above = (samples > largest).any(0) | (high + reach > largest) | pole
    below = (samples < -largest).any(0) | (low - reach < -largest) | pole
    infinite = torch.where(found > 0, above, below)
    return torch.where(found.isfinite(), number, torch.where(found.isnan(), not_a_number, infinite))
