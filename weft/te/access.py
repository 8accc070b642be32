"""What a block of a tensor expression reads and writes.

Its body addresses single elements at block variables, so a region is the union of points; regions
of nested blocks, whose own variables vanish outside, widen to the whole buffer.
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Visitor, collect
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Add, BufferLoad, Let, Mul, Sub, Var
from weft.tir.stmt import Block, BufferRegion, BufferStore, LetStmt, Stmt

Points = list[list[PrimExpr]]


class _Accesses(Visitor):
    """Every access in order of appearance: the access itself before those in its indices."""

    def __init__(self) -> None:
        self.reads: dict[Buffer, Points | None] = {}
        self.writes: dict[Buffer, Points | None] = {}
        self.inner: set[int] = set()

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._record(self.reads, load.buffer, load.indices)
        self.visit(load.indices)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self._record(self.writes, store.buffer, store.indices)
        self.visit(store.indices)
        self.visit(store.value)

    def visit_Let(self, let: Let) -> None:
        self.inner.add(id(let.var))
        self.visit_default(let)

    def visit_LetStmt(self, let: LetStmt) -> None:
        self.inner.add(id(let.var))
        self.visit_default(let)

    def visit_Block(self, block: Block) -> None:
        for buffer in [region.buffer for region in block.reads]:
            self.reads[buffer] = None
        for buffer in [region.buffer for region in block.writes]:
            self.writes[buffer] = None

    def visit_Buffer(self, buffer: Buffer) -> None:
        """A declaration's shape reads nothing."""

    def _record(self, table: dict[Buffer, Points | None], buffer: Buffer, indices: Any) -> None:
        points = table.setdefault(buffer, [])
        if points is None:
            return
        if self.inner and [v for v in collect(indices, Var) if id(v) in self.inner]:
            table[buffer] = None
            return
        points.append(list(indices))


def access_regions(
    body: Stmt, init: Stmt | None
) -> tuple[list[BufferRegion], list[BufferRegion]]:
    """``(reads, writes)`` of a block; a reduction's own output is not among its reads."""
    accesses = _Accesses()
    if init is not None:
        accesses.visit(init)
    accesses.visit(body)
    writes = [_region(buffer, points) for buffer, points in accesses.writes.items()]
    own = accesses.writes if init is not None else {}
    reads = [
        _region(buffer, points) for buffer, points in accesses.reads.items() if buffer not in own
    ]
    return reads, writes


def full_region(buffer: Buffer) -> BufferRegion:
    """The whole buffer."""
    ranges = [Range.from_min_extent(IntImm(e.dtype, 0), e) for e in buffer.shape]
    return BufferRegion(buffer, ranges)


def _region(buffer: Buffer, points: Points | None) -> BufferRegion:
    if points is None:
        return full_region(buffer)
    ranges = []
    for dimension in range(len(buffer.shape)):
        ranges.append(_union([point[dimension] for point in points]))
    return BufferRegion(buffer, ranges)


def _union(indices: list[PrimExpr]) -> Range:
    """The smallest range known to hold every index."""
    distinct: list[PrimExpr] = []
    for index in indices:
        if not [known for known in distinct if known is index or structural_equal(known, index)]:
            distinct.append(index)
    low = high = distinct[0]
    for index in distinct[1:]:
        low = _extreme(low, index, smallest=True)
        high = _extreme(high, index, smallest=False)
    if low is high:
        return Range.from_min_extent(low, IntImm(low.dtype, 1))
    difference = constant_difference(high, low)
    if difference is not None:
        return Range.from_min_extent(low, IntImm(low.dtype, difference + 1))
    return Range.from_min_extent(low, op.subtract(op.add(high, 1), low))


def _extreme(first: PrimExpr, second: PrimExpr, smallest: bool) -> PrimExpr:
    if first is second or structural_equal(first, second):
        return first
    difference = constant_difference(first, second)
    if difference is None:
        return op.minimum(first, second) if smallest else op.maximum(first, second)
    return first if (difference <= 0) == smallest else second


def constant_difference(lhs: PrimExpr, rhs: PrimExpr) -> int | None:
    """``lhs - rhs`` if it is the same for all values of the variables and easily seen to be."""
    terms: list[list[Any]] = []
    constant = _add_terms(lhs, 1, terms) + _add_terms(rhs, -1, terms)
    return None if [term for term in terms if term[1]] else constant


def _add_terms(expr: PrimExpr, factor: int, terms: list[list[Any]]) -> int:
    """Add ``factor * expr`` to the linear form of [atom, factor]; returns its constant part."""
    if isinstance(expr, IntImm):
        return factor * expr.value
    if isinstance(expr, Add):
        return _add_terms(expr.a, factor, terms) + _add_terms(expr.b, factor, terms)
    if isinstance(expr, Sub):
        return _add_terms(expr.a, factor, terms) + _add_terms(expr.b, -factor, terms)
    if isinstance(expr, Mul) and isinstance(expr.b, IntImm):
        return _add_terms(expr.a, factor * expr.b.value, terms)
    for term in terms:
        if term[0] is expr or structural_equal(term[0], expr):
            term[1] += factor
            return 0
    terms.append([expr, factor])
    return 0
