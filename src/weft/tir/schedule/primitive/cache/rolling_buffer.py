"""rolling_buffer keeps one tile of an intermediate buffer, as a ring, and computes what is new.

Where adjacent tiles of a producer overlap, the outermost such axis is folded: index ``i`` becomes
``i`` modulo the tile's extent, and a predicate leaves out what the tile before has computed. Tiles
then depend on each other, so the folded axis becomes opaque, which keeps later primitives from
reordering them. Beyond TVM 0.20, refused are loops that are not serial, consumers that read more
than their tile, and blocks whose axes are not the indices of the buffer, in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.int_set import eval_set
from weft.arith.interval import as_int_set
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import substitute
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_read_write_region
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import FloorDiv, FloorMod, IterVar, Mul, Var
from weft.tir.schedule import checks, region_cover, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.dependence import DepKind, consumers_of, hazards_below
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.buffer.buffer_definition import check_rewritable
from weft.tir.schedule.primitive.cache.cache_checks import is_allocated_in
from weft.tir.schedule.primitive.cache.reindex import is_injective
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import domains_of
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, For, ForKind


class RollingDependencyError(ScheduleFailure):
    """The block does more than produce, once, what other blocks read."""


class RollingMatchError(ScheduleFailure):
    """No axis of the buffer moves with a loop so that adjacent tiles overlap."""

    hint = "tile the consumer and compute_at the producer at the outer loop first"


class RollingPlaceError(ScheduleFailure):
    """The producer and its consumers do not share a serial loop."""

    hint = "tile the consumer and compute_at the producer at the outer loop first"


class _Axis(NamedTuple):
    """How an axis of the tile moves: the loop, how much adjacent tiles overlap, where it starts."""

    loop: Var | None
    overlap: int
    low: PrimExpr
    extent: int


@primitive("RollingBuffer", "block")
def rolling_buffer(self: Session, block: BlockRV | str, write_buffer_index: int) -> None:
    """Keep of a buffer only what a window needs: the next window reuses the part that both cover.

    The buffer becomes a ring: an element is stored at its index modulo the window's size, and is
    computed once instead of once for each window.

    Args:
        block: the block that writes the buffer, or its name. It stands in a loop together with all
            blocks that read the buffer (see ``compute_at``), and the tiles that two iterations
            compute overlap.
        write_buffer_index: the buffer's place among what the block writes.

    Raises:
        RollingMatchError: the tiles do not overlap in a way that a ring can hold.
        RollingPlaceError: no loop is around the block and all that read the buffer.
        OutputBlockError: the buffer is a result of the function.

    >>> from weft import te, tir
    >>> A = te.placeholder((12,), name="A")
    >>> B = te.compute((10,), lambda i: A[i] + A[i + 2], name="B")
    >>> C = te.compute((8,), lambda i: B[i] * B[i + 2], name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> outer, inner = sch.split(sch.get_loops("C")[0], factors=[None, 4])
    >>> sch.compute_at("B", outer)
    >>> sch.rolling_buffer("B", 0)
    >>> sch.get(sch.get_block("B")).writes[0].buffer.shape
    [6]
    """
    state, sref = self.state, self._sref(block)
    buffer, region = checks.nth_access(state, sref, write_buffer_index, write=True)
    scope = checks.scope_root(state, sref)
    checks.check_not_output_block(state, sref, scope)
    consumers = _check_dependences(state, sref, scope, buffer)
    if not is_allocated_in(buffer, scope):
        raise RollingDependencyError(state, f"the scope does not allocate {buffer.name}", sref)
    check_rewritable(state, scope, buffer)
    meeting = tree.lowest_common_ancestor([sref, *consumers])
    if not isinstance(meeting.stmt, For) or not consumers:
        raise RollingPlaceError(
            state, f"{name_of(sref)} and the consumers of {buffer.name} share no loop", sref
        )
    loops = tree.loops_above(sref)
    axes = _tile(state, sref, region, loops, meeting)
    position = _rolling_axis(state, sref, buffer, axes, loops)
    predicate = _checked_predicate(state, sref, region, axes)
    _check_repeatable(state, sref, axes[position], scope)
    size = axes[position].extent
    shape = [
        IntImm(old.dtype, size) if i == position else old for i, old in enumerate(buffer.shape)
    ]
    ring = buffer.with_(shape=shape)
    work = _Ring(buffer, ring, position, tree.block_of(sref), predicate)
    new_scope, reuse = _rewritten(tree.block_of(scope), work)
    state.replace(scope, new_scope, reuse)


@deep_recursion
def _rewritten(scope: Block, work: _Ring) -> tuple[Block, rewrite.Reuse]:
    body = work.visit(scope.body)
    new_scope = scope.with_(body=body, alloc_buffers=work.visit(scope.alloc_buffers))
    return new_scope, {**work.reuse, scope: new_scope}


# ---- checks


def _check_dependences(
    state: ScheduleState, sref: StmtSRef, scope: StmtSRef, buffer: Buffer
) -> list[StmtSRef]:
    """The consumers of the block; all dependences to and from the block are reads of writes."""
    block = tree.block_of(sref)
    assert isinstance(scope.stmt, Block)
    hazards = hazards_below(scope.stmt)
    edges = [*hazards.of_source.get(id(block), []), *hazards.of_target.get(id(block), [])]
    for edge in edges:
        if edge.kind is not DepKind.RAW:
            raise RollingDependencyError(
                state,
                f"{edge.dst.name_hint} writes again what {edge.src.name_hint} "
                f"{'wrote' if edge.kind is DepKind.WAW else 'accessed'}",
                (state.sref_of(edge.src), state.sref_of(edge.dst)),
            )
    if len(block.writes) != 1 or (
        block.init is None and any(item.buffer is buffer for item in block.reads)
    ):
        raise RollingDependencyError(
            state, f"{name_of(sref)} does not just write {buffer.name}", sref
        )
    consumers = [state.sref_of(item) for item in consumers_of(block, scope.stmt)]
    for consumer in consumers:
        if not region_cover.is_region_cover(state, consumer, scope):
            raise RollingDependencyError(
                state,
                f"{name_of(consumer)} reads more of {buffer.name} than its tile",
                (consumer, sref),
            )
    return consumers


def _tile(
    state: ScheduleState,
    sref: StmtSRef,
    region: BufferRegion,
    loops: Sequence[StmtSRef],
    meeting: StmtSRef,
) -> list[_Axis]:
    """What one iteration of the common loop writes, axis by axis."""
    realize = tree.realize_of(state, sref)
    inner = tree.domains(tree.loops_above(sref, stop=meeting))
    outer = {var: dom for var, dom in tree.domains(loops).items() if var not in inner}
    analyzer = analyzer_of(outer)
    tile_axes = []
    for rng in substitute(region.region, tree.bindings_of(realize)):
        part = eval_set(as_int_set(rng, analyzer), inner, analyzer)
        extent = analyzer.simplify(part.max_value - part.min_value + 1) if part.is_bounded else None
        low = analyzer.simplify(part.min_value) if part.is_bounded else None
        shift = None if low is None else _shift(low)
        if low is None or shift is None or not isinstance(extent, IntImm):
            raise RollingMatchError(
                state,
                f"{region.buffer.name} is written from {low}, {extent} elements long: not "
                "like loop * stride of a known extent",
                sref,
            )
        loop, stride = shift
        overlap = extent.value - stride if loop is not None else 0
        tile_axes.append(_Axis(loop if overlap > 0 else None, overlap, low, extent.value))
    return tile_axes


def _shift(low: PrimExpr) -> tuple[Var | None, int] | None:
    """The loop and stride of a start such as ``i``, ``i * 4``, ``i * 3 // 2``; None otherwise."""
    if isinstance(low, IntImm):
        return None, 0
    divisor = 1
    if isinstance(low, FloorDiv) and isinstance(low.b, IntImm) and low.b.value > 0:
        divisor, low = low.b.value, low.a
    if isinstance(low, Var):
        return low, 1
    if isinstance(low, Mul) and isinstance(low.a, Var) and isinstance(low.b, IntImm):
        stride = math.ceil(low.b.value / divisor)
        return (low.a, stride) if stride > 0 else None
    return None


def _rolling_axis(
    state: ScheduleState,
    sref: StmtSRef,
    buffer: Buffer,
    axes: Sequence[_Axis],
    loops: Sequence[StmtSRef],
) -> int:
    """The axis that moves with the outermost loop; the loops around must be serial."""
    rolling = None
    for loop in loops:
        assert isinstance(loop.stmt, For)
        var = loop.stmt.loop_var
        matching = [i for i, axis in enumerate(axes) if axis.loop is var]
        if matching and rolling is None:
            rolling = matching[0]
        if matching and not op.is_const_int(loop.stmt.min, 0):
            raise RollingPlaceError(state, f"{name_of(loop)} does not start at 0", loop, "")
    if rolling is None:
        shown = ", ".join([f"{axis.low}:+{axis.extent}" for axis in axes])
        raise RollingMatchError(
            state, f"adjacent tiles of {buffer.name}, [{shown}], overlap along no loop", sref
        )
    used = {axis.loop for axis in axes if axis.loop is not None}
    if sum(axis.loop is not None for axis in axes) != len(used):
        raise RollingMatchError(state, f"a loop moves two axes of {buffer.name}", sref, "")
    for loop in loops:
        assert isinstance(loop.stmt, For)
        if loop.stmt.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            raise RollingPlaceError(
                state,
                f"{name_of(loop)} is {ForKind(loop.stmt.kind).name.lower()}: tiles that "
                "depend on each other run in order",
                loop,
                "make the loop parallel no more",
            )
    return rolling


def _checked_predicate(
    state: ScheduleState, sref: StmtSRef, region: BufferRegion, axes: Sequence[_Axis]
) -> PrimExpr:
    """The predicate of the block, without the elements that earlier tiles have computed."""
    realize = tree.realize_of(state, sref)
    block = realize.block
    condition: PrimExpr = realize.predicate
    analyzer = Analyzer()
    for i, (axis, rng) in enumerate(zip(axes, region.region, strict=True)):
        if axis.loop is None:
            continue
        own = block.iter_vars[i] if i < len(block.iter_vars) else None
        point = op.is_const_int(rng.extent, 1)
        if own is None or rng.min is not own.var or not point or own.accumulates:
            raise RollingMatchError(
                state,
                f"index {i} of {region.buffer.name}, {rng.min}, is not axis {i} of {name_of(sref)}",
                sref,
                "reorder the axes: reorder_block_iter_var",
            )
        value = realize.iter_values[i]
        zero = IntImm(axis.loop.dtype, 0)
        local = analyzer.simplify(substitute(value, {axis.loop: zero}))
        if not analyzer.can_prove_equal(value, axis.low + local):
            raise RollingMatchError(
                state,
                f"axis {i} of {name_of(sref)}, {value}, is not {axis.low} plus a place in the tile",
                sref,
                "",
            )
        first = op.less(axis.loop, IntImm(axis.loop.dtype, 1))
        fresh = op.greater_equal(local, IntImm(local.dtype, axis.overlap))
        condition = analyzer.simplify(op.logical_and(condition, op.logical_or(first, fresh)))
    return condition


def _check_repeatable(state: ScheduleState, sref: StmtSRef, axis: _Axis, scope: StmtSRef) -> None:
    """What the block reads does not change while it is in the ring."""
    block = tree.block_of(sref)
    assert isinstance(scope.stmt, Block)
    loop = next(
        item.stmt
        for item in tree.loops_above(sref)
        if isinstance(item.stmt, For) and item.stmt.loop_var is axis.loop
    )
    read = {region.buffer.data for region in block.reads}
    for realize in tree.child_realizes(loop):
        writer = realize.block
        if writer is block:
            continue
        for region in writer.writes:
            if region.buffer.data in read and not _writes_once(writer, region):
                raise RollingDependencyError(
                    state,
                    f"{writer.name_hint} may change {region.buffer.name}, which "
                    f"{name_of(sref)} reads, from tile to tile",
                    (state.sref_of(writer), sref),
                )


def _writes_once(block: Block, region: BufferRegion) -> bool:
    """Whether each element gets one value: its indices are the axes (one of them in a ring)."""
    if block.init is None and any(item.buffer is region.buffer for item in block.reads):
        return False
    opaque = {axis.var for axis in block.iter_vars if axis.iter_type == IterVar.Opaque}
    indices = []
    for rng in region.region:
        index = rng.min
        if isinstance(index, FloorMod) and index.a in opaque:
            index = index.a
        indices.append(index)
    axes = [axis for axis in block.iter_vars if axis.iter_type != IterVar.CommReduce]
    return is_injective(indices, domains_of(axes))


class _Ring(rewrite.BufferMutator):
    """Turns accesses of the buffer into accesses of the ring, and the axis into an opaque one."""

    def __init__(
        self, old: Buffer, new: Buffer, position: int, producer: Block, predicate: PrimExpr
    ) -> None:
        super().__init__()
        self.old, self.new, self.position = old, new, position
        self.producer, self.predicate = producer, predicate

    def moved(self, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        """The indices, the folded one modulo the size of the ring."""
        in_ring = list(indices)
        index = in_ring[self.position]
        size = op.cast(index.dtype, self.new.shape[self.position])
        in_ring[self.position] = FloorMod(index, size)
        return in_ring

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        realize = self.visit_default(node)
        return realize.with_(predicate=self.predicate) if node.block is self.producer else realize

    def visit_Block(self, node: Block) -> Block:
        block = self.visit_default(node)
        axes = list(block.iter_vars)
        if self.position < len(axes):
            axis = axes[self.position]
            axes[self.position] = IterVar(axis.dom, axis.var, IterVar.Opaque, axis.thread_tag)
        reads, writes = get_block_read_write_region(block, {self.new.data: self.new})
        final = block.with_(
            iter_vars=axes,
            reads=self._regions(block.reads, reads),
            writes=self._regions(block.writes, writes),
        )
        self.reuse[node] = final
        return final

    def _regions(
        self, declared: Sequence[BufferRegion], derived: Sequence[BufferRegion]
    ) -> list[BufferRegion]:
        whole = BufferRegion.full_region(self.new)
        ring = derived[0] if derived else whole
        return [ring if region.buffer is self.old else region for region in declared]
