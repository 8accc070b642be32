"""What default schedules and graph passes decide, and what a search decides in their place.

A cost model chooses tiles, orders, prefetches, algorithms. Each such choice has a name and others:
``decide("tile of matmul", best, others)``. Usually the answer is ``best``. A search (``weft.tune``)
schedules a function within ``deciding``: it learns which choices there are, and answers some of
them itself. What turned out best is kept as text, and used within ``using``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeVar

from weft.ir.structural import structural_digest
from weft.tir.function import PrimFunc

GRAPH: Final = b"graph"
"""The key of the answers to the choices of graph passes, among those of tuned functions."""
_Choice = TypeVar("_Choice")
Taken = Mapping[str, str]
"""Name of a choice -> the text of the answer."""


@dataclass(frozen=True)
class Decisions:
    """The choices of one function: what is to be taken, and what was offered meanwhile."""

    taken: Taken = field(default_factory=dict)
    offered: dict[str, list[str]] = field(default_factory=dict)
    """Name of a choice -> the texts of the answers, what the cost model prefers first."""


_CURRENT: ContextVar[Decisions | None] = ContextVar("decisions", default=None)
_TUNED: ContextVar[Mapping[bytes, Taken] | None] = ContextVar("tuned", default=None)


def decide(name: str, best: _Choice, others: Callable[[], Iterable[_Choice]]) -> _Choice:
    """The answer to a choice: ``best``, unless a search or a tuned function takes another.

    Args:
        name: what is chosen, and for which block.
        best: what the cost model prefers.
        others: gives all answers that are correct; called only if something may be decided.

    >>> decide("tile of matmul", 4, lambda: [2, 4, 8])
    4
    >>> with deciding(Decisions({"tile of matmul": "8"})):
    ...     decide("tile of matmul", 4, lambda: [2, 4, 8])
    8
    """
    decisions = _CURRENT.get()
    if decisions is None:
        return best
    answers = {str(answer): answer for answer in (best, *others())}
    if len(answers) > 1:
        decisions.offered[name] = list(answers)
    return answers.get(decisions.taken.get(name, ""), best)


@contextmanager
def deciding(decisions: Decisions) -> Iterator[Decisions]:
    """Answer choices by ``decisions``, which learn of all that come up."""
    token = _CURRENT.set(decisions)
    try:
        yield decisions
    finally:
        _CURRENT.reset(token)


@contextmanager
def using(tuned: Mapping[bytes, Taken]) -> Iterator[None]:
    """Schedule functions as ``tuned`` says, by the digests of their structure.

    What it has for ``GRAPH`` answers the choices of graph passes.
    """
    token = _TUNED.set(tuned)
    try:
        yield
    finally:
        _TUNED.reset(token)


def tuned_key() -> bytes:
    """What identifies the tuned functions that are used now, for keys of caches."""
    tuned = _TUNED.get() or {}
    rows = sorted((digest, sorted(taken.items())) for digest, taken in tuned.items())
    return repr(rows).encode()


@contextmanager
def as_tuned(func: PrimFunc) -> Iterator[None]:
    """Answer the choices of a function as it was tuned; a search that is going on goes before."""
    with _as_tuned(structural_digest(func)) if _TUNED.get() else nullcontext():
        yield


@contextmanager
def as_tuned_graph() -> Iterator[None]:
    """Answer the choices of graph passes as they were tuned; a search goes before, too."""
    with _as_tuned(GRAPH):
        yield


@contextmanager
def _as_tuned(key: bytes) -> Iterator[None]:
    taken = (_TUNED.get() or {}).get(key) if _CURRENT.get() is None else None
    if taken is None:
        yield
    else:
        with deciding(Decisions(taken)):
            yield
