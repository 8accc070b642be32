"""A network in float64, once exactly and many times as rounding could change it.

Two correct programs differ in rounding; where a network floors, compares, overflows or divides by
what cancels, rounding changes everything. So the judge runs the network again and again with its
intermediate results perturbed as rounding would perturb them (Monte Carlo arithmetic; Parker,
1997). ``float64_rules`` compares an answer with these runs.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import torch

from tests.lib.random_networks import Network, Node

T = TypeVar("T")

WIDE: Final[Mapping[torch.dtype, torch.dtype]] = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
"""The judge's dtypes; all others, integers first, are their own."""
COMPUTED: Final = dict.fromkeys((torch.float16, torch.bfloat16), torch.float32)
"""The dtype in which kernels compute those of another: what they read is off by its rounding."""
INTEGERS: Final = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))
EXACT: Final = frozenset(
    """
    Abs ArgMax ArgMin CastBool CastF64 CastI32 CastI64 Ceil Clip Concat1 Concat2 Concat3 Concat4
    Concat5 ConstPad Constant Equal ExpandLast1 ExpandLast2 ExpandLast3 ExpandLast4 Flatten Floor
    Greater Less Max MaxPool2d Min NearestInterp Neg And Or Xor ReLU ReduceMax ReduceMin ReflectPad
    ReplicatePad Reshape Round Slice Squeeze Transpose Tril Triu Where
    """.split()
)
"""Operators that choose, move or compare values, and round nothing."""
DISCRETE: Final = frozenset(
    """
    ArgMax ArgMin CastBool CastI32 CastI64 Ceil Equal Floor Greater Less Round
    """.split()
)
"""Operators that jump: rounding in what they read may change their result by a whole step."""
INTERPOLATIONS: Final = frozenset(
    ("LinearInterp", "BilinearInterp", "TrilinearInterp", "BicubicInterp")
)
ACCURATE: Final[Mapping[str, Callable[..., torch.Tensor]]] = {
    "GELU": lambda x: 0.5 * x * torch.special.erfc(-x * math.sqrt(0.5)),
}
"""Operators that PyTorch computes badly in float64 as well: x * (1 + erf(...)) is 0 below -8."""
SAMPLES: Final = 16
"""Perturbed runs for each rule, ..."""
MORE_SAMPLES: Final = 256
"""... and for what they leave open: an asin of 1 that rounding seldom brings into its domain."""


@dataclass(frozen=True)
class Noise:
    """Random numbers from -1 to 1; from 0 to ``lean`` if that is not 0."""

    generator: torch.Generator
    lean: int = 0

    def drawn(self, shape: Sequence[int]) -> torch.Tensor:
        """float64 numbers of a shape."""
        share = torch.rand(tuple(shape), generator=self.generator, dtype=torch.float64)
        return share * self.lean if self.lean else share * 2 - 1


@dataclass(frozen=True)
class Perturbation:
    """How one run of the judge departs from the exact one.

    ``noise``: inexact operators see and give values that are off as rounding in the model's dtypes
    is. ``decisions``: the results of DISCRETE nodes, taken from another run. ``narrow``: results
    are rounded to the model's dtypes, so that they overflow and vanish as there. ``arbitrary``:
    what no rule defines (NaN as an integer, ...) becomes some number, by turns.
    """

    noise: Noise | None = None
    decisions: Mapping[str, torch.Tensor] | None = None
    narrow: bool = False
    arbitrary: int | None = None


def widened_tensor(value: torch.Tensor) -> torch.Tensor:
    """Floats as float64, complex numbers as complex128, others as they are."""
    return value.to(WIDE.get(value.dtype, value.dtype))


def widened(network: Network) -> Network:
    """A copy whose weights are float64 and complex128."""
    result: Network = copy.deepcopy(network)._apply(widened_tensor)
    return result


def values_of(network: Network, arguments: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Every value of the network in its own dtypes, as PyTorch computes them."""
    values = dict(zip(network.inputs, arguments, strict=True))
    with torch.no_grad():
        for node in network.nodes:
            values[node.result] = node.call(*[values[name] for name in node.arguments])
    return values


@dataclass
class Judge:
    """The float64 run of a network on arguments, and its perturbed runs by rule, made when asked.

    ``native``: what PyTorch gives in the model's dtypes (``values_of``).
    """

    network: Network
    arguments: tuple[torch.Tensor, ...]
    native: Mapping[str, torch.Tensor]
    declared: Mapping[str, torch.dtype] = field(default_factory=dict)
    """The types of outputs where another framework than PyTorch has the say."""
    seed: int = 0
    met_undefined: bool = False
    """Whether some run came to a value that nothing defines."""
    _samples: dict[str, list[dict[str, torch.Tensor]]] = field(default_factory=dict)
    _kept: dict[Hashable, Any] = field(default_factory=dict)

    @functools.cached_property
    def wide(self) -> Network:
        return widened(self.network)

    @functools.cached_property
    def exact(self) -> dict[str, torch.Tensor]:
        """Every value in float64, nothing perturbed."""
        return self.run(Perturbation())

    def samples(self, rule: str, count: int = SAMPLES) -> list[dict[str, torch.Tensor]]:
        """The outputs of perturbed runs behind a rule."""
        runs = self._samples.setdefault(rule, [])
        while len(runs) < count:
            values = self.run(SAMPLED[rule](self, self.seed + len(runs)))
            runs.append({name: values[name] for name in self.network.outputs})
        return runs

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What follows from samples, made once: several answers are judged by the same ones."""
        if key not in self._kept:
            self._kept[key] = make()
        value: T = self._kept[key]
        return value

    def run(self, how: Perturbation) -> dict[str, torch.Tensor]:
        """Every value of one run in float64."""
        values = {
            name: widened_tensor(value)
            for name, value in zip(self.network.inputs, self.arguments, strict=True)
        }
        with torch.no_grad():
            for node in self.wide.nodes:
                if how.decisions is not None and node.kind in DISCRETE:
                    values[node.result] = how.decisions[node.result]
                else:
                    values[node.result] = self._step(node, values, how)
        return values

    def _step(
        self, node: Node, values: Mapping[str, torch.Tensor], how: Perturbation
    ) -> torch.Tensor:
        given = [values[name] for name in node.arguments]
        noise = None if node.kind in EXACT else how.noise
        if noise is not None:
            given = [
                noisy(value, COMPUTED.get(self.native[name].dtype, self.native[name].dtype), noise)
                for name, value in zip(node.arguments, given, strict=True)
            ]
        dtype = self.native[node.result].dtype
        call = ACCURATE.get(node.kind, node.call)
        result = given[0] if node.target in WIDE else call(*given)
        result = result.to(WIDE.get(dtype, dtype))
        if how.arbitrary is not None:
            other = _undefined(node, given, result, how.arbitrary)
            self.met_undefined |= other is not result and not torch.equal(
                other.nan_to_num(), result.nan_to_num()
            )
            result = other
        if noise is not None:
            result = noisy(result, dtype, noise)
            if node.kind in INTERPOLATIONS:
                result = result + _moved(node, given[0], result, dtype, noise)
        return result.to(dtype).to(result.dtype) if how.narrow else result


def noisy(value: torch.Tensor, dtype: torch.dtype, noise: Noise) -> torch.Tensor:
    """Values off by up to 2 units in the last place of ``dtype``; integers as they are.

    1 unit of float16 and bfloat16: kernels compute them in float32, and round once.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return value
    epsilon = (2 if torch.finfo(dtype).bits >= 32 else 1) * torch.finfo(dtype).eps
    if value.is_complex():
        off = torch.complex(noise.drawn(value.shape), noise.drawn(value.shape))
        return value + value.abs() * epsilon * off
    return value * (1 + epsilon * noise.drawn(value.shape))


def _moved(
    node: Node,
    given: torch.Tensor,
    result: torch.Tensor,
    dtype: torch.dtype,
    noise: Noise,
) -> torch.Tensor:
    """What rounding of coordinates adds to an interpolation.

    A coordinate is a number up to the extent, in float32 for float16 too; off by some units in the
    last place of that, it moves the result by so much of the step to the next element.
    """
    moved = torch.zeros_like(result)
    for axis in range(2, given.dim()):
        epsilon = min(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
        step = (node.call(given.roll(1, axis)) - result).nan_to_num(0.0, 0.0, 0.0)
        moved = moved + 2 * epsilon * (given.shape[axis] + 2) * noise.drawn(result.shape) * step
    return moved


def _undefined(
    node: Node, given: Sequence[torch.Tensor], result: torch.Tensor, turn: int
) -> torch.Tensor:
    """The result with something else where nothing defines it."""
    if node.target in INTEGERS:
        where = undefined_casts(given[0], node.target)
        return torch.where(where, _any_of(_integers(result.dtype), result.shape, turn), result)
    if node.kind == "GELU":
        either = torch.tensor([torch.nan, 0.0], dtype=result.dtype)
        return torch.where(given[0] == -torch.inf, _any_of(either, result.shape, turn), result)
    if node.kind in INTERPOLATIONS and not bool(result.isfinite().all()):
        without = node.call(given[0].nan_to_num(0.0, 0.0, 0.0))
        numbers = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0], dtype=result.dtype)
        drawn = _any_of(numbers, result.shape, turn)
        drawn = torch.where(drawn == 0, without, drawn)
        return torch.where(result.isfinite(), result, drawn)
    return result


def undefined_casts(value: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    """Where a cast to an integer has no defined result: NaN, infinities, what is out of range."""
    value = value.real if value.is_complex() else value
    if not value.is_floating_point() or target not in INTEGERS:
        return torch.zeros(value.shape, dtype=torch.bool)
    limits = torch.iinfo(target)
    return ~((value > limits.min - 1.0) & (value < float(limits.max) + 1.0))


def _integers(dtype: torch.dtype) -> torch.Tensor:
    """What an integer could become where nothing says what."""
    limits = torch.iinfo(dtype)
    common = [0, 1, limits.min, limits.max, limits.max // 3, limits.max - 1]
    return torch.tensor(common, dtype=dtype)


def _any_of(numbers: torch.Tensor, shape: Sequence[int], turn: int) -> torch.Tensor:
    """A tensor of elements of ``numbers``; each place has every number in so many turns."""
    starts = torch.randint(0, len(numbers), tuple(shape), generator=_generator(len(shape)))
    return numbers[(starts + turn) % len(numbers)]


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _rounded(seed: int, **more: Any) -> Perturbation:
    """Noise of a seed; two of three times it leans, so that equal numbers stay near each other."""
    return Perturbation(Noise(_generator(seed), (0, -1, 1)[seed % 3]), **more)


def _is_narrow(seed: int) -> bool:
    """Half of the runs, and as many turns of what is arbitrary in each half."""
    return seed // 8 % 2 == 0


SAMPLED: Final[Mapping[str, Callable[[Judge, int], Perturbation]]] = {
    "rounding": lambda judge, seed: _rounded(seed, decisions=judge.exact),
    "tie": lambda _, seed: _rounded(seed),
    "range": lambda _, seed: _rounded(seed, narrow=_is_narrow(seed)),
    "undefined": lambda _, seed: _rounded(seed, narrow=_is_narrow(seed), arbitrary=seed),
}
