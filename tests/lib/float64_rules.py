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

from tests.lib.float64_judge import MORE_SAMPLES, SAMPLED, SAMPLES, Judge, widened_tensor

ULPS: Final = 8
"""How many units in the last place an answer may be off without a reason, ..."""
NARROW_ULPS: Final = 2
"""... and one of float16 or bfloat16, which kernels compute in float32 and round once."""
OF_REFERENCES: Final = 4
"""How many times as far as the references an answer may be, ..."""
REFERENCE_ULPS: Final = 128
"""... as long as that is not more than so many times those units, ..."""
REFERENCE_SHARE: Final = 1 / 64
"""... nor more than this share of the number."""
WIDER: Final = 2
"""How many times as far as the farthest sample an answer may be."""
UNDETERMINED: Final = 0.5
"""Where samples spread by more than this share of their middle, and ..."""
HEAVY: Final = 32
"""... the largest of them is so many times as large as half of them are, the network divides by
about 0, and no number of samples bounds what comes of it. (What cancels to about 0 spreads too,
but evenly: the largest is a few times as large.)"""
FEW: Final = 8
"""Samples with no more different integers than this show all that there are."""
SEEN: Final = 3
"""Samples on one side of a jump, at least; between the sides there is nothing."""
RULES: Final[Mapping[str, str]] = {
    "accurate": "within 8 units in the last place of float64's answer (2 of float16), or 4 times "
    "as far from it as PyTorch and ONNX Runtime are",
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
            covered = _sampled(judge, output, answer, rule, count)
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


def _ulps(dtype: torch.dtype) -> int:
    return NARROW_ULPS if torch.finfo(dtype).bits < 32 else ULPS


def _floor_of(dtype: torch.dtype) -> float:
    """What vanishes is right within some of the spacings of the smallest numbers."""
    information = torch.finfo(dtype)
    result: float = _ulps(dtype) * information.tiny * information.eps
    return result


def _own_units(size: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """How far an answer of a type may be off without a reason."""
    return _ulps(dtype) * _epsilon(dtype) * size + _floor_of(dtype)


def _accurate(
    answer: torch.Tensor, exact: torch.Tensor, references: Sequence[torch.Tensor]
) -> torch.Tensor:
    epsilon = _epsilon(answer.dtype)
    if not epsilon:
        return answer == exact
    size = exact.abs()
    wide = [_distance(widened_tensor(reference), exact) for reference in references]
    wide = [distance.nan_to_num(posinf=0.0) for distance in wide]  # one that overflows says nothing
    farthest = functools.reduce(torch.maximum, wide, torch.zeros(answer.shape).double())
    most = min(REFERENCE_ULPS * _ulps(answer.dtype) * epsilon, REFERENCE_SHARE) * size
    allowed = torch.minimum(OF_REFERENCES * farthest, most)
    allowed = torch.maximum(allowed, _own_units(size, answer.dtype))
    apart = _distance(widened_tensor(answer), exact)
    return (apart == 0) | (apart <= allowed.nan_to_num(0.0, 0.0))


def _as_one_of(answer: torch.Tensor, references: Sequence[torch.Tensor]) -> torch.Tensor:
    covered, epsilon = torch.zeros(answer.shape, dtype=torch.bool), _epsilon(answer.dtype)
    for reference in references:
        if not epsilon:
            covered |= answer == reference
            continue
        other = widened_tensor(reference)
        allowed = _own_units(other.abs(), answer.dtype)
        apart = _distance(widened_tensor(answer), other)
        covered |= (apart == 0) | (apart <= allowed.nan_to_num(0.0, 0.0))
    return covered


def _sampled(
    judge: Judge, output: str, answer: torch.Tensor, rule: str, count: int
) -> torch.Tensor:
    """Whether an answer lies among the samples of a rule, or not much further out than they do."""
    exact, dtype = judge.exact[output], answer.dtype
    samples = [exact, *[run[output] for run in judge.samples(rule, count)]]
    if exact.dtype is torch.bool or not (exact.is_floating_point() or exact.is_complex()):
        show_all = rule != "undefined" or not judge.met_undefined
        return _among_integers(answer, torch.stack(samples), show_all)
    rounded = [exact, *[run[output] for run in judge.samples("rounding", count)]]
    key = (output, rule, len(samples), len(rounded), dtype)
    spread = judge.kept(key, lambda: _spread(torch.stack(samples), torch.stack(rounded), dtype))
    if not answer.is_complex():
        return _among_floats(answer, spread)
    return _among_floats(torch.view_as_real(answer), spread).all(-1)


def _among_integers(answer: torch.Tensor, samples: torch.Tensor, show_all: bool) -> torch.Tensor:
    """Between the samples, and one of them if they are few different numbers, all of them seen."""
    numbers = samples.to(torch.int64) if samples.dtype is torch.bool else samples
    given = answer.to(numbers.dtype)
    between = (given >= numbers.amin(0)) & (given <= numbers.amax(0))
    if not show_all:
        return between
    different = (numbers.sort(0).values.diff(dim=0) != 0).sum(0) + 1
    return between & ((numbers == given).any(0) | (different > FEW))


def _pole(samples: torch.Tensor) -> torch.Tensor:
    """Where nothing bounds the values: they are large, and a few far larger than the others."""
    finite = samples.isfinite()
    low, high = _ends(samples)
    size = torch.where(finite, samples, torch.nan).abs()
    is_heavy = size.nan_to_num(0.0).amax(0) > HEAVY * size.nanmedian(0).values
    return is_heavy & ((high - low) / 2 > UNDETERMINED * (high + low).abs() / 2)


def _ends(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The least and the greatest finite one; infinite, the wrong way round, where there is none."""
    finite = samples.isfinite()
    low = torch.where(finite, samples, torch.inf).amin(0)
    return low, torch.where(finite, samples, -torch.inf).amax(0)


@dataclass(frozen=True)
class _Spread:
    """What samples say of an answer of a float type, element by element."""

    numbers: Sequence[tuple[torch.Tensor, torch.Tensor]]
    """Where finite ones may lie: the middles of ranges, and how far from them."""
    pole: torch.Tensor
    least_at_pole: torch.Tensor
    not_a_number: torch.Tensor
    """Where NaN may be, ..."""
    above: torch.Tensor
    """... where infinity, ..."""
    below: torch.Tensor
    """... where negative infinity."""


def _spread(samples: torch.Tensor, rounded: torch.Tensor, dtype: torch.dtype) -> _Spread:
    """Finite ones within reach, others where a sample leaves the dtype too.

    At the edge of a domain (asin, sqrt: some samples are NaN) a function moves by the square root
    of what its argument does.
    """
    if dtype.is_complex:
        samples, rounded = torch.view_as_real(samples), torch.view_as_real(rounded)
        dtype = dtype.to_real()
    pole, finite = _pole(rounded), samples.isfinite()
    is_edge = samples.isnan().any(0) & finite.any(0)
    numbers = []
    for low, high in _sides(samples):
        middle, reach = (high + low) / 2, _reach(low, high, dtype)
        reach = reach + torch.where(is_edge, 4 * math.sqrt(_epsilon(dtype)) * middle.abs(), 0.0)
        numbers.append((middle, reach))
    low, high = _ends(samples)
    reach, largest = _reach(low, high, dtype), torch.finfo(dtype).max
    middle = (high + low) / 2
    return _Spread(
        numbers=numbers,
        pole=pole,
        least_at_pole=samples.abs().nan_to_num(torch.inf).amin(0) / HEAVY,
        not_a_number=samples.isnan().any(0) | (pole & ~finite.all(0)),
        above=(samples > largest).any(0) | (middle + reach > largest) | pole,
        below=(samples < -largest).any(0) | (middle - reach < -largest) | pole,
    )


def _among_floats(answer: torch.Tensor, spread: _Spread) -> torch.Tensor:
    """Where an answer is what the samples allow."""
    found = widened_tensor(answer)
    number = torch.zeros(answer.shape, dtype=torch.bool)
    for middle, reach in spread.numbers:
        number |= (found - middle).abs() <= reach
    number = torch.where(spread.pole, found.abs() >= spread.least_at_pole, number)
    infinite = torch.where(found > 0, spread.above, spread.below)
    unbounded = torch.where(found.isnan(), spread.not_a_number, infinite)
    return torch.where(found.isfinite(), number, unbounded)


def _reach(low: torch.Tensor, high: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """How far from the middle between two samples an answer may be."""
    return WIDER * (high - low) / 2 + _own_units((high + low).abs() / 2, dtype)


def _sides(samples: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The least and greatest samples; of both sides of a jump where there is one.

    A jump is a gap wider than half of what the samples span, with some samples on either side.
    """
    low, high = _ends(samples)
    ordered = torch.where(samples.isfinite(), samples, torch.inf).sort(0).values
    gaps = ordered.diff(dim=0).nan_to_num(0.0, 0.0)
    gaps[: SEEN - 1] = 0.0
    widest, place = gaps.max(0)
    beyond = samples.isfinite().sum(0) - place - 1
    is_jump = (widest > (high - low) / 2) & (beyond >= SEEN)
    before = ordered.gather(0, place[None])[0]
    after = ordered.gather(0, place[None] + 1)[0]
    return [(low, torch.where(is_jump, before, high)), (torch.where(is_jump, after, low), high)]
