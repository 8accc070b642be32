"""cache_read, cache_write, cache_inplace: a copy of a buffer between its writer and its readers.

The copy stands where TVM 0.20 puts it: at the start of the scope for what the scope only reads, at
its end for what nothing in it reads, else before the first reader, in the innermost loop around it
and the writer. There the copy has the buffer's shape; directly in the scope, the region's.
Reference: Feng et al., "TensorIR" (ASPLOS 2023), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import PrimExpr, Range
from weft.ir.functor import substitute
from weft.tir import op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.schedule import checks, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.dependence import hazards_below
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.buffer.buffer_argument import buffer_position
from weft.tir.schedule.primitive.cache import cache_checks as legal
from weft.tir.schedule.primitive.cache.cache_stage import (
    Copy,
    Place,
    Redirect,
    cached_buffer,
    check_storage_scope,
    copied_ranges,
    copy_stage,
    edit_scope,
    outer_conditions,
    place_after_all,
    place_before,
    place_between,
    region_of,
    relaxed_ranges,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, Stmt


class NotInplaceError(ScheduleFailure):
    """The block does not both read and write the buffer."""


def _canonical(kind: str) -> Any:
    key = f"{kind}_buffer_index"

    def change(self: Session, arguments: dict[str, Any]) -> None:
        place = buffer_position(self, arguments["block"], arguments[key], kind)
        arguments[key] = place[1]
        given = arguments.get("consumer_blocks")
        if given is not None:
            blocks = [self._block_named(item) for item in given]
            arguments["consumer_blocks"] = blocks or None

    return change


# ---- cache_read


@primitive("CacheRead", "block consumer_blocks", canonical=_canonical("read"))
def cache_read(
    self: Session,
    block: BlockRV | str,
    read_buffer_index: int | str | Buffer,
    storage_scope: str,
    consumer_blocks: list[BlockRV | str] | None = None,
) -> BlockRV:
    """Copy a buffer before a block reads it; the block then reads the copy.

    Args:
        block: the block that reads, or its name.
        read_buffer_index: the buffer's place among what the block reads, its name, or itself. At
            most one block of the scope may write it.
        storage_scope: where the copy lies, such as "shared" or "local".
        consumer_blocks: the blocks that shall read the copy. Left out, all of the scope do.

    Returns:
        The block that copies, ``<buffer>_<scope>``.

    Raises:
        BufferIndexError: the block reads no such buffer.
        WriterCountError: several blocks write the buffer.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> copy = sch.cache_read("C", 0, "local")
    >>> copy, sch.get(sch.get_block("C")).reads[0].buffer.name
    (BlockRV(B_local), 'B_local')
    """
    state, sref = self.state, self._sref(block)
    check_storage_scope(state, storage_scope)
    assert isinstance(read_buffer_index, int)
    buffer, _ = checks.nth_access(state, sref, read_buffer_index, write=False)
    scope = checks.scope_root(state, sref)
    writer = legal.only_writer(state, buffer, scope)
    given = [self._sref(item) for item in consumer_blocks or ()]
    consumers = _readers(state, buffer, scope, sref, writer, given)
    legal.check_declared(state, buffer, scope, loads=False)
    legal.check_not_aliased(state, buffer, scope)
    place, region = _source(state, buffer, scope, writer, consumers)
    copy = _make(state, scope, buffer, place, region, storage_scope, None, read=True)
    for item in consumers:
        legal.check_redirectable(state, item, buffer, same_layout=copy.same_layout)
    redirect = Redirect(buffer, copy.cache, copy.starts)
    edit_scope(state, scope, redirect, consumers, [(place, copy.stage)], [copy.cache])
    return self._block_rv(copy.block)


def _readers(
    state: ScheduleState,
    buffer: Buffer,
    scope: StmtSRef,
    sref: StmtSRef,
    writer: Block | None,
    given: Sequence[StmtSRef],
) -> list[Block]:
    """The blocks that will read the copy: those given, else all on this side of the writer."""
    readers = [item for item in legal.readers_of(buffer, scope) if item is not writer]
    if given:
        return _given_readers(state, buffer, scope, writer, given, readers)
    if writer is None:
        return readers
    order = {id(item): i for i, item in enumerate(hazards_below(tree.block_of(scope)).blocks)}
    early = order[id(sref.stmt)] < order[id(writer)]
    return [item for item in readers if (order[id(item)] < order[id(writer)]) == early]


def _given_readers(
    state: ScheduleState,
    buffer: Buffer,
    scope: StmtSRef,
    writer: Block | None,
    given: Sequence[StmtSRef],
    readers: Sequence[Block],
) -> list[Block]:
    """The blocks named as consumers; each must read the buffer, as a block of the scope."""
    known = {id(item) for item in readers}
    for item in given:
        if id(item.stmt) not in known:
            what = "writes" if item.stmt is writer else "does not read"
            where = "" if tree.scope_of(item) is scope else f" in {name_of(scope)}"
            raise legal.ConsumerError(
                state, f"{name_of(item)} {what} {buffer.name}{where}, it is no consumer", item
            )
    wanted = {id(item.stmt) for item in given}
    return [item for item in readers if id(item) in wanted]


def _source(
    state: ScheduleState,
    buffer: Buffer,
    scope: StmtSRef,
    writer: Block | None,
    consumers: Sequence[Block],
) -> tuple[Place, Sequence[Range]]:
    """Where a copy for the consumers stands and what it copies."""
    assert isinstance(scope.stmt, Block)
    order = [id(item) for item in hazards_below(scope.stmt).blocks]
    early = [
        item
        for item in consumers
        if writer is None or order.index(id(item)) < order.index(id(writer))
    ]
    if writer is None or (early and len(early) == len(consumers)):
        if writer is not None:
            legal.check_not_carried(state, buffer, writer, early)
        declared = region_of(scope.stmt.reads, buffer) or BufferRegion.full_region(buffer)
        return Place(scope, 0), copied_ranges(declared.region, buffer, scope)
    if early:
        raise legal.ConsumerError(
            state,
            f"{early[0].name_hint} reads {buffer.name} before {writer.name_hint} writes it, "
            f"{consumers[-1].name_hint} after it: one copy cannot serve both",
            tuple([state.sref_of(item) for item in (early[0], writer, consumers[-1])]),
            "name the consumers of one side",
        )
    legal.check_covered(state, buffer, scope, consumers)
    place = place_between(state, scope, writer, consumers) if consumers else place_after_all(scope)
    return place, relaxed_ranges(state, *_written(state, writer, buffer), place.sref)


def _written(state: ScheduleState, writer: Block, buffer: Buffer) -> tuple[StmtSRef, BufferRegion]:
    """The one region of the buffer that a block declares to write."""
    regions = [region for region in writer.writes if region.buffer.data is buffer.data]
    if len(regions) != 1 or regions[0].buffer is not buffer:
        raise legal.AliasedBufferError(
            state,
            f"{writer.name_hint} writes {len(regions)} regions or another view of {buffer.name}",
            state.sref_of(writer),
        )
    return state.sref_of(writer), regions[0]


class _Made:
    """A stage with its buffer."""

    def __init__(self, stage: Stmt, block: Block, cache: Buffer, copy: Copy, original: Buffer):
        self.stage, self.block, self.cache = stage, block, cache
        self.starts = [rng.min for rng in copy.region] if copy.compact else None
        self.same_layout = (
            not original.strides
            and op.is_const_int(original.elem_offset, 0)
            and (not copy.compact or _is_whole(copy.region, original))
        )


def _is_whole(region: Sequence[Range], buffer: Buffer) -> bool:
    for rng, extent in zip(region, buffer.shape, strict=True):
        same = rng.extent is extent or (op.is_const_int(extent, getattr(rng.extent, "value", -1)))
        if not same or not op.is_const_int(rng.min, 0):
            return False
    return True


def _make(
    state: ScheduleState,
    scope: StmtSRef,
    buffer: Buffer,
    place: Place,
    region: Sequence[Range],
    storage_scope: str,
    condition: PrimExpr | None,
    *,
    read: bool,
) -> _Made:
    """The cache of a region and the stage that fills it or copies it back."""
    copied = BufferRegion(buffer, region)
    legal.check_scope_declares(state, scope, place.sref, copied, write=not read)
    compact = isinstance(place.sref.stmt, Block)
    shape = [rng.extent for rng in region] if compact else None
    cache = cached_buffer(buffer, storage_scope, shape)
    source, target = (buffer, cache) if read else (cache, buffer)
    copy = Copy(source, target, region, read, compact)
    stage, block = copy_stage(copy, place.sref, f"{buffer.name}_{storage_scope}", condition)
    return _Made(stage, block, cache, copy, buffer)


# ---- cache_write


@primitive("CacheWrite", "block consumer_blocks", canonical=_canonical("write"))
def cache_write(
    self: Session,
    block: BlockRV | str,
    write_buffer_index: int | str | Buffer,
    storage_scope: str,
    consumer_blocks: list[BlockRV | str] | None = None,
) -> BlockRV:
    """Let a block write into a buffer of its own, and copy that to where the result belongs.

    Args:
        block: the block that writes, or its name. No other block of the scope may write the buffer.
        write_buffer_index: the buffer's place among what the block writes, its name, or itself.
        storage_scope: where the new buffer lies, such as "shared" or "local".
        consumer_blocks: the blocks that shall read the new buffer; all others read the old one.

    Returns:
        The block that copies, ``<buffer>_<scope>``.

    Raises:
        BufferIndexError: the block writes no such buffer.
        WriterCountError: several blocks write the buffer.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> copy = sch.cache_write("C", 0, "local")
    >>> copy, sch.get(sch.get_block("C")).writes[0].buffer.name
    (BlockRV(C_local), 'C_local')
    """
    state, sref = self.state, self._sref(block)
    check_storage_scope(state, storage_scope)
    assert isinstance(write_buffer_index, int)
    buffer, _ = checks.nth_access(state, sref, write_buffer_index, write=True)
    scope = checks.scope_root(state, sref)
    writer = legal.only_writer(state, buffer, scope)
    assert writer is not None
    assert writer is sref.stmt
    _, declared = _written(state, writer, buffer)
    given = [self._sref(item) for item in consumer_blocks or ()]
    consumers, others = _split_readers(state, buffer, scope, writer, given)
    legal.check_declared(state, buffer, scope, loads=True)
    legal.check_not_aliased(state, buffer, scope)
    place = place_between(state, scope, writer, others) if others else place_after_all(scope)
    region = relaxed_ranges(state, sref, declared, place.sref)
    condition = None
    if not legal.is_allocated_in(buffer, scope):
        legal.check_previous_unused(state, sref, buffer)
        legal.check_surely_written(state, sref, declared, place.sref, region)
        condition = outer_conditions(state, sref, place.sref)
    copy = _make(state, scope, buffer, place, region, storage_scope, condition, read=False)
    users = [writer, *consumers]
    for item in users:
        legal.check_redirectable(state, item, buffer, same_layout=copy.same_layout)
    redirect = Redirect(buffer, copy.cache, copy.starts)
    edit_scope(state, scope, redirect, users, [(place, copy.stage)], [copy.cache])
    return self._block_rv(copy.block)


def _split_readers(
    state: ScheduleState, buffer: Buffer, scope: StmtSRef, writer: Block, given: Sequence[StmtSRef]
) -> tuple[list[Block], list[Block]]:
    """The readers after the writer that use the cache, and the others."""
    early, late = legal.readers_around(buffer, scope, writer)
    legal.check_not_carried(state, buffer, writer, early)
    consumers = _given_readers(state, buffer, scope, writer, given, late) if given else []
    legal.check_covered(state, buffer, scope, consumers)
    used = {id(item) for item in consumers}
    return consumers, [item for item in late if id(item) not in used]


# ---- cache_inplace


@primitive("CacheInplace", "block", canonical=_canonical("read"))
def cache_inplace(
    self: Session, block: BlockRV | str, read_buffer_index: int | str | Buffer, storage_scope: str
) -> list[BlockRV]:
    """Let a block that changes a buffer in place work on a copy, which is copied back afterwards.

    Args:
        block: the block that reads and writes the buffer, or its name.
        read_buffer_index: the buffer's place among what the block reads, its name, or itself.
        storage_scope: where the copy lies, such as "shared" or "local".

    Returns:
        The block that copies before, and the one that copies back.

    Raises:
        NotInplaceError: the block does not write the buffer that it reads.

    >>> from weft import tir
    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def increase(A: T.Buffer((16,), "float32")):
    ...     for i in range(16):
    ...         with T.block("A"):
    ...             v = T.axis.spatial(16, i)
    ...             A[v] = A[v] + T.float32(1)
    >>> sch = tir.Schedule(increase)
    >>> before, after = sch.cache_inplace("A", 0, "local")
    """
    state, sref = self.state, self._sref(block)
    check_storage_scope(state, storage_scope)
    assert isinstance(read_buffer_index, int)
    buffer, reads = checks.nth_access(state, sref, read_buffer_index, write=False)
    scope = checks.scope_root(state, sref)
    target = tree.block_of(sref)
    writes = region_of(target.writes, buffer)
    if writes is None:
        raise NotInplaceError(
            state,
            f"{name_of(sref)} reads {buffer.name}, it does not write it",
            sref,
            "use cache_read",
        )
    copies = _put_around(state, scope, sref, reads, writes, storage_scope)
    return self._block_rvs(copies)


def _put_around(
    state: ScheduleState,
    scope: StmtSRef,
    sref: StmtSRef,
    reads: BufferRegion,
    writes: BufferRegion,
    storage_scope: str,
) -> list[Block]:
    """Copies of what a block reads and writes, right before and after it."""
    target, buffer = sref.stmt, reads.buffer
    assert isinstance(target, Block)
    legal.check_covered(state, buffer, scope, [target])
    legal.check_not_aliased(state, buffer, scope)
    place = place_before(state, scope, sref)
    realize = tree.realize_of(state, sref)
    mapping = tree.bindings_of(realize)
    inward, outward = [
        copied_ranges(ranges, buffer, place.sref)
        for ranges in substitute([reads.region, writes.region], mapping)
    ]
    for ranges, write in ((inward, False), (outward, True)):
        region = BufferRegion(buffer, ranges)
        legal.check_scope_declares(state, scope, place.sref, region, write=write)
    if not legal.covers(inward, outward):
        legal.check_surely_written(state, sref, writes, place.sref, outward)
    cache = cached_buffer(buffer, storage_scope)
    plain = not buffer.strides and op.is_const_int(buffer.elem_offset, 0)
    legal.check_redirectable(state, target, buffer, same_layout=plain)
    name = f"{buffer.name}_{storage_scope}"
    condition = None if op.is_const_int(realize.predicate, 1) else realize.predicate
    before = Copy(buffer, cache, inward, True, False)
    after = Copy(cache, buffer, outward, False, False)
    stages = [copy_stage(copy, place.sref, name, condition) for copy in (before, after)]
    places = [place, Place(place.sref, place.position + 1)]
    edit_scope(
        state,
        scope,
        Redirect(buffer, cache, None),
        [target],
        [(where, stage) for where, (stage, _) in zip(places, stages, strict=True)],
        [cache],
    )
    return [copy for _, copy in stages]
