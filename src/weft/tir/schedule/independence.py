"""Whether iterations may run in another order or at the same time.

The kinds of blocks (``flags``) say who reads and writes which buffer. They do not say that two
instances of a block write different elements, nor that what one block writes in an iteration is
not what another one reads in a later one. That is decided here, from the declared regions.
An axis is *pinned* if instances that differ in it access different elements of every buffer that
the block writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.interval import IntervalSet
from weft.arith.iter_map import IterMapLevel, detect_iter_map
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import mentions, substitute
from weft.ir.node import fact
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.constant import is_const_int
from weft.tir.expr import Add, IterVar, Mul, Sub, Var
from weft.tir.schedule import region_cover, tree
from weft.tir.schedule.dependence import hazards_below
from weft.tir.schedule.tree import SRefTree, StmtSRef
from weft.tir.stmt import Block, BlockRealize, For


def pinned_axes(block: Block) -> frozenset[Var]:
    """The pinned axes of a block, derived once."""
    return fact(block, "schedule.pinned", _pinned_axes)


def _pinned_axes(block: Block) -> frozenset[Var]:
    units = {axis.var for axis in block.iter_vars if _is_unit(axis.dom)}
    pinned = {axis.var for axis in block.iter_vars}
    for data in {region.buffer.data for region in block.writes}:
        regions = [r for r in (*block.writes, *block.reads) if r.buffer.data is data]
        pinned &= units | _pinned_by(block, regions)
    return frozenset(pinned)


def _is_unit(dom: Range | None) -> bool:
    return isinstance(dom, Range) and is_const_int(dom.extent, 1)


def _pinned_by(block: Block, regions: Sequence[BufferRegion]) -> set[Var]:
    """The axes that one dimension common to all regions determines, or all such together."""
    first = regions[0]
    same = [
        all(
            other.buffer.same_as(first.buffer)
            and expr_deep_equal(mine.min, other.region[place].min)
            and expr_deep_equal(mine.extent, other.region[place].extent)
            for other in regions[1:]
        )
        for place, mine in enumerate(first.region)
    ]
    ranges = [item for item, equal in zip(first.region, same, strict=True) if equal]
    spatial = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.DataPar}
    pinned = {var for item in ranges if (var := _digit(item)) is not None}
    if not spatial.issubset(pinned | {a.var for a in block.iter_vars if _is_unit(a.dom)}):
        pinned |= _told_together(block, ranges)
    return pinned


def _digit(item: Range) -> Var | None:
    """``v`` of a range that determines it: ``v + c``, ``c - v``, ``v * n : v * n + m``, m <= n."""
    index: PrimExpr = item.min
    factor = 1
    if isinstance(index, (Add, Sub)):
        left, right = index.a, index.b
        if isinstance(left, IntImm):
            index = right
        elif isinstance(right, IntImm):
            index = left
    if isinstance(index, Mul) and isinstance(index.b, IntImm):
        factor = abs(index.b.value)
        index = index.a
    fits = isinstance(item.extent, IntImm) and item.extent.value <= factor
    return index if isinstance(index, Var) and fits else None


def _told_together(block: Block, ranges: Iterable[Range]) -> set[Var]:
    """All spatial axes, if the indices together are a one-to-one map of them."""
    domains = {a.var: a.dom for a in block.iter_vars if a.iter_type == IterVar.DataPar and a.dom}
    points = [item.min for item in ranges if _is_unit(item)]
    if not points or not domains:
        return set()
    iter_map = detect_iter_map(
        points, domains, True, IterMapLevel.Bijective, simplify_trivial_iterators=False
    )
    return set(domains) if iter_map.indices else set()


# ---- several blocks below a loop


class Carried(NamedTuple):
    """A buffer through which iterations of a loop may depend on each other."""

    region: BufferRegion
    writer: Block
    other: Block


class _Access(NamedTuple):
    block: Block
    region: BufferRegion
    writes: bool


def carried_between_blocks(state: SRefTree, loop: StmtSRef) -> Carried | None:
    """A buffer that one block below the loop writes and another may access in another iteration."""
    hazards = hazards_below(tree.loop_of(loop))
    if len(hazards.blocks) < 2:
        return None
    by_data: dict[Var, list[_Access]] = {}
    for block in hazards.blocks:
        for regions, writes in ((block.reads, False), (block.writes, True)):
            for region in regions:
                by_data.setdefault(region.buffer.data, []).append(_Access(block, region, writes))
    for data, accesses in by_data.items():
        writer = next((item for item in accesses if item.writes), None)
        if writer is None or all(item.block is writer.block for item in accesses):
            continue
        if _is_remade(state, loop, data, accesses) or _is_apart(state, loop, accesses):
            continue
        other = next(item for item in accesses if item.block is not writer.block)
        return Carried(writer.region, writer.block, other.block)
    return None


def _is_remade(state: SRefTree, loop: StmtSRef, data: Var, accesses: Sequence[_Access]) -> bool:
    """Whether each iteration writes all that it reads, and nothing else uses the memory."""
    scope = tree.scope_of(loop)
    assert scope is not None
    assert isinstance(scope.stmt, Block)
    if all(buffer.data is not data for buffer in scope.stmt.alloc_buffers):
        return False
    inside = {id(item.block) for item in accesses}
    members = [realize.block for realize in tree.child_realizes(scope.stmt)]
    for block in members:
        touched = any(region.buffer.data is data for region in (*block.reads, *block.writes))
        if touched and id(block) not in inside:
            return False
    if not accesses[0].writes:
        return False
    for item in accesses:
        sref = state.sref_of(item.block)
        if item.writes and _adds_over(tree.realize_of(state, sref), tree.loop_of(loop).loop_var):
            return False
        if not item.writes and not region_cover.is_region_cover(state, sref, scope):
            return False
    return True


def _adds_over(realize: BlockRealize, variable: Var) -> bool:
    """Whether an axis that accumulates runs with the variable."""
    return any(
        axis.accumulates and mentions(value, variable)
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
    )


def _is_apart(state: SRefTree, loop: StmtSRef, accesses: Sequence[_Access]) -> bool:
    """Whether no element is accessed in two iterations."""
    analyzer = tree.analyzer_above(loop)
    parts = [
        region_cover.relaxed_region(state, state.sref_of(item.block), item.region, loop, analyzer)
        for item in accesses
    ]
    if any(not item.region.buffer.same_as(accesses[0].region.buffer) for item in accesses):
        return False
    assert isinstance(loop.stmt, For)
    variable = loop.stmt.loop_var
    same = []
    for dimension in range(len(parts[0])):
        sets = [part[dimension] for part in parts]
        if not all(item.is_bounded for item in sets):
            continue
        if _follow(sets, variable, analyzer):
            return True
        tile = _tile(sets, analyzer)
        if tile is not None:
            same.append(tile)
    iter_map = detect_iter_map(
        same,
        {variable: loop.stmt.domain},
        True,
        IterMapLevel.Bijective,
        simplify_trivial_iterators=False,
    )
    return bool(same) and bool(iter_map.indices)


def _follow(sets: Sequence[IntervalSet], variable: Var, analyzer: Analyzer) -> bool:
    """Whether all intervals of an iteration lie before (or after) all intervals of the next."""
    after = {variable: variable + 1}
    lows = [substitute(item.min_value, after) for item in sets]
    highs = [substitute(item.max_value, after) for item in sets]
    return all(
        analyzer.can_prove(op.less(item.max_value, low)) for item in sets for low in lows
    ) or all(analyzer.can_prove(op.less(high, item.min_value)) for item in sets for high in highs)


def _tile(sets: Sequence[IntervalSet], analyzer: Analyzer) -> PrimExpr | None:
    """A number that differs wherever the intervals of two iterations lie in different tiles.

    ``[i // 4 * 8, i // 4 * 8 + 7]`` -> ``i // 4``; of one point it is the point.
    """
    first = sets[0].min_value
    if _one_point(sets, analyzer):
        return first
    step = analyzer.modular_set(first)
    if step.coeff < 2:
        return None
    for item in sets:
        inside = op.less(op.subtract(item.max_value, first), step.coeff)
        if not (
            analyzer.can_prove(op.less_equal(first, item.min_value)) and analyzer.can_prove(inside)
        ):
            return None
    return analyzer.simplify(op.floordiv(op.subtract(first, step.base), step.coeff))


def _one_point(sets: Sequence[IntervalSet], analyzer: Analyzer) -> bool:
    point = sets[0].min_value
    return all(
        expr_deep_equal(point, end) or analyzer.can_prove_equal(point, end)
        for item in sets
        for end in (item.min_value, item.max_value)
    )
