"""What must hold so that a copy of a buffer between two blocks keeps the meaning of the program.

A copy is filled at one place and used at others, so it must hold everything that is read from it,
and neither the original nor the copy may change in between. TVM 0.20 checks region cover and the
single writer. The other conditions are here because without them the result would be wrong:
conditional and strided stores into results, accumulation on what the caller passed, loop-carried
reads, accesses that no block declares, views, opaque pointers into a copy of another shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts
from weft.arith.int_set import IntervalSet
from weft.arith.region import estimate_region_strict_bound
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.node import fact
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Var
from weft.tir.schedule import region_cover, rewrite, tree
from weft.tir.schedule.dependence import DepKind, hazards_below, writers_of
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_access import Glue, accesses, glue_of
from weft.tir.schedule.primitive.cache.cache_stage import (
    copied_ranges,
    points,
    region_of,
    region_text,
)
from weft.tir.schedule.primitive.reduction.decompose_reduction import late_axis
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, While


class WriterCountError(ScheduleFailure):
    """A buffer that is to be cached is written by several blocks of the scope."""

    hint = "cache it before the reduction is decomposed, or cache what those blocks read"


class AliasedBufferError(ScheduleFailure):
    """The memory of the buffer is also accessed under another name."""


class UndeclaredAccessError(ScheduleFailure):
    """The buffer is accessed outside of the blocks of the scope."""

    hint = "put the access into a block"


class OpaqueAccessError(ScheduleFailure):
    """A block has a pointer into the buffer, and the copy would have another layout."""


class LoopCarriedReadError(ScheduleFailure):
    """A block reads in one iteration what is written in an earlier one."""


class RegionCoverError(ScheduleFailure):
    """A block reads more of the buffer than was written before it in the scope."""


class PartialWriteError(ScheduleFailure):
    """Not all of the region is surely written, and what the caller passed would be lost."""


class PreviousContentError(ScheduleFailure):
    """A block reads what the buffer held before the block ran."""

    hint = "use cache_inplace, or initialise the buffer in the block (T.init)"


class ScopeRegionError(ScheduleFailure):
    """The copy would access more of the buffer than the block around it declares."""

    hint = "declare more in T.reads or T.writes of the block"


class ConsumerError(ScheduleFailure):
    """A block named as a consumer cannot use the copy."""


# ---- who accesses a buffer


def readers_of(buffer: Buffer, scope: StmtSRef) -> list[Block]:
    """The blocks of a scope that declare to read the memory of a buffer, in program order."""
    return [
        block
        for block in hazards_below(tree.block_of(scope)).blocks
        if any(region.buffer.data is buffer.data for region in block.reads)
    ]


def readers_around(
    buffer: Buffer, scope: StmtSRef, writer: Block
) -> tuple[list[Block], list[Block]]:
    """The readers of a buffer before its writer, and those after it."""
    edges = hazards_below(tree.block_of(scope)).of_source.get(id(writer), [])
    after = {id(edge.dst) for edge in edges if edge.kind is DepKind.RAW}
    readers = readers_of(buffer, scope)
    # An edge may concern another buffer of the writer; its target is after the writer even so.
    late = [item for item in readers if id(item) in after]
    return [item for item in readers if id(item) not in after], late


def only_writer(state: ScheduleState, buffer: Buffer, scope: StmtSRef) -> Block | None:
    """The one block of the scope that writes the buffer; None if no block does."""
    writers = writers_of(buffer, tree.block_of(scope))
    if len(writers) > 1:
        names = ", ".join([block.name_hint for block in writers])
        raise WriterCountError(
            state,
            f"{buffer.name} is written by {len(writers)} blocks of the scope: {names}",
            tuple([state.sref_of(block) for block in writers]),
        )
    return writers[0] if writers else None


def check_declared(state: ScheduleState, buffer: Buffer, scope: StmtSRef, *, loads: bool) -> None:
    """No statement of the scope outside its blocks writes the buffer (with ``loads``: or reads)."""
    glue: Glue = fact(tree.block_of(scope), "schedule.glue", glue_of)
    if buffer.data in glue.used or (loads and buffer.data in glue.loaded):
        verb = "used" if buffer.data in glue.used else "read"
        raise UndeclaredAccessError(
            state, f"{buffer.name} is {verb} in {name_of(scope)} outside of its blocks", scope
        )


def check_not_aliased(state: ScheduleState, buffer: Buffer, scope: StmtSRef) -> None:
    """No view of the buffer (or what it is a view of) is used by the blocks of the scope."""
    same = {buffer.data}
    pairs = []
    item: StmtSRef | None = scope
    while item is not None:
        for match in getattr(item.stmt, "match_buffers", ()):
            pairs.append((match.buffer, match.source.buffer))
        item = item.parent
    for _ in pairs:  # views of views
        for view, source in pairs:
            if view.data in same or source.data in same:
                same |= {view.data, source.data}
    if len(same) == 1:
        return
    for block in hazards_below(tree.block_of(scope)).blocks:
        for data in rewrite.variables_of(block):
            if data in same and data is not buffer.data:
                raise AliasedBufferError(
                    state,
                    f"{block.name_hint} accesses the memory of {buffer.name} as {data.name}",
                    state.sref_of(block),
                )


def check_redirectable(
    state: ScheduleState, block: Block, buffer: Buffer, *, same_layout: bool
) -> None:
    """Every access of the buffer in a block can be made one of a copy."""
    uses = accesses(block, buffer)
    sref = state.sref_of(block)
    if uses.other is not None:
        raise AliasedBufferError(
            state, f"{name_of(sref)} has another view of {buffer.name}: {uses.other.name}", sref
        )
    fixed = next((m for m in uses.matched if any(isinstance(s, IntImm) for s in m.strides)), None)
    if same_layout or not (uses.pointer or fixed is not None):
        return
    how = "a pointer to it" if fixed is None else f"the view {fixed.name} with fixed strides"
    raise OpaqueAccessError(
        state,
        f"{name_of(sref)} accesses {buffer.name} through {how}, which does not fit a copy of "
        "another layout",
        sref,
    )


# ---- loops that run a reader and a writer alternately


def common_loop(first: StmtSRef, second: StmtSRef) -> StmtSRef | None:
    """The innermost loop around both that runs more than once; None if there is none."""
    shared = {id(loop) for loop in tree.loops_above(first)}
    for loop in reversed(tree.loops_above(second)):
        stmt = loop.stmt
        if id(loop) in shared and isinstance(stmt, For) and not op.is_const_int(stmt.extent, 1):
            return loop
    return None


def check_not_carried(
    state: ScheduleState, buffer: Buffer, writer: Block, readers: Iterable[Block]
) -> None:
    """None of the readers, which stand before the writer, is in one loop with it."""
    below = state.sref_of(writer)
    for block in readers:
        loop = common_loop(state.sref_of(block), below) if block is not writer else None
        if loop is not None:
            raise LoopCarriedReadError(
                state,
                f"in {name_of(loop)}, {block.name_hint} reads what {writer.name_hint} wrote to "
                f"{buffer.name} in the iteration before",
                (loop, state.sref_of(block), below),
            )


def check_covered(
    state: ScheduleState, buffer: Buffer, scope: StmtSRef, blocks: Iterable[Block]
) -> None:
    """What the blocks read of the buffer was written before them in the scope."""
    for block in blocks:
        if not region_cover.is_region_cover(state, state.sref_of(block), scope):
            raise RegionCoverError(
                state,
                f"{block.name_hint} reads more of {buffer.name} than was written before it",
                state.sref_of(block),
            )


def is_allocated_in(buffer: Buffer, scope: StmtSRef) -> bool:
    """Whether the scope allocates the buffer: then nothing was in it before."""
    return any(mine.data is buffer.data for mine in tree.block_of(scope).alloc_buffers)


# ---- what was in the buffer before


def check_previous_unused(state: ScheduleState, sref: StmtSRef, buffer: Buffer) -> None:
    """The block reads of the buffer only what it has written itself."""
    if _reads_previous(state, sref, buffer):
        raise PreviousContentError(
            state, f"{name_of(sref)} reads what {buffer.name} held before it ran", sref
        )


def _reads_previous(state: ScheduleState, sref: StmtSRef, buffer: Buffer) -> bool:
    block = tree.block_of(sref)
    if block.init is not None and accesses(block.init, buffer).stores:
        late = late_axis(tree.realize_of(state, sref), tree.loops_above(sref))
        return late is not None or bool(accesses(block.init, buffer).loads)
    children = tree.child_realizes(block)
    if not children:
        declared = any(region.buffer.data is buffer.data for region in block.reads)
        uses = accesses(block.body, buffer)
        return bool(uses.loads) or (uses.pointer and declared)
    glue = glue_of(block)
    if buffer.data in glue.loaded | glue.used:
        return True
    for realize in children:
        child = state.sref_of(realize)
        regions = realize.block.reads if realize.block.init is None else realize.block.writes
        reads = any(region.buffer.data is buffer.data for region in regions)
        if not reads or not _reads_previous(state, child, buffer):
            continue
        edges = hazards_below(block).of_target.get(id(realize.block), [])
        is_produced = any(
            edge.kind is DepKind.RAW and region_of(edge.src.writes, buffer) for edge in edges
        )
        if not is_produced or not region_cover.is_region_cover(state, child, sref):
            return True
    return False


def check_surely_written(
    state: ScheduleState,
    sref: StmtSRef,
    region: BufferRegion,
    place: StmtSRef,
    copied: Sequence[Range],
) -> None:
    """All that is copied is written by a block whenever the loops below ``place`` run.

    The copy must be made under the block's ``outer_conditions`` only.
    """
    loops = tree.domains(tree.loops_above(sref, stop=place))
    around = tree.analyzer_above(place)
    exact = surely_written(state, sref, region, loops, around, under_outer_conditions=True)
    if tree.is_conditional(sref, place) or exact is None or not covers(exact, copied):
        raise PartialWriteError(
            state,
            f"{name_of(sref)} may leave parts of {region.buffer.name} as the caller passed them, "
            f"a copy of {region_text(BufferRegion(region.buffer, copied))} would overwrite them",
            sref,
        )


def surely_written(
    state: ScheduleState,
    sref: StmtSRef,
    region: BufferRegion,
    loops: dict[Var, Range],
    around: Analyzer | None = None,
    *,
    under_outer_conditions: bool = False,
) -> Sequence[Range] | Sequence[IntervalSet] | None:
    """What a block writes of a region over some loops, exactly; None where that is not known.

    With ``under_outer_conditions`` the part of its predicate that uses none of the loops is taken
    to hold. ``around`` knows the loops that are around these.
    """
    realize = tree.realize_of(state, sref)
    ranges = substitute(region.region, tree.bindings_of(realize))
    exact = _exact(ranges, loops, realize.predicate, under_outer_conditions, around)
    return exact if exact is not None and _writes_all(realize.block, region) else None


def check_writes_all(state: ScheduleState, sref: StmtSRef, region: BufferRegion) -> None:
    """Each instance of a block writes all of a region."""
    if not _writes_all(tree.block_of(sref), region):
        raise PartialWriteError(
            state, f"{name_of(sref)} may run without writing {region_text(region)}", sref
        )


def _exact(
    ranges: Sequence[Range],
    loops: dict[Var, Range],
    predicate: PrimExpr,
    outer_holds: bool = False,
    around: Analyzer | None = None,
) -> Sequence[Range] | Sequence[IntervalSet] | None:
    inner: list[PrimExpr] = []
    for condition in conjuncts(predicate):
        used = collect(condition, Var)
        if any(var in loops for var in used):
            inner.append(condition)
        elif not outer_holds:
            return None
    if not loops:
        return None if inner else ranges
    return estimate_region_strict_bound(ranges, loops, conjunction(inner), around)


def _writes_all(block: Block, region: BufferRegion) -> bool:
    """Whether the body of a block surely writes all that it declares of a buffer."""
    work = _SureWrites(region)
    work.know_views(block)
    work.visit(block.body)
    return work.found


class _SureWrites(Visitor):
    """Looks for one unconditional access that writes all of a region."""

    def __init__(self, region: BufferRegion) -> None:
        self.region = region
        self.buffer = region.buffer
        self.loops: dict[Var, Range] = {}
        self.views: dict[Var, BufferRegion] = {}
        self.found = False

    def know_views(self, block: Block) -> None:
        """Note the buffers that the block matches with regions of the buffer."""
        for match in block.match_buffers:
            if match.source.buffer is self.buffer:
                self.views[match.buffer.data] = match.source

    def visit_For(self, node: For) -> None:
        self.loops[node.loop_var] = node.domain
        self.visit(node.body)
        del self.loops[node.loop_var]

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        del node

    def visit_While(self, node: While) -> None:
        del node

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.visit(node.indices)

    def visit_Var(self, node: Var) -> None:
        # A pointer into the buffer: we trust what the block declares.
        self.found = self.found or node is self.buffer.data or node in self.views

    def visit_Buffer(self, node: Buffer) -> None:
        del node

    def visit_BufferStore(self, node: BufferStore) -> None:
        if node.predicate is not None:
            return
        indices = list(node.indices)
        view = self.views.get(node.buffer.data)
        if view is not None:
            lead = len(view.region) - len(indices)
            starts = [rng.min for rng in view.region]
            moved = [op.add(a, b) for a, b in zip(starts[lead:], indices, strict=True)]
            indices = [*starts[:lead], *moved]
        elif node.buffer is not self.buffer:
            return
        self.try_ranges(points(self.buffer, indices).region, op.const(True, "bool"))

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        inner = region_of(node.block.writes, self.buffer)
        if inner is not None and _writes_all(node.block, inner):
            ranges = substitute(inner.region, tree.bindings_of(node))
            self.try_ranges(ranges, node.predicate)

    def try_ranges(self, ranges: Sequence[Range], predicate: PrimExpr) -> None:
        """Note whether these ranges, over the loops entered, cover the region."""
        if self.found:
            return
        exact = _exact(ranges, self.loops, predicate)
        if exact is not None:
            self.found = covers(exact, self.region.region)


def check_scope_declares(
    state: ScheduleState, scope: StmtSRef, place: StmtSRef, region: BufferRegion, *, write: bool
) -> None:
    """A copy at a place accesses no more of a buffer than the block around it declares."""
    block = tree.block_of(scope)
    declared = region_of(block.writes if write else block.reads, region.buffer)
    if scope.parent is None or declared is None or is_allocated_in(region.buffer, scope):
        return
    allowed = copied_ranges(declared.region, region.buffer, place)
    if not covers(allowed, region.region, tree.analyzer_above(place)):
        raise ScopeRegionError(
            state,
            f"a copy would access {region_text(region)}, of which {name_of(scope)} declares only "
            f"{region_text(declared)}",
            scope,
        )


def covers(
    exact: Sequence[Range | IntervalSet], wanted: Sequence[Range], analyzer: Analyzer | None = None
) -> bool:
    """Whether the sets or ranges surely hold all of the ranges."""
    analyzer = analyzer or Analyzer()
    for part, rng in zip(exact, wanted, strict=True):
        if isinstance(part, Range):
            if part.min is rng.min and part.extent is rng.extent:
                continue
            low, high = part.min, op.add(part.min, part.extent)
        else:
            low, high = part.min_value, op.add(part.max_value, 1)
        end = op.add(rng.min, rng.extent)
        if not (
            analyzer.can_prove(op.less_equal(low, rng.min))
            and analyzer.can_prove(op.greater_equal(high, end))
        ):
            return False
    return True
