"""The constraints of a PatternContext: which pattern uses which, and which shapes are equal.

A pattern that is built inside ``with PatternContext():`` records its edges in the innermost
context; outside of any context edges are not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from weft.relax.dpl.matcher import Pattern
from weft.support.errors import IRTypeError, IRValueError
from weft.support.scopes import Scopes


@dataclass(frozen=True)
class Edge:
    """``consumer`` uses ``producer`` as argument ``index`` (-1: any); if ``only``, alone."""

    producer: Pattern
    consumer: Pattern
    index: int = -1
    only: bool = False


class SameShapeConstraint:
    """All of the patterns match tensors of the same shape."""

    def __init__(self, *args: Pattern) -> None:
        self.args = args
        record(self)


class Recorder(Protocol):
    """Records edges and constraints: a PatternContext."""

    def add_constraint(self, constraint: Edge | SameShapeConstraint) -> None:
        """Record a constraint."""


OPEN: Final[Scopes[Recorder]] = Scopes("pattern_contexts")
"""The open contexts."""


def record(constraint: Edge | SameShapeConstraint) -> None:
    """Add a constraint to the innermost context, if there is one."""
    context = OPEN.innermost
    if context is not None:
        context.add_constraint(constraint)


class PatternSeq:
    """A sequence of patterns in which each is used by the next one."""

    def __init__(self, patterns: Sequence[Pattern], only_use: bool = False) -> None:
        if not patterns:
            raise IRValueError("PatternSeq: expected at least one pattern, got none")
        self.patterns: tuple[Pattern, ...] = tuple(patterns)
        self._links: tuple[tuple[int, bool], ...] = ((-1, only_use),) * (len(patterns) - 1)

    def __getitem__(self, index: int) -> Pattern:
        return self.patterns[index]

    def __len__(self) -> int:
        return len(self.patterns)

    def used_by(self, other: Pattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The last pattern is used by (the first of) ``other``."""
        return self._linked(other, index, only=False)

    def only_used_by(self, other: Pattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The last pattern is used by (the first of) ``other`` and by nothing else."""
        return self._linked(other, index, only=True)

    def __xor__(self, other: Pattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: Pattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def _linked(self, other: Pattern | PatternSeq, index: int, only: bool) -> PatternSeq:
        rest = sequence(other)
        record(Edge(self.patterns[-1], rest.patterns[0], index, only))
        joined = PatternSeq(self.patterns + rest.patterns)
        joined._links = (*self._links, (index, only), *rest._links)
        return joined

    def dup(self) -> PatternSeq:
        """A copy with new patterns, whose edges are recorded in the current context."""
        copies: dict[Pattern, Pattern] = {}
        copy = PatternSeq([pattern.dup(copies) for pattern in self.patterns])
        copy._links = self._links
        pairs = zip(copy.patterns, copy.patterns[1:], self._links, strict=False)
        for producer, consumer, (index, only) in pairs:
            record(Edge(producer, consumer, index, only))
        return copy


def sequence(given: Pattern | PatternSeq) -> PatternSeq:
    """``given`` if it is a sequence; else the sequence of that single pattern."""
    if isinstance(given, PatternSeq):
        return given
    if not hasattr(given, "expand"):
        raise IRTypeError(f"expected a pattern or a PatternSeq, got {given!r:.80}")
    return PatternSeq([given])
