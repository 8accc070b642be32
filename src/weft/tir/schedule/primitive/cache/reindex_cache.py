"""reindex_cache_read, reindex_cache_write: a cache whose layout is a map of its user's axes.

While ``cache_read`` copies a region in a loop nest of its own, the copy here has those loops and
axes of the block using it that occur in the access. The block must access the buffer by one set
of indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.index_map import IndexMap
from weft.tir.schedule import checks, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.dependence import hazards_below
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache import cache_checks as legal
from weft.tir.schedule.primitive.cache.cache_stage import (
    Place,
    cached_buffer,
    check_storage_scope,
    edit_scope,
    place_after_all,
    place_between,
    point_copy_block,
    region_text,
    relaxed_ranges,
)
from weft.tir.schedule.primitive.cache.reindex import (
    AccessPatternError,
    NotInjectiveError,
    Repoint,
    check_loads_settled,
    equal_indices,
    inside_conditions,
    is_injective,
    single_access,
    with_index_reads,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import domains_of
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, For, ForKind, Stmt


class AxisMismatchError(ScheduleFailure):
    """The index map uses other axes than the access of the buffer does."""


class AxisStartError(ScheduleFailure):
    """An axis does not start at 0, so that the map would use indices outside of the copy."""


class PredicateError(ScheduleFailure):
    """A condition of the block uses both loops that the copy has and loops that it has not."""


def _with_map(self: Session, arguments: dict[str, Any]) -> None:
    index_map = arguments["index_map"]
    if callable(index_map) and not isinstance(index_map, IndexMap):
        block = self.get(arguments["block"])
        arguments["index_map"] = IndexMap.from_func(
            index_map, len(block.iter_vars), index_dtype=_index_type(block)
        )


def _index_type(block: Block) -> str:
    for axis in block.iter_vars:
        return str(axis.var.dtype)
    return "int64"


@primitive("ReindexCacheRead", "block index_map", canonical=_with_map)
def reindex_cache_read(
    self: Session, block: BlockRV | str, read_buffer_index: int, storage_scope: str, index_map: Any
) -> BlockRV:
    """Copy what a block reads of a buffer, in a layout of the caller's.

    Args:
        block: the block, or its name. Each instance of it must read one element.
        read_buffer_index: the buffer's place among what the block reads.
        storage_scope: where the copy lies, such as "shared" or "local".
        index_map: from the block's axes (all of them) to the indices of the copy: a function, or an
            IndexMap.

    Returns:
        The block that copies.

    Raises:
        AccessPatternError: an instance of the block reads more than one element.
        NotInjectiveError: two elements would come to the same place of the copy.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> copy = sch.reindex_cache_read("B", 0, "global", lambda i, j: (j // 8, i, j % 8))
    >>> sch.get(copy).writes[0].buffer.shape
    [4, 8, 8]
    """
    state, sref = self.state, self._sref(block)
    check_storage_scope(state, storage_scope)
    buffer, region = checks.nth_access(state, sref, read_buffer_index, write=False)
    scope = checks.scope_root(state, sref, stage_pipeline=True)
    stmt = tree.block_of(sref)
    writer = legal.only_writer(state, buffer, scope)
    legal.check_declared(state, buffer, scope, loads=False)
    legal.check_not_aliased(state, buffer, scope)
    if writer is stmt:
        raise AccessPatternError(state, f"{name_of(sref)} also writes {buffer.name}", sref)
    place = _before_reader(state, scope, writer, stmt, buffer)
    plan = _plan(state, sref, buffer, region, index_map, place)
    cache = cached_buffer(buffer, storage_scope, plan.shape)
    stage, copy = _mapped_stage(buffer, cache, plan, storage_scope, reads=True)
    redirect = Repoint(buffer, cache, plan.indices)
    edit_scope(state, scope, redirect, [stmt], [(place, stage)], [cache])
    return self._block_rv(copy)


def _before_reader(
    state: ScheduleState, scope: StmtSRef, writer: Block | None, reader: Block, buffer: Buffer
) -> Place:
    if writer is None:
        return Place(scope, 0)
    order = [id(item) for item in hazards_below(tree.block_of(scope)).blocks]
    if order.index(id(reader)) < order.index(id(writer)):
        legal.check_not_carried(state, buffer, writer, [reader])
        return Place(scope, 0)
    legal.check_covered(state, buffer, scope, [reader])
    return place_between(state, scope, writer, [reader])


@primitive("ReindexCacheWrite", "block index_map", canonical=_with_map)
def reindex_cache_write(
    self: Session, block: BlockRV | str, write_buffer_index: int, storage_scope: str, index_map: Any
) -> BlockRV:
    """Let a block write into a buffer in a layout of the caller's, and copy that back afterwards.

    Args:
        block: the block, or its name. Each instance of it must write one element.
        write_buffer_index: the buffer's place among what the block writes.
        storage_scope: where the new buffer lies, such as "shared" or "local".
        index_map: from the block's axes (all of them) to the indices of the new buffer: a function,
            or an IndexMap.

    Returns:
        The block that copies.

    Raises:
        AccessPatternError: an instance of the block writes more than one element.
        NotInjectiveError: two elements would come to the same place of the new buffer.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> copy = sch.reindex_cache_write("B", 0, "global", lambda i, j: (j // 8, i, j % 8))
    >>> sch.get(copy).reads[0].buffer.shape
    [4, 8, 8]
    """
    state, sref = self.state, self._sref(block)
    check_storage_scope(state, storage_scope)
    buffer, region = checks.nth_access(state, sref, write_buffer_index, write=True)
    scope = checks.scope_root(state, sref, stage_pipeline=True)
    stmt = tree.block_of(sref)
    legal.only_writer(state, buffer, scope)
    legal.check_declared(state, buffer, scope, loads=True)
    legal.check_not_aliased(state, buffer, scope)
    place = _after_writer(state, scope, stmt, buffer)
    plan = _plan(state, sref, buffer, region, index_map, place)
    for axis in plan.axes:
        if axis.iter_type == IterVar.CommReduce:
            raise AccessPatternError(
                state, f"reduction axis {axis.var.name} indexes {buffer.name}", sref
            )
    if not legal.is_allocated_in(buffer, scope):
        legal.check_previous_unused(state, sref, buffer)
        copied = relaxed_ranges(state, sref, region, place.sref)
        legal.check_surely_written(state, sref, region, place.sref, copied)
    cache = cached_buffer(buffer, storage_scope, plan.shape)
    stage, copy = _mapped_stage(buffer, cache, plan, storage_scope, reads=False)
    redirect = Repoint(buffer, cache, plan.indices)
    edit_scope(state, scope, redirect, [stmt], [(place, stage)], [cache])
    return self._block_rv(copy)


def _after_writer(state: ScheduleState, scope: StmtSRef, writer: Block, buffer: Buffer) -> Place:
    early, late = legal.readers_around(buffer, scope, writer)
    legal.check_not_carried(state, buffer, writer, early)
    return place_between(state, scope, writer, late) if late else place_after_all(scope)


class _Plan(NamedTuple):
    """A copy laid out by a map: its axes, their values, the loops, both indices, the shape."""

    axes: list[IterVar]
    values: list[PrimExpr]
    loops: list[For]
    predicate: PrimExpr
    original: list[PrimExpr]
    indices: list[PrimExpr]
    shape: list[PrimExpr]


def _plan(
    state: ScheduleState,
    sref: StmtSRef,
    buffer: Buffer,
    region: BufferRegion,
    index_map: IndexMap,
    place: Place,
) -> _Plan:
    block = tree.block_of(sref)
    if any(not op.is_const_int(rng.extent, 1) for rng in region.region):
        raise AccessPatternError(
            state, f"{name_of(sref)} accesses {region_text(region)}, more than one element", sref
        )
    original = single_access(state, sref, buffer)
    check_loads_settled(state, sref, original)
    if not equal_indices(original, [rng.min for rng in region.region]):
        raise AccessPatternError(
            state,
            f"{name_of(sref)} declares {region_text(region)}, it accesses "
            f"[{', '.join([str(index) for index in original])}]",
            sref,
        )
    axes = list(block.iter_vars)
    _check_starts(state, sref, axes)
    analyzer = Analyzer()
    indices = list(index_map.map_indices([axis.var for axis in axes], analyzer=analyzer))
    extents = [axis.dom.extent for axis in axes if axis.dom is not None]
    shape = list(index_map.map_shape(extents, analyzer=analyzer))
    used = _common_axes(state, sref, original, indices)
    _check_distinct(state, sref, used, original, indices)
    realize = tree.realize_of(state, sref)
    values = [value for axis, value in zip(axes, realize.iter_values, strict=True) if axis in used]
    inside = [loop.stmt for loop in tree.loops_above(sref, stop=place.sref)]
    needed = set(collect(values, Var))
    loops = [loop for loop in inside if isinstance(loop, For) and loop.loop_var in needed]
    dropped = {s.loop_var for s in inside if isinstance(s, For) and s.loop_var not in needed}
    predicate = _kept_conditions(state, sref, realize.predicate, needed, dropped)
    for loop in loops:
        if not dropped.isdisjoint(collect([loop.min, loop.extent], Var)):
            raise PredicateError(
                state, f"the bounds of loop {loop.loop_var.name} use a loop the copy has not", sref
            )
    return _Plan(used, values, loops, predicate, original, indices, shape)


def _check_starts(state: ScheduleState, sref: StmtSRef, axes: Sequence[IterVar]) -> None:
    for axis in axes:
        if axis.dom is not None and not op.is_const_int(axis.dom.min, 0):
            raise AxisStartError(
                state,
                f"axis {axis.var.name} of {name_of(sref)} starts at {axis.dom.min}, not at "
                "0: the map would go past the copy",
                sref,
            )


def _common_axes(
    state: ScheduleState, sref: StmtSRef, original: Sequence[PrimExpr], indices: Sequence[PrimExpr]
) -> list[IterVar]:
    """The axes that the access and the map use: they must be the same."""
    block = tree.block_of(sref)
    old, new = set(collect(list(original), Var)), set(collect(list(indices), Var))
    for axis in block.iter_vars:
        if (axis.var in old) != (axis.var in new):
            places = (original, indices) if axis.var in old else (indices, original)
            shown = [", ".join([str(index) for index in place]) for place in places]
            raise AxisMismatchError(
                state,
                f"axis {axis.var.name} of {name_of(sref)} is used in [{shown[0]}], not in "
                f"[{shown[1]}]",
                sref,
                "use the axes that index the buffer, and no others",
            )
    return [axis for axis in block.iter_vars if axis.var in old]


def _check_distinct(
    state: ScheduleState,
    sref: StmtSRef,
    axes: Sequence[IterVar],
    original: Sequence[PrimExpr],
    indices: Sequence[PrimExpr],
) -> None:
    """Different elements of the buffer get different places in the copy."""
    if is_injective(indices, domains_of(axes)):
        return
    for index in original:
        if not any(expr_deep_equal(index, other) for other in indices):
            shown = ", ".join([str(item) for item in indices])
            raise NotInjectiveError(
                state, f"the index map may put two elements at one place: [{shown}]", sref
            )


def _kept_conditions(
    state: ScheduleState, sref: StmtSRef, predicate: PrimExpr, kept: set[Var], dropped: set[Var]
) -> PrimExpr:
    """The part of the block's predicate that uses the loops of the copy."""
    left = []
    for condition in conjuncts(predicate):
        used = set(collect(condition, Var))
        if dropped.isdisjoint(used):
            left.append(condition)
        elif not kept.isdisjoint(used):
            raise PredicateError(
                state,
                f"the predicate {condition} of {name_of(sref)} ties loops of the copy to others",
                sref,
            )
    return conjunction(left)


def _mapped_stage(
    buffer: Buffer, cache: Buffer, plan: _Plan, storage_scope: str, *, reads: bool
) -> tuple[Stmt, Block]:
    """The loops and axes of the block that the copy needs, around the copy."""
    mapping: dict[Var, PrimExpr] = {}
    for loop in plan.loops:
        mapping[loop.loop_var] = Var(loop.loop_var.name, loop.loop_var.dtype)
    axes = []
    for axis in plan.axes:
        var = Var(axis.var.name, axis.var.dtype)
        mapping[axis.var] = var
        axes.append(IterVar(axis.dom, var, IterVar.DataPar))
    far, near = substitute([plan.original, plan.indices], mapping)
    source, target = (buffer, cache) if reads else (cache, buffer)
    first, second = (far, near) if reads else (near, far)
    name = f"{buffer.name}_{storage_scope}"
    block = with_index_reads(point_copy_block(source, target, first, second, axes, name), far)
    values, predicate = substitute(plan.values, mapping), substitute(plan.predicate, mapping)
    inside = inside_conditions(buffer, plan.original, domains_of(plan.axes))
    bound = dict(zip([axis.var for axis in plan.axes], values, strict=True))
    predicate = op.all(predicate, *substitute(inside, bound))
    stage: Stmt = BlockRealize(values, predicate, block)
    for loop in reversed(plan.loops):
        low, extent = substitute([loop.min, loop.extent], mapping)
        stage = For(mapping[loop.loop_var], low, extent, ForKind.SERIAL, stage)
    return stage, block
