"""UnclampVectors: a vector of clamped positions that all lie inside of their row is read unclamped.

Whoever resizes an image clamps the positions that would leave it. Of all vectors of a row that
concerns the first and the last, but a clamped vector is a gather, a load for each lane, and an
unclamped one may be a run of memory (ShuffleLoad). So vectors test once whether they lie inside::

    y[i * 8:i * 8 + 8] = x[T.min(T.max(place, T.Broadcast(0, 8)), T.Broadcast(n - 1, 8))]

After, where ``place`` is ``T.Broadcast(i * 4, 8) + T.Ramp(-1, 2, 8) // T.Broadcast(4, 8)``::

    if 1 <= i * 4 and i * 4 + 3 < n:
        y[i * 8:i * 8 + 8] = x[place]
    else:
        y[i * 8:i * 8 + 8] = x[T.min(T.max(place, T.Broadcast(0, 8)), T.Broadcast(n - 1, 8))]

The distances between the lanes of a position must be constants that do not fall, so that the first
and the last lane say where all of them are. Runs after vectorising, before ShuffleLoad.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, contains
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Broadcast, Call, Max, Min, Select
from weft.tir.function import PrimFunc
from weft.tir.lanes import lane_of
from weft.tir.stmt import BufferStore, For, IfThenElse, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


class Clamped(NamedTuple):
    """A vector of positions, and the limits that it is clamped to; None where there is no limit."""

    place: PrimExpr
    least: PrimExpr | None
    most: PrimExpr | None


def clamped(index: PrimExpr) -> Clamped | None:
    """The parts of ``min(max(place, least), most)``, in either order; None for another index."""
    place, limits = index, dict[type[Min | Max], PrimExpr]()
    while isinstance(place, (Min, Max)) and type(place) not in limits:
        inner, limit = (place.a, place.b) if isinstance(place.b, Broadcast) else (place.b, place.a)
        if not isinstance(limit, Broadcast):
            return None
        limits[type(place)] = limit.value
        place = inner
    if not limits or isinstance(place, Broadcast):
        return None
    return Clamped(place, limits.get(Max), limits.get(Min))


class _Unclamp(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()

    def visit_For(self, loop: For) -> For:
        self.analyzer.bind(loop.loop_var, loop.domain, True)
        return self.visit_default(loop)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        """Store without clamps where all vectors lie inside, else as it is."""
        if store.predicate is not None:
            return store
        loads = [load for load in collect(store.value, BufferLoad) if _is_clamped(load)]
        tests = [test for load in loads for test in self._tests(load.indices[-1])]
        if not tests:
            return store
        inside = store.with_(value=_Unclamped(self).visit(store.value))
        needed = self._needed(tests)
        return IfThenElse(op.all(*needed), inside, store) if needed else inside

    def rises(self, place: PrimExpr) -> bool:
        """Whether the distances from each lane to the next are constants that do not fall."""
        if contains(place, (Call, Select, BufferLoad, Min, Max)):
            return False
        lanes = [lane_of(place, at) for at in range(place.dtype.lanes)]
        steps = [self.analyzer.simplify(op.subtract(b, a)) for a, b in itertools.pairwise(lanes)]
        return all(isinstance(step, IntImm) and step.value >= 0 for step in steps)

    def _tests(self, index: PrimExpr) -> Iterator[PrimExpr]:
        """The conditions under which an index lies inside of its limits; none if unknown."""
        parts = clamped(index)
        if parts is None or not self.rises(parts.place):
            return
        first, last = [lane_of(parts.place, at) for at in (0, parts.place.dtype.lanes - 1)]
        if parts.least is not None:
            yield self.analyzer.simplify(op.less_equal(parts.least, first))
        if parts.most is not None:
            yield self.analyzer.simplify(op.less_equal(last, parts.most))

    def _needed(self, tests: Sequence[PrimExpr]) -> list[PrimExpr]:
        """The tests that do not follow from the others."""
        needed = list(tests)
        for test in tests:
            others = [other for other in needed if other is not test]
            with self.analyzer.constraint_scope(op.all(*others) if others else op.const(True)):
                if self.analyzer.can_prove(test):
                    needed = others
        return needed


class _Unclamped(Mutator):
    """Removes the clamps of the vectors that are tested."""

    def __init__(self, tested: _Unclamp) -> None:
        super().__init__()
        self.tested = tested

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        parts = clamped(load.indices[-1]) if _is_clamped(load) else None
        if parts is None or not self.tested.rises(parts.place):
            return load
        return load.with_(indices=[*load.indices[:-1], parts.place])


def _is_clamped(load: BufferLoad) -> bool:
    """Whether a load is of a vector along its last index, which is clamped."""
    if load.dtype.lanes == 1 or load.predicate is not None:
        return False
    *outer, last = load.indices
    is_vector = all(index.dtype.lanes == 1 for index in outer)
    return is_vector and clamped(last) is not None


def unclamp_vectors(func: PrimFunc) -> PrimFunc:
    """Test once for each vector whether its positions lie inside of the limits of a function."""
    if not any(_is_clamped(load) for load in collect(func.body, BufferLoad)):
        return func
    return rewrite_body(func, _Unclamp())


UnclampVectors = define_pass("UnclampVectors", unclamp_vectors)
