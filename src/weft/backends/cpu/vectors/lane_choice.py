"""Reductions of pairs (position, value) such as argmax, in the lanes of vectors.

Of equal values the first counts, or the last, as the reducer says. A lane sees its values in order,
so it needs no comparison of positions. At the end, lanes are not compared as pairs either: first
the best of all values is computed, then the least (or largest) position among the lanes that hold a
value as good as that. This takes a third of the instructions. If the best value is a zero, its sign
may be another than that of the element at the position.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import GT, LT, CommReducer, Select, Var
from weft.tir.interp.machine import constant_value
from weft.tir.stmt import BufferStore, Stmt, seq
from weft.tir.transform.lower_opaque_block import allocate

Vector = Callable[[int, Callable[[PrimExpr], Stmt]], Stmt]
"""``(lanes, body) -> statement``: runs ``body`` for each of so many lanes."""


@dataclass(frozen=True)
class Choice:
    """A reducer of positions and values that chooses one of two pairs."""

    reducer: CommReducer
    is_first: bool
    """Whether the first of equal values counts; if not, the last one does."""

    @property
    def step(self) -> list[PrimExpr]:
        """The new position and value of a lane (``lhs``) after it has seen the next (``rhs``).

        It takes a value that is better; if the last of equals counts, one that is not worse.
        """
        (old_place, old), (new_place, new) = self.reducer.lhs, self.reducer.rhs
        if self.is_first:
            better = self._wins(new, old)
            return [op.select(better, new_place, old_place), op.select(better, new, old)]
        wins = self._wins(old, new)
        return [op.select(wins, old_place, new_place), op.select(wins, old, new)]

    @property
    def has_ties(self) -> bool:
        """Whether neither of two equal values wins over the other."""
        value = op.const(1, self.reducer.lhs[1].dtype)
        return not constant_value(self._wins(value, value))

    def joined(self, lanes: Sequence[Buffer], sizes: tuple[int, int], vector: Vector) -> Stmt:
        """Make the first lane the choice among all lanes.

        ``lanes`` are the buffers of positions and values; ``sizes`` are how many lanes they have,
        and how many lanes a vector has.
        """
        places, values = lanes
        best = decl_buffer((max(sizes[0] // 2, 1),), values.dtype, "best", scope="local")
        nearest = op.minimum if self.is_first else op.maximum
        nowhere = (op.max_value if self.is_first else op.min_value)(places.dtype)
        whole, width = sizes

        def as_good(at: PrimExpr) -> Stmt:
            wins = self._wins(BufferLoad(best, [0]), BufferLoad(values, [at]))
            return BufferStore(places, op.select(wins, nowhere, BufferLoad(places, [at])), [at])

        def better(a: PrimExpr, b: PrimExpr) -> PrimExpr:
            return op.select(self._wins(a, b), a, b)

        parts = [
            *_folded(values, best, better, sizes, vector),
            *_in_vectors(whole, width, as_good, vector),
            *_folded(places, places, nearest, sizes, vector),
            BufferStore(values, BufferLoad(best, [0]), [0]),
        ]
        return allocate(best, seq(*parts))

    def _wins(self, value: PrimExpr, other: PrimExpr) -> PrimExpr:
        """The condition that ``value`` is better than ``other``."""
        chosen = self.reducer.result[1]
        assert isinstance(chosen, Select)
        known = {self.reducer.lhs[1]: value, self.reducer.rhs[1]: other}
        return substitute(chosen.condition, known)


def choice_of(reducer: CommReducer) -> Choice | None:
    """The choice that a reducer makes; None if it does not choose between pairs."""
    if len(reducer.result) != 2:
        return None
    left, right = reducer.lhs[0], reducer.rhs[0]
    place, value = reducer.result
    if not (isinstance(place, Select) and isinstance(value, Select)):
        return None
    orders = [
        test for test in collect(place.condition, (LT, GT)) if {test.a, test.b} == {left, right}
    ]
    if len(orders) != 1 or {left, right} & set(collect(value.condition, Var)):
        return None
    [order] = orders
    return Choice(reducer, isinstance(order, LT) is (order.a is left))


def _folded(
    source: Buffer,
    target: Buffer,
    combine: Callable[[PrimExpr, PrimExpr], PrimExpr],
    sizes: tuple[int, int],
    vector: Vector,
) -> list[Stmt]:
    """Combine halves of ``source`` until the first element of ``target`` stands for all of it."""
    parts: list[Stmt] = []
    half = sizes[0] // 2
    while half:
        element = functools.partial(_of_halves, source, target, combine, half)
        parts += _in_vectors(half, sizes[1], element, vector)
        source, half = target, half // 2
    return parts


def _of_halves(
    source: Buffer,
    target: Buffer,
    combine: Callable[[PrimExpr, PrimExpr], PrimExpr],
    half: int,
    at: PrimExpr,
) -> Stmt:
    pair = [BufferLoad(source, [place]) for place in (at, op.add(at, half))]
    return BufferStore(target, combine(*pair), [at])


def _in_vectors(
    count: int, width: int, body: Callable[[PrimExpr], Stmt], vector: Vector
) -> list[Stmt]:
    """``body`` for ``count`` lanes, in vectors of ``width``: LLVM joins the masks of longer ones
    and takes them apart again.
    """
    return [
        vector(min(width, count), functools.partial(_moved, body, start))
        for start in range(0, count, width)
    ]


def _moved(body: Callable[[PrimExpr], Stmt], start: int, at: PrimExpr) -> Stmt:
    return body(op.add(at, start))
