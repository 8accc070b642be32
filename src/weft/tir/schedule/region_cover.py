"""Region cover: whether the producers of a block write, before it runs, all that it reads.

The *meeting place* of a producer and the block is their innermost common loop or block. What is
surely written below it (a lower bound) must contain what is read below it (an upper bound). Several
producers may cover a region together; a loop over threads that share the memory counts as if it
were inside of the meeting place. The definition is that of TensorIR (Feng et al., ASPLOS 2023,
section 3.3); covers by several producers and by threads are additions of weft.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts_without
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.int_set import intersect
from weft.arith.interval import IntervalSet
from weft.arith.polynomial import same_polynomial
from weft.arith.region import estimate_region_lower_bound, estimate_region_upper_bound
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import Var
from weft.tir.schedule import tree
from weft.tir.schedule.dependence import DepKind, hazards_below
from weft.tir.schedule.tree import SRefTree, StmtSRef
from weft.tir.stmt import Block, For


def is_region_cover(state: SRefTree, sref: StmtSRef, scope: StmtSRef) -> bool:
    """Whether the producers of a block in its scope cover what it reads.

    Kept with the block's realization, as long as it and its producers have the same loops.
    """
    block = tree.block_of(sref)
    edges = hazards_below(tree.block_of(scope)).of_target.get(id(block), [])
    producers = [state.sref_of(edge.src) for edge in edges if edge.kind is DepKind.RAW]
    if not producers:
        return True
    parts = [part for item in (sref, *producers) for part in _surroundings(state, item)]
    key = tuple([id(part) for part in parts])
    cache = tree.realize_of(state, sref)._cache
    if cache is None:
        cache = tree.realize_of(state, sref)._cache = {}
    known = cache.get("schedule.cover")
    if known is None or known[0] != key:
        # The parts are kept too: an id is meaningful only while its object lives.
        covered = _is_region_cover(state, sref, producers)
        known = cache["schedule.cover"] = (key, covered, parts)
    return bool(known[1])


def _surroundings(state: SRefTree, sref: StmtSRef) -> list[object]:
    """What the regions of a block depend on: its realization, and the loops and blocks around."""
    parts: list[object] = [tree.realize_of(state, sref)]
    item = sref.parent
    while item is not None:
        stmt = item.stmt
        if isinstance(stmt, For):
            parts += (stmt.loop_var, stmt.min, stmt.extent, stmt.thread_binding)
        elif isinstance(stmt, Block):
            parts.append(stmt.iter_vars)
        if isinstance(stmt, (For, Block)) and not tree.is_only_loops_and_blocks(stmt):
            parts.append(stmt)  # a condition or let between the two matters, too
        item = item.parent
    return parts


def _is_region_cover(state: SRefTree, sref: StmtSRef, producers: list[StmtSRef]) -> bool:
    block = tree.block_of(sref)
    reads: dict[Var, list[tuple[Block, StmtSRef]]] = {}
    for producer in producers:
        assert isinstance(producer.stmt, Block)
        meeting = tree.lowest_common_ancestor([producer, sref])
        for region in producer.stmt.writes:
            reads.setdefault(region.buffer.data, []).append((producer.stmt, meeting))
    return all(
        _covered(state, region, sref, reads[region.buffer.data])
        for region in block.reads
        if region.buffer.data in reads
    )


def _covered(
    state: SRefTree, region: BufferRegion, sref: StmtSRef, producers: list[tuple[Block, StmtSRef]]
) -> bool:
    """Whether, at every meeting place, what was produced below it covers what is consumed there."""
    meetings = {id(meeting): meeting for _, meeting in producers}
    for meeting in meetings.values():
        if any(
            where is meeting and _writes_all(state, block, region.buffer, meeting)
            for block, where in producers
        ):
            continue  # without arithmetic: most producers are like this
        analyzer = tree.analyzer_above(meeting)
        shared = tree.domains(sharing_threads(region.buffer.scope(), meeting))
        consumed = relaxed_region(state, sref, region, meeting, analyzer, shared)

        def read(consumed: Sequence[IntervalSet] = consumed) -> PrimExpr:
            inside = _exists(region.buffer, consumed)
            return op.logical_and(tree.realize_of(state, sref).predicate, inside)

        produced = [
            part
            for block, where in producers
            if where is meeting and _runs_with(state, block, read, meeting, analyzer, shared)
            for part in _written_below(state, block, region.buffer.data, meeting, analyzer, shared)
        ]
        if any(_covers(region, part, consumed, analyzer) for part in produced):
            continue
        if len(produced) < 2 or not _cover_together(region, produced, consumed, analyzer):
            return False
    return True


def _writes_all(state: SRefTree, producer: Block, buffer: Buffer, meeting: StmtSRef) -> bool:
    """Whether a producer plainly writes each element: a loop below ``meeting`` for each index."""
    source = state.sref_of(producer)
    realize = tree.realize_of(state, source)
    if not op.is_const_int(realize.predicate, 1) or tree.is_conditional(source, meeting):
        return False
    loops, bindings = _below(source, meeting), tree.bindings_of(realize)
    return any(
        region.buffer.same_as(buffer) and _is_all(region, loops, bindings)
        for region in producer.writes
    )


def _is_all(
    region: BufferRegion, loops: Mapping[Var, Range], bindings: Mapping[Var, PrimExpr]
) -> bool:
    """Whether the indices of a region are loop variables, each of which takes all of its axis."""
    variables = [
        bindings.get(dim.min, dim.min) if isinstance(dim.min, Var) else dim.min
        for dim in region.region
        if op.is_const_int(dim.extent, 1)
    ]
    return len(set(map(id, variables))) == len(region.region) and all(
        isinstance(variable, Var)
        and variable in loops
        and op.is_const_int(loops[variable].min, 0)
        and expr_deep_equal(loops[variable].extent, extent)
        for variable, extent in zip(variables, region.buffer.shape, strict=True)
    )


def _runs_with(
    state: SRefTree,
    producer: Block,
    read: Callable[[], PrimExpr],
    meeting: StmtSRef,
    analyzer: Analyzer,
    shared: Mapping[Var, Range],
) -> bool:
    """Whether a producer runs whenever ``read`` holds (an element inside of the buffer is read).

    This is about the part of its predicate that depends on no loop below the meeting place: the
    other part is accounted for in the region that it writes.
    """
    source = state.sref_of(producer)
    if tree.is_conditional(source, meeting):
        return False
    predicate = tree.realize_of(state, source).predicate
    if isinstance(predicate, IntImm):
        return bool(predicate.value)
    below = {**_below(source, meeting), **shared}
    outer = conjuncts_without(predicate, below)
    if not outer:
        return True
    with analyzer.constraint_scope(read()):
        for part in outer:
            if not analyzer.can_prove(part):
                return False
    return True


def _exists(buffer: Buffer, region: Sequence[IntervalSet]) -> PrimExpr:
    """The condition that a part of the region is inside of the buffer."""
    return conjunction(
        op.logical_and(op.greater_equal(part.max_value, 0), op.less(part.min_value, extent))
        for extent, part in zip(buffer.shape, region, strict=True)
        if part.is_bounded and not part.is_nothing()
    )


def _below(sref: StmtSRef, meeting: StmtSRef) -> dict[Var, Range]:
    """The domains of the loops above a block and strictly below the meeting place."""
    return tree.domains(tree.loops_above(sref, stop=meeting))


def sharing_threads(scope: str, place: StmtSRef) -> list[StmtSRef]:
    """The loops over threads, from ``place`` outwards, that see one memory of a storage scope.

    For that memory, a block below such a loop counts as if the loop were directly around it:
    threads wait for each other between the blocks that write shared memory and those that read it.
    """
    if not scope.startswith(("shared", "warp")):
        return []
    loops = []
    item: StmtSRef | None = place
    while item is not None:
        binding = item.stmt.thread_binding if isinstance(item.stmt, For) else None
        if binding is not None:
            tag = binding.thread_tag
            if tag == "threadIdx.x" if scope.startswith("warp") else not tag.startswith("block"):
                loops.append(item)
        item = item.parent
    return loops


def relaxed_region(
    state: SRefTree,
    sref: StmtSRef,
    region: BufferRegion,
    meeting: StmtSRef,
    analyzer: Analyzer,
    shared: Mapping[Var, Range] | None = None,
) -> Sequence[IntervalSet]:
    """The region of a block over all iterations below ``meeting``: an upper bound, per axis.

    ``shared`` are further loops, around ``meeting``, whose iterations count as well.
    """
    realize = tree.realize_of(state, sref)
    ranges = substitute(region.region, tree.bindings_of(realize))
    loops = {**_below(sref, meeting), **(shared or {})}
    return estimate_region_upper_bound(ranges, loops, realize.predicate, analyzer)


def _written_below(
    state: SRefTree,
    block: Block,
    data: Var,
    meeting: StmtSRef,
    analyzer: Analyzer,
    shared: Mapping[Var, Range],
) -> list[Sequence[IntervalSet]]:
    """What a producer surely writes of a buffer below ``meeting``: a lower bound, per region."""
    sref = state.sref_of(block)
    realize = tree.realize_of(state, sref)
    bindings = tree.bindings_of(realize)
    loops = {**_below(sref, meeting), **shared}
    written: list[Sequence[IntervalSet]] = []
    for region in block.writes:
        if region.buffer.data is data:
            ranges = substitute(region.region, bindings)
            part = estimate_region_lower_bound(ranges, loops, realize.predicate, analyzer)
            if part is not None:
                written.append(part)
    return written


def _covers(
    region: BufferRegion,
    produced: Sequence[IntervalSet],
    consumed: Sequence[IntervalSet],
    analyzer: Analyzer,
) -> bool:
    for extent, written, read in zip(region.buffer.shape, produced, consumed, strict=True):
        if read.is_nothing():
            continue
        if written.is_nothing():
            return False
        dtype = written.min_value.dtype  # indices of one buffer may be of several types
        if read.min_value.dtype is not dtype and read.is_bounded:
            read = IntervalSet(op.cast(dtype, read.min_value), op.cast(dtype, read.max_value))
        whole = IntervalSet(IntImm(dtype, 0), op.cast(dtype, extent) - 1)
        inside, needed = intersect([written, whole], analyzer), intersect([read, whole], analyzer)
        low, high = inside.min_value - needed.min_value, needed.max_value - inside.max_value
        if not analyzer.can_prove(low <= 0):
            return False
        if not analyzer.can_prove(high <= 0) and not same_polynomial(
            read.max_value, written.max_value
        ):
            return False
    return True


def _cover_together(
    region: BufferRegion,
    produced: Sequence[Sequence[IntervalSet]],
    consumed: Sequence[IntervalSet],
    analyzer: Analyzer,
) -> bool:
    """Whether parts that follow each other along one axis, and fill the others, cover a region."""
    for axis, used in enumerate(consumed):
        if not used.is_bounded or used.is_nothing():
            continue
        parts = []
        for part in produced:
            whole = [*part[:axis], used, *part[axis + 1 :]]
            if part[axis].is_bounded and _covers(region, whole, consumed, analyzer):
                parts.append(part[axis])
        low: PrimExpr = used.min_value
        while parts:
            following = next((p for p in parts if analyzer.can_prove(p.min_value <= low)), None)
            if following is None:
                break
            parts.remove(following)
            if analyzer.can_prove(following.max_value >= low):
                low = following.max_value + 1
            if analyzer.can_prove(low > used.max_value):
                return True
    return False
