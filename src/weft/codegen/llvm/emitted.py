"""The operands of expressions that a statement has computed, so that each is computed once.

An expression is a graph: ``y = x * x; y + y`` is one Mul node used twice. A statement computes all
its expressions before it stores anything. So the operand of a node can be used again wherever the
same object stands in the statement, with three exceptions:

- an operand that a branch computes is known in that branch only (``scope``);
- a call with an effect ends what was known before it (``Emitter.moment``);
- a Let of a variable that had another value before starts with nothing known
  (``scope(em, is_apart=True)``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from weft.ir.expr import PrimExpr


class Emitted:
    """The operands that are known at a place: of values, and of the same numbers as i64 indices.

    Keys are the ``id`` of an expression. An entry is the expression, which so stays alive, its
    operand, and the ``Emitter.moment`` of the computation.
    """

    __slots__ = ("index_like", "indices", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[PrimExpr, str, int]] = {}
        self.indices: dict[int, tuple[PrimExpr, str, int]] = {}
        self.index_like: dict[int, tuple[PrimExpr, bool]] = {}
        """Whether an expression is best computed in 64 bits (``expr._is_index``)."""

    def inner(self) -> Emitted:
        """A copy for a branch: it knows what is known here; what it adds is not known here."""
        inner = Emitted()
        inner.values, inner.indices = dict(self.values), dict(self.indices)
        inner.index_like = dict(self.index_like)
        return inner


class HasEmitted(Protocol):
    """An emitter: it has the operands that are known where it writes now."""

    emitted: Emitted


@contextmanager
def scope(em: HasEmitted, is_apart: bool = False) -> Iterator[None]:
    """A part of the code whose operands are not known after it, such as a branch.

    ``is_apart``: nor are the operands from before it known inside.
    """
    outer = em.emitted
    em.emitted = Emitted() if is_apart else outer.inner()
    yield
    em.emitted = outer
