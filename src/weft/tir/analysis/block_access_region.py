"""The buffer regions that a block reads and writes, derived from its body.

All users share this analysis: the parser completes blocks without ``T.reads`` and ``T.writes``, te
fills in the blocks it creates, fusion and schedule primitives update edited blocks.

The region of an access covers all iterations of the loops *inside* the block, as far as the
conditions around the access allow them; the block's axes and everything defined outside stay
symbolic. An inner block contributes the regions that it declares, with its axes replaced by their
bindings. A view by ``match_buffer`` counts as part of its source buffer. What a reduction block
(one with an ``init``) writes does not count as read. A buffer's pointer used by itself is an opaque
access to the whole buffer. Regions are in order of appearance. Follows TVM's
``GetBlockAccessRegion``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.arith.analyzer import Analyzer
from weft.arith.int_set import eval_set, union
from weft.arith.interval import IntervalSet, IntSet, as_int_set
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, Visitor, collect, substitute
from weft.ir.node import Array, Node
from weft.support.recursion import deep_recursion
from weft.tir.analysis.condition_domains import narrowed_domains
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.constant import is_const_int
from weft.tir.expr import BinaryExpr, Broadcast, Call, Cast, Ramp, Select, Var
from weft.tir.linear_difference import constant_difference
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
)

Regions = dict[Buffer, list[IntervalSet]]
_READ, _WRITE = 1, 2
_ACCESS_PTR: Final = "tir.tvm_access_ptr"
_IF_THEN_ELSE: Final = "tir.if_then_else"


class _AccessDetector(Visitor):
    """Collects the accessed regions of the buffers of ``buffer_var_map``, as they appear."""

    def __init__(self, buffer_var_map: Mapping[Var, Buffer]) -> None:
        self.buffers = dict(buffer_var_map)
        self.domains: Mapping[Var, IntervalSet] = {}
        self.kept: list[Mapping[Var, IntervalSet]] = []
        """Keeps the domains under conditions alive, so that their ``id`` is not used again."""
        self.values: dict[Var, PrimExpr] = {}
        self.matches: dict[Var, MatchBufferRegion] = {}
        self.aliases: set[Buffer] = set()
        self.analyzer = Analyzer()
        self.reads: Regions = {}
        self.writes: Regions = {}
        self.opaque: Regions = {}

    def detect(self, block: Block) -> None:
        """Visit the block's init and body."""
        for match in block.match_buffers:
            if match.source.buffer.data in self.buffers:
                self.matches[match.buffer.data] = match
                self.buffers[match.buffer.data] = match.buffer
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def relax(self, indices: Sequence[PrimExpr]) -> list[IntervalSet]:
        """The set of values of each index over the inner loops."""
        return [self.relax_one(index) for index in indices]

    def relax_one(
        self, index: PrimExpr, bindings: Mapping[Var, PrimExpr] | None = None
    ) -> IntervalSet:
        bindings = self.values if bindings is None else bindings
        if bindings:
            index = substitute(index, bindings)
        if isinstance(index, Var):
            domain = self.domains.get(index)
            if domain is None:
                return IntervalSet(index, index)
            if isinstance(domain.min_value, IntImm) and isinstance(domain.max_value, IntImm):
                return domain
        elif isinstance(index, IntImm):
            return IntervalSet(index, index)
        if self.is_inner(index):
            return IntervalSet.everything()
        if _computes_in_floats(index):
            unknown = _FloatCasts()
            index = unknown.visit(index)
            return eval_set(index, {**self.domains, **unknown.domains}, self.analyzer)
        if not self.domains and index.dtype.lanes == 1:
            return IntervalSet(index, index)
        return eval_set(index, self.domains, self.analyzer)

    def is_inner(self, index: PrimExpr) -> bool:
        """Whether an index is loaded from a buffer that is allocated inside the block."""
        return any(
            load.buffer.data not in self.buffers and load.buffer.data not in self.matches
            for load in collect(index, BufferLoad)
        )

    def update(self, table: Regions, buffer: Buffer, region: list[IntervalSet]) -> None:
        """Add a region to those of a buffer (or of the source buffer that it is a view of)."""
        known = self.buffers.get(buffer.data)
        if known is None:
            return
        if buffer in self.aliases:
            buffer, region = known, _whole(known)
        match = self.matches.get(buffer.data)
        while match is not None:
            region = self.source_region(match, region)
            buffer = match.source.buffer
            match = self.matches.get(buffer.data)
        old = table.get(buffer)
        if old is None:
            table[buffer] = region
        else:
            for position, (mine, its) in enumerate(zip(old, region, strict=True)):
                old[position] = self.join(mine, its)

    def join(self, mine: IntervalSet, its: IntervalSet) -> IntervalSet:
        """The union; bounds that differ by a constant are compared without an Analyzer."""
        if mine.is_nothing() or its.is_nothing() or not (mine.is_bounded and its.is_bounded):
            return union([mine, its], self.analyzer)
        below = constant_difference(its.min_value, mine.min_value)
        above = constant_difference(its.max_value, mine.max_value)
        if below is None or above is None:
            return union([mine, its], self.analyzer)
        if below >= 0 >= above:
            return mine
        return IntervalSet(
            its.min_value if below < 0 else mine.min_value,
            its.max_value if above > 0 else mine.max_value,
        )

    def source_region(
        self, match: MatchBufferRegion, region: list[IntervalSet]
    ) -> list[IntervalSet]:
        """A region of a matched view in terms of the source buffer."""
        ranges = match.source.region
        offset = len(ranges) - len(region)
        result = [as_int_set(rng, self.analyzer) for rng in ranges[:offset]]
        for rng, part in zip(ranges[offset:], region, strict=True):
            if part.is_bounded:
                low = self.analyzer.simplify(rng.min + part.min_value)
                result.append(IntervalSet(low, self.analyzer.simplify(rng.min + part.max_value)))
            else:
                result.append(as_int_set(rng, self.analyzer))
        return result

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        domain = node.domain
        outer = self.domains
        self.domains = {**outer, node.loop_var: as_int_set(domain, self.analyzer)}
        self.analyzer.bind(node.loop_var, domain, True)
        self.visit(node.body)
        self.domains = outer

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        outer = self.values
        value = substitute(node.value, outer) if outer else node.value
        self.values = {**outer, node.var: value}
        self.visit(node.body)
        self.values = outer

    visit_Let = visit_LetStmt

    def in_branch(self, condition: PrimExpr, node: Node | None, negated: bool = False) -> None:
        """Visit a node that runs only if the condition holds (or, negated, does not hold)."""
        if node is None:
            return
        outer = self.domains
        if outer:
            known = substitute(condition, self.values) if self.values else condition
            self.domains = narrowed_domains(outer, known, self.analyzer, negated=negated)
        if self.domains is outer:
            self.visit(node)
            return
        self.kept.append(self.domains)
        with self.apart(id(self.domains)):
            self.visit(node)
        self.domains = outer

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        self.in_branch(node.condition, node.then_case)
        self.in_branch(node.condition, node.else_case, negated=True)

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        """Record another buffer over known memory: its accesses may touch any part."""
        if node.buffer.data in self.buffers and node.buffer.data not in self.matches:
            if self.buffers[node.buffer.data] is not node.buffer:
                self.aliases.add(node.buffer)
        self.visit(node.body)

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.update(self.reads, node.buffer, self.relax(node.indices))
        self.walk_indices(node.indices)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.update(self.writes, node.buffer, self.relax(node.indices))
        self.visit(node.value)
        self.walk_indices(node.indices)

    def walk_indices(self, indices: Sequence[PrimExpr]) -> None:
        """Visit the indices of an access, which may read buffers themselves."""
        for index in indices:
            if not isinstance(index, (Var, IntImm)):
                self.visit(index)

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        """Add the declared regions of an inner block, with its axes replaced by their values."""
        self.visit(node.iter_values)
        self.visit(node.predicate)
        block = node.block
        bindings = dict(self.values)
        for axis, value in zip(block.iter_vars, node.iter_values, strict=True):
            bindings[axis.var] = substitute(value, self.values) if self.values else value
        outer = self.domains
        if outer and not isinstance(node.predicate, IntImm):
            predicate = substitute(node.predicate, self.values) if self.values else node.predicate
            self.domains = narrowed_domains(outer, predicate, self.analyzer)
        for table, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                if region.buffer.data in self.buffers:
                    ranges = [self.relax_range(item, bindings) for item in region.region]
                    self.update(table, region.buffer, ranges)
        self.domains = outer

    def relax_range(self, rng: Range, bindings: Mapping[Var, PrimExpr]) -> IntervalSet:
        """The set of values of one range of a region over the inner loops."""
        if is_const_int(rng.extent, 1):
            return self.relax_one(rng.min, bindings)
        start, extent = substitute(rng.min, bindings), substitute(rng.extent, bindings)
        part = as_int_set(Range.from_min_extent(start, extent), self.analyzer)
        return eval_set(part, self.domains, self.analyzer)

    def visit_Call(self, node: Call) -> None:
        name = getattr(node.op, "name", "")
        if name == _IF_THEN_ELSE:
            self.visit(node.args[0])
            self.in_branch(node.args[0], node.args[1])
            self.in_branch(node.args[0], node.args[2], negated=True)
        elif name == _ACCESS_PTR:
            self.access_pointer(node)
        else:
            self.visit(node.args)

    def access_pointer(self, node: Call) -> None:
        """A tvm_access_ptr with its access mask; one for both reads and writes is opaque."""
        buffer = self.buffers.get(node.args[1]) if isinstance(node.args[1], Var) else None
        mask = node.args[4]
        if buffer is None or not isinstance(mask, IntImm):
            self.visit(node.args)
            return
        use = mask.value & (_READ | _WRITE)
        if use:
            table = {_READ: self.reads, _WRITE: self.writes}.get(use, self.opaque)
            self.update(table, buffer, _whole(buffer))
        for position in (0, 2, 3):
            self.visit(node.args[position])

    def visit_Var(self, node: Var) -> None:
        """A buffer's pointer used by itself: any element may be read and written."""
        buffer = self.buffers.get(node)
        if buffer is not None:
            self.update(self.opaque, buffer, _whole(buffer))

    def collect(self, table: Regions, excluded: Regions | None = None) -> list[BufferRegion]:
        """The table as buffer regions."""
        regions = []
        for buffer, region in table.items():
            if excluded is not None and buffer in excluded:
                continue
            ranges = []
            for part, extent in zip(region, buffer.shape, strict=True):
                ranges.append(self.cover(part, extent))
            regions.append(BufferRegion(buffer, Array(ranges)))
        return regions

    def cover(self, part: IntervalSet, extent: PrimExpr) -> Range:
        """The range of one dimension; all of the dimension if a bound is not known."""
        low, high = part.min_value, part.max_value
        if low is high and part.is_bounded:
            return Range.from_min_extent(low, IntImm(low.dtype, 1))
        if isinstance(low, IntImm) and isinstance(high, IntImm) and low.value <= high.value:
            return Range.from_min_extent(low, IntImm(low.dtype, high.value - low.value + 1))
        whole = Range(extent)
        return part.cover_range(whole, self.analyzer)


def _computes_in_floats(index: PrimExpr) -> bool:
    """Whether an index is computed in floating point, whose values have no integer set."""
    if isinstance(index, (Var, IntImm)):
        return False
    if isinstance(index, Cast):
        return index.value.dtype.is_float or _computes_in_floats(index.value)
    if isinstance(index, BinaryExpr):
        return _computes_in_floats(index.a) or _computes_in_floats(index.b)
    if isinstance(index, Select):
        return _computes_in_floats(index.true_value) or _computes_in_floats(index.false_value)
    if isinstance(index, Ramp):
        return _computes_in_floats(index.base)
    if isinstance(index, Broadcast):
        return _computes_in_floats(index.value)
    if isinstance(index, Call):
        for argument in index.args:
            if isinstance(argument, PrimExpr) and _computes_in_floats(argument):
                return True
    return False


class _FloatCasts(Mutator):
    """Replaces every cast from a float by a new variable that may have any value."""

    def __init__(self) -> None:
        super().__init__()
        self.domains: dict[Var, IntervalSet] = {}

    def visit_Cast(self, cast: Cast) -> Any:
        if not cast.value.dtype.is_float:
            return self.visit_default(cast)
        unknown = Var("unknown", cast.dtype)
        self.domains[unknown] = IntSet.everything()
        return unknown


def _whole(buffer: Buffer) -> list[IntervalSet]:
    return [as_int_set(Range(extent)) for extent in buffer.shape]


def _detect(block: Block, buffer_var_map: Mapping[Var, Buffer]) -> _AccessDetector:
    detector = _AccessDetector(buffer_var_map)
    detector.detect(block)
    return detector


@deep_recursion
def get_block_access_region(
    block: Block, buffer_var_to_buffer: Mapping[Var, Buffer]
) -> Array[Array[BufferRegion]]:
    """[reads, writes, opaque accesses] of the block's body, as arrays of BufferRegion.

    ``buffer_var_to_buffer`` maps the data variable of every buffer defined outside of the block to
    the buffer; accesses of other buffers do not count.
    """
    detector = _detect(block, buffer_var_to_buffer)
    reads = detector.collect(detector.reads, detector.writes if block.init is not None else None)
    parts = [reads, detector.collect(detector.writes), detector.collect(detector.opaque)]
    return Array([Array(part) for part in parts])


@deep_recursion
def get_block_read_write_region(
    block: Block, buffer_var_to_buffer: Mapping[Var, Buffer]
) -> Array[Array[BufferRegion]]:
    """[reads, writes] of the block's body; opaque accesses come last in both."""
    detector = _detect(block, buffer_var_to_buffer)
    opaque = detector.collect(detector.opaque)
    writes = detector.collect(detector.writes, detector.opaque)
    updated = detector.writes if block.init is not None else {}
    reads = detector.collect(detector.reads, {**detector.opaque, **updated})
    return Array([Array([*reads, *opaque]), Array([*writes, *opaque])])
