"""What was emitted of the expression at hand: an object in two places is computed once.

A statement's expressions are evaluated at one moment, before it stores anything. So a value serves
wherever the same object stands again, with three exceptions:

- what is emitted in a branch holds there alone (``scope``);
- a call with an effect ends what was known before it (``Emitter.moment``);
- a Let of a variable that had a value before starts anew (``scope(em, is_apart=True)``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Emitted:
    """Operands by object (``id``), of values and of i64 indices, that hold at this place."""

    __slots__ = ("index_like", "indices", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[Any, str, int]] = {}
        self.indices: dict[int, tuple[Any, str, int]] = {}
        self.index_like: dict[int, tuple[Any, bool]] = {}
        """Whether an expression is best done in 64 bits."""

    def inner(self) -> Emitted:
        """What holds here holds in a branch, and not the other way round."""
        inner = Emitted()
        inner.values, inner.indices = dict(self.values), dict(self.indices)
        inner.index_like = dict(self.index_like)
        return inner


class HasEmitted(Protocol):
    """What emits a function: it knows what was emitted at the place where it is."""

    emitted: Emitted


@contextmanager
def scope(em: HasEmitted, is_apart: bool = False) -> Iterator[None]:
    """A part whose values do not hold after it; one ``is_apart`` knows none from before it."""
    outer = em.emitted
    em.emitted = Emitted() if is_apart else outer.inner()
    yield
    em.emitted = outer
