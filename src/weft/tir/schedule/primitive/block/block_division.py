"""What blockize and tensorize share: a block is divided into an outer and an inner block.

The values of the axes are divided into ``outer * extent + inner`` (``subspace_divide``): the outer
block has the outer parts as axes, the old block inside of it the inner ones. An init goes to the
outer block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjunction, conjuncts, conjuncts_without
from weft.arith.int_set import eval_region
from weft.arith.iter_map import (
    IterMapLevel,
    IterMark,
    detect_iter_map,
    normalize_iter_map_to_expr,
    subspace_divide,
)
from weft.arith.iter_map.nodes import IterSumExpr
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import rewrite, tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import domain, domains_of
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, For, Stmt


class SubspaceError(ScheduleFailure):
    """The bindings of a block do not divide into outer and inner loops."""

    hint = "split the loops so that each axis is outer * extent + inner over whole loops"


class BlockizeNestError(ScheduleFailure):
    """What shall become a block is not loops around one block, or blocks side by side."""


class BlockizeInitError(ScheduleFailure):
    """The init of the block cannot be run for the whole new block at once."""


class BlockizeOuterError(ScheduleFailure):
    """Blocks that shall be one do not agree on its axes."""


# ---- division


class Division(NamedTuple):
    """How the axes of a block are divided: axes, their values and the condition of both blocks."""

    outer_axes: list[IterVar]
    outer_values: list[PrimExpr]
    outer_condition: PrimExpr
    inner_axes: list[IterVar]
    inner_values: list[PrimExpr]
    inner_condition: PrimExpr
    mapping: dict[Var, PrimExpr]


class _Part(NamedTuple):
    """``outer * inner_extent + inner`` of one axis."""

    outer: PrimExpr
    outer_extent: PrimExpr
    inner: PrimExpr
    inner_extent: PrimExpr


def divide(
    state: ScheduleState,
    sref: StmtSRef,
    inner: Sequence[StmtSRef],
    preserve_unit_iters: bool,
    outer_axes: Sequence[IterVar] | None = None,
) -> Division:
    """The division of a block's axes by the loops ``inner``; others around it are outer.

    ``outer_axes`` are taken for the outer side instead of new ones.
    """
    realize = tree.realize_of(state, sref)
    parts, conditions = _parts(state, sref, realize, inner, preserve_unit_iters)
    division = Division([], [], conditions[0], [], [], conditions[1], {})
    for position, (axis, part) in enumerate(zip(realize.block.iter_vars, parts, strict=True)):
        outer = _axis(axis, "_o", part.outer_extent)
        if outer_axes is not None:
            outer = _shared_axis(state, sref, outer, outer_axes[position : position + 1])
        division.outer_axes.append(outer)
        division.outer_values.append(part.outer)
        if op.is_const_int(part.inner_extent, 1):
            unit = op.is_const_int(part.outer_extent, 1) and not preserve_unit_iters
            division.mapping[axis.var] = IntImm(axis.var.dtype, 0) if unit else outer.var
            continue
        own = _axis(axis, "_i", part.inner_extent)
        division.inner_axes.append(own)
        division.inner_values.append(part.inner)
        whole = op.is_const_int(part.outer_extent, 1)
        value = own.var if whole else outer.var * part.inner_extent + own.var
        division.mapping[axis.var] = op.cast(axis.var.dtype, value)
    return division


def _shared_axis(
    state: ScheduleState, sref: StmtSRef, own: IterVar, given: Sequence[IterVar]
) -> IterVar:
    """The given axis, which must be like the block's own."""
    extent = domain(own).extent
    if not given or not Analyzer().can_prove_equal(extent, domain(given[0]).extent):
        other = domain(given[0]).extent if given else "nothing"
        raise BlockizeOuterError(
            state,
            f"the outer axis {own.var.name} of {name_of(sref)} has extent {extent}, that of "
            f"the first block {other}",
            sref,
        )
    return given[0]


def _axis(axis: IterVar, suffix: str, extent: PrimExpr) -> IterVar:
    var = Var(f"{axis.var.name}{suffix}", extent.dtype)
    return IterVar(Range(extent), var, axis.iter_type)


def _parts(
    state: ScheduleState,
    sref: StmtSRef,
    realize: BlockRealize,
    inner: Sequence[StmtSRef],
    preserve_unit_iters: bool,
) -> tuple[list[_Part], tuple[PrimExpr, PrimExpr]]:
    loops = tree.loops_above(sref)
    inside = {loop_of(item).loop_var for item in inner}
    for axis in realize.block.iter_vars:
        if not op.is_const_int(domain(axis).min, 0):
            raise SubspaceError(
                state,
                f"axis {axis.var.name} of {name_of(sref)} starts at {domain(axis).min}",
                sref,
                "only axes from 0 divide",
            )
    pairs = (
        subspace_divide(
            realize.iter_values,
            tree.domains(loops),
            list(inside),
            realize.predicate,
            IterMapLevel.Surjective,
            not preserve_unit_iters,
        )
        if realize.iter_values
        else ()
    )
    outside = {loop_of(item).loop_var for item in loops} - inside
    if pairs:
        parts = [
            _affine_part(state, sref, (axis, value), pair, (outside, inside))
            for axis, value, pair in zip(
                realize.block.iter_vars, realize.iter_values, pairs[:-1], strict=True
            )
        ]
        conditions = (pairs[-1][0].extent, pairs[-1][1].extent)
        return parts, _kept_conditions(state, sref, realize, conditions, (outside, inside))
    return _trivial_parts(state, sref, realize, outside, inside)


def _affine_part(
    state: ScheduleState,
    sref: StmtSRef,
    bound: tuple[IterVar, PrimExpr],
    pair: Sequence[IterMark],
    loops: tuple[set[Var], set[Var]],
) -> _Part:
    outer, inner = pair
    is_single = all(op.is_const_int(side.extent, 1) for side in pair)
    if is_single and not op.is_const_int(domain(bound[0]).extent, 1):
        # The axis has one value here: a constant, or a loop outside of the block around this one.
        return _one_place(state, sref, bound, loops)
    for side in pair:
        source = side.source
        if isinstance(source, IterSumExpr) and not op.is_const_int(source.base, 0):
            if source.args or not is_single:  # else the one value of an axis of extent 1
                raise SubspaceError(
                    state, f"a binding of {name_of(sref)} starts at {source.base}, not at 0", sref
                )
    values = [normalize_iter_map_to_expr(side.source) for side in pair]
    moved = Analyzer().simplify(bound[1] - (values[0] * inner.extent + values[1]))
    if isinstance(moved, IntImm) and moved.value != 0:
        raise SubspaceError(
            state, f"a binding of {name_of(sref)} starts at {moved}, not at 0", sref
        )
    return _Part(values[0], outer.extent, values[1], inner.extent)


def _one_place(
    state: ScheduleState,
    sref: StmtSRef,
    bound: tuple[IterVar, PrimExpr],
    loops: tuple[set[Var], set[Var]],
) -> _Part:
    """An axis that is on one side as a whole: the inner one if its value uses an inner loop."""
    axis, value = bound
    zero, unit = IntImm(axis.var.dtype, 0), IntImm(axis.var.dtype, 1)
    extent = domain(axis).extent
    if _is_inner(state, sref, f"axis {axis.var.name} = ", value, loops):
        return _Part(zero, unit, value, extent)
    return _Part(value, extent, zero, unit)


def _trivial_parts(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, outside: set[Var], inside: set[Var]
) -> tuple[list[_Part], tuple[PrimExpr, PrimExpr]]:
    """The division where each binding uses either outer or inner loops, however it uses them."""
    parts = [
        _one_place(state, sref, bound, (outside, inside))
        for bound in zip(realize.block.iter_vars, realize.iter_values, strict=True)
    ]
    return parts, _divided_conditions(state, sref, realize, (outside, inside))


def _kept_conditions(
    state: ScheduleState,
    sref: StmtSRef,
    realize: BlockRealize,
    conditions: tuple[PrimExpr, PrimExpr],
    loops: tuple[set[Var], set[Var]],
) -> tuple[PrimExpr, PrimExpr]:
    """The conditions of a division if they say all that the predicate says; else its own parts."""
    if op.is_const_int(realize.predicate, 1):
        return conditions
    analyzer = tree.analyzer_above(sref)
    with analyzer.constraint_scope(op.logical_and(*conditions)):
        if analyzer.can_prove(realize.predicate):
            return conditions
    return _divided_conditions(state, sref, realize, loops)


def _divided_conditions(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, loops: tuple[set[Var], set[Var]]
) -> tuple[PrimExpr, PrimExpr]:
    """The parts of the predicate on outer and on inner loops."""
    outer: list[PrimExpr] = []
    inner: list[PrimExpr] = []
    analyzer = tree.analyzer_above(sref)
    for given in conjuncts(realize.predicate):
        part = analyzer.simplify(given)
        is_inner = _is_inner(state, sref, "condition ", part, loops)
        (inner if is_inner else outer).append(part)
    return conjunction(outer), conjunction(inner)


def _is_inner(
    state: ScheduleState,
    sref: StmtSRef,
    what: str,
    expr: PrimExpr,
    loops: tuple[set[Var], set[Var]],
) -> bool:
    """Whether an expression uses inner loops; an error if it uses both kinds."""
    used = set(collect(expr, Var))
    outside, inside = loops
    if used & outside and used & inside:
        raise SubspaceError(
            state,
            f"{what}{expr} of {name_of(sref)} does not divide into outer and inner loops",
            sref,
        )
    return bool(used & inside)


# ---- one block below a loop


def blockized(
    state: ScheduleState, at: StmtSRef, preserve_unit_iters: bool
) -> tuple[BlockRealize, rewrite.Reuse]:
    """The loops from ``at`` inwards as a block (``blockize``), and which block became which."""
    sref = _only_block(state, at)
    realize = tree.realize_of(state, sref)
    loops = tree.loops_above(sref)
    inner = loops[loops.index(at) :]
    division = divide(state, sref, inner, preserve_unit_iters)
    block, reuse = substituted(realize.block, division)
    reduces = block.init is not None and any(
        axis.iter_type == IterVar.CommReduce for axis in division.outer_axes
    )
    init = None
    if block.init is not None:
        _check_not_ordered(state, sref)
        init = _outer_init(state, sref, block, division, [loop_of(item) for item in inner])
        _check_runs_once(state, sref, division, inner)
    reads = [*block.writes, *block.reads] if reduces else block.reads
    inside = block.with_(iter_vars=division.inner_axes, init=None, reads=reads)
    body: Stmt = BlockRealize(division.inner_values, division.inner_condition, inside)
    for item in reversed(inner):
        body = loop_of(item).with_(body=body)
    domains = domains_of(division.inner_axes) | tree.domains(inner)
    outer = Block(
        division.outer_axes,
        relaxed(block.reads, domains),
        relaxed(block.writes, domains),
        f"{block.name_hint}_o",
        body,
        init,
    )
    reuse[realize.block] = inside
    return BlockRealize(division.outer_values, division.outer_condition, outer), reuse


def _check_not_ordered(state: ScheduleState, sref: StmtSRef) -> None:
    """No axis is ordered: the outer block's init would run once for all values of the scan."""
    for axis in tree.block_of(sref).iter_vars:
        if axis.iter_type == IterVar.Ordered:
            raise BlockizeInitError(
                state,
                f"{name_of(sref)} has an init and the ordered axis {axis.var.name}",
                sref,
                "decompose it first",
            )


def _only_block(state: ScheduleState, at: StmtSRef) -> StmtSRef:
    loop = loop_of(at)
    realizes = tree.child_realizes(loop)
    if len(realizes) != 1:
        names = ", ".join([realize.block.name_hint for realize in realizes]) or "none"
        raise BlockizeNestError(
            state,
            f"{name_of(at)} has {len(realizes)} blocks ({names}), expected one",
            at,
            "blockize the blocks as a list, or a loop around one of them",
        )
    if not tree.is_only_loops_and_blocks(loop):
        raise BlockizeNestError(
            state, f"below {name_of(at)} is something else than loops and a block", at
        )
    return state.sref_of(realizes[0])


class _Simplifying(rewrite.Substitution):
    """A substitution that simplifies each expression it changes."""

    def __init__(self, mapping: dict[Var, PrimExpr], analyzer: Analyzer) -> None:
        super().__init__(mapping)
        self.analyzer, self.depth = analyzer, 0

    def visit(self, node: Any) -> Any:
        if not isinstance(node, PrimExpr):
            return super().visit(node)
        self.depth += 1
        expr = super().visit(node)
        self.depth -= 1
        return expr if expr is node or self.depth else self.analyzer.simplify(expr)


@deep_recursion
def substituted(block: Block, division: Division) -> tuple[Block, rewrite.Reuse]:
    """The block with its axes replaced; they are still listed in it."""
    analyzer = analyzer_of(domains_of(division.inner_axes))
    work = _Simplifying(division.mapping, analyzer)
    new_block: Block = work.visit(block.with_(iter_vars=()))
    return new_block, {old: new for old, new in work.reuse.items() if new is not new_block}


def relaxed(regions: Sequence[BufferRegion], domains: dict[Var, Range]) -> list[BufferRegion]:
    """The union of the regions over all values of the inner axes."""
    boxes = []
    for region in regions:
        sets = eval_region(region.region, domains)
        shape = zip(sets, region.buffer.shape, strict=True)
        ranges = [part.cover_range(Range(extent), Analyzer()) for part, extent in shape]
        boxes.append(BufferRegion(region.buffer, ranges))
    return boxes


def _outer_init(
    state: ScheduleState, sref: StmtSRef, block: Block, division: Division, loops: Sequence[For]
) -> Stmt:
    """The init of the outer block: the old one over the inner spatial axes."""
    assert block.init is not None
    used = set(collect(block.init, Var)) | set(collect(list(block.writes), Var))
    axes, values, mapping = [], [], {}
    for axis, value in zip(division.inner_axes, division.inner_values, strict=True):
        if axis.iter_type == IterVar.DataPar and axis.var in used:
            fresh = Var(f"{axis.var.name}_init", axis.var.dtype)
            mapping[axis.var] = fresh
            axes.append(IterVar(axis.dom, fresh, axis.iter_type))
            values.append(value)
    kept = [loop for loop in loops if loop.loop_var in set(collect(values, Var))]
    gone = {loop.loop_var for loop in loops} - {loop.loop_var for loop in kept}
    predicate = _init_condition(state, sref, division.inner_condition, gone)
    init, writes = substitute(block.init, mapping), substitute(list(block.writes), mapping)
    init_block = Block(axes, [], writes, f"{block.name_hint}_init", init)
    return rewrite.under_copies(BlockRealize(values, predicate, init_block), kept)


def _check_runs_once(
    state: ScheduleState, sref: StmtSRef, division: Division, inner: Sequence[StmtSRef]
) -> None:
    """The inner loops run each instance once: a second run of the reduction would get no init."""
    used = set(collect(division.inner_values, Var))
    ranges = tree.domains(inner)
    analyzer = tree.analyzer_above(sref)
    with analyzer.constraint_scope(division.inner_condition):
        for item in inner:
            loop = loop_of(item)
            if loop.loop_var in used or op.is_const_int(loop.extent, 1):
                continue
            if not analyzer.can_prove_equal(loop.loop_var, loop.min):
                raise BlockizeInitError(
                    state,
                    f"{name_of(item)} repeats {name_of(sref)}, whose axes do not use it; "
                    "its init would not be repeated",
                    (item, sref),
                )
            ranges[loop.loop_var] = Range.from_min_extent(loop.min, IntImm(loop.min.dtype, 1))
    values, condition = division.inner_values, division.inner_condition
    if values and not detect_iter_map(values, ranges, condition, IterMapLevel.Bijective).indices:
        raise BlockizeInitError(
            state, f"{name_of(sref)} may run an instance twice, but its init only once", sref
        )


def _init_condition(
    state: ScheduleState, sref: StmtSRef, predicate: PrimExpr, gone: set[Var]
) -> PrimExpr:
    """The conditions on loops that the init has; those on loops of the reduction alone go."""
    for part in conjuncts(predicate):
        used = set(collect(part, Var))
        if not (used <= gone or used.isdisjoint(gone)):
            raise BlockizeInitError(
                state, f"{name_of(sref)} runs where {part}, on loops of both kinds of axes", sref
            )
    return conjunction(conjuncts_without(predicate, gone))
