"""TransposeTile: two loops that transpose load vectors along one axis, store along the other.

For a loop with the annotation ``TRANSPOSE`` around a vectorized loop. Stores are contiguous along
the vectorized loop, and loads along the annotated one. Runs before VectorizeLoop. Before::

    for i in range(4): # tir.transpose_tile
        for j in T.vectorized(8): B[i, j] = f(A[j, i])

After: vectors are read along ``i``, four lanes (16 bytes) of each row, and interleaved::

    a_0 = T.Shuffle([A[0, 0:4], A[4, 0:4]], [0, 1, 2, 3, 4, 5, 6, 7])
    ... a_1, a_2 and a_3 of rows 1 and 5, 2 and 6, 3 and 7
    a_4 = T.Shuffle([a_0, a_2], [0, 8, 1, 9, 4, 12, 5, 13])
    a_5 = T.Shuffle([a_0, a_2], [2, 10, 3, 11, 6, 14, 7, 15])
    ... the same of a_1 and a_3, then a_8 to a_11 of a_4 to a_7
    B[0, 0:8] = f(a_8) ... B[3, 0:8] = f(a_11)

Each of the log2(4) steps interleaves vector ``i`` with vector ``i + 2``, half of all further on.
Together they transpose each group of lanes, since they rotate the bits of (row, lane) (Stone,
"Parallel processing with the perfect shuffle", 1971). Most processors interleave within 16 bytes by
one instruction (unpack, zip); to load groups of 16 bytes into one vector costs no more than loads.
If the annotation says so, whole cache lines are read at once, with shuffles across whole vectors.
Sizes that are no powers of two are cut into powers of two. A nest of another form stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, substitute
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Let, Ramp, Shuffle, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind, LetStmt, Stmt, seq
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.vectorize_loop import NotVectorizable, Vectorizer

TRANSPOSE: Final = "tir.transpose_tile"
"""The annotation of the outer loop. Its value is how many bytes of a row are read at once; less
than 16 stands for 16."""
_BYTES: Final = 16
"""The bytes within which one instruction interleaves elements."""


class _Nest:
    """The two loops, and the loads that are contiguous along the outer one (``across``)."""

    def __init__(self, rows: For, lanes: For, store: BufferStore, nbytes: int) -> None:
        self.rows, self.lanes, self.store = rows, lanes, store
        self.nbytes = max(nbytes, _BYTES)
        loads = collect(store.value, BufferLoad)
        self.reads_itself = any(
            load.buffer.data is store.buffer.data and not _is_same_place(load, store)
            for load in loads
        )
        self.across = [load for load in loads if self._is_across(load)]

    def _is_across(self, load: BufferLoad) -> bool:
        """Whether a load is contiguous along the rows and not along the lanes."""
        row, lane = self.rows.loop_var, self.lanes.loop_var
        if not load.indices or load.predicate is not None or load.dtype.lanes != 1:
            return False
        if load.buffer.dtype.is_bool or (load.buffer.strides and load.buffer.strides[-1] != 1):
            return False
        *outer, last = load.indices
        if any(row in collect(index, Var) for index in outer) or _step(last, row) != 1:
            return False
        return any(lane in collect(index, Var) for index in outer) or _step(last, lane) not in (
            0,
            1,
        )

    @property
    def group(self) -> int:
        """How many elements of a row are read at once."""
        widest = max([load.dtype.bits for load in self.across])
        return max(self.nbytes * 8 // widest, 1)

    def rows_from(self, start: PrimExpr, count: int, first: int, lanes: int) -> Stmt:
        """Transpose ``count`` rows from ``start`` on, and ``lanes`` lanes from ``first`` on.

        Both numbers are powers of two.
        """
        lets: list[tuple[Var, PrimExpr]] = []
        transposed = [
            self._transposed(load, start, count, first, lanes, lets) for load in self.across
        ]
        held = [Var(load.buffer.name, load.dtype) for load in self.across]
        scalar = _Replaced(self.across, held).visit(self.store)
        stores = []
        for at in range(count):
            vectorizer = Vectorizer(self.lanes.loop_var, _index(self.lanes, first), lanes)
            for var, vectors in zip(held, transposed, strict=True):
                vectorizer.values[id(var)] = vectors[at]
            row = substitute(scalar, {self.rows.loop_var: op.add(start, at)})
            stores.append(vectorizer.visit(row))
        body = seq(*stores)
        for var, value in reversed(lets):
            body = LetStmt(var, value, body)
        return body

    def _transposed(
        self,
        load: BufferLoad,
        start: PrimExpr,
        count: int,
        first: int,
        lanes: int,
        lets: list[tuple[Var, PrimExpr]],
    ) -> list[PrimExpr]:
        """What a load reads, as one vector of ``lanes`` lanes for each of ``count`` rows.

        The values on the way are bound to variables, which are appended to ``lets``.
        """

        def bound(value: PrimExpr) -> PrimExpr:
            var = Var(f"{load.buffer.name}_{len(lets)}", value.dtype)
            lets.append((var, value))
            return var

        vectors = []
        for at in range(count):
            parts = [
                self._run(load, start, count, first + group + at)
                for group in range(0, lanes, count)
            ]
            vectors.append(bound(parts[0] if len(parts) == 1 else Shuffle(parts, [*range(lanes)])))
        low, high = interleaved(lanes, count)
        for _ in range(count.bit_length() - 1):
            half = count // 2
            pairs = [(vectors[at], vectors[at + half]) for at in range(half)]
            vectors = [bound(Shuffle(pair, order)) for pair in pairs for order in (low, high)]
        return vectors

    def _run(self, load: BufferLoad, start: PrimExpr, count: int, lane: int) -> BufferLoad:
        """The load of what one lane reads in ``count`` rows: a run of memory."""
        place = {self.rows.loop_var: start, self.lanes.loop_var: _index(self.lanes, lane)}
        *outer, last = [substitute(index, place) for index in load.indices]
        return BufferLoad(load.buffer, [*outer, Ramp(last, IntImm(last.dtype, 1), count)])


def _is_same_place(load: BufferLoad, store: BufferStore) -> bool:
    """Whether a load reads exactly the element that the store writes."""
    if load.buffer is not store.buffer:
        return False
    return all(map(expr_deep_equal, load.indices, store.indices))


class _Replaced(Mutator):
    """Replaces loads, compared by identity, by variables."""

    def __init__(self, loads: Sequence[BufferLoad], variables: Sequence[Var]) -> None:
        super().__init__()
        self.known = dict(zip([id(load) for load in loads], variables, strict=True))

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        if id(load) in self.known:
            return self.known[id(load)]
        return self.visit_default(load)


def interleaved(lanes: int, group: int) -> tuple[list[int], list[int]]:
    """The two shuffles that interleave the lanes of two vectors within groups of ``group`` lanes.

    The first one interleaves the first halves of the groups, the second one the second halves.
    Lanes of the second vector are counted from ``lanes`` on.

    >>> interleaved(4, 4)
    ([0, 4, 1, 5], [2, 6, 3, 7])
    """
    half = group // 2
    low = [
        start + at + which * lanes
        for start in range(0, lanes, group)
        for at in range(half)
        for which in (0, 1)
    ]
    return low, [lane + half for lane in low]


def _index(loop: For, value: int) -> PrimExpr:
    return op.add(loop.min, value)


def _step(index: PrimExpr, var: Var) -> int | None:
    """How much an index grows when ``var`` grows by one; None if that is not constant."""
    try:
        vector = Vectorizer(var, IntImm(var.dtype, 0), 2).visit(index)
    except NotVectorizable:
        return None
    if not isinstance(vector, Ramp):
        return 0 if vector.dtype.lanes == 1 else None
    stride = Analyzer().simplify(vector.stride)
    return stride.value if isinstance(stride, IntImm) else None


def _powers(size: int, largest: int) -> Iterator[tuple[int, int]]:
    """Cut a range into parts whose sizes are powers of two, up to ``largest``: ``(start, size)``.

    13 with 8 gives (0, 8), (8, 4), (12, 1).
    """
    start = 0
    while start < size:
        part = min(largest, 1 << ((size - start).bit_length() - 1))
        yield start, part
        start += part


def is_unconditional(value: PrimExpr) -> bool:
    """Whether all loads of an expression are done whenever it is computed.

    Loads below ``T.if_then_else`` may not be done, since its condition may keep them inside of the
    buffer. False also for a let, whose variable may stand for a load.
    """
    choices = [call for call in collect(value, Call) if is_call(call, "if_then_else")]
    return not collect(value, Let) and not collect(choices, BufferLoad)


def _nest_of(loop: For, nbytes: int) -> _Nest | None:
    """The nest of a loop, if it has the form that can be transposed; else None."""
    lanes = loop.body
    if not isinstance(lanes, For) or lanes.kind is not ForKind.VECTORIZED:
        return None
    if not isinstance(loop.extent, IntImm) or not isinstance(lanes.extent, IntImm):
        return None
    store = lanes.body
    if not isinstance(store, BufferStore) or store.predicate is not None:
        return None
    if not is_unconditional(store.value):
        return None
    nest = _Nest(loop, lanes, store, nbytes)
    return nest if nest.across and not nest.reads_itself else None


def _tile(nest: _Nest) -> Stmt:
    """The statements that replace the loops of a nest."""
    assert isinstance(nest.rows.extent, IntImm)
    assert isinstance(nest.lanes.extent, IntImm)
    rows, group = nest.rows.extent.value, nest.group
    parts: list[Stmt] = []
    for first, lanes in _powers(nest.lanes.extent.value, 1 << 16):
        count = min(group, lanes)
        whole = rows // count
        if count == 1:
            parts.append(_column(nest, first, lanes))
            continue
        if whole:
            parts.append(_repeated(nest, whole, count, first, lanes))
        for start, rest in _powers(rows % count, count):
            at = op.add(nest.rows.min, whole * count + start)
            if rest == 1:
                parts.append(_row(nest, at, first, lanes))
            else:
                parts.append(nest.rows_from(at, rest, first, lanes))
    return seq(*parts)


def _repeated(nest: _Nest, times: int, count: int, first: int, lanes: int) -> Stmt:
    """A loop over ``times`` groups of ``count`` rows."""
    if times == 1:
        return nest.rows_from(nest.rows.min, count, first, lanes)
    var = Var(nest.rows.loop_var.name, nest.rows.loop_var.dtype)
    start = op.add(nest.rows.min, op.multiply(var, count))
    body = nest.rows_from(start, count, first, lanes)
    return For(var, IntImm(var.dtype, 0), IntImm(var.dtype, times), ForKind.SERIAL, body)


def _column(nest: _Nest, first: int, lanes: int) -> Stmt:
    """Some lanes of all rows, as scalars."""
    body = _row(nest, nest.rows.loop_var, first, lanes)
    return nest.rows.with_(annotations={}, body=body)


def _row(nest: _Nest, row: PrimExpr, first: int, lanes: int) -> Stmt:
    """Some lanes of one row, as scalars."""
    var = Var(nest.lanes.loop_var.name, nest.lanes.loop_var.dtype)
    place = {nest.rows.loop_var: row, nest.lanes.loop_var: op.add(_index(nest.lanes, first), var)}
    body = substitute(nest.store, place)
    return For(var, IntImm(var.dtype, 0), IntImm(var.dtype, lanes), ForKind.SERIAL, body)


class _Transpose(StmtMutator):
    def visit_For(self, loop: For) -> Stmt:
        if TRANSPOSE not in loop.annotations:
            return self.visit_default(loop)
        rest = {key: value for key, value in loop.annotations.items() if key != TRANSPOSE}
        plain = loop.with_(annotations=rest)
        nest = _nest_of(plain, int(loop.annotations[TRANSPOSE]))
        try:
            return plain if nest is None else _tile(nest)
        except NotVectorizable:
            return plain


def transpose_tiles(func: PrimFunc) -> PrimFunc:
    """Transpose the tiles that are marked in a function."""
    marked = [loop for loop in collect(func.body, For) if TRANSPOSE in loop.annotations]
    return rewrite_body(func, _Transpose()) if marked else func


TransposeTile = define_pass("TransposeTile", transpose_tiles)
