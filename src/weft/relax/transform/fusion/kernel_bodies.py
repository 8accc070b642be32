"""Prepares the body of a PrimFunc to become part of another: root block, regions, block names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.linear_difference import constant_difference
from weft.tir.stmt import Block, BlockRealize, Stmt


def root_block(body: Stmt) -> Block | None:
    """The root block of a PrimFunc's body; None if it has more than a body and buffers."""
    if not isinstance(body, BlockRealize) or body.block.iter_vars:
        return None
    block = body.block
    return None if block.match_buffers or block.init is not None else block


def with_regions(body: Stmt, buffers: list[Buffer]) -> Stmt:
    """Add the regions that a former root block reads and writes, which other blocks have."""
    if not isinstance(body, BlockRealize) or body.block.reads or body.block.writes:
        return body
    known = {item.data: item for item in buffers if isinstance(item, Buffer)}
    known.update({match.buffer.data: match.buffer for match in body.block.match_buffers})
    reads, writes, opaque = get_block_access_region(body.block, known)
    block = body.block.with_(reads=[*reads, *opaque], writes=[*writes, *opaque])
    return body.with_(block=block)


def with_joined_regions(body: Stmt) -> Stmt:
    """The statement with at most one read and one write region per buffer in each block.

    There may be two if two parameters of a callee have become the same buffer.
    """

    def joined(block: Block) -> Block:
        return block.with_(reads=joined_regions(block.reads), writes=joined_regions(block.writes))

    return _each_block(body, joined)


def joined_regions(regions: Sequence[BufferRegion]) -> Sequence[BufferRegion]:
    """The regions, with those of the same buffer replaced by their smallest common region."""
    joined: dict[Buffer, BufferRegion] = {}
    for region in regions:
        known = joined.get(region.buffer)
        if known is None:
            joined[region.buffer] = region
            continue
        ranges = map(hull, known.region, region.region, region.buffer.shape)
        joined[region.buffer] = BufferRegion(region.buffer, Array(ranges))
    return regions if len(joined) == len(regions) else Array(joined.values())


def hull(lhs: Range, rhs: Range, extent: PrimExpr) -> Range:
    """The smallest range that contains both; the whole axis if their distance is not constant."""
    start = constant_difference(rhs.min, lhs.min)
    end = constant_difference(rhs.min + rhs.extent, lhs.min + lhs.extent)
    if start is None or end is None:
        return Range(IntImm(extent.dtype, 0), extent)
    first = rhs.min if start < 0 else lhs.min
    longer = lhs.extent if end <= 0 else rhs.extent
    before = -start if end <= 0 and start < 0 else start if end > 0 and start > 0 else 0
    return Range.from_min_extent(first, longer + before if before else longer)


def unique_block_names(body: Stmt) -> Stmt:
    """The statement with unique names of blocks: T_add, T_add_1 ..."""
    counts: dict[str, int] = {}

    def renamed(block: Block) -> Block:
        count = counts[block.name_hint] = counts.get(block.name_hint, -1) + 1
        return block.with_(name_hint=f"{block.name_hint}_{count}") if count else block

    return _each_block(body, renamed)


class _Blocks(Mutator):
    """Changes blocks from the inside out, and enters nothing that has none."""

    def __init__(self, change: Callable[[Block], Block]) -> None:
        super().__init__()
        self.change = change

    def visit_Block(self, block: Block) -> Block:
        return self.change(self.visit_default(block))


@deep_recursion
def _each_block(body: Stmt, change: Callable[[Block], Block]) -> Stmt:
    return _Blocks(change).visit(body)
