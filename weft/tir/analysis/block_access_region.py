"""Which buffer regions a block reads and writes, derived from its body.

The parser completes blocks without ``T.reads``/``T.writes`` with this, te writes it into the blocks
it makes, and schedule primitives recompute it. Loops *inside* the block are relaxed, its own axes
stay symbols. Follows TVM's ``GetBlockAccessRegion``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.arith.analyzer import Analyzer
from weft.arith.int_set import eval_set, union
from weft.arith.interval import IntervalSet, as_int_set
from weft.ir.expr import IntImm, Range
from weft.ir.functor import Visitor, substitute
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.stmt import Block, BufferRegion, MatchBufferRegion

Regions = dict[Buffer, list[IntervalSet]]
_READ, _WRITE = 1, 2
_ACCESS_PTR: Final = "tir.tvm_access_ptr"


class _AccessDetector(Visitor):
    """Collects the touched regions of the buffers of ``buffer_var_map``, in order of meeting."""

    def __init__(self, buffer_var_map: Mapping[Var, Buffer]) -> None:
        self.buffers = dict(buffer_var_map)
        self.domains: dict[Var, Any] = {}
        self.values: dict[Var, Any] = {}
        self.matches: dict[Var, MatchBufferRegion] = {}
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

    def relax(self, indices: Any) -> list[IntervalSet]:
        """The set of every index as the inner loops run."""
        relaxed = []
        for index in indices:
            if self.values:
                index = substitute(index, self.values)
            relaxed.append(self.relax_one(index))
        return relaxed

    def relax_one(self, index: Any) -> IntervalSet:
        if isinstance(index, Var) and index not in self.domains:
            return IntervalSet(index, index)
        return eval_set(index, self.domains, self.analyzer)

    def update(self, table: Regions, buffer: Buffer, region: list[IntervalSet]) -> None:
        """Join a region to what is known of a buffer (or of the source it matches)."""
        known = self.buffers.get(buffer.data)
        if known is None:
            return
        match = self.matches.get(buffer.data)
        if match is not None:
            region = self.source_region(match, region)
            buffer = match.source.buffer
        old = table.get(buffer)
        if old is None:
            table[buffer] = region
        else:
            table[buffer] = [
                union([mine, its], self.analyzer) for mine, its in zip(old, region, strict=True)
            ]

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

    def visit_For(self, node: Any) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.domains[node.loop_var] = Range.from_min_extent(node.min, node.extent)
        self.analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent))
        self.visit(node.body)
        del self.domains[node.loop_var]

    def visit_LetStmt(self, node: Any) -> None:
        self.visit(node.value)
        self.values[node.var] = substitute(node.value, self.values) if self.values else node.value
        self.visit(node.body)
        del self.values[node.var]

    visit_Let = visit_LetStmt

    def visit_BufferLoad(self, node: Any) -> None:
        self.update(self.reads, node.buffer, self.relax(node.indices))
        self.visit(node.indices)

    def visit_BufferStore(self, node: Any) -> None:
        self.update(self.writes, node.buffer, self.relax(node.indices))
        self.visit(node.value)
        self.visit(node.indices)

    def visit_BlockRealize(self, node: Any) -> None:
        """An inner block counts with its own regions, its axes replaced by their values."""
        mapping = {
            axis.var: value
            for axis, value in zip(node.block.iter_vars, node.iter_values, strict=True)
        }
        self.visit(node.iter_values)
        for table, regions in ((self.reads, node.block.reads), (self.writes, node.block.writes)):
            for region in regions:
                self.update(table, region.buffer, self.relax_ranges(region.region, mapping))

    def relax_ranges(self, region: Any, mapping: dict[Var, Any]) -> list[IntervalSet]:
        """The sets of the ranges of a region as the inner loops run."""
        replaced = {**self.values, **mapping}
        relaxed = []
        for rng in region:
            start, extent = substitute(rng.min, replaced), substitute(rng.extent, replaced)
            if isinstance(extent, IntImm) and extent.value == 1:
                relaxed.append(self.relax_one(start))
            else:
                part = as_int_set(Range.from_min_extent(start, extent), self.analyzer)
                relaxed.append(eval_set(part, self.domains, self.analyzer))
        return relaxed

    def visit_Call(self, node: Any) -> None:
        if getattr(node.op, "name", "") != _ACCESS_PTR:
            self.visit(node.args)
            return
        buffer = self.buffers.get(node.args[1]) if isinstance(node.args[1], Var) else None
        mask = node.args[4]
        if buffer is None or not isinstance(mask, IntImm):
            self.visit(node.args)
            return
        if mask.value & _READ:
            self.update(self.reads, buffer, _whole(buffer))
        if mask.value & _WRITE:
            self.update(self.writes, buffer, _whole(buffer))
        for position in (0, 2, 3):
            self.visit(node.args[position])

    def visit_Var(self, node: Any) -> None:
        """A buffer's data used by itself: it may be read and written anywhere."""
        buffer = self.buffers.get(node)
        if buffer is not None:
            self.update(self.opaque, buffer, _whole(buffer))

    def collect(self, table: Regions, excluded: Regions | None = None) -> Array:
        """The table as buffer regions."""
        found = []
        for buffer, region in table.items():
            if excluded is not None and buffer in excluded:
                continue
            ranges = []
            for part, extent in zip(region, buffer.shape, strict=True):
                zero = IntImm(extent.dtype, 0)
                ranges.append(part.cover_range(Range.from_min_extent(zero, extent), self.analyzer))
            found.append(BufferRegion(buffer, Array(ranges)))
        return Array(found)


def _whole(buffer: Buffer) -> list[IntervalSet]:
    zero_based = [Range.from_min_extent(IntImm(n.dtype, 0), n) for n in buffer.shape]
    return [as_int_set(rng) for rng in zero_based]


def _detect(block: Block, buffer_var_map: Mapping[Var, Buffer]) -> _AccessDetector:
    detector = _AccessDetector(buffer_var_map)
    detector.detect(block)
    return detector


@deep_recursion
def get_block_access_region(block: Block, buffer_var_to_buffer: Mapping[Var, Buffer]) -> Array:
    """[reads, writes, opaque accesses] of the block's body, as arrays of BufferRegion.

    ``buffer_var_to_buffer`` maps the data variable of every buffer defined outside of the block to
    the buffer. What a block with an ``init`` writes does not count as read.
    """
    found = _detect(block, buffer_var_to_buffer)
    excluded = found.writes if block.init is not None else None
    return Array(
        [found.collect(found.reads, excluded), found.collect(found.writes),
         found.collect(found.opaque)]
    )  # fmt: skip


@deep_recursion
def get_block_read_write_region(block: Block, buffer_var_to_buffer: Mapping[Var, Buffer]) -> Array:
    """[reads, writes] of the block's body; opaque accesses count as both."""
    found = _detect(block, buffer_var_to_buffer)
    for buffer, region in found.opaque.items():
        found.update(found.reads, buffer, region)
        found.update(found.writes, buffer, region)
    excluded = found.writes if block.init is not None else None
    if excluded is not None:
        excluded = {b: r for b, r in excluded.items() if b not in found.opaque}
    return Array([found.collect(found.reads, excluded), found.collect(found.writes)])
