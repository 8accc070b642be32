"""What primitives that move or inline blocks share: cutting a block out, checks of instances.

``edited`` changes several places below one loop or block at once, so that a block taken out at one
place and put in at another keeps its reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, in_range
from weft.arith.iter_map import IterMapLevel, detect_iter_map
from weft.arith.region import estimate_region_lower_bound
from weft.ir.expr import IntImm, Range
from weft.ir.functor import collect
from weft.ir.node import Node
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.expr import Call, IterVar, Var
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.schedule import flags, rewrite, tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, For, IfThenElse, SeqStmt, Stmt, seq


class OnlyLeafError(ScheduleFailure):
    """The block is the only one in its scope: without it the scope would be empty."""


class OuterVariableError(ScheduleFailure):
    """The body of the block uses loops around it directly, not through its axes."""

    hint = "bind the loop to an axis of the block and use the axis"


class ImpureValueError(ScheduleFailure):
    """The block calls something that has effects, which cannot be repeated or moved."""


# ---- edits at several places


@deep_recursion
def edited(
    top: For | Block,
    changes: Mapping[int, Stmt | None],
    path: Iterable[int],
    reuse: rewrite.Reuse | None = None,
) -> Any:
    """``top`` with statements replaced, or taken out where the new one is None.

    ``changes`` is by the identity of a loop or block (a block may become a BlockRealize); ``path``
    are the identities of all loops and blocks above them, ``top`` included. A loop whose body is
    gone is taken out too; None if nothing is left of ``top``. ``reuse`` gets the blocks between.
    """
    inside = set(path)

    def visit(stmt: Stmt) -> Stmt | None:
        node = stmt.block if isinstance(stmt, BlockRealize) else stmt
        if id(node) in changes:
            return changes[id(node)]
        if isinstance(node, (For, Block)):
            if id(node) not in inside:
                return stmt
            new = with_body(node)
            if new is None or not isinstance(stmt, BlockRealize):
                return new
            if reuse is not None and isinstance(new, Block):
                reuse[stmt.block] = new
            return stmt.with_(block=new)
        if isinstance(stmt, SeqStmt):
            visited = [visit(item) for item in stmt.seq]
            left = [item for item in visited if item is not None]
            same = len(left) == len(stmt.seq) and all(map(_is, left, stmt.seq))
            return stmt if same else seq(*left) if left else None
        if isinstance(stmt, IfThenElse) or not tree.substatements(stmt):
            return stmt
        return with_body(stmt)

    def with_body(stmt: Any) -> Stmt | None:
        body = visit(stmt.body)
        return None if body is None else stmt.with_(body=body)

    return with_body(top)


def _is(first: object, second: object) -> bool:
    return first is second


def path_up(sref: StmtSRef, top: StmtSRef) -> list[int]:
    """The identities of what is above a reference, up to ``top`` (included)."""
    path = []
    item = sref.parent
    while item is not None:
        path.append(id(item.stmt))
        if item is top:
            break
        item = item.parent
    return path


def only_leaf(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> OnlyLeafError:
    """The error of taking the last block out of a scope."""
    return OnlyLeafError(
        state, f"{name_of(sref)} is the only one in {name_of(scope)}, which cannot be empty", sref
    )


# ---- what a block may refer to


def check_self_contained(state: ScheduleState, sref: StmtSRef, loops: Sequence[StmtSRef]) -> None:
    """The block uses the loops through its axes alone."""
    used = rewrite.variables_of(tree.block_of(sref))
    for loop in loops:
        if isinstance(loop.stmt, For) and loop.stmt.loop_var in used:
            raise OuterVariableError(
                state,
                f"{name_of(sref)} uses {loop.stmt.loop_var.name} of the loop around it directly",
                (loop, sref),
            )


def check_pure(state: ScheduleState, sref: StmtSRef, exprs: Sequence[Node]) -> None:
    """No call in the expressions has an effect, as it must not be repeated or moved."""
    for call in collect(exprs, Call):
        if effect_of(call) not in (
            CallEffectKind.Pure,
            CallEffectKind.ReadState,
            CallEffectKind.ExprAnnotation,
        ):
            called = getattr(call.op, "name", None) or getattr(call.op, "name_hint", "?")
            raise ImpureValueError(
                state,
                f"{name_of(sref)} calls {called}, which may have effects",
                sref,
                "use T.call_pure_extern for a function without effects",
            )


# ---- which instances of a block are executed


def domain(axis: IterVar) -> Range:
    """The declared domain of a block's axis."""
    assert axis.dom is not None
    return axis.dom


def domains_of(axes: Iterable[IterVar]) -> dict[Var, Range]:
    """The declared domain of the variable of each axis."""
    return {axis.var: domain(axis) for axis in axes}


def is_remap(realize: BlockRealize, loops: Sequence[StmtSRef]) -> bool:
    """Whether each axis is a loop of its own over just its domain, without a predicate."""
    if not op.is_const_int(realize.predicate, 1):
        return False
    by_var = {loop.stmt.loop_var: loop.stmt for loop in loops if isinstance(loop.stmt, For)}
    seen = set()
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        dom = domain(axis)
        if op.is_const_int(dom.extent, 1) and _same(dom.min, value):
            continue
        loop = by_var.get(value) if isinstance(value, Var) else None
        if loop is None or value in seen:
            return False
        seen.add(value)
        if not (_same(loop.min, dom.min) and _same(loop.extent, dom.extent)):
            return False
    return True


def _same(a: object, b: object) -> bool:
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return bool(a.value == b.value)
    return a is b


def executed_box(state: ScheduleState, sref: StmtSRef) -> list[Range] | None:
    """The instances of a block that are executed, as the range of each axis.

    They are all combinations of these; None where that is not known. The declared domain is given
    where it is all executed.
    """
    realize = tree.realize_of(state, sref)
    axes = realize.block.iter_vars
    loops = tree.loops_above(sref)
    if is_remap(realize, loops):
        return [domain(axis) for axis in axes]
    analyzer = outer_analyzer(state, sref)
    points = [Range.from_min_extent(v, IntImm(v.dtype, 1)) for v in realize.iter_values]
    bounds = estimate_region_lower_bound(points, tree.domains(loops), realize.predicate, analyzer)
    if bounds is None or any(part.is_nothing() or not part.is_bounded for part in bounds):
        return None
    box = []
    for axis, part in zip(axes, bounds, strict=True):
        dom = domain(axis)
        last = dom.min + dom.extent - 1
        if analyzer.can_prove_equal(part.min_value, dom.min) and analyzer.can_prove_equal(
            part.max_value, last
        ):
            box.append(dom)
        else:
            extent = analyzer.simplify(part.max_value - part.min_value + 1)
            box.append(Range.from_min_extent(part.min_value, extent))
    return box


def outer_analyzer(state: ScheduleState, sref: StmtSRef) -> Analyzer:
    """An analyzer that knows the scope around a block, and that extents are not negative."""
    scope = tree.scope_of(sref)
    assert scope is not None
    analyzer = tree.analyzer_above(scope)
    know_shapes(state, sref, analyzer)
    return analyzer


def know_shapes(state: ScheduleState, sref: StmtSRef, analyzer: Analyzer) -> None:
    """Tell the analyzer that extents of parameters are not negative, computed ones neither."""
    for buffer in state.function_of(sref)[1].buffer_map.values():
        for extent in buffer.shape:
            if not isinstance(extent, IntImm):
                analyzer.bind_nonnegative(extent)


def is_implied_by_domains(realize: BlockRealize, analyzer: Analyzer) -> bool:
    """Whether the predicate says no more than that the axes are inside their domains."""
    domains = [domain(axis) for axis in realize.block.iter_vars]
    condition = conjunction(map(in_range, realize.iter_values, domains))
    with analyzer.constraint_scope(analyzer.simplify(condition)):
        return bool(analyzer.can_prove(realize.predicate))


def runs_once_per_instance(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether no two iterations of the loops execute the same instance of the block."""
    repeating = {loop.loop_var for loop in loops if not op.is_const_int(loop.extent, 1)}
    plain = [value for value in realize.iter_values if isinstance(value, Var)]
    if len(set(plain)) == len(plain) and repeating.issubset(plain):
        return True
    if flags.is_one_to_one(realize, loops):
        return True
    ranges = {loop.loop_var: loop.domain for loop in loops}
    iter_map = detect_iter_map(
        realize.iter_values,
        ranges,
        realize.predicate,
        IterMapLevel.Bijective,
        simplify_trivial_iterators=False,
    )
    if realize.iter_values:
        return bool(iter_map.indices)
    return all(op.is_const_int(loop.extent, 1) for loop in loops)


def adds_each_term_once(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether a reduction runs all its terms, from the init on, and none of them twice.

    From the outermost loop over terms inwards, no instance runs twice. Loops further out may
    repeat the whole sum.
    """
    values = [
        value
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if axis.accumulates
    ]
    used = set(collect(values, Var))
    first = next((i for i, loop in enumerate(loops) if loop.loop_var in used), len(loops))
    return runs_once_per_instance(realize, loops[first:])
