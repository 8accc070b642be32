"""What a search did: the times of layers and kernels before and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TunedKernel(NamedTuple):
    """A kernel after the search: its microseconds by default and now, and the answers taken."""

    name: str
    calls: int
    trials: int
    default: float
    tuned: float
    taken: Mapping[str, str]


@dataclass(frozen=True)
class TuningReport:
    """What a search did (``CompiledModel.tuning``)."""

    kernels: Sequence[TunedKernel]
    seconds: float
    layers: Sequence[TunedKernel] = ()
    """Layers whose algorithm was searched; ``kernels`` has what the chosen ones consist of."""

    @property
    def trials(self) -> int:
        """How many forms are known, those of earlier searches among them."""
        return sum(item.trials for item in (*self.layers, *self.kernels))

    @property
    def gain(self) -> float:
        """How many times as fast all kernels are together, as they were measured alone."""
        tuned = sum(kernel.tuned * kernel.calls for kernel in self.kernels)
        saved = sum(
            (item.default - item.tuned) * item.calls for item in (*self.layers, *self.kernels)
        )
        return (tuned + saved) / tuned if tuned else 1.0

    def __str__(self) -> str:
        rows = [*_table("layer", self.layers)] if self.layers else []
        rows += _table("kernel", self.kernels)
        rows.append(f"{self.trials} trials, {self.seconds:.0f} s, {self.gain:.3f} times as fast")
        return "\n".join(rows)


def _table(head: str, items: Sequence[TunedKernel]) -> Iterator[str]:
    yield f"{head:44} {'calls':>5} {'trials':>6} {'default us':>11} {'tuned us':>11}"
    for item in sorted(items, key=lambda item: -item.default * item.calls):
        yield (
            f"{item.name[:44]:44} {item.calls:5} {item.trials:6} {item.default:11.1f} "
            f"{item.tuned:11.1f}"
        )
