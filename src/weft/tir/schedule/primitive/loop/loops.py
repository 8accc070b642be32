"""Loops: split, fuse, reorder (and their relatives in ``loop_structure``)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from weft.arith.analyzer_of import analyzer_of
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, IterVar, Var
from weft.tir.schedule import checks, independence, rewrite, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_stage import region_text
from weft.tir.schedule.random_variable import ExprRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import BlockRealize, For, ForKind, Stmt


class AnnotatedLoopError(ScheduleFailure):
    """The loop has annotations or a thread binding, which the new loops could not keep."""

    hint = "do this before annotating or binding the loop"


class LoopStartError(ScheduleFailure):
    """The loop does not start at zero."""


class SplitFactorError(ScheduleFailure):
    """The factors of a split do not fit the loop."""


class SplitTailError(ScheduleFailure):
    """The iterations that a split adds would do something that no predicate prevents."""

    hint = "choose factors whose product is the extent, or put the statements into blocks"


class NotNestedError(ScheduleFailure):
    """The loops are not nested directly in each other."""


class DependentLoopError(ScheduleFailure):
    """The bounds of a loop use the variable of another that is to be moved past or into it."""


class LoopOrderError(ScheduleFailure):
    """The loops cannot be reordered."""


def check_plain_loop(state: ScheduleState, sref: StmtSRef) -> None:
    """The loop starts at 0 and has neither annotations nor a thread binding."""
    loop = loop_of(sref)
    if loop.annotations or loop.thread_binding is not None:
        what = ", ".join(loop.annotations) if loop.annotations else "a thread binding"
        raise AnnotatedLoopError(state, f"{name_of(sref)} has {what}", sref)
    if not op.is_const_int(loop.min, 0):
        raise LoopStartError(state, f"{name_of(sref)} starts at {loop.min}, not at 0", sref)


def body_loop(loop: For) -> For | None:
    """The loop that is the whole body of ``loop``; None if the body is something else."""
    return loop.body if isinstance(loop.body, For) else None


# ---- split


@primitive("Split", "loop *factors")
def split(
    self: Session,
    loop: LoopRV,
    factors: Sequence[int | ExprRV | None],
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
) -> list[LoopRV]:
    """Split a loop into loops nested in each other, of the given extents.

    Where the extents multiply to more than the loop's own, the blocks inside get a predicate that
    leaves out the iterations beyond its end.

    Args:
        loop: the loop to split; it is gone afterwards.
        factors: the extents of the new loops, outermost first. One may be None: it becomes the
            smallest extent with which the others cover the loop.
        preserve_unit_iters: keep new loops of extent 1 in what the axes of blocks are bound to.
        disable_predication: add no predicate. The caller knows that the last tile is full.

    Returns:
        The new loops, outermost first.

    Raises:
        SplitFactorError: a factor is not positive, several are None, or all are given and do not
            cover the loop.
        AnnotatedLoopError: the loop has annotations or is bound to a thread, which would be lost.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> outer, inner = sch.split(sch.get_loops("B")[1], factors=[None, 8])
    >>> [sch.get(loop).extent.value for loop in sch.get_loops("B")]
    [8, 4, 8]
    """
    sref = self._sref(loop)
    check_plain_loop(self.state, sref)
    old = loop_of(sref)
    extents = _factors(self.state, sref, self._evaluated_all(factors))
    dtype = old.loop_var.dtype
    extents = [
        IntImm(dtype, e.value) if isinstance(e, IntImm) else op.cast(dtype, e) for e in extents
    ]
    variables = [old.loop_var.copy_with_suffix(f"_{i}") for i in range(len(extents))]
    value: PrimExpr = variables[0]
    for variable, extent in zip(variables[1:], extents[1:], strict=True):
        value = value * extent + variable
    body, reuse = rewrite.substitute(old.body, {old.loop_var: value})
    if not disable_predication and not _always_below(value, variables, extents, old.extent):
        _check_only_blocks(self.state, sref)
        body = rewrite.add_predicate(body, op.less(value, old.extent))
    new_nest = nest(variables, extents, body)
    self.state.replace(sref, *_simplified(sref, new_nest, reuse, preserve_unit_iters))
    return self._loop_rvs(loops_with(self.state, variables))


def _check_only_blocks(state: ScheduleState, sref: StmtSRef) -> None:
    """A predicate of blocks keeps the added iterations from doing anything."""
    if not tree.is_only_loops_and_blocks(loop_of(sref)) and _does_more(loop_of(sref).body):
        raise SplitTailError(
            state,
            f"the factors exceed the extent {loop_of(sref).extent} of {name_of(sref)}, in which "
            "there are statements outside of blocks that have no predicate",
            sref,
        )


def _does_more(stmt: Stmt) -> bool:
    """Whether anything but the blocks of a statement loads, stores or calls."""
    if isinstance(stmt, BlockRealize):
        return False
    inner = tree.substatements(stmt)
    if not inner:
        return True
    own = [getattr(stmt, name, None) for name in ("value", "condition", "min", "extent")]
    if collect([item for item in own if item is not None], (BufferLoad, Call)):
        return True
    return any(map(_does_more, inner))


def _factors(
    state: ScheduleState, sref: StmtSRef, factors: Sequence[PrimExpr | None]
) -> list[PrimExpr]:
    """The extents of the new loops, the missing one inferred."""
    extent = loop_of(sref).extent
    shown = " x ".join(["?" if factor is None else str(factor) for factor in factors])
    if not factors:
        raise SplitFactorError(state, f"{name_of(sref)}: no factors are given", sref)
    if sum(factor is None for factor in factors) > 1:
        raise SplitFactorError(
            state, f"{name_of(sref)}: the factors {shown} leave more than one open", sref,
            "at most one factor may be None",
        )  # fmt: skip
    for factor in factors:
        if isinstance(factor, IntImm) and factor.value <= 0:
            raise SplitFactorError(
                state, f"{name_of(sref)}: the factors {shown} have {factor.value}", sref,
                "factors must be at least 1",
            )  # fmt: skip
    known = [
        op.cast(extent.dtype, factor) if isinstance(factor, IntImm) else factor
        for factor in factors if factor is not None
    ]  # fmt: skip
    analyzer = tree.analyzer_above(sref)
    product: PrimExpr = IntImm(extent.dtype, 1)
    for factor in known:
        product = product * factor
    if len(known) < len(factors):
        inferred = analyzer.simplify(op.ceildiv(extent, product))
        return [inferred if factor is None else factor for factor in factors]
    if not analyzer.can_prove(op.greater_equal(product, extent)):
        raise SplitFactorError(
            state,
            f"{name_of(sref)} has extent {extent}, the factors {shown} = "
            f"{analyzer.simplify(product)} do not cover it",
            sref,
            _factor_hint(extent, known),
        )
    return known


def _factor_hint(extent: PrimExpr, factors: Sequence[PrimExpr]) -> str:
    """Factors that would do, for constants."""
    _, *rest = [f.value if isinstance(f, IntImm) else 0 for f in factors]
    if isinstance(extent, IntImm) and all(isinstance(f, IntImm) for f in factors):
        return f"{[-(-extent.value // math.prod(rest)), *rest]} does, or None for one of them"
    return "give None for one of them"


def _always_below(
    value: PrimExpr, variables: Sequence[Var], extents: Sequence[PrimExpr], extent: PrimExpr
) -> bool:
    """Whether ``value``, made of new variables of these extents, is below the old extent."""
    known = [item.value for item in extents if isinstance(item, IntImm)]
    if len(known) == len(extents) and isinstance(extent, IntImm):
        return bool(math.prod(known) <= extent.value)
    domains = [
        Range.from_min_extent(IntImm(variable.dtype, 0), item)
        for variable, item in zip(variables, extents, strict=True)
    ]
    analyzer = analyzer_of(dict(zip(variables, domains, strict=True)))
    return analyzer.can_prove(op.less(value, extent))


def nest(variables: Sequence[Var], extents: Sequence[PrimExpr], body: Stmt) -> For:
    """Serial loops from 0 around ``body``, the first variable outermost."""
    for variable, extent in zip(reversed(variables), reversed(extents), strict=True):
        body = For(variable, IntImm(variable.dtype, 0), extent, ForKind.SERIAL, body)
    assert isinstance(body, For)
    return body


def _simplified(
    sref: StmtSRef, new_nest: For, reuse: rewrite.Reuse, preserve_unit_iters: bool
) -> tuple[Stmt, rewrite.Reuse]:
    around = tree.domains(tree.loops_above(sref))
    simple, more = rewrite.simplify_bindings(new_nest, around, preserve_unit_iters)
    return simple, rewrite.merged(reuse, more)


# ---- fuse


@primitive("Fuse", "*loops")
def fuse(self: Session, *loops: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
    """Make one loop of several that are nested directly in each other.

    Args:
        loops: the loops, outermost first; they are gone afterwards.
        preserve_unit_iters: keep loops of extent 1 in what the axes of blocks are bound to.

    Returns:
        The new loop. Its extent is the product of theirs.

    Raises:
        NotNestedError: something else stands between two of the loops, or they are out of order.
        DependentLoopError: the extent of one depends on another one.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> i, j = sch.get_loops("B")
    >>> both = sch.fuse(i, j)
    >>> sch.get(both).extent.value
    256
    """
    srefs = [self._sref(loop) for loop in loops]
    if not srefs:
        raise NotNestedError(self.state, "no loops are given")
    if len(srefs) == 1:
        return self._loop_rv(srefs[0])
    for sref in srefs:
        check_plain_loop(self.state, sref)
    check_directly_nested(self.state, srefs)
    olds = [loop_of(sref) for sref in srefs]
    _check_independent_bounds(self.state, srefs)
    names = "_".join([loop.loop_var.name for loop in olds])
    widest = max([loop.loop_var.dtype for loop in olds], key=lambda dtype: dtype.bits)
    fused = Var(f"{names}_fused", widest)
    analyzer = tree.analyzer_above(srefs[0])
    mapping: dict[Var, PrimExpr] = {}
    total: PrimExpr = IntImm(widest, 1)
    # Without any iteration, there is nothing to divide the fused variable by.
    is_empty = any(op.is_const_int(loop.extent, 0) for loop in olds)
    for position, loop in reversed(list(enumerate(olds))):
        below, total = total, op.cast(widest, loop.extent) * total
        if is_empty or op.is_const_int(loop.extent, 1):
            mapping[loop.loop_var] = IntImm(loop.loop_var.dtype, 0)
            continue
        digit = fused if position == 0 else op.floormod(fused, total)
        mapping[loop.loop_var] = op.cast(loop.loop_var.dtype, op.floordiv(digit, below))
    body, reuse = rewrite.substitute(olds[-1].body, mapping)
    new_loop = nest([fused], [analyzer.simplify(total)], body)
    self.state.replace(srefs[0], *_simplified(srefs[0], new_loop, reuse, preserve_unit_iters))
    return self._loop_rv(loops_with(self.state, [fused])[0])


def check_directly_nested(state: ScheduleState, srefs: Sequence[StmtSRef]) -> None:
    """Each loop is the whole body of the one before it."""
    for outer, inner in itertools.pairwise(srefs):
        if inner.parent is not outer or loop_of(outer).body is not inner.stmt:
            raise NotNestedError(
                state, f"{name_of(inner)} is not the whole body of {name_of(outer)}",
                (outer, inner), "list directly nested loops from the outermost inwards",
            )  # fmt: skip


def _check_independent_bounds(state: ScheduleState, srefs: Sequence[StmtSRef]) -> None:
    for position, inner in enumerate(srefs):
        used = set(collect([loop_of(inner).min, loop_of(inner).extent], Var))
        for outer in srefs[:position]:
            if loop_of(outer).loop_var in used:
                raise DependentLoopError(
                    state, f"the bounds of {name_of(inner)} use {loop_of(outer).loop_var.name}",
                    (outer, inner),
                )  # fmt: skip


def loops_with(state: ScheduleState, variables: Sequence[Var]) -> list[StmtSRef]:
    """The references to the loops over ``variables``."""
    by_variable = {
        id(stmt.loop_var): sref for sref in state.references() if isinstance(stmt := sref.stmt, For)
    }
    return [by_variable[id(variable)] for variable in variables]


# ---- reorder


@primitive("Reorder", "*ordered_loops")
def reorder(self: Session, *ordered_loops: LoopRV) -> None:
    """Put loops of one nest into a new order.

    Args:
        ordered_loops: the loops, in their new order, outermost first. Loops of the nest that are
            not named keep their places.

    Raises:
        LoopOrderError: a loop is given twice, or the new order would change a result.
        NotNestedError: the loops are no chain of loops around the same blocks.
        DependentLoopError: a loop would move out of one that its extent depends on.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> i, j = sch.get_loops("B")
    >>> sch.reorder(j, i)
    >>> sch.get_loops("B")
    [LoopRV(j), LoopRV(i)]
    """
    srefs = [self._sref(loop) for loop in ordered_loops]
    if len(srefs) < 2:
        return
    chain = _checked_chain(self.state, srefs)
    check_reorderable_blocks(self.state, chain[0])
    positions = [index for index, sref in enumerate(chain) if sref in srefs]
    order = list(chain)
    for position, sref in zip(positions, srefs, strict=True):
        order[position] = sref
    _check_bounds_after(self.state, order)
    _check_sums_stay_whole(self.state, chain, order)
    _check_stores_in_order(self.state, chain, order)
    body = loop_of(chain[-1]).body
    for sref in reversed(order):
        body = loop_of(sref).with_(body=body)
    self.state.replace(chain[0], body)


def _checked_chain(state: ScheduleState, srefs: Sequence[StmtSRef]) -> list[StmtSRef]:
    """The loops from the outermost of ``srefs`` to the innermost, directly nested."""
    if len(set(map(id, srefs))) < len(srefs):
        twice = next(s for i, s in enumerate(srefs) if s in srefs[:i])
        raise LoopOrderError(state, f"{name_of(twice)} is listed twice", twice)
    wanted = {id(sref) for sref in srefs}
    depth = {id(sref): len(tree.loops_above(sref)) for sref in srefs}
    bottom = max(srefs, key=lambda sref: depth[id(sref)])
    path = [*tree.loops_above(bottom), bottom]
    for sref in srefs:
        if sref not in path:
            raise NotNestedError(
                state, f"{name_of(sref)} and {name_of(bottom)} are not in one nest", (sref, bottom)
            )
    first = next(index for index, sref in enumerate(path) if id(sref) in wanted)
    chain = path[first:]
    check_directly_nested(state, chain)
    return chain


def check_reorderable_blocks(state: ScheduleState, top: StmtSRef) -> None:
    """The iterations below ``top`` may run in any order.

    Every block has spatial, reduction and ordered axes and an affine binding; where there are
    several, what one reads of another was written in the same iteration (the scope is a stage
    pipeline).
    """
    if not state.enable_check:
        return
    realizes = tree.child_realizes(loop_of(top))
    for realize in realizes:
        sref = state.sref_of(realize)
        for axis in realize.block.iter_vars:
            if axis.iter_type != IterVar.DataPar and not axis.accumulates:
                raise LoopOrderError(
                    state,
                    f"axis {axis.var.name} of {name_of(sref)} is neither spatial nor a reduction "
                    "nor ordered",
                    sref,
                )
        checks.check_affine_binding(state, sref)
    if len(realizes) > 1:
        checks.scope_root(state, top, stage_pipeline=True)


def _check_sums_stay_whole(
    state: ScheduleState, chain: Sequence[StmtSRef], order: Sequence[StmtSRef]
) -> None:
    """The first term of each reduction, which runs the init, stays the first.

    It does in any order if spatial axes and those that accumulate use different loops and no
    instance runs twice; else the loops that matter keep their order.
    """
    for realize in tree.child_realizes(loop_of(chain[0])) if state.enable_check else ():
        terms, places = variables_in_bindings(realize)
        if realize.block.init is None or not terms:
            continue
        loops = [loop_of(s) for s in tree.loops_above(state.sref_of(realize))]
        once = surgery.runs_once_per_instance(realize, loops)
        if once and terms.isdisjoint(places):
            continue
        fixed = [s for s in chain if not once or loop_of(s).loop_var in terms]
        if [sref for sref in order if sref in fixed] != fixed:
            names = ", ".join([loop_of(sref).loop_var.name for sref in fixed])
            raise LoopOrderError(
                state,
                f"block {realize.block.name_hint} might not add the first term of each sum first; "
                f"keep {names} in this order",
                tuple(fixed),
            )


def _check_stores_in_order(
    state: ScheduleState, chain: Sequence[StmtSRef], order: Sequence[StmtSRef]
) -> None:
    """Instances of a block that access one element of what it writes keep their order.

    Such instances differ only in axes that are not pinned (see ``independence``). Terms of a
    reduction may be added in any order; instances along an ordered axis keep theirs.
    """
    for realize in tree.child_realizes(loop_of(chain[0])) if state.enable_check else ():
        pinned = independence.pinned_axes(realize.block)
        free = [
            (axis, value)
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.var not in pinned or axis.iter_type == IterVar.Ordered
        ]
        if all(axis.iter_type == IterVar.CommReduce for axis, _ in free):
            continue
        used = set(collect([value for _, value in free], Var))
        fixed = [sref for sref in chain if loop_of(sref).loop_var in used]
        if [sref for sref in order if sref in fixed] != fixed:
            names = ", ".join([loop_of(sref).loop_var.name for sref in fixed])
            places = ", ".join([region_text(region) for region in realize.block.writes])
            raise LoopOrderError(
                state,
                f"instances of block {realize.block.name_hint} may access the same elements of "
                f"{places} one after another; keep {names} in this order",
                tuple(fixed),
            )


def variables_in_bindings(realize: BlockRealize) -> tuple[set[Var], set[Var]]:
    """The variables in the values of axes that accumulate, and of other axes."""
    used: dict[bool, set[Var]] = {False: set(), True: set()}
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        used[axis.accumulates].update(collect(value, Var))
    return used[True], used[False]


def _check_bounds_after(state: ScheduleState, order: Sequence[StmtSRef]) -> None:
    inner = {loop_of(sref).loop_var: sref for sref in order}
    for sref in order:
        loop = loop_of(sref)
        for used in collect([loop.min, loop.extent], Var):
            if used in inner:
                raise DependentLoopError(
                    state,
                    f"the bounds of {name_of(sref)} use {used.name}, which would be inside of it",
                    (sref, inner[used]),
                )
        del inner[loop.loop_var]
