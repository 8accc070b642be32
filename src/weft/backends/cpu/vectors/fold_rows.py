"""Folding the partial results of several rows at once, each in the lanes of a vector of its own.

Joining the lanes of one row takes a shuffle and an operation for each halving, most of whose lanes
are of no use. Two rows at a time, the lower halves of both make one vector and the upper halves
another, and one operation joins them: of ``n`` rows of ``n`` lanes, ``n - 1`` operations and twice
as many shuffles leave one vector, which has the result of each row in its lane. It is the tree of a
transpose (Stone, "Parallel processing with the perfect shuffle", 1971) whose every step joins what
it has interleaved.
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
"""Of a vector, within which one instruction interleaves elements."""


def fold_limit(bits: int) -> int:
    """Rows that are folded at once at most: two groups of lanes that one instruction interleaves.

    >>> fold_limit(32), fold_limit(64)
    (8, 4)
    """
    return 2 * _BITS // bits


def fold_rows(reducer: CommReducer, rows: Sequence[Buffer], results: Sequence[Buffer]) -> Stmt:
    """Store in lane ``r`` of the results what the lanes of row ``r`` come to.

    Each of ``rows`` has ``n * n`` elements, of ``n`` rows one after the other, and each of
    ``results`` has ``n``, a power of two and no more than ``fold_limit``: there is one of both for
    each value of the reducer.
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
    """Vectors of ``count`` lanes, joined two at a time; ``lets`` are the values, in order."""

    def __init__(self, reducer: CommReducer, count: int) -> None:
        self.reducer, self.count = reducer, count
        self.lets: list[tuple[Var, PrimExpr]] = []

    def of(
        self, vectors: Sequence[Sequence[PrimExpr]], orders: Sequence[list[int]]
    ) -> Sequence[PrimExpr]:
        """What the vectors come to, each two of them joined as the lanes in both orders are."""
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
        """A variable of the value."""
        var = Var(f"folded_{len(self.lets)}", value.dtype)
        self.lets.append((var, value))
        return var
