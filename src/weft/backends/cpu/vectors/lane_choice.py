"""Reductions that choose one of two (place, value), as argmax does, in lanes of vectors.

Of equal values the first counts, or the last, so that a lane, which meets them in order, need not
look at places. Nor are pairs of lanes compared by both at the end: the best of all values comes
first, then the places of all lanes that hold one as good, of which the least or the largest counts.
That is a third of the instructions. Where that value is a zero, it may be one of another sign than
that at its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import GT, LT, CommReducer, Select, Var
from weft.tir.interp.expression import ExprCompiler
from weft.tir.stmt import BufferStore, Stmt, seq
from weft.tir.transform.lower_opaque_block import allocate

Vector = Callable[[int, Callable[[PrimExpr], Stmt]], Stmt]
"""A statement for each lane of so many."""


@dataclass(frozen=True)
class Choice:
    """What a reducer of places and values does."""

    reducer: CommReducer
    is_first: bool
    """Whether of equal values the first counts, not the last."""

    @property
    def step(self) -> list[PrimExpr]:
        """What a lane becomes: it takes what is better, or what is not worse."""
        (left, mine), (right, its) = self.reducer.lhs, self.reducer.rhs
        if self.is_first:
            better = self._wins(its, mine)
            return [op.select(better, right, left), op.select(better, its, mine)]
        wins = self._wins(mine, its)
        return [op.select(wins, left, right), op.select(wins, mine, its)]

    @property
    def has_ties(self) -> bool:
        """Whether neither of two equal values wins."""
        value = op.const(1, self.reducer.lhs[1].dtype)
        wins = ExprCompiler().compile(self._wins(value, value))
        return not wins(SimpleNamespace(values={}, buffers={}))

    def joined(
        self, lanes: Sequence[Buffer], sizes: tuple[int, int], vector: Vector
    ) -> Stmt:
        """The first lane becomes the choice of all ``sizes[0]``, in vectors of ``sizes[1]``."""
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

    def _wins(self, mine: PrimExpr, its: PrimExpr) -> PrimExpr:
        """Whether a value is better than another."""
        value = self.reducer.result[1]
        assert isinstance(value, Select)
        known = {self.reducer.lhs[1]: mine, self.reducer.rhs[1]: its}
        condition: PrimExpr = substitute(value.condition, known)
        return condition


def choice_of(reducer: CommReducer) -> Choice | None:
    """The choice that a reducer makes; None if it is another one."""
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
    source: Buffer, target: Buffer, combine: Callable[[PrimExpr, PrimExpr], PrimExpr],
    sizes: tuple[int, int], vector: Vector,
) -> list[Stmt]:  # fmt: skip
    """One element of ``target`` becomes all of ``source``, of which halves meet."""
    parts: list[Stmt] = []
    half = sizes[0] // 2
    while half:
        element = functools.partial(_of_halves, source, target, combine, half)
        parts += _in_vectors(half, sizes[1], element, vector)
        source, half = target, half // 2
    return parts


def _of_halves(
    source: Buffer, target: Buffer, combine: Callable[[PrimExpr, PrimExpr], PrimExpr], half: int,
    at: PrimExpr,
) -> Stmt:  # fmt: skip
    pair = [BufferLoad(source, [place]) for place in (at, op.add(at, half))]
    return BufferStore(target, combine(*pair), [at])


def _in_vectors(
    count: int, width: int, body: Callable[[PrimExpr], Stmt], vector: Vector
) -> list[Stmt]:
    """``body`` for so many lanes: masks of longer vectors are joined, and taken apart again."""
    return [
        vector(min(width, count), functools.partial(_moved, body, start))
        for start in range(0, count, width)
    ]


def _moved(body: Callable[[PrimExpr], Stmt], start: int, at: PrimExpr) -> Stmt:
    return body(op.add(at, start))
