"""What the primitives that put a copy of a buffer between blocks share.

A *stage* is a block of its own that copies a region. This module knows how to name and shape the
copy, where a stage may stand, how to make it, and how blocks are redirected to the copy
(``Redirect``). What must hold for that to keep the meaning is in ``cache_checks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts_without
from weft.arith.region import estimate_region_upper_bound
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.ir.type import PointerType
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import rewrite, tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import (
    AllocateConst,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    SeqStmt,
    Stmt,
)

STORAGE_KINDS = (
    "global", "shared", "warp", "local", "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator",
    "m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC", "texture", "amx.tmm",
)  # fmt: skip


class StorageScopeError(ScheduleFailure):
    """There is no such storage scope."""

    hint = f"the scopes are {', '.join(STORAGE_KINDS[:4])}, ..., with a suffix as in shared.dyn"


class StagePlaceError(ScheduleFailure):
    """Between the blocks there is no place where a stage could stand."""


def check_storage_scope(state: ScheduleState, scope: str) -> None:
    """The scope is one that buffers can have."""
    if scope and not any(scope == kind or scope.startswith(f"{kind}.") for kind in STORAGE_KINDS):
        raise StorageScopeError(state, f"there is no storage scope {scope!r}")


# ---- buffers and regions


def cached_buffer(buffer: Buffer, scope: str, shape: Sequence[PrimExpr] | None = None) -> Buffer:
    """A buffer like ``buffer`` in another scope: ``A_shared``; compact, from offset 0."""
    pointer = buffer.data.type_annotation
    assert isinstance(pointer, PointerType)
    data = Var(f"{buffer.data.name}_{scope}", PointerType(pointer.element_type, scope))
    changes: dict[str, Any] = {"data": data, "name": f"{buffer.name}_{scope}"}
    if buffer.strides:
        changes.update(strides=(), buffer_type=1)
    if not op.is_const_int(buffer.elem_offset, 0):
        changes["elem_offset"] = IntImm("int32", 0)
    if shape is not None:
        changes["shape"] = shape
    return buffer.with_(**changes)


def region_of(regions: Iterable[BufferRegion], buffer: Buffer) -> BufferRegion | None:
    """The region of ``buffer`` among a block's reads or writes."""
    return next((region for region in regions if region.buffer is buffer), None)


def region_text(region: BufferRegion) -> str:
    """A region as a message shows it: ``A[i * 8:i * 8 + 8, k]``."""
    parts = []
    for rng in region.region:
        is_point = op.is_const_int(rng.extent, 1)
        parts.append(f"{rng.min}" if is_point else f"{rng.min}:{op.add(rng.min, rng.extent)}")
    return f"{region.buffer.name}[{', '.join(parts)}]"


def relaxed_ranges(
    state: ScheduleState, sref: StmtSRef, region: BufferRegion, place: StmtSRef
) -> list[Range]:
    """The region of a block over all iterations of the loops below ``place``: an upper bound."""
    realize = tree.realize_of(state, sref)
    ranges = substitute(region.region, tree.bindings_of(realize))
    loops = tree.domains(tree.loops_above(sref, stop=place))
    analyzer = Analyzer()
    sets = estimate_region_upper_bound(ranges, loops, realize.predicate, analyzer)
    relaxed: list[Range] = []
    for part, extent in zip(sets, region.buffer.shape, strict=True):
        covered = part.cover_range(Range(extent), analyzer)
        free = collect([covered.min, covered.extent], Var)
        relaxed.append(Range(extent) if any(var in loops for var in free) else covered)
    return copied_ranges(relaxed, region.buffer, place)


def copied_ranges(ranges: Sequence[Range], buffer: Buffer, place: StmtSRef) -> list[Range]:
    """The ranges as a copy that stands in ``place`` can have them.

    A range that depends on values in memory becomes the whole dimension: these may be different
    where the copy is filled and where it is used. Where a condition leaves nothing, an extent
    may be negative; then it becomes 0.
    """
    analyzer = tree.analyzer_above(place)
    return [
        Range(extent)
        if collect([rng.min, rng.extent], BufferLoad)
        else tree.not_negative(rng, analyzer)
        for rng, extent in zip(ranges, buffer.shape, strict=True)
    ]


# ---- where a stage stands


class Place(NamedTuple):
    """Before statement ``position`` of the body of a loop or block."""

    sref: StmtSRef
    position: int


def body_items(stmt: For | Block) -> Sequence[Stmt]:
    """The statements of a body, inside the constants and buffers it declares first."""
    body = stmt.body
    while isinstance(body, (AllocateConst, DeclBuffer)):
        body = body.body
    return body.seq if isinstance(body, SeqStmt) else (body,)


def inserted(body: Stmt, position: int, stage: Stmt) -> Stmt:
    """``body`` with ``stage`` before its statement ``position``."""
    if isinstance(body, (AllocateConst, DeclBuffer)):
        return body.with_(body=inserted(body.body, position, stage))
    items = list(body.seq) if isinstance(body, SeqStmt) else [body]
    items.insert(position, stage)
    return SeqStmt(items)


def members_of(stmt: Stmt) -> set[int]:
    """The ids of the blocks of one scope that are at or below a statement."""
    if isinstance(stmt, BlockRealize):
        return {id(stmt.block)}
    members: set[int] = set()
    for inner in (stmt,) if isinstance(stmt, For) else tree.nearest(stmt):
        if isinstance(inner, For):
            members.update(id(realize.block) for realize in tree.child_realizes(inner))
        else:
            members.add(id(inner.block))
    return members


def place_after_all(scope: StmtSRef) -> Place:
    """The end of a scope."""
    return Place(scope, len(body_items(tree.block_of(scope))))


def place_between(
    state: ScheduleState, scope: StmtSRef, writer: Block, readers: Sequence[Block]
) -> Place:
    """Before the first reader, in the innermost loop that is around it and around the writer."""
    wanted = {id(block) for block in readers}
    node = scope.stmt
    while True:
        assert isinstance(node, (For, Block))
        items = body_items(node)
        inside = [members_of(item) for item in items]
        written = next(i for i, members in enumerate(inside) if id(writer) in members)
        read = next(i for i, members in enumerate(inside) if not wanted.isdisjoint(members))
        if written != read:
            return Place(state.sref_of(node), read)
        item = items[written]
        if not isinstance(item, For):
            raise StagePlaceError(
                state,
                f"{writer.name_hint} and {readers[0].name_hint} stand in one "
                f"{type(item).__name__}, where a copy cannot be put between them",
                (state.sref_of(writer), state.sref_of(readers[0])),
            )
        node = item


def place_before(state: ScheduleState, scope: StmtSRef, sref: StmtSRef) -> Place:
    """Right before a block, in the loop or block directly around it."""
    parent = sref.parent
    assert parent is not None
    for position, item in enumerate(body_items(tree.stmt_of(parent))):
        if isinstance(item, BlockRealize) and item.block is sref.stmt:
            return Place(parent, position)
    raise StagePlaceError(
        state, f"{name_of(sref)} stands under a condition or let, which a copy cannot share", sref
    )


# ---- making a stage


class Copy(NamedTuple):
    """What a stage copies: the ``region`` of the original, and which side is the original.

    With ``compact`` the cache holds the region only, starting at 0.
    """

    source: Buffer
    target: Buffer
    region: Sequence[Range]
    reads_original: bool
    compact: bool

    @property
    def original(self) -> Buffer:
        """The buffer that is cached."""
        return self.source if self.reads_original else self.target


def outer_conditions(state: ScheduleState, sref: StmtSRef, place: StmtSRef) -> PrimExpr | None:
    """The part of a block's predicate that depends on no loop below ``place``; None if empty."""
    inside = tree.domains(tree.loops_above(sref, stop=place))
    conditions = conjuncts_without(tree.realize_of(state, sref).predicate, inside)
    return conjunction(conditions) if conditions else None


def copy_stage(
    copy: Copy, place: StmtSRef, name: str, predicate: PrimExpr | None = None
) -> tuple[Stmt, Block]:
    """Loops ``ax0, ax1, ...`` around a block that copies; the block alone too.

    Where the region may leave the buffer, the copy is bounded by a predicate.
    """
    loops = [Var(f"ax{i}", rng.extent.dtype) for i, rng in enumerate(copy.region)]
    axes, values, mine, its = [], [], [], []
    for i, (rng, loop) in enumerate(zip(copy.region, loops, strict=True)):
        var = Var(f"v{i}", rng.extent.dtype)
        extent = rng.extent if copy.compact else copy.original.shape[i]
        domain = Range(op.cast(var.dtype, extent))
        axes.append(IterVar(domain, var, IterVar.DataPar))
        values.append(loop if copy.compact else op.add(rng.min, loop))
        its.append(var)
        mine.append(op.add(rng.min, var) if copy.compact else var)
    reads, writes = (mine, its) if copy.reads_original else (its, mine)
    block = point_copy_block(copy.source, copy.target, reads, writes, axes, name)
    conditions = bounds(copy, place, loops, predicate)
    if predicate is not None:
        conditions.insert(0, predicate)
    stage: Stmt = BlockRealize(values, conjunction(conditions), block)
    for loop, rng in zip(reversed(loops), reversed(copy.region), strict=True):
        stage = For(loop, IntImm(loop.dtype, 0), rng.extent, ForKind.SERIAL, stage)
    return stage, block


def point_copy_block(
    source: Buffer,
    target: Buffer,
    reads: Sequence[PrimExpr],
    writes: Sequence[PrimExpr],
    axes: Sequence[IterVar],
    name: str,
) -> Block:
    """``target[writes] = source[reads]`` as a block."""
    return Block(
        axes,
        [points(source, reads)],
        [points(target, writes)],
        name,
        BufferStore(target, BufferLoad(source, reads), writes),
    )


def points(buffer: Buffer, indices: Sequence[PrimExpr]) -> BufferRegion:
    """The region that is one element."""
    ranges = [Range.from_min_extent(index, IntImm(index.dtype, 1)) for index in indices]
    return BufferRegion(buffer, ranges)


def bounds(
    copy: Copy, place: StmtSRef, loops: Sequence[Var], predicate: PrimExpr | None
) -> list[PrimExpr]:
    """The conditions that keep the copy inside of the original, where it may leave it.

    ``predicate`` is known to hold.
    """
    doubtful = [
        (rng, extent, loop)
        for rng, extent, loop in zip(copy.region, copy.original.shape, loops, strict=True)
        if not _surely_inside(rng, extent)
    ]
    conditions: list[PrimExpr] = []
    if not doubtful:
        return conditions
    analyzer = tree.analyzer_above(place)
    with analyzer.constraint_scope(op.const(True, "bool") if predicate is None else predicate):
        for rng, extent, loop in doubtful:
            if not analyzer.can_prove(op.greater_equal(rng.min, 0)):
                conditions.append(op.less_equal(0, op.add(rng.min, loop)))
            if not analyzer.can_prove(op.less_equal(op.add(rng.min, rng.extent), extent)):
                conditions.append(op.less(op.add(rng.min, loop), extent))
    return conditions


def _surely_inside(rng: Range, extent: PrimExpr) -> bool:
    if not op.is_const_int(rng.min, 0):
        return False
    if isinstance(rng.extent, IntImm) and isinstance(extent, IntImm):
        return bool(rng.extent.value <= extent.value)
    return rng.extent is extent


# ---- redirecting blocks


class Redirect(rewrite.BlockMutator):
    """Makes statements use ``cache`` in place of ``buffer``; ``starts`` is where the cache begins.

    ``load`` and ``store`` say which accesses move (regions of both kinds always do).
    """

    def __init__(self, buffer: Buffer, cache: Buffer, starts: Sequence[PrimExpr] | None) -> None:
        super().__init__()
        self.buffer, self.cache = buffer, cache
        self.starts = starts
        self.analyzer = Analyzer()

    def moved(self, indices: Sequence[PrimExpr]) -> Sequence[PrimExpr]:
        """Indices of the buffer as indices of the cache."""
        if self.starts is None:
            return indices
        return [
            index
            if op.is_const_int(start, 0) and isinstance(index, (Var, IntImm))
            else self.analyzer.simplify(op.subtract(index, start))
            for index, start in zip(indices, self.starts, strict=True)
        ]

    def visit_Var(self, node: Var) -> Var:
        return self.cache.data if node is self.buffer.data else node

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return node

    def visit_Block(self, node: Block) -> Block:
        known = rewrite.variables_of(node)
        return node if self.buffer.data not in known else super().visit_Block(node)

    def visit_BufferLoad(self, node: BufferLoad) -> BufferLoad:
        indices = self.visit(node.indices)
        if node.buffer is self.buffer:
            return node.with_(buffer=self.cache, indices=self.moved(indices))
        return node if indices is node.indices else node.with_(indices=indices)

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        node = self.visit_default(node)
        if node.buffer is self.buffer:
            return node.with_(buffer=self.cache, indices=self.moved(node.indices))
        return node

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        ranges = self.visit(node.region)
        if node.buffer is not self.buffer:
            return node if ranges is node.region else node.with_(region=ranges)
        starts = self.moved([rng.min for rng in ranges])
        moved = [
            Range.from_min_extent(start, rng.extent)
            for start, rng in zip(starts, ranges, strict=True)
        ]
        return BufferRegion(self.cache, moved)


class _ScopeEdit(rewrite.BlockMutator):
    """Puts new blocks for old ones and stages at places into the body of a scope."""

    def __init__(self, blocks: dict[int, Block], stages: dict[int, list[tuple[int, Stmt]]]) -> None:
        super().__init__()
        self.blocks, self.stages = blocks, stages

    def visit_Block(self, node: Block) -> Block:
        return self.blocks.get(id(node), node)

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        block = self.visit(node.block)
        return node if block is node.block else node.with_(block=block)

    def visit_For(self, node: For) -> For:
        body = self.placed(node, self.visit(node.body))
        return node if body is node.body else node.with_(body=body)

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        return node

    def visit_Evaluate(self, node: Evaluate) -> Evaluate:
        return node

    def placed(self, node: For | Block, body: Stmt) -> Stmt:
        """The new body of a node with the stages that belong into it."""
        for position, stage in sorted(self.stages.get(id(node), ()), key=lambda s: -s[0]):
            body = inserted(body, position, stage)
        return body


@deep_recursion
def edit_scope(
    state: ScheduleState,
    scope: StmtSRef,
    redirect: rewrite.BlockMutator,
    blocks: Iterable[Block],
    stages: Sequence[tuple[Place, Stmt]],
    allocated: Sequence[Buffer],
) -> None:
    """Redirect ``blocks`` of a scope, put stages into it and allocate buffers there."""
    old = tree.block_of(scope)
    redirected = {id(block): redirect.visit_Block(block) for block in blocks}
    placed: dict[int, list[tuple[int, Stmt]]] = {}
    for place, stage in stages:
        placed.setdefault(id(place.sref.stmt), []).append((place.position, stage))
    edit = _ScopeEdit(redirected, placed)
    body = edit.placed(old, edit.visit(old.body))
    new = old.with_(body=body, alloc_buffers=[*old.alloc_buffers, *allocated])
    state.replace(scope, new, {**redirect.reuse, old: new})
