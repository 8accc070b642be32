"""The search for one kernel: from the default, change one answer at a time, keep what is faster.

The answers to each choice are ordered by the cost model, so those that it thinks next best are
tried first, over all choices; those of which a learned model expects something go before. Once an
answer is kept, the other choices are asked again. In the end two answers are changed at once, of
those that alone made the kernel hardly slower.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.driver.tuning.kernels import Kernel

_GAIN: Final = 0.99
"""An answer is kept if the kernel takes at most this share of the time without it."""
_PATIENCE: Final = 12
"""After so many trials without a gain a kernel promises half as much."""
_CLOSE: Final = 1.05
"""An answer is paired with others if the kernel takes at most this share of the fastest time."""
_PAIRS: Final = 16
"""So many pairs are tried around the fastest form."""

Taken = dict[str, str]


@dataclass
class Search:
    """What is known of a kernel."""

    kernel: Kernel
    default: float | None = None
    """Microseconds of the default schedule."""
    best: float = float("inf")
    taken: Taken = field(default_factory=dict)
    """The answers of the fastest form; none are those of the default."""
    offered: dict[str, list[str]] = field(default_factory=dict)
    expected: dict[tuple[str, str], float] = field(default_factory=dict)
    """What a learned model expects of answers, the less the faster; without one it is empty."""
    trials: int = 0
    since: int = 0
    """Trials since the last gain."""
    _times: dict[tuple[tuple[str, str], ...], float | None] = field(default_factory=dict)
    """Each form that was tried -> its microseconds; None if it failed."""

    _begun: set[tuple[tuple[str, str], ...]] = field(default_factory=set)
    """Forms whose trial goes on."""

    @property
    def promise(self) -> float:
        """Microseconds of the model that more trials may save, as far as one can tell."""
        if self.proposal() is None:
            return 0.0
        if self.default is None:
            return float("inf")
        doubt = float(2 ** (self.since / _PATIENCE))
        return self.best * self.kernel.calls / doubt

    def proposal(self) -> Taken | None:
        """The form to try next; None if there is none near the fastest that was not begun.

        The default is the first one, and the only one until its time is known.
        """
        near = itertools.chain([{}], self._near(), self._pairs())
        known = self._times.keys() | self._begun
        return next((taken for taken in near if _key(taken) not in known), None)

    def begin(self, taken: Mapping[str, str]) -> None:
        """Note that the trial of a form has begun."""
        self._begun.add(_key(taken))

    def changes(self) -> list[tuple[str, str]]:
        """Answers to choices, in the order in which they are tried."""
        longest = max([len(answers) for answers in self.offered.values()], default=0)
        by_rank = [
            (name, answers[rank])
            for rank in range(longest)
            for name, answers in self.offered.items()
            if rank < len(answers)
        ]
        return sorted(by_rank, key=lambda change: self.expected.get(change, float("inf")))

    def ranks(self, taken: Mapping[str, str]) -> list[tuple[int, int]]:
        """For each answer its place in the cost model's order, and the number of answers."""
        return [
            (answers.index(answer), len(answers))
            for name, answer in taken.items()
            if answer in (answers := self.offered.get(name, []))
        ]

    def _near(self) -> Iterator[Taken]:
        """The fastest form with one answer changed."""
        for name, answer in self.changes():
            yield _changed(self.taken, name, answer, self.offered[name])

    def _pairs(self) -> Iterator[Taken]:
        """The fastest form with two answers changed that alone lost little, the fastest first."""
        close = []
        for name, answers in self.offered.items():
            for answer in answers:
                taken = _changed(self.taken, name, answer, answers)
                time = self._times.get(_key(taken))
                if taken != self.taken and time is not None and time <= self.best * _CLOSE:
                    close.append((time, name, answer))
        pairs = [pair for pair in itertools.combinations(close, 2) if pair[0][1] != pair[1][1]]
        for (_, name, answer), (_, other, another) in sorted(
            pairs, key=lambda pair: pair[0][0] + pair[1][0]
        )[:_PAIRS]:
            first = _changed(self.taken, name, answer, self.offered[name])
            yield _changed(first, other, another, self.offered[other])

    def is_gain(self, taken: Mapping[str, str], time: float) -> bool:
        """Whether a form with this time would be kept."""
        return bool(taken) and time < self.best * _GAIN

    def remeasured(self, default: float) -> None:
        """Note another time of the default schedule; the shortest counts."""
        self.default = min(default, self.default or default)
        if not self.taken:
            self.best = self.default

    def learn(
        self, taken: Mapping[str, str], time: float | None, offered: Mapping[str, Sequence[str]]
    ) -> None:
        """Note the time of a form, or that it failed, and which choices it has."""
        self._times[_key(taken)] = time
        self._begun.discard(_key(taken))
        self.trials += 1
        self.since += 1
        if time is None:
            if not taken:
                self.default, self.offered = float("inf"), {}  # nothing can be measured
            return
        if not taken:
            self.default, self.best = time, min(self.best, time)
            self.offered = {name: list(answers) for name, answers in offered.items()}
        elif self.is_gain(taken, time):
            self.best, self.taken, self.since = time, dict(taken), 0


def _changed(taken: Mapping[str, str], name: str, answer: str, answers: Sequence[str]) -> Taken:
    """The answers with another one to ``name``; that of the cost model is left out."""
    others = {key: value for key, value in taken.items() if key != name}
    return others if answer == answers[0] else {**others, name: answer}


def _key(taken: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(taken.items()))
