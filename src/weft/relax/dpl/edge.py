"""What a PatternContext knows of its patterns: who uses whom, and which shapes are the same.

Building a pattern inside ``with PatternContext():`` records edges in the innermost context; outside
of one they are not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from weft.support.errors import IRTypeError, IRValueError
from weft.support.scopes import Scopes


class Pattern(Protocol):
    """What sequences need of a pattern."""

    def dup(self, copies: dict[Any, Any] | None = None) -> Any:
        """Another pattern that matches the same."""


@dataclass(frozen=True)
class Edge:
    """``producer`` is used by ``consumer``: as argument ``index`` (-1: any), by no other."""

    producer: Any
    consumer: Any
    index: int = -1
    only: bool = False


class SameShapeConstraint:
    """The patterns have one shape."""

    def __init__(self, *args: Any) -> None:
        self.args = args
        record(self)


class Recorder(Protocol):
    """What takes edges and constraints: a PatternContext."""

    def add_constraint(self, constraint: Any) -> None:
        """Take one."""


OPEN: Final[Scopes[Any]] = Scopes("pattern_contexts")
"""The open contexts."""


def record(constraint: Edge | SameShapeConstraint) -> None:
    """Add a constraint to the innermost context, if there is one."""
    context = OPEN.innermost
    if context is not None:
        context.add_constraint(constraint)


class PatternSeq:
    """Patterns of which each is used by the next."""

    def __init__(self, patterns: Sequence[Any], only_use: bool = False) -> None:
        if not patterns:
            raise IRValueError("PatternSeq: expected at least one pattern, got none")
        self.patterns: tuple[Any, ...] = tuple(patterns)
        self._links: tuple[tuple[int, bool], ...] = ((-1, only_use),) * (len(patterns) - 1)

    def __getitem__(self, index: int) -> Any:
        return self.patterns[index]

    def __len__(self) -> int:
        return len(self.patterns)

    def used_by(self, other: Any, index: int = -1) -> PatternSeq:
        """The last pattern is used by (the first of) ``other``."""
        return self._linked(other, index, only=False)

    def only_used_by(self, other: Any, index: int = -1) -> PatternSeq:
        """The last pattern is used by (the first of) ``other`` and by nothing else."""
        return self._linked(other, index, only=True)

    def __xor__(self, other: Any) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: Any) -> PatternSeq:
        return self.only_used_by(other)

    def _linked(self, other: Any, index: int, only: bool) -> PatternSeq:
        rest = sequence(other)
        record(Edge(self.patterns[-1], rest.patterns[0], index, only))
        made = PatternSeq(self.patterns + rest.patterns)
        made._links = (*self._links, (index, only), *rest._links)
        return made

    def dup(self) -> PatternSeq:
        """Another sequence of the same patterns, linked in the current context as this one."""
        copies: dict[Any, Any] = {}
        made = PatternSeq([pattern.dup(copies) for pattern in self.patterns])
        made._links = self._links
        pairs = zip(made.patterns, made.patterns[1:], self._links, strict=False)
        for producer, consumer, (index, only) in pairs:
            record(Edge(producer, consumer, index, only))
        return made


def sequence(given: Any) -> PatternSeq:
    """A sequence from one, or from a single pattern."""
    if isinstance(given, PatternSeq):
        return given
    if not hasattr(given, "expand"):
        raise IRTypeError(f"expected a pattern or a PatternSeq, got {given!r:.80}")
    return PatternSeq([given])
