"""VectorizeReduction: a loop that accumulates does so in the lanes of vectors.

For loops with the annotation ``VECTOR_REDUCTION``, which permits another order of accumulation. Its
value ``[lanes, chains]`` asks for ``chains`` vectors of ``lanes`` lanes. Runs before VectorizeLoop.
Before, with ``[4, 2]``: ``for k in range(21): s[0] = s[0] + x[k]``. After, without the allocation
of ``s_lanes``::

    for j in T.vectorized(8): s_lanes[j] = 0
    for k in range(2):
        for c in T.unroll(2):
            for j in T.vectorized(4):
                s_lanes[c * 4 + j] = s_lanes[c * 4 + j] + x[k * 8 + c * 4 + j]
    for j in T.vectorized(4): s_lanes[j] = s_lanes[j] + x[16 + j]
    for j in range(1): s_lanes[4 + j] = s_lanes[4 + j] + x[20 + j]
    for j in T.vectorized(4): s_lanes[j] = s_lanes[j] + s_lanes[4 + j]
    for j in T.vectorized(2): s_lanes[j] = s_lanes[j] + s_lanes[2 + j]
    s_lanes[0] = s_lanes[0] + s_lanes[1]
    s[0] = s[0] + s_lanes[0]

Other statements of the loop, which store element by element, are computed in the same vectors. The
idea is that of ``atomic().vectorize`` in Halide (Suriana, Adams and Kamil, "Parallel Associative
Reductions in Halide", 2017). A loop of another form stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.arith.deep_equal import expr_deep_equal
from weft.backends.cpu.vectors.fold_rows import fold_limit, fold_rows
from weft.backends.cpu.vectors.lane_updates import LaneUpdate, update_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, mentions, substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.printed_lines import with_line_of
from weft.tir.stmt import BufferStore, For, ForKind, Stmt, seq, stmt_list
from weft.tir.stmt_functor import redefined
from weft.tir.transform.lower_opaque_block import allocate
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

VECTOR_REDUCTION: Final = "tir.vector_reduction"
"""The annotation of a serial loop: [lanes of a vector, vectors that accumulate side by side]."""
_FEW: Final = 4
"""Lanes of the vectors for the last elements of a loop of unknown length: 15 take 3 such vectors
and 3 scalars."""
ROWS_TOGETHER: Final = "tir.rows_together"
"""The annotation of a loop over rows around such a loop: the lanes of all rows are combined at
once."""


class _Reductions(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        if ROWS_TOGETHER in loop.annotations:
            loop = _without(loop, ROWS_TOGETHER)
            together = _rows_together(loop)
            if together is not None:
                return with_line_of(loop, together)
        inner: For = self.visit_default(loop)
        if VECTOR_REDUCTION not in inner.annotations or inner.kind is not ForKind.SERIAL:
            return inner
        lanes = _lanes_of(inner)
        if lanes is None:
            return _without(inner, VECTOR_REDUCTION)
        return with_line_of(loop, lanes.statement())


def _without(loop: For, mark: str) -> For:
    """The loop without one of its annotations."""
    rest = {key: value for key, value in loop.annotations.items() if key != mark}
    return loop.with_(annotations=rest)


def _lanes_of(loop: For) -> _Lanes | None:
    """The parts of an annotated loop; None if it has another form."""
    items = stmt_list(loop.body)
    lanes, chains = [int(number) for number in loop.annotations[VECTOR_REDUCTION]]
    updates = [update_of(loop, item, lanes * chains) for item in items]
    if lanes < 2 or not any(updates) or not _is_lane_wise(loop.loop_var, items, updates):
        return None
    return _Lanes(_without(loop, VECTOR_REDUCTION), lanes, chains, items, updates)


def _rows_together(loop: For) -> Stmt | None:
    """Sum each row in lanes of its own and combine the lanes of all rows at once.

    None if the loop has another form. Before and after, with four rows::

        for r in range(4):
            s[r] = 0
            for k in range(5): s[r] = s[r] + x[r, k]  # tir.vector_reduction

        for r in T.vectorized(4): s[r] = 0
        for r in range(4):
            (accumulate row r in s_lanes)
            s_rows[r * 4 : r * 4 + 4] = s_lanes[0:4]
        (fold_rows) s_results[0:4] = the sums of s_rows[0:4], s_rows[4:8], ...
        for r in T.vectorized(4): s[r] = s[r] + s_results[r]
    """
    *before, last = stmt_list(loop.body)
    if not isinstance(loop.extent, IntImm) or not op.is_const_int(loop.min, 0):
        return None
    if not isinstance(last, For) or VECTOR_REDUCTION not in last.annotations:
        return None
    row_lanes, count = _lanes_of(last), loop.extent.value
    every = () if row_lanes is None else row_lanes.updates
    updates = [update for update in every if update is not None]
    if row_lanes is None or len(updates) != 1:
        return None
    [update] = updates
    results = update.form.buffers
    if not all(_starts(item, results) for item in before) or row_lanes.lanes % count:
        return None
    if not 1 < count <= fold_limit(max([buffer.dtype.bits for buffer in results])):
        return None
    if not mentions(update.form.indices, loop.loop_var):
        return None
    rows, ends = [
        [
            decl_buffer((size,), buffer.dtype, f"{buffer.name}_{name}", scope="local")
            for buffer in results
        ]
        for size, name in ((count * count, "rows"), (count, "results"))
    ]

    def kept(lane: PrimExpr) -> Stmt:
        place = op.add(op.multiply(loop.loop_var, count), lane)
        pairs = zip(rows, update.lanes, strict=True)
        return seq(*[BufferStore(row, BufferLoad(own, [lane]), [place]) for row, own in pairs])

    parts = [
        *([loop.with_(kind=ForKind.VECTORIZED, body=seq(*before))] if before else []),
        loop.with_(body=row_lanes.statement(count, kept)),
        fold_rows(update.form.reducer, rows, ends),
        loop.with_(kind=ForKind.VECTORIZED, body=update.finish(loop.loop_var, ends)),
    ]
    return _allocated([*rows, *ends], redefined(seq(*parts)))


def _starts(item: Stmt, buffers: Sequence[Buffer]) -> bool:
    """Whether a statement initializes one of the buffers: what it stores loads nothing."""
    if not isinstance(item, BufferStore) or item.buffer not in buffers:
        return False
    return not collect(item.value, BufferLoad)


def _allocated(buffers: Sequence[Buffer], body: Stmt) -> Stmt:
    """The statement inside of allocations of the buffers."""
    for buffer in buffers:
        body = allocate(buffer, body)
    return body


def _is_lane_wise(var: Var, items: Sequence[Stmt], updates: Sequence[LaneUpdate | None]) -> bool:
    """Whether iterations share nothing but accumulators, which only their own updates read."""
    loads = [load for item in items for load in collect(item, BufferLoad)]
    held: list[Any] = []
    for item, update in zip(items, updates, strict=True):
        if update is not None:
            inside = collect(list(update.form.operands), BufferLoad)
            outside = [
                load for other in items if other is not item for load in collect(other, BufferLoad)
            ]
            held = [buffer.data for buffer in update.form.buffers]
            if any(load.buffer.data in held for load in [*inside, *outside]):
                return False
            continue
        if not isinstance(item, BufferStore) or item.predicate is not None:
            return False
        if not mentions(item.indices, var):
            return False
        same = [load for load in loads if load.buffer.data is item.buffer.data]
        if not all(_same_place(load, item) for load in same):
            return False
    stored = [store.buffer.data for item in items for store in collect(item, BufferStore)]
    return len(stored) == len(set(stored))


def _same_place(load: BufferLoad, store: BufferStore) -> bool:
    pairs = zip(load.indices, store.indices, strict=True)
    return all(expr_deep_equal(a, b) for a, b in pairs)


@dataclass(frozen=True)
class _Lanes:
    """The parts that replace a loop: initialization, rounds of ``chains`` vectors, single vectors,
    the last elements, and the combination of the lanes.
    """

    loop: For
    lanes: int
    chains: int
    items: Sequence[Stmt]
    updates: Sequence[LaneUpdate | None]

    def statement(self, until: int = 1, kept: Callable[[PrimExpr], Stmt] | None = None) -> Stmt:
        """All parts, one after the other.

        They end with one lane, which is combined with the result; or with ``until`` lanes, which
        ``kept`` stores.
        """
        extent, round_size = self.loop.extent, self.lanes * self.chains
        rounds = op.floordiv(extent, round_size)
        singles = op.floordiv(op.floormod(extent, round_size), self.lanes)
        done = op.multiply(rounds, round_size)
        parts = [
            self._vector(round_size, self._each(lambda update, j: update.start(j))),
            self._rounds(rounds),
            self._singles(singles, done),
            self._rest(done, singles),
        ]
        if self._origins:
            settled = self._each(lambda update, j: update.settle(j))
            parts.append(self._vector(round_size, settled))
        others = []
        for each in self._found:
            if kept is None and each.choice is not None and each.choice.has_ties:
                sizes = round_size, self.lanes
                parts.append(each.choice.joined(each.lanes, sizes, self._vector))
            else:
                others.append(each)
        width = round_size if others else until
        while width > until:
            half = width // 2
            parts.append(self._vector(half, self._fold(others, half)))
            width = half
        end = kept or self._each(lambda update, j: update.finish(j))
        parts.append(self._vector(until, end))
        steps = seq(*[part for part in parts if part is not None])
        return _allocated([lane for update in self._found for lane in update.lanes], steps)

    def _number(self, value: int) -> IntImm:
        return IntImm(self.loop.loop_var.dtype, value)

    def _vector(self, lanes: int, body: Callable[[PrimExpr], Stmt]) -> Stmt:
        """``body`` for each of ``lanes`` lanes, as a vectorized loop."""
        if lanes == 1:
            return body(self._number(0))
        lane = Var("lane", self.loop.loop_var.dtype)
        return For(lane, self._number(0), self._number(lanes), ForKind.VECTORIZED, body(lane))

    def _each(
        self, make: Callable[[LaneUpdate, PrimExpr], Stmt | None]
    ) -> Callable[[PrimExpr], Stmt]:
        return lambda place: seq(*[make(update, place) for update in self._found])

    @property
    def _found(self) -> list[LaneUpdate]:
        return [update for update in self.updates if update is not None]

    def _fold(self, updates: Sequence[LaneUpdate], half: int) -> Callable[[PrimExpr], Stmt]:
        return lambda j: seq(*[update.fold(j, op.add(j, half)) for update in updates])

    def _body(
        self,
        start: PrimExpr,
        place: PrimExpr,
        origin: PrimExpr | None = None,
        is_new: PrimExpr | None = None,
    ) -> Stmt:
        """Iteration ``start + place`` of the loop, with its accumulations in the lane ``place``.

        ``origin`` is an expression for ``loop.min + start``, if the caller has a cheaper one;
        ``is_new`` is the condition that the iteration has not been done before.
        """
        items = [
            item if update is None else update.accumulate(place, is_new)
            for item, update in zip(self.items, self.updates, strict=True)
        ]
        value = op.add(self.loop.min, start)
        known = dict.fromkeys(self._origins, value if origin is None else origin)
        known[self.loop.loop_var] = op.add(value, place)
        return redefined(substitute(seq(*items), known))

    @property
    def _origins(self) -> list[Var]:
        return [update.origin for update in self._found if update.origin is not None]

    def _rounds(self, count: PrimExpr) -> Stmt | None:
        """The loop over ``count`` rounds, each of which accumulates in ``chains`` vectors."""
        if op.is_const_int(count, 0):
            return None
        step, chain = [Var(name, self.loop.loop_var.dtype) for name in (self._name, "chain")]
        size = self.lanes * self.chains

        # A vector of positions that grows in each round takes one instruction a round; to broadcast
        # the position would take two for each vector.
        held = decl_buffer((self.lanes,), step.dtype, "origin", scope="local")

        def body(lane: PrimExpr) -> Stmt:
            place = op.add(op.multiply(chain, self.lanes), lane)
            return self._body(op.multiply(step, size), place, BufferLoad(held, [lane]))

        def grown(lane: PrimExpr) -> Stmt:
            return BufferStore(held, op.add(BufferLoad(held, [lane]), size), [lane])

        inner = For(
            chain,
            self._number(0),
            self._number(self.chains),
            ForKind.UNROLLED,
            self._vector(self.lanes, body),
        )
        if not self._origins:
            return For(step, self._number(0), count, ForKind.SERIAL, inner)
        start = self._vector(self.lanes, lambda lane: BufferStore(held, self.loop.min, [lane]))
        after = self._vector(self.lanes, grown)
        rounds = For(step, self._number(0), count, ForKind.SERIAL, seq(inner, after))
        return allocate(held, seq(start, rounds))

    def _singles(self, count: PrimExpr, done: PrimExpr) -> Stmt | None:
        """The vectors after the first ``done`` iterations, which are too few for a round.

        If ``count`` is constant, each of them accumulates in lanes of its own.
        """
        if self.chains == 1 or op.is_const_int(count, 0):
            return None
        step = Var(self._name, self.loop.loop_var.dtype)
        at = op.multiply(step, self.lanes)
        if isinstance(count, IntImm):
            vector = self._vector(self.lanes, lambda lane: self._body(done, op.add(at, lane)))
            return For(step, self._number(0), count, ForKind.UNROLLED, vector)
        vector = self._vector(self.lanes, lambda lane: self._body(op.add(done, at), lane))
        return For(step, self._number(0), count, ForKind.SERIAL, vector)

    def _rest(self, done: PrimExpr, singles: PrimExpr) -> Stmt | None:
        """The last elements, which fill no vector: in some lanes, or, if their number is not
        constant, in vectors of ``_FEW`` lanes and as scalars.
        """
        at = op.multiply(singles, self.lanes)
        if isinstance(self.loop.extent, IntImm):
            count = self.loop.extent.value % self.lanes
            is_alone = len(self._found) == len(self.items)
            if count and is_alone and self.loop.extent.value > self.lanes:
                return self._last(done, at, count)
            body = self._vector(count, lambda lane: self._body(done, op.add(at, lane)))
            return body if count else None
        done = op.add(done, at)
        if self.lanes <= _FEW:
            return self._scalars(done)
        step = Var(self._name, self.loop.loop_var.dtype)
        short = op.floordiv(op.subtract(self.loop.extent, done), _FEW)
        start = op.add(done, op.multiply(step, _FEW))
        few = self._vector(_FEW, lambda lane: self._body(start, lane))
        vectors = For(step, self._number(0), short, ForKind.SERIAL, few)
        return seq(vectors, self._scalars(op.add(done, op.multiply(short, _FEW))))

    def _scalars(self, done: PrimExpr) -> Stmt:
        """The iterations after the first ``done``, one by one."""
        left = Var(self._name, self.loop.loop_var.dtype)
        known = {self.loop.loop_var: op.add(self.loop.min, op.add(done, left))}
        body = redefined(substitute(self.loop.body, known))
        return For(left, self._number(0), op.subtract(self.loop.extent, done), ForKind.SERIAL, body)

    def _last(self, done: PrimExpr, at: PrimExpr, count: int) -> Stmt:
        """The last ``count`` elements as the end of a whole vector, whose first lanes are done."""
        back = self.lanes - count

        def body(lane: PrimExpr) -> Stmt:
            start = op.subtract(done, back)
            return self._body(start, op.add(at, lane), is_new=op.greater_equal(lane, back))

        return self._vector(self.lanes, body)

    @property
    def _name(self) -> str:
        return self.loop.loop_var.name


def vectorize_reduction(func: PrimFunc) -> PrimFunc:
    """Make the annotated loops of a function accumulate in vectors."""
    return rewrite_body(func, _Reductions())


VectorizeReduction = define_pass("VectorizeReduction", vectorize_reduction)
