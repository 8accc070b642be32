"""Combines the lanes of several vectors at once: one vector per row, one result per row.

To combine the lanes of a single row, its halves are combined again and again, and each time half of
the lanes that an operation computes are wasted. With two rows, the lower halves of both form one
vector and the upper halves another, so that one operation combines them and wastes nothing. With
two rows of two lanes::

    [a0 a1], [b0 b1]  ->  [a0 b0] + [a1 b1]  =  [a0+a1 b0+b1]

For ``n`` rows of ``n`` lanes, ``n - 1`` operations and twice as many shuffles leave one vector,
with the result of each row in its lane. The shuffles are those of a transpose (Stone, "Parallel
processing with the perfect shuffle", 1971), with an operation after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.backends.cpu.vectors.transpose_tile import interleaved
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import expect
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import CommReducer, Ramp, Shuffle, Var
from weft.tir.stmt import BufferStore, LetStmt, Stmt, seq
from weft.tir.transform.vectorize_loop import Vectorizer

_BITS: Final = 128
"""The bits within which one instruction interleaves elements of two vectors."""


def fold_limit(bits: int) -> int:
    """How many rows of ``bits``-bit elements are folded at once at most: two groups of lanes, each
    of which one instruction interleaves.

    >>> fold_limit(32), fold_limit(64)
    (8, 4)
    """
    return 2 * _BITS // bits


def fold_rows(reducer: CommReducer, rows: Sequence[Buffer], results: Sequence[Buffer]) -> Stmt:
    """Store in lane ``r`` of the results the combination of all lanes of row ``r``.

    There is one buffer in ``rows`` and one in ``results`` for each value of the reducer (two for
    argmax). Each of ``rows`` has ``n`` rows of ``n`` elements, each of ``results`` has ``n``
    elements, where ``n`` is a power of two and at most ``fold_limit``.
    """
    count = int(expect(results[0].shape[0], IntImm))
    group = min(count, _BITS // max([buffer.dtype.bits for buffer in rows]))
    fold = _Fold(reducer, count)
    vectors = [
        [fold.bound(BufferLoad(buffer, [_ramp(row * count, count)])) for buffer in rows]
        for row in range(count)
    ]
    within = interleaved(count, group)
    groups = [fold.of(vectors[at : at + group], within) for at in range(0, count, group)]
    lower = [*range(group), *range(count, count + group)]
    values = fold.of(groups, (lower, [lane + group for lane in lower]))
    pairs = zip(results, values, strict=True)
    body = seq(*[BufferStore(buffer, value, [_ramp(0, count)]) for buffer, value in pairs])
    for var, value in reversed(fold.lets):
        body = LetStmt(var, value, body)
    return body


def _ramp(start: int, lanes: int) -> Ramp:
    return Ramp(IntImm("int64", start), IntImm("int64", 1), lanes)


class _Fold:
    """Combines vectors of ``count`` lanes two at a time; ``lets`` binds each value, in order."""

    def __init__(self, reducer: CommReducer, count: int) -> None:
        self.reducer, self.count = reducer, count
        self.lets: list[tuple[Var, PrimExpr]] = []

    def of(
        self, vectors: Sequence[Sequence[PrimExpr]], orders: Sequence[list[int]]
    ) -> Sequence[PrimExpr]:
        """Combine pairs of vectors until one is left.

        ``orders`` are two shuffles of a pair: the results of both are the operands.
        """
        while len(vectors) > 1:
            half = len(vectors) // 2
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [self._joined(pair, orders) for pair in pairs]
        return vectors[0]

    def _joined(
        self, pair: Sequence[Sequence[PrimExpr]], orders: Sequence[list[int]]
    ) -> Sequence[PrimExpr]:
        vectorizer = Vectorizer(Var("lane", "int64"), IntImm("int64", 0), self.count)
        for side, order in zip((self.reducer.lhs, self.reducer.rhs), orders, strict=True):
            for value, both in zip(side, zip(*pair, strict=True), strict=True):
                vectorizer.values[id(value)] = self.bound(Shuffle(both, order))
        return [self.bound(vectorizer.visit(result)) for result in self.reducer.result]

    def bound(self, value: PrimExpr) -> PrimExpr:
        """A new variable that is bound to the value."""
        var = Var(f"folded_{len(self.lets)}", value.dtype)
        self.lets.append((var, value))
        return var
