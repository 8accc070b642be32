"""What kind of block a block is: the conditions that make the moves of schedules legal.

- *affine binding*: the values of its axes are a surjective quasi-affine map of the loops around it;
- *region cover*: what it reads of buffers of its scope has been written by the producers before;
- *stage pipeline* (of a scope): every member covers its reads, the only hazards are read after
  write and write after write, and there is nothing but loops and blocks in it;
- *complete*: data-parallel axes, the only writer of its outputs, does not read what it writes;
- *reduction*: an init, affine bindings, data-parallel and reduction axes, the only writer of its
  outputs, which no reduction axis indexes.

The definitions are those of TensorIR (Feng et al., ASPLOS 2023, section 3.3) as TVM 0.20 applies
them; a block under a condition, a ``while`` or a let is neither complete nor reduction here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.int_set import intersect
from weft.arith.interval import IntervalSet
from weft.arith.iter_map import IterMapLevel, IterMapResult, detect_iter_map
from weft.arith.iter_map.constraint import conjuncts
from weft.arith.region import estimate_region_lower_bound, estimate_region_upper_bound
from weft.ir.expr import IntImm, Range
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import tree
from weft.tir.schedule.dependence import DepKind, hazards_below
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    IfThenElse,
    Stmt,
    While,
)

if TYPE_CHECKING:
    from weft.tir.schedule.state import ScheduleState, StmtSRef


class CachedFlags(NamedTuple):
    """The three flags of a block."""

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class Violation(NamedTuple):
    """The first condition that a block breaks: its number, and the case at hand."""

    number: int
    reason: str
    blocks: tuple[Block, ...] = ()
    """The blocks at fault, where it is not the one asked about."""


# ---- around a reference


def loops_above(sref: StmtSRef, stop: StmtSRef | None = None) -> list[StmtSRef]:
    """The loops around a reference, outermost first, up to the block around it or ``stop``."""
    found = []
    item = sref.parent
    while item is not None and isinstance(item.stmt, For) and item is not stop:
        found.append(item)
        item = item.parent
    return found[::-1]


def scope_of(sref: StmtSRef) -> StmtSRef | None:
    """The block around a reference; None of a root block."""
    item = sref.parent
    while item is not None and not isinstance(item.stmt, Block):
        item = item.parent
    return item


def realize_of(state: ScheduleState, sref: StmtSRef) -> BlockRealize:
    """The realization of a block."""
    if sref.parent is None:
        body = state.function_of(sref)[1].body
        assert isinstance(body, BlockRealize)
        return body
    assert isinstance(sref.parent.stmt, For | Block)
    for child in tree.child_references(sref.parent.stmt):
        if isinstance(child, BlockRealize) and child.block is sref.stmt:
            return child
    raise AssertionError("a block is not where its reference says")


def domains(loops: Iterable[StmtSRef]) -> dict[Var, Range]:
    """The range of each loop's variable."""
    stmts = [loop.stmt for loop in loops]
    return {stmt.loop_var: tree.loop_domain(stmt) for stmt in stmts if isinstance(stmt, For)}


def lowest_common_ancestor(srefs: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block around all of the references (one of them, if it is around)."""
    paths: list[list[StmtSRef]] = []
    for sref in srefs:
        path: list[StmtSRef] = []
        item: StmtSRef | None = sref
        while item is not None:
            path.append(item)
            item = item.parent
        paths.append(path[::-1])
    common = paths[0][0]
    for level in zip(*paths, strict=False):
        if any(item is not level[0] for item in level):
            break
        common = level[0]
    return common


# ---- affine binding


def is_affine_binding(state: ScheduleState, sref: StmtSRef) -> bool:
    """Whether the axes of a block are a surjective quasi-affine map of its loops."""
    realize = realize_of(state, sref)
    loops = loops_above(sref)
    if not loops:
        return sref.parent is not None or not realize.block.iter_vars
    return affine_binding_of(realize, [loop.stmt for loop in loops])  # type: ignore[misc]


def affine_binding_of(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """``is_affine_binding`` of a realization below ``loops``; kept with the realization."""
    return _affine(realize, loops)[0]


def is_one_to_one(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether affine bindings, constant extents and no predicate show each instance to run once."""
    affine, instances = _affine(realize, loops)
    iterations = 1
    for loop in loops:
        if not isinstance(loop.extent, IntImm):
            return False
        iterations *= loop.extent.value
    return affine and instances == iterations and _is_one(realize.predicate)


def _affine(realize: BlockRealize, loops: Sequence[For]) -> tuple[bool, int | None]:
    """Whether the bindings are affine, and how many instances there are (None: not known)."""
    # In no order: what is a map of the loops stays one when they are reordered.
    key = frozenset([(id(loop.loop_var), id(loop.min), id(loop.extent)) for loop in loops])
    known = (realize._cache or {}).get("schedule.affine")
    if known is not None and known[0] == key:
        return bool(known[1]), known[2]
    ranges = {loop.loop_var: tree.loop_domain(loop) for loop in loops}
    found = detect_iter_map(
        realize.iter_values, ranges, realize.predicate, IterMapLevel.Surjective,
        simplify_trivial_iterators=False,
    )  # fmt: skip
    return remember_map(realize, ranges, found)


def remember_map(
    realize: BlockRealize, ranges: Mapping[Var, Range], found: IterMapResult
) -> tuple[bool, int | None]:
    """Keep with a realization below loops of these ranges what the map of its bindings says."""
    affine = bool(found.indices) or not realize.iter_values
    instances: int | None = 1
    for total in found.indices:
        if total.args:
            extent = total.args[0].extent
            affine = affine and _is_one(total.args[0].scale)
            constant = instances is not None and isinstance(extent, IntImm)
            instances = instances * extent.value if constant else None
    key = frozenset([(id(var), id(dom.min), id(dom.extent)) for var, dom in ranges.items()])
    if realize._cache is None:
        realize._cache = {}
    # The ranges are kept too: an id is meaningful only while its object lives.
    realize._cache["schedule.affine"] = (key, affine, instances, dict(ranges))
    return affine, instances


def _is_one(expr: Any) -> bool:
    return isinstance(expr, IntImm) and expr.value == 1


# ---- complete and reduction blocks


def complete_violation(block: Block, realize_scope: For | Block) -> Violation | None:
    """Why ``block`` is no complete block below ``realize_scope``; None if it is one."""
    for axis in block.iter_vars:
        if axis.iter_type != IterVar.DataPar:
            return Violation(1, f"axis {axis.var.name} is not data-parallel")
    written = _dominance_violation(block, realize_scope)
    if written is not None:
        return Violation(2, written)
    outputs = {region.buffer.data for region in block.writes}
    for region in block.reads:
        if region.buffer.data in outputs:
            return Violation(3, f"it reads and writes {region.buffer.name}")
    if _is_guarded(block, realize_scope):
        return Violation(4, "it stands under a condition, a while or a let")
    return None


def reduction_violation(
    state: ScheduleState, sref: StmtSRef, realize_scope: For | Block
) -> Violation | None:
    """Why the block is no reduction block below ``realize_scope``; None if it is one."""
    block = sref.stmt
    assert isinstance(block, Block)
    if block.init is None:
        return Violation(1, "it has no init")
    if not is_affine_binding(state, sref):
        return Violation(2, "its bindings are not affine in the loops")
    for axis in block.iter_vars:
        if axis.iter_type not in (IterVar.DataPar, IterVar.CommReduce):
            return Violation(3, f"axis {axis.var.name} is neither spatial nor a reduction")
    written = _dominance_violation(block, realize_scope)
    if written is not None:
        return Violation(4, written)
    reduced = reduction_axis_in_output(block)
    if reduced is not None:
        return Violation(5, f"reduction axis {reduced.name} indexes an output")
    if _is_guarded(block, realize_scope):
        return Violation(6, "it stands under a condition, a while or a let")
    return None


def _dominance_violation(block: Block, scope: For | Block) -> str | None:
    """What breaks "the only writer of its outputs below ``scope``"."""
    writers = hazards_below(scope).writers
    for region in block.writes:
        others = [b for b in writers.get(region.buffer.data, []) if b is not block]
        if others:
            return f"{region.buffer.name} is written by {others[0].name_hint} too"
    return None


def _is_guarded(block: Block, scope: For | Block) -> bool:
    """Whether something else than loops and sequences stands between the scope and the block."""
    if tree.is_only_loops_and_blocks(scope):
        return False
    return not _is_plain_path(scope, block)


def _is_plain_path(stmt: For | Block, block: Block) -> bool:
    for inner in tree.substatements(stmt):
        for item in getattr(inner, "seq", (inner,)):
            if isinstance(item, BlockRealize) and item.block is block:
                return True
            if isinstance(item, For) and any(r.block is block for r in tree.child_realizes(item)):
                return _is_plain_path(item, block)
    return False


def reduction_axis_in_output(block: Block) -> Var | None:
    """A reduction axis that the indices of a write use; None if there is none."""
    reduced = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.CommReduce}
    outputs = {region.buffer.data for region in block.writes}
    for store in collect(block.body, BufferStore):
        if store.buffer.data in outputs:
            for var in collect(store.indices, Var):
                if var in reduced:
                    return var
    return None


def is_conditional(sref: StmtSRef, top: StmtSRef) -> bool:
    """Whether an ``if`` or ``while`` stands between a loop or block and ``top`` around it."""
    item = sref
    while item is not top and item.parent is not None:
        above = item.parent.stmt
        assert isinstance(above, For | Block)
        if not tree.is_only_loops_and_blocks(above) and not _always_reached(above.body, item.stmt):
            return True
        item = item.parent
    return False


def _always_reached(stmt: Stmt, target: Stmt | None) -> bool:
    node = stmt.block if isinstance(stmt, BlockRealize) else stmt
    if node is target:
        return True
    if isinstance(stmt, For | BlockRealize | IfThenElse | While):
        return False
    for inner in tree.substatements(stmt):
        if _always_reached(inner, target):
            return True
    return False


# ---- region cover and stage pipeline


def is_region_cover(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> bool:
    """Whether the producers of a block in its scope cover what it reads.

    Kept with the block's realization, as long as it and its producers have the same loops.
    """
    block = sref.stmt
    assert isinstance(block, Block)
    assert isinstance(scope.stmt, Block)
    edges = hazards_below(scope.stmt).of_target.get(id(block), [])
    producers = [state.sref_of(edge.src) for edge in edges if edge.kind is DepKind.RAW]
    if not producers:
        return True
    parts = [part for item in (sref, *producers) for part in _surroundings(state, item)]
    key = tuple([id(part) for part in parts])
    cache = realize_of(state, sref)._cache
    if cache is None:
        cache = realize_of(state, sref)._cache = {}
    known = cache.get("schedule.cover")
    if known is None or known[0] != key:
        # The parts are kept too: an id is meaningful only while its object lives.
        covered = _is_region_cover(state, sref, producers)
        known = cache["schedule.cover"] = (key, covered, parts)
    return bool(known[1])


def _surroundings(state: ScheduleState, sref: StmtSRef) -> list[Any]:
    """What the regions of a block depend on: its realization, and the loops and blocks around."""
    parts: list[Any] = [realize_of(state, sref)]
    item = sref.parent
    while item is not None:
        stmt = item.stmt
        if isinstance(stmt, For):
            parts += (stmt.loop_var, stmt.min, stmt.extent, stmt.thread_binding)
        elif isinstance(stmt, Block):
            parts.append(stmt.iter_vars)
        if isinstance(stmt, For | Block) and not tree.is_only_loops_and_blocks(stmt):
            parts.append(stmt)  # what stands between matters too
        item = item.parent
    return parts


def _is_region_cover(state: ScheduleState, sref: StmtSRef, producers: list[StmtSRef]) -> bool:
    block = sref.stmt
    assert isinstance(block, Block)
    reads: dict[Var, list[tuple[Block, StmtSRef]]] = {}
    for producer in producers:
        assert isinstance(producer.stmt, Block)
        meeting = lowest_common_ancestor([producer, sref])
        for region in producer.stmt.writes:
            reads.setdefault(region.buffer.data, []).append((producer.stmt, meeting))
    return all(
        _covered(state, region, sref, reads[region.buffer.data])
        for region in block.reads
        if region.buffer.data in reads
    )


def _covered(
    state: ScheduleState,
    region: BufferRegion,
    sref: StmtSRef,
    producers: list[tuple[Block, StmtSRef]],
) -> bool:
    """Whether, at every meeting place, what was produced below it covers what is consumed there."""
    meetings = {id(meeting): meeting for _, meeting in producers}
    for meeting in meetings.values():
        analyzer = analyzer_above(meeting)
        shared = domains(sharing_threads(region.buffer.scope(), meeting))
        consumed = relaxed_region(state, sref, region, meeting, analyzer, shared)

        def read(consumed: Sequence[IntervalSet] = consumed) -> Any:
            inside = _exists(region.buffer, consumed)
            return op.logical_and(realize_of(state, sref).predicate, inside)

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


def _runs_with(
    state: ScheduleState,
    producer: Block,
    read: Callable[[], Any],
    meeting: StmtSRef,
    analyzer: Analyzer,
    shared: Mapping[Var, Range],
) -> bool:
    """Whether a producer runs where ``read`` holds: where something that exists is read.

    Asked is the part of its predicate that no loop below the meeting place decides: the rest is
    seen in the region that it writes.
    """
    source = state.sref_of(producer)
    if is_conditional(source, meeting):
        return False
    predicate = realize_of(state, source).predicate
    if isinstance(predicate, IntImm):
        return bool(predicate.value)
    below = {**_below(source, meeting), **shared}
    outer = [
        part for part in conjuncts(predicate) if not any(var in below for var in collect(part, Var))
    ]
    if not outer:
        return True
    with analyzer.constraint_scope(read()):
        for part in outer:
            if not analyzer.can_prove(part):
                return False
    return True


def _exists(buffer: Buffer, region: Sequence[IntervalSet]) -> Any:
    """The condition that a part of the region is inside of the buffer."""
    condition: Any = op.const(True, "bool")
    for extent, part in zip(buffer.shape, region, strict=True):
        if part.is_bounded and not part.is_nothing():
            reaches = op.logical_and(
                op.greater_equal(part.max_value, 0), op.less(part.min_value, extent)
            )
            condition = op.logical_and(condition, reaches)
    return condition


def analyzer_above(sref: StmtSRef) -> Analyzer:
    """An analyzer that knows the loops around and at ``sref``, and the axes of blocks around it."""
    analyzer = Analyzer()
    item: StmtSRef | None = sref
    chain = []
    while item is not None:
        chain.append(item.stmt)
        item = item.parent
    for stmt in reversed(chain):
        if isinstance(stmt, For):
            analyzer.bind(stmt.loop_var, tree.loop_domain(stmt))
        elif isinstance(stmt, Block):
            for axis in stmt.iter_vars:
                if axis.dom is not None:
                    analyzer.bind(axis.var, axis.dom)
    return analyzer


def _below(sref: StmtSRef, meeting: StmtSRef) -> dict[Var, Range]:
    """The domains of the loops above a block and strictly below the meeting place."""
    return domains(loops_above(sref, stop=meeting))


def sharing_threads(scope: str, place: StmtSRef) -> list[StmtSRef]:
    """The loops over threads, from ``place`` outwards, that see one memory of a storage scope.

    What is below such a loop runs, as far as that memory goes, as if it stood around it: threads
    wait for each other between the blocks that write shared memory and those that read it.
    """
    if not scope.startswith(("shared", "warp")):
        return []
    found = []
    item: StmtSRef | None = place
    while item is not None:
        binding = item.stmt.thread_binding if isinstance(item.stmt, For) else None
        if binding is not None:
            tag = binding.thread_tag
            if tag == "threadIdx.x" if scope.startswith("warp") else not tag.startswith("block"):
                found.append(item)
        item = item.parent
    return found


def relaxed_region(
    state: ScheduleState,
    sref: StmtSRef,
    region: BufferRegion,
    meeting: StmtSRef,
    analyzer: Analyzer,
    shared: Mapping[Var, Range] | None = None,
) -> Sequence[IntervalSet]:
    """The region of a block over all iterations below ``meeting``: an upper bound, per axis.

    ``shared`` are other loops to run through.
    """
    realize = realize_of(state, sref)
    ranges = substitute(region.region, tree.bindings_of(realize))
    loops = {**_below(sref, meeting), **(shared or {})}
    return estimate_region_upper_bound(ranges, loops, realize.predicate, analyzer)


def _written_below(
    state: ScheduleState,
    block: Block,
    data: Var,
    meeting: StmtSRef,
    analyzer: Analyzer,
    shared: Mapping[Var, Range],
) -> list[Sequence[IntervalSet]]:
    """What a producer surely writes of a buffer below ``meeting``: a lower bound, per region."""
    sref = state.sref_of(block)
    realize = realize_of(state, sref)
    bindings = tree.bindings_of(realize)
    loops = {**_below(sref, meeting), **shared}
    found: list[Sequence[IntervalSet]] = []
    for region in block.writes:
        if region.buffer.data is data:
            ranges = substitute(region.region, bindings)
            part = estimate_region_lower_bound(ranges, loops, realize.predicate, analyzer)
            if part is not None:
                found.append(part)
    return found


def _covers(
    region: BufferRegion,
    produced: Sequence[IntervalSet],
    consumed: Sequence[IntervalSet],
    analyzer: Analyzer,
) -> bool:
    for extent, made, used in zip(region.buffer.shape, produced, consumed, strict=True):
        if used.is_nothing():
            continue
        if made.is_nothing():
            return False
        dtype = made.min_value.dtype  # indices of one buffer may be of several types
        if used.min_value.dtype is not dtype and used.is_bounded:
            used = IntervalSet(op.cast(dtype, used.min_value), op.cast(dtype, used.max_value))
        whole = IntervalSet(IntImm(dtype, 0), op.cast(dtype, extent) - 1)
        made, used = intersect([made, whole], analyzer), intersect([used, whole], analyzer)
        low, high = made.min_value - used.min_value, used.max_value - made.max_value
        if not (analyzer.can_prove(low <= 0) and analyzer.can_prove(high <= 0)):
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
        low: Any = used.min_value
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


def pipeline_violation(state: ScheduleState, scope: StmtSRef) -> Violation | None:
    """Why a scope is no stage pipeline; None if it is one. Kept with the block."""
    block = scope.stmt
    assert isinstance(block, Block)
    cache = block._cache
    if cache is None:
        cache = block._cache = {}
    if "schedule.pipeline" not in cache:
        cache["schedule.pipeline"] = _pipeline_violation(state, scope, block)
    found: Violation | None = cache["schedule.pipeline"]
    return found


def _pipeline_violation(state: ScheduleState, scope: StmtSRef, block: Block) -> Violation | None:
    if not tree.child_realizes(block):
        return None
    if not tree.is_only_loops_and_blocks(block):
        return Violation(3, "there are statements in it that are neither loops nor blocks")
    hazards = hazards_below(block)
    for edges in hazards.of_target.values():
        for edge in edges:
            if edge.kind in (DepKind.WAR, DepKind.OPAQUE):
                names = edge.dst.name_hint, edge.src.name_hint
                reason = f"{names[0]} writes what {names[1]} read before it"
                return Violation(2, reason, (edge.src, edge.dst))
    for member in hazards.blocks:
        if not is_region_cover(state, state.sref_of(member), scope):
            reason = f"{member.name_hint} reads more than was written before it"
            return Violation(1, reason, (member,))
    return None


def cached_flags(state: ScheduleState, sref: StmtSRef) -> CachedFlags:
    """The three flags of a block, as TVM's state keeps them."""
    scope = scope_of(sref)
    return CachedFlags(
        is_affine_binding(state, sref),
        True if scope is None else is_region_cover(state, sref, scope),
        pipeline_violation(state, sref) is None,
    )
