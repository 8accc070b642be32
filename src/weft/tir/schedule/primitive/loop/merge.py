"""merge makes one loop, which runs all bodies in each iteration, of loops that follow each other.

Iteration ``i`` of a later body now runs before iteration ``i + 1`` of an earlier one. So the two
must not access the same element there; that is decided from the regions that the blocks declare,
for one merged loop after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.interval import IntervalSet
from weft.arith.region import estimate_region_upper_bound
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.expr import Var
from weft.tir.schedule import rewrite, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.loop.loops import (
    DependentLoopError,
    NotNestedError,
    body_loop,
    check_plain_loop,
    nest,
)
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, For, SeqStmt, Stmt, seq


class MergeShapeError(ScheduleFailure):
    """The loops differ in depth or extent, or do not stand side by side."""


class MergeOrderError(ScheduleFailure):
    """Merged, the loops would do things in an order that changes what is computed."""


Chain = list[For]
"""The loops from the outermost that is merged to the one given."""


@primitive("Merge", "*loops")
def merge(self: Session, *loops: LoopRV) -> LoopRV:
    """Make one loop nest of several that stand side by side.

    The new nest stands where the last one stood and runs their bodies one after the other in each
    iteration.

    Args:
        loops: one loop of each nest, the nests in the order in which their bodies shall run. From
            what is around all of them inwards, the nests have equal extents and hold nothing else.

    Returns:
        The innermost new loop.

    Raises:
        MergeShapeError: the nests differ in their extents or their depth.
        MergeOrderError: an iteration needs what a later iteration of another nest computes.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> merged = sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    >>> sch.get_child_blocks(merged)
    [BlockRV(B), BlockRV(C)]
    """
    srefs = [self._sref(loop) for loop in loops]
    state = self.state
    if len(srefs) < 2:
        raise MergeShapeError(state, f"expected at least two loops, got {len(srefs)}")
    place = tree.lowest_common_ancestor(srefs)
    chains = [_chain(state, sref, place) for sref in srefs]
    above = tree.stmt_of(place)
    positions = _positions(state, srefs, chains, above)
    for sref, chain in zip(srefs[1:], chains[1:], strict=True):
        _check_same_extents(state, srefs[0], sref, chains[0], chain)
    if state.enable_check:
        _check_order(state, place, chains, positions)
    variables = [loop.loop_var.copy_with_suffix("_m") for loop in chains[0]]
    bodies = []
    reuse: rewrite.Reuse = {}
    for chain in chains:
        mapping = {
            loop.loop_var: op.cast(loop.loop_var.dtype, variable)
            for loop, variable in zip(chain, variables, strict=True)
        }
        body, kept = rewrite.substitute(chain[-1].body, mapping)
        bodies.append(body)
        reuse.update(kept)
    merged = nest(variables, [loop.extent for loop in chains[0]], seq(*bodies))
    changes: dict[int, Stmt | None] = {id(chain[0]): None for chain in chains}
    changes[id(chains[-1][0])] = merged
    state.replace(place, surgery.edited(above, changes, [id(above)]), reuse)
    inner = merged
    for _ in variables[1:]:
        following = body_loop(inner)
        assert following is not None
        inner = following
    return self._loop_rv(inner)


# ---- the shape


def _chain(state: ScheduleState, sref: StmtSRef, place: StmtSRef) -> Chain:
    """The loops from ``place`` (not included) to ``sref``."""
    if sref is place:
        raise MergeShapeError(state, f"another of the loops is inside of {name_of(sref)}", sref)
    if tree.scope_of(sref) is not (
        place if isinstance(place.stmt, Block) else tree.scope_of(place)
    ):
        raise MergeShapeError(state, f"{name_of(sref)} is in another block than the others", sref)
    chain = [*tree.loops_above(sref, stop=place), sref]
    for item in chain:
        check_plain_loop(state, item)
    for outer, inner in itertools.pairwise(chain):
        if loop_of(outer).body is not inner.stmt:
            raise NotNestedError(
                state, f"{name_of(inner)} is not the whole body of {name_of(outer)}", (outer, inner)
            )
        used = collect([loop_of(inner).extent], Var)
        for above in chain[: chain.index(inner)]:
            if loop_of(above).loop_var in used:
                raise DependentLoopError(
                    state,
                    f"the bounds of {name_of(inner)} use {loop_of(above).loop_var.name}",
                    (above, inner),
                )
    return [loop_of(item) for item in chain]


def _positions(
    state: ScheduleState, srefs: Sequence[StmtSRef], chains: Sequence[Chain], above: For | Block
) -> list[int]:
    """The place of each nest among the statements in which they stand."""
    items = above.body.seq if isinstance(above.body, SeqStmt) else [above.body]
    positions = []
    for sref, chain in zip(srefs, chains, strict=True):
        place = next((i for i, item in enumerate(items) if item is chain[0]), None)
        if place is None or place in positions:
            raise MergeShapeError(
                state,
                f"the nest of {name_of(sref)} does not stand side by side with the others",
                sref,
            )
        positions.append(place)
    return positions


def _check_same_extents(
    state: ScheduleState, first: StmtSRef, sref: StmtSRef, first_chain: Chain, second_chain: Chain
) -> None:
    places = (first, sref)
    if len(first_chain) != len(second_chain):
        raise MergeShapeError(
            state,
            f"{name_of(first)} is the loop no. {len(first_chain)} of its nest, {name_of(sref)} no. "
            f"{len(second_chain)}",
            places,
            "merge loops at the same depth",
        )
    analyzer = Analyzer()
    for mine, its in zip(first_chain, second_chain, strict=True):
        if not analyzer.can_prove_equal(mine.extent, its.extent):
            raise MergeShapeError(
                state,
                f"loop {mine.loop_var.name} has extent {mine.extent}, loop {its.loop_var.name} "
                f"{its.extent}",
                places,
            )


# ---- the order


class _Access(NamedTuple):
    """A region that a block below a nest reads or writes."""

    block: Block
    region: BufferRegion
    writes: bool
    bounds: Sequence[IntervalSet]
    """The region over all iterations of the loops inside of the merged ones."""


def _accesses(state: ScheduleState, chain: Chain, place: StmtSRef) -> list[_Access]:
    analyzer = tree.analyzer_above(place)
    for loop in chain:
        analyzer.bind(loop.loop_var, loop.domain)
    if not tree.is_only_loops_and_blocks(chain[-1]):
        raise MergeOrderError(
            state,
            f"there is more than loops and blocks in loop {chain[-1].loop_var.name}",
            state.sref_of(chain[-1]),
        )
    inner = state.sref_of(chain[-1])
    accesses = []
    for realize in tree.child_realizes(chain[-1]):
        loops = tree.domains(tree.loops_above(state.sref_of(realize), stop=inner))
        for region, writes in _regions(realize):
            ranges = substitute(region.region, tree.bindings_of(realize))
            bounds = estimate_region_upper_bound(ranges, loops, realize.predicate, analyzer)
            accesses.append(_Access(realize.block, region, writes, bounds))
    return accesses


def _regions(realize: BlockRealize) -> Iterator[tuple[BufferRegion, bool]]:
    for region in realize.block.reads:
        yield region, False
    for region in realize.block.writes:
        yield region, True
        if realize.block.init is not None:  # a reduction also reads what it writes
            yield region, False


def _check_order(
    state: ScheduleState, place: StmtSRef, chains: Sequence[Chain], positions: Sequence[int]
) -> None:
    above = tree.stmt_of(place)
    accesses = [_accesses(state, chain, place) for chain in chains]
    items = above.body.seq if isinstance(above.body, SeqStmt) else [above.body]
    for number, position in enumerate(positions):
        low, high = sorted((position, positions[-1]))
        passed = [items[i] for i in range(low + 1, high) if i not in positions]
        _check_passes(state, place, chains[number], accesses[number], passed)
        for other in range(number):
            order = (other, number) if positions[other] < position else (number, other)
            _check_pair(
                state,
                place,
                [chains[i] for i in order],
                [accesses[i] for i in order],
                swapped=order[0] == number,
            )


def _check_passes(
    state: ScheduleState,
    place: StmtSRef,
    chain: Chain,
    mine: Sequence[_Access],
    passed: Sequence[Stmt],
) -> None:
    """A nest that moves past other statements accesses no element that they write, nor they its."""
    sources = _sources(place)
    touched: dict[Var, bool] = {}
    for access in mine:
        data = _memory(sources, access.region.buffer.data)
        touched[data] = touched.get(data, False) or access.writes
    for item in passed:
        for realize in _realizes(state, chain, item):
            for region, writes in _regions(realize):
                data = _memory(sources, region.buffer.data)
                if data in touched and (writes or touched[data]):
                    raise MergeOrderError(
                        state,
                        f"loop {chain[0].loop_var.name} would move past block "
                        f"{realize.block.name_hint}, and both access {region.buffer.name}",
                        (state.sref_of(chain[0]), state.sref_of(realize)),
                    )


def _realizes(state: ScheduleState, chain: Chain, item: Stmt) -> Sequence[BlockRealize]:
    if isinstance(item, BlockRealize):
        return [item]
    if isinstance(item, For) and tree.is_only_loops_and_blocks(item):
        return tree.child_realizes(item)
    raise MergeOrderError(
        state,
        f"loop {chain[0].loop_var.name} would move past a statement that is no loop over blocks",
        state.sref_of(chain[0]),
    )


def _check_pair(
    state: ScheduleState,
    place: StmtSRef,
    chains: Sequence[Chain],
    accesses: Sequence[Sequence[_Access]],
    *,
    swapped: bool,
) -> None:
    """The second nest accesses nothing that the first accesses in a later iteration.

    With ``swapped``, the second body also runs before the first one in the same iteration.
    """
    sources = _sources(place)
    for early in accesses[0]:
        for late in accesses[1]:
            mine, its = early.region.buffer, late.region.buffer
            same = _memory(sources, mine.data) is _memory(sources, its.data)
            if not same or not (early.writes or late.writes):
                continue
            if mine is not its or not _apart(place, chains, early, late, swapped):
                raise MergeOrderError(
                    state,
                    f"block {late.block.name_hint} might touch {early.region.buffer.name} before "
                    f"an iteration of {chains[0][-1].loop_var.name} in which block "
                    f"{early.block.name_hint} does",
                    (state.sref_of(early.block), state.sref_of(late.block)),
                )


def _sources(place: StmtSRef) -> dict[Var, Var]:
    """Data variable of a view around a place -> that of the buffer it is a view of."""
    sources = {}
    item: StmtSRef | None = place
    while item is not None:
        for match in getattr(item.stmt, "match_buffers", ()):
            sources[match.buffer.data] = match.source.buffer.data
        item = item.parent
    return sources


def _memory(sources: Mapping[Var, Var], data: Var) -> Var:
    while data in sources:
        data = sources[data]
    return data


def _apart(
    place: StmtSRef, chains: Sequence[Chain], early: _Access, late: _Access, swapped: bool
) -> bool:
    """Whether pairs of iterations whose order merging reverses access different elements."""
    depth = len(chains[0])
    return all(
        _apart_at(place, chains, early, late, level)
        for level in range(depth + 1 if swapped else depth)
    )


def _apart_at(
    place: StmtSRef, chains: Sequence[Chain], early: _Access, late: _Access, level: int
) -> bool:
    """``_apart`` for iterations that agree in the outer ``level`` loops and differ in the next."""
    analyzer = tree.analyzer_above(place)
    mapping: dict[Var, PrimExpr] = {}
    for number, (mine, its) in enumerate(zip(*chains, strict=True)):
        analyzer.bind(mine.loop_var, mine.domain)
        later: PrimExpr = op.cast(its.loop_var.dtype, mine.loop_var)
        if number < level:
            mapping[its.loop_var] = later
        elif number == level:
            ahead = Var("ahead", its.loop_var.dtype)
            zero = IntImm(ahead.dtype, 0)
            analyzer.bind(ahead, Range.from_min_extent(zero, its.extent))
            mapping[its.loop_var] = later - 1 - ahead
        else:
            analyzer.bind(its.loop_var, its.domain)
    return any(
        _disjoint(mine, _moved(its, mapping), analyzer)
        for mine, its in zip(early.bounds, late.bounds, strict=True)
    )


def _moved(part: IntervalSet, mapping: Mapping[Var, PrimExpr]) -> IntervalSet:
    if not part.is_bounded:
        return part
    low, high = substitute([part.min_value, part.max_value], mapping)
    return IntervalSet(low, high)


def _disjoint(first: IntervalSet, second: IntervalSet, analyzer: Analyzer) -> bool:
    if first.is_nothing() or second.is_nothing():
        return True
    if not (first.is_bounded and second.is_bounded):
        return False
    return bool(
        analyzer.can_prove(op.less(first.max_value, second.min_value))
        or analyzer.can_prove(op.less(second.max_value, first.min_value))
    )
