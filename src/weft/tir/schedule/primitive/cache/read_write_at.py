"""read_at, write_at: one block in a loop that copies all that the loop reads or writes of a buffer.

The copy is not a loop nest of blocks but one block with the loops inside, annotated ``auto_copy``.
A later pass decides how it copies: coalesced, vectorized, by which threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.int_set import IntervalSet, eval_set, union
from weft.arith.interval import as_int_set
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import checks, region_cover, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.dependence import DepKind, hazards_below, writers_of
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache import cache_checks as legal
from weft.tir.schedule.primitive.cache.cache_access import accesses
from weft.tir.schedule.primitive.cache.cache_stage import (
    Place,
    Redirect,
    body_items,
    cached_buffer,
    check_storage_scope,
    copied_ranges,
    edit_scope,
    members_of,
    region_text,
)
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, IfThenElse, Stmt

AUTO_COPY = "auto_copy"


class NotInLoopError(ScheduleFailure):
    """The block does not stand in the loop."""


class AccessOrderError(ScheduleFailure):
    """The loop reads and writes the buffer alternately, so that one copy is not enough."""


class _Users(NamedTuple):
    """The blocks below a loop that use a buffer, each with its place in the loop's body."""

    readers: list[tuple[int, Block]]
    writers: list[tuple[int, Block]]


@primitive("ReadAt", "loop block")
def read_at(
    self: Session, loop: LoopRV, block: BlockRV | str, read_buffer_index: int, storage_scope: str
) -> BlockRV:
    """Copy, in each iteration of a loop, the part of a buffer that the iteration reads.

    Args:
        loop: the loop around the block.
        block: the block that reads, or its name.
        read_buffer_index: the buffer's place among what the block reads.
        storage_scope: where the copy lies, such as "shared" or "local".

    Returns:
        The block that copies, at the beginning of the loop's body.

    Raises:
        NotInLoopError: the block is not inside the loop.
        AccessOrderError: the loop reads and writes the buffer alternately.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> copy = sch.read_at(sch.get_loops("C")[0], "C", 0, "shared")
    >>> sch.get(copy).reads[0].region
    [I.Range.from_min_extent(v0, 1), I.Range(0, 32)]
    """
    state, sref, at = self.state, self._sref(block), self._sref(loop)
    check_storage_scope(state, storage_scope)
    buffer, _ = checks.nth_access(state, sref, read_buffer_index, write=False)
    scope, users = _checked(state, at, sref, buffer)
    first = min([position for position, _ in users.readers])
    late = [item for position, item in users.writers if position >= first]
    if late:
        raise AccessOrderError(
            state,
            f"{late[0].name_hint} writes {buffer.name} in {name_of(at)} after it is read",
            (at, state.sref_of(late[0])),
        )
    legal.check_declared(state, buffer, scope, loads=False)
    readers = [item for _, item in users.readers]
    domain = _domain(state, at, buffer, readers, storage_scope, write=False)
    cache = cached_buffer(buffer, storage_scope)
    return self._block_rv(
        _put(state, scope, Place(at, first), buffer, cache, domain, readers, write=False)
    )


@primitive("WriteAt", "loop block")
def write_at(
    self: Session, loop: LoopRV, block: BlockRV | str, write_buffer_index: int, storage_scope: str
) -> BlockRV:
    """In each iteration of a loop, let a block write elsewhere, and copy that back at the end.

    Args:
        loop: the loop around the block.
        block: the block that writes, or its name.
        write_buffer_index: the buffer's place among what the block writes.
        storage_scope: where the new buffer lies, such as "shared" or "local".

    Returns:
        The block that copies, at the end of the loop's body.

    Raises:
        NotInLoopError: the block is not inside the loop.
        AccessOrderError: the loop reads and writes the buffer alternately.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> copy = sch.write_at(sch.get_loops("B")[0], "B", 0, "local")
    >>> sch.get(copy).writes[0].region
    [I.Range.from_min_extent(v0, 1), I.Range(0, 32)]
    """
    state, sref, at = self.state, self._sref(block), self._sref(loop)
    check_storage_scope(state, storage_scope)
    buffer, _ = checks.nth_access(state, sref, write_buffer_index, write=True)
    scope, users = _checked(state, at, sref, buffer)
    last = max([position for position, _ in users.writers])
    late = [item for position, item in users.readers if position > last]
    if late:
        raise AccessOrderError(
            state,
            f"{late[0].name_hint} reads {buffer.name} in {name_of(at)} after it is written",
            (at, state.sref_of(late[0])),
        )
    legal.check_declared(state, buffer, scope, loads=True)
    writers = [item for _, item in users.writers]
    domain = _domain(state, at, buffer, writers, storage_scope, write=True)
    _check_content(state, at, scope, buffer, users)
    _check_copied_back(state, at, scope, buffer, writers, domain, storage_scope)
    cache = cached_buffer(buffer, storage_scope)
    blocks = list({id(item): item for _, item in (*users.writers, *users.readers)}.values())
    return self._block_rv(
        _put(state, scope, Place(at, last + 1), buffer, cache, domain, blocks, write=True)
    )


# ---- what is checked


def _checked(
    state: ScheduleState, at: StmtSRef, sref: StmtSRef, buffer: Buffer
) -> tuple[StmtSRef, _Users]:
    """The scope of the loop and the users of the buffer in it."""
    scope = checks.scope_root(state, at, stage_pipeline=True)
    if at not in tree.loops_above(sref):
        raise NotInLoopError(state, f"{name_of(sref)} does not stand in {name_of(at)}", (at, sref))
    legal.check_not_aliased(state, buffer, scope)
    assert isinstance(at.stmt, For)
    users = _Users([], [])
    blocks = {id(realize.block): realize.block for realize in tree.child_realizes(at.stmt)}
    for position, item in enumerate(body_items(at.stmt)):
        inside = members_of(item)
        for key, block in blocks.items():
            if key in inside:
                if _uses(block.reads, buffer):
                    users.readers.append((position, block))
                if _uses(block.writes, buffer):
                    users.writers.append((position, block))
    same = not buffer.strides and op.is_const_int(buffer.elem_offset, 0)
    for _, block in (*users.readers, *users.writers):
        legal.check_redirectable(state, block, buffer, same_layout=same)
    return scope, users


def _uses(regions: Sequence[BufferRegion], buffer: Buffer) -> bool:
    return any(region.buffer.data is buffer.data for region in regions)


def _check_content(
    state: ScheduleState, at: StmtSRef, scope: StmtSRef, buffer: Buffer, users: _Users
) -> None:
    """What the loop reads of the buffer, which will be the copy's, was written in the loop."""
    assert isinstance(scope.stmt, Block)
    hazards = hazards_below(scope.stmt)
    inside = {id(block) for _, block in users.writers}
    others = [item for item in writers_of(buffer, scope.stmt) if id(item) not in inside]
    local = legal.is_allocated_in(buffer, scope)
    for _, block in (*users.readers, *users.writers):
        sref = state.sref_of(block)
        loads = bool(accesses(block, buffer).loads) or _uses(block.reads, buffer)
        if not loads or (local and not others):
            continue
        if others:
            raise AccessOrderError(
                state,
                f"{block.name_hint} reads {buffer.name}, which {others[0].name_hint} writes "
                f"outside of {name_of(at)}",
                (at, sref, state.sref_of(others[0])),
            )
        edges = hazards.of_target.get(id(block), [])
        is_produced = any(
            edge.kind is DepKind.RAW and id(edge.src) in inside and _uses(edge.src.writes, buffer)
            for edge in edges
        )
        if not is_produced or not region_cover.is_region_cover(state, sref, scope):
            legal.check_previous_unused(state, sref, buffer)


def _check_copied_back(
    state: ScheduleState,
    at: StmtSRef,
    scope: StmtSRef,
    buffer: Buffer,
    writers: Sequence[Block],
    domain: Sequence[Range],
    storage_scope: str,
) -> None:
    """All that is copied back was written in the loop, if something else may be in the buffer."""
    everyone = {id(item) for item in writers_of(buffer, tree.block_of(scope))}
    if legal.is_allocated_in(buffer, scope) and everyone == {id(item) for item in writers}:
        return
    for block in writers:
        sref = state.sref_of(block)
        loops = _relaxed_loops(sref, at, storage_scope)
        for region in block.writes:
            if region.buffer is buffer:
                exact = legal.surely_written(state, sref, region, loops)
                if exact is not None and legal.covers(exact, domain):
                    return
    shown = region_text(BufferRegion(buffer, domain))
    raise legal.PartialWriteError(
        state,
        f"in {name_of(at)} parts of {shown} may not be written, and the copy would overwrite them",
        at,
    )


# ---- the region


def _relaxed_loops(sref: StmtSRef, at: StmtSRef, storage_scope: str) -> dict[Var, Range]:
    """The loops below ``at``, and those over threads that share the memory."""
    loops = tree.domains(tree.loops_above(sref, stop=at))
    item: StmtSRef | None = at
    while item is not None:
        stmt = item.stmt
        if isinstance(stmt, For) and stmt.thread_binding is not None:
            if _is_shared_by(storage_scope, stmt.thread_binding.thread_tag):
                loops[stmt.loop_var] = stmt.domain
        item = item.parent
    return loops


def _is_shared_by(storage_scope: str, thread_tag: str) -> bool:
    kind = storage_scope.split(".")[0]
    if kind == "warp":
        return thread_tag == "threadIdx.x"
    return kind == "shared" and not thread_tag.startswith("blockIdx")


def _domain(
    state: ScheduleState,
    at: StmtSRef,
    buffer: Buffer,
    blocks: Sequence[Block],
    storage_scope: str,
    *,
    write: bool,
) -> list[Range]:
    """All that the blocks use of the buffer in one iteration of the loop."""
    analyzer = Analyzer()
    parts: list[list[IntervalSet]] = []
    hidden: set[Var] = set()
    for block in blocks:
        sref = state.sref_of(block)
        loops = _relaxed_loops(sref, at, storage_scope)
        hidden |= loops.keys()
        bindings = tree.bindings_of(tree.realize_of(state, sref))
        for region in block.writes if write else block.reads:
            if region.buffer is buffer:
                ranges = substitute(region.region, bindings)
                parts.append([eval_set(as_int_set(r, analyzer), loops, analyzer) for r in ranges])
    domain: list[Range] = []
    for extent, *sets in zip(buffer.shape, *parts, strict=True):
        covered = (sets[0] if len(sets) == 1 else union(sets)).cover_range(Range(extent), analyzer)
        low, size = analyzer.simplify(covered.min), analyzer.simplify(covered.extent)
        free = collect([low, size], Var)
        known = not any(var in hidden for var in free)
        domain.append(Range.from_min_extent(low, size) if known else Range(extent))
    return copied_ranges(domain, buffer, at)


# ---- the copy


def _put(
    state: ScheduleState,
    scope: StmtSRef,
    place: Place,
    buffer: Buffer,
    cache: Buffer,
    domain: Sequence[Range],
    blocks: Sequence[Block],
    *,
    write: bool,
) -> Block:
    region = BufferRegion(buffer, domain)
    legal.check_scope_declares(state, scope, place.sref, region, write=write)
    source, target = (cache, buffer) if write else (buffer, cache)
    around = tree.domains([*tree.loops_above(place.sref), place.sref])
    analyzer = tree.analyzer_above(place.sref)
    stage = _copy_block(source, target, domain, around, analyzer, cache.name)
    redirect = Redirect(buffer, cache, None)
    edit_scope(state, scope, redirect, blocks, [(place, stage)], [cache])
    return stage.block


def _copy_block(
    source: Buffer,
    target: Buffer,
    domain: Sequence[Range],
    around: Mapping[Var, Range],
    analyzer: Analyzer,
    name: str,
) -> BlockRealize:
    """A block with an axis for each loop that the region depends on, and loops over the region."""
    used: dict[Var, Var] = {}
    for rng in domain:
        for var in collect([rng.min, rng.extent], Var):
            if var in around and var not in used:
                used[var] = Var(f"v{len(used)}", var.dtype)
    axes = [IterVar(around[var], axis, IterVar.DataPar) for var, axis in used.items()]
    loops = [Var(f"ax{i}", rng.extent.dtype) for i, rng in enumerate(domain)]
    outside = _outside(source, domain, loops, analyzer)
    region: list[Range] = substitute(list(domain), used)
    indices = [op.add(rng.min, loop) for rng, loop in zip(region, loops, strict=True)]
    body: Stmt = BufferStore(target, BufferLoad(source, indices), indices)
    if outside:
        body = IfThenElse(substitute(op.all(*outside), used), body)
    for loop, rng in zip(reversed(loops), reversed(region), strict=True):
        body = For(loop, IntImm(loop.dtype, 0), rng.extent, ForKind.SERIAL, body)
    block = Block(
        axes,
        [BufferRegion(source, region)],
        [BufferRegion(target, region)],
        name,
        body,
        annotations={AUTO_COPY: IntImm("int32", 1)},
    )
    return BlockRealize(list(used), op.const(True, "bool"), block)


def _outside(
    buffer: Buffer, domain: Sequence[Range], loops: Sequence[Var], analyzer: Analyzer
) -> list[PrimExpr]:
    """The conditions that keep the copy inside the buffer, where it may leave it."""
    conditions = []
    for rng, extent, loop in zip(domain, buffer.shape, loops, strict=True):
        if rng.extent is extent and op.is_const_int(rng.min, 0):
            continue
        if not analyzer.can_prove(op.greater_equal(rng.min, 0)):
            conditions.append(op.less_equal(0, op.add(rng.min, loop)))
        if not analyzer.can_prove(op.less_equal(op.add(rng.min, rng.extent), extent)):
            conditions.append(op.less(op.add(rng.min, loop), extent))
    return conditions
