"""The kinds of blocks: the conditions under which schedule primitives may change a program.

- *affine binding*: the values of its axes are a surjective quasi-affine map of the loops around it;
- *region cover*: what it reads of buffers of its scope has been written by the producers before
  (weft.tir.schedule.region_cover);
- *stage pipeline* (of a scope): every member covers its reads, the only hazards are read after
  write and write after write, and there is nothing but loops and blocks in it;
- *complete*: data-parallel axes, the only writer of its outputs, does not read what it writes;
- *reduction*: an init, affine bindings, data-parallel and reduction axes, the only writer of its
  outputs, in whose indices no reduction axis occurs;
- *scan*: an init, affine bindings, data-parallel and ordered axes, the only writer of its outputs;
  no ordered axis occurs in the indices of what the init stores (the running values), and all of
  them occur in those of the other outputs;
- *decomposed*: one of the two blocks that decompose_reduction leaves. An update has affine bindings
  and no init; none of the axes along which it accumulates occurs in the indices of an output. An
  init is complete, except that the update writes its outputs, too.

The definitions are those of TensorIR (Feng et al., ASPLOS 2023, section 3.3) as TVM 0.20 applies
them; scans are an addition of weft. A block under a condition, a ``while`` or a let is neither
complete nor a reduction nor a scan here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.arith.iter_map import IterMapLevel, IterMapResult, detect_iter_map
from weft.ir.expr import IntImm, Range
from weft.ir.functor import collect
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.schedule import region_cover, tree
from weft.tir.schedule.dependence import DepKind, hazards_below
from weft.tir.schedule.independence import pinned_axes
from weft.tir.schedule.tree import SRefTree, StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For


class CachedFlags(NamedTuple):
    """The three flags of a block."""

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


class Violation(NamedTuple):
    """The first condition that a block breaks: its number, and how the block breaks it."""

    number: int
    reason: str
    blocks: tuple[Block, ...] = ()
    """The blocks at fault, where it is not the one asked about."""


# ---- affine binding


def is_affine_binding(state: SRefTree, sref: StmtSRef) -> bool:
    """Whether the axes of a block are a surjective quasi-affine map of its loops."""
    realize = tree.realize_of(state, sref)
    loops = [loop.stmt for loop in tree.loops_above(sref) if isinstance(loop.stmt, For)]
    if not loops:
        return sref.parent is not None or not realize.block.iter_vars
    return affine_binding_of(realize, loops)


def affine_binding_of(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """``is_affine_binding`` of a realization below ``loops``; kept with the realization."""
    return _affine(realize, loops)[0]


def is_one_to_one(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether each instance surely runs once: affine bindings, constant extents, no predicate."""
    affine, instances = _affine(realize, loops)
    iterations = 1
    for loop in loops:
        if not isinstance(loop.extent, IntImm):
            return False
        iterations *= loop.extent.value
    return affine and instances == iterations and op.is_const_int(realize.predicate, 1)


def _affine(realize: BlockRealize, loops: Sequence[For]) -> tuple[bool, int | None]:
    """Whether the bindings are affine, and how many instances there are (None: not known)."""
    # A set, since the order of the loops does not matter: a map of them stays one in any order.
    key = frozenset([(id(loop.loop_var), id(loop.min), id(loop.extent)) for loop in loops])
    known = (realize._cache or {}).get("schedule.affine")
    if known is not None and known[0] == key:
        return bool(known[1]), known[2]
    ranges = {loop.loop_var: loop.domain for loop in loops}
    iter_map = detect_iter_map(
        realize.iter_values,
        ranges,
        realize.predicate,
        IterMapLevel.Surjective,
        simplify_trivial_iterators=False,
    )
    return remember_map(realize, ranges, iter_map)


def remember_map(
    realize: BlockRealize, ranges: Mapping[Var, Range], iter_map: IterMapResult
) -> tuple[bool, int | None]:
    """Note with a realization below loops of these ranges what ``_affine`` would find.

    ``iter_map`` is the map of its bindings, which the caller has at hand.
    """
    affine = bool(iter_map.indices) or not realize.iter_values
    instances: int | None = 1
    for total in iter_map.indices:
        if total.args:
            extent = total.args[0].extent
            affine = affine and op.is_const_int(total.args[0].scale, 1)
            if instances is not None:
                instances = instances * extent.value if isinstance(extent, IntImm) else None
    key = frozenset([(id(var), id(dom.min), id(dom.extent)) for var, dom in ranges.items()])
    if realize._cache is None:
        realize._cache = {}
    # The ranges are kept too: an id is meaningful only while its object lives.
    realize._cache["schedule.affine"] = (key, affine, instances, dict(ranges))
    return affine, instances


# ---- complete and reduction blocks


def complete_violation(
    block: Block, realize_scope: For | Block, *, only_writer: bool = True
) -> Violation | None:
    """Why ``block`` is no complete block below ``realize_scope``; None if it is one.

    Without ``only_writer`` other blocks may write its outputs.
    """
    for axis in block.iter_vars:
        if axis.iter_type != IterVar.DataPar:
            return Violation(1, f"axis {axis.var.name} is not data-parallel")
    written = _dominance_violation(block, realize_scope) if only_writer else None
    if written is not None:
        return Violation(2, written)
    outputs = {region.buffer.data for region in block.writes}
    for region in block.reads:
        if region.buffer.data in outputs:
            return Violation(3, f"it reads and writes {region.buffer.name}")
    if _is_guarded(block, realize_scope):
        return Violation(4, "it stands under a condition, a while or a let")
    return None


def _update_violation(
    state: SRefTree, sref: StmtSRef, realize_scope: For | Block, kind: IterType, kind_text: str
) -> Violation | None:
    """Why the block does not update what it alone writes, over spatial axes and those of a kind."""
    block = tree.block_of(sref)
    if block.init is None:
        return Violation(1, "it has no init")
    if not is_affine_binding(state, sref):
        return Violation(2, "its bindings are not affine in the loops")
    for axis in block.iter_vars:
        if axis.iter_type not in (IterVar.DataPar, kind):
            return Violation(3, f"axis {axis.var.name} is neither spatial nor {kind_text}")
    written = _dominance_violation(block, realize_scope)
    return None if written is None else Violation(4, written)


def reduction_violation(
    state: SRefTree, sref: StmtSRef, realize_scope: For | Block
) -> Violation | None:
    """Why the block is no reduction block below ``realize_scope``; None if it is one."""
    violation = _update_violation(state, sref, realize_scope, IterVar.CommReduce, "a reduction")
    if violation is not None:
        return violation
    block = tree.block_of(sref)
    reduced = reduction_axis_in_output(block)
    if reduced is not None:
        return Violation(5, f"reduction axis {reduced.name} indexes an output")
    if _is_guarded(block, realize_scope):
        return Violation(6, "it stands under a condition, a while or a let")
    return None


def scan_violation(state: SRefTree, sref: StmtSRef, realize_scope: For | Block) -> Violation | None:
    """Why the block is no scan below ``realize_scope``; None if it is one.

    A scan stores the running values as it goes, so it has to run in order along its ordered axes;
    along the others it need not.
    """
    violation = _update_violation(state, sref, realize_scope, IterVar.Ordered, "ordered")
    if violation is not None:
        return violation
    block = tree.block_of(sref)
    ordered = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.Ordered}
    running = running_values(block)
    for store in collect(block.body, BufferStore):
        if store.buffer in running and ordered & set(collect(store.indices, Var)):
            return Violation(5, f"an ordered axis indexes the running value {store.buffer.name}")
    for load in collect(block.body, BufferLoad):
        if load.buffer.data in {region.buffer.data for region in block.writes} and (
            load.buffer not in running
        ):
            return Violation(6, f"it reads and writes {load.buffer.name}")
    for axis in block.iter_vars:
        if axis.iter_type == IterVar.DataPar and axis.var not in pinned_axes(block):
            return Violation(7, f"instances that differ in {axis.var.name} share what they write")
    if _is_guarded(block, realize_scope):
        return Violation(8, "it stands under a condition, a while or a let")
    return None


def decomposed_violation(
    state: SRefTree, sref: StmtSRef, realize_scope: For | Block
) -> Violation | None:
    """Why the block is no part of a decomposed reduction below ``realize_scope``.

    Other blocks below the scope may write its outputs: the other half of the reduction does.
    """
    block = tree.block_of(sref)
    if not is_update(block):
        return complete_violation(block, realize_scope, only_writer=False)
    if not is_affine_binding(state, sref):
        return Violation(2, "its bindings are not affine in the loops")
    for axis in block.iter_vars:
        if axis.iter_type != IterVar.DataPar and not axis.accumulates:
            return Violation(3, f"axis {axis.var.name} is neither spatial nor a reduction")
    reduced = reduction_axis_in_output(block)
    if reduced is not None:
        return Violation(5, f"reduction axis {reduced.name} indexes an output")
    if _is_guarded(block, realize_scope):
        return Violation(6, "it stands under a condition, a while or a let")
    return None


def is_update(block: Block) -> bool:
    """Whether the block adds to what its outputs hold, along an axis and without an init."""
    return block.init is None and any(axis.accumulates for axis in block.iter_vars)


def running_values(block: Block) -> set[Buffer]:
    """The buffers that the init of a block stores."""
    return {store.buffer for store in collect(block.init, BufferStore)}


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


# ---- stage pipeline


def pipeline_violation(state: SRefTree, scope: StmtSRef) -> Violation | None:
    """Why a scope is no stage pipeline; None if it is one. Kept with the block."""
    block = tree.block_of(scope)
    cache = block._cache
    if cache is None:
        cache = block._cache = {}
    if "schedule.pipeline" not in cache:
        cache["schedule.pipeline"] = _pipeline_violation(state, scope, block)
    violation: Violation | None = cache["schedule.pipeline"]
    return violation


def _pipeline_violation(state: SRefTree, scope: StmtSRef, block: Block) -> Violation | None:
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
        if not region_cover.is_region_cover(state, state.sref_of(member), scope):
            reason = f"{member.name_hint} reads more than was written before it"
            return Violation(1, reason, (member,))
    return None


def cached_flags(state: SRefTree, sref: StmtSRef) -> CachedFlags:
    """The three flags of a block, as TVM's state keeps them."""
    scope = tree.scope_of(sref)
    return CachedFlags(
        is_affine_binding(state, sref),
        True if scope is None else region_cover.is_region_cover(state, sref, scope),
        pipeline_violation(state, sref) is None,
    )
