"""rfactor computes a reduction in two steps: partial results for a loop, and their combination.

``C[i] += A[i, ko * 8 + ki]`` factored over ``ki`` is ``C_rf[i, ki] += A[i, ko * 8 + ki]`` (parallel
over ``ki``) and then ``C[i] += C_rf[i, ki]``. Floats are added in another order; an argmax that
does not compare the indices of equal values may give another one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts, conjuncts_without
from weft.arith.linear import detect_linear_equation
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, mentions, substitute
from weft.ir.type import PointerType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import LT, IterVar, Var
from weft.tir.reduction_form import Reduction
from weft.tir.schedule import checks, rewrite, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.cache_stage import points
from weft.tir.schedule.primitive.loop.loops import LoopStartError, variables_in_bindings
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.reducer import reduction_of
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    LetStmt,
    SeqStmt,
    Stmt,
    seq,
)


class FactorLoopError(ScheduleFailure):
    """The loop cannot be factored: not serial, not of the reduction alone, or a varying extent."""


class FactorAxisError(ScheduleFailure):
    """The factored buffer has no such place for its new dimension."""


class FactorNestError(ScheduleFailure):
    """The loops around the reduction are not those of a reduction that can be factored."""


class FactorPredicateError(ScheduleFailure):
    """Some partial results would never be set."""

    hint = "factor a loop whose iterations all have a share, such as the inner one of a split"


@primitive("RFactor", "loop")
def rfactor(self: Session, loop: LoopRV, factor_axis: int) -> BlockRV:
    """Compute a reduction as partial results, one for each iteration of a loop, and then join them.

    The partial results do not depend on each other: their loop may be parallel or vectorized.

    Args:
        loop: a loop that runs a reduction axis of the block inside it.
        factor_axis: where the buffer of partial results, ``<buffer>_rf``, has the dimension for
            the loop; negative numbers count from the end.

    Returns:
        The block that computes the partial results, ``<name>_rf``. The one that joins them keeps
        the name and the BlockRV.

    Raises:
        FactorLoopError: the loop is not serial, its extent varies, or it runs spatial axes too.
        FactorAxisError: the buffer has no such dimension.
        UnknownReducerError: the reduction is no commutative one that is known.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> k = te.reduce_axis((0, 32), name="k")
    >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> outer, inner = sch.split(sch.get_loops("B")[1], factors=[None, 4])
    >>> partial = sch.rfactor(inner, factor_axis=0)
    >>> sch.get(partial).writes[0].buffer.shape
    [4, 8]
    """
    state, at = self.state, self._sref(loop)
    sref = _only_block(state, at)
    scope = checks.scope_root(state, sref, stage_pipeline=True)
    checks.check_reduction_block(state, sref, scope)
    realize, loops = tree.realize_of(state, sref), tree.loops_above(sref)
    reduced, spatial = variables_in_bindings(realize)
    _check_factor_loop(state, at, loops)
    _check_nest(state, sref, at, loops, (spatial, reduced))
    reduction = reduction_of(state, sref)
    surgery.check_pure(state, sref, reduction.operands)
    surgery.check_self_contained(state, sref, loops)
    axis = _checked_axis(state, reduction.buffers[0], factor_axis)
    factored = _Factored(realize, loop_of(at), reduction, axis)
    partial = factored.partial([loop_of(item) for item in loops])
    _check_all_set(state, sref, factored, partial, reduced)
    whole = factored.whole(_spatial_predicate(realize.predicate, reduced))
    _apply(state, sref, scope, (partial, whole), factored, reduced)
    return self._block_rv(partial.block)


# ---- checks


def _only_block(state: ScheduleState, at: StmtSRef) -> StmtSRef:
    realizes = tree.child_realizes(loop_of(at))
    if len(realizes) != 1:
        names = ", ".join([realize.block.name_hint for realize in realizes]) or "none"
        raise FactorNestError(
            state, f"{name_of(at)} has {len(realizes)} blocks ({names}), expected one", at
        )
    return state.sref_of(realizes[0])


def _check_factor_loop(state: ScheduleState, at: StmtSRef, loops: Sequence[StmtSRef]) -> None:
    loop = loop_of(at)
    if loop.kind is not ForKind.SERIAL:
        kind = loop.kind.name.lower()
        raise FactorLoopError(
            state,
            f"{name_of(at)} is {kind}, expected a serial loop",
            at,
            "factor first, then change the kind of the new loops",
        )
    if not op.is_const_int(loop.min, 0):
        raise LoopStartError(state, f"{name_of(at)} starts at {loop.min}, not at 0", at)
    used = set(collect(loop.extent, Var))
    for outer in loops:
        if loop_of(outer).loop_var in used:
            raise FactorLoopError(
                state, f"the extent of {name_of(at)} varies with {name_of(outer)}", (outer, at)
            )


def _check_nest(
    state: ScheduleState,
    sref: StmtSRef,
    at: StmtSRef,
    loops: Sequence[StmtSRef],
    touched: tuple[set[Var], set[Var]],
) -> None:
    """Each loop runs one kind of axes, and below the first of the reduction is nothing else."""
    spatial, reduced = touched
    first = tree.child_realizes(loop_of(loops[0]))[0]
    if first.block is not sref.stmt:
        raise FactorNestError(
            state,
            f"{name_of(sref)} is not the first block in {name_of(loops[0])}",
            (loops[0], sref),
            "its partial results are computed before all of the loop",
        )
    inside = False
    for item in loops:
        var = loop_of(item).loop_var
        if var in spatial and var in reduced:
            raise FactorNestError(
                state,
                f"{name_of(item)} runs both spatial and reduction axes",
                item,
                "split the loop first",
            )
        if var in reduced and not inside:
            _only_block(state, item)
            inside = True
        runs_once = op.is_const_int(loop_of(item).extent, 1)
        if item is at and var not in reduced and not runs_once:
            what = "runs a spatial axis" if var in spatial else "runs no axis"
            raise FactorLoopError(state, f"{name_of(at)} {what} of {name_of(sref)}", (at, sref))
        if inside and var not in spatial and var not in reduced and not runs_once:
            raise FactorNestError(
                state, f"{name_of(item)} is inside of the reduction and runs no axis", item
            )
    _check_kept_bounds(state, at, loops, reduced)


def _check_kept_bounds(
    state: ScheduleState, at: StmtSRef, loops: Sequence[StmtSRef], reduced: set[Var]
) -> None:
    """No loop that stays around the join has bounds that use one that goes."""
    gone = {loop_of(item).loop_var for item in loops if item is not at} & reduced
    for item in loops:
        loop = loop_of(item)
        used = set(collect([loop.min, loop.extent], Var)) & gone
        if used and loop.loop_var not in gone:
            name = next(iter(used)).name
            raise FactorNestError(state, f"the bounds of {name_of(item)} use {name}", item)


def _checked_axis(state: ScheduleState, buffer: Buffer, factor_axis: int) -> int:
    rank = len(buffer.shape)
    if not -(rank + 1) <= factor_axis <= rank:
        raise FactorAxisError(
            state,
            f"factor_axis {factor_axis} is not in [{-(rank + 1)}, {rank}]: {buffer.name} has "
            f"{rank} dimensions",
        )
    return factor_axis + rank + 1 if factor_axis < 0 else factor_axis


def _spatial_predicate(predicate: PrimExpr, reduced: set[Var]) -> PrimExpr:
    """The conditions that say nothing of the reduction: they hold for the join too."""
    return conjunction(conjuncts_without(predicate, reduced))


def _check_all_set(
    state: ScheduleState,
    sref: StmtSRef,
    factored: _Factored,
    partial: BlockRealize,
    reduced: set[Var],
) -> None:
    """Wherever the join reads partial results, their first iteration (the init) has run."""
    realize, loops = factored.realize, tree.loops_above(sref)
    conditions = [p for p in conjuncts(realize.predicate) if reduced & set(collect(p, Var))]
    if not conditions:
        return
    axes = zip(partial.block.iter_vars, partial.iter_values, strict=True)
    left = {
        v for axis, value in axes if axis.iter_type != IterVar.DataPar for v in collect(value, Var)
    }
    first = {loop_of(item).loop_var: loop_of(item).min for item in loops}
    first = {var: start for var, start in first.items() if var in left}
    analyzer = surgery.outer_analyzer(state, sref)
    for item in loops:
        analyzer.bind(loop_of(item).loop_var, loop_of(item).domain)
    with analyzer.constraint_scope(_spatial_predicate(realize.predicate, reduced)):
        for part in conditions:
            if not _always(substitute(part, first), factored.loop, analyzer):
                raise FactorPredicateError(
                    state,
                    f"{name_of(sref)} runs where {part}, which leaves iterations of the factored "
                    "loop out",
                    sref,
                )


def _always(condition: PrimExpr, loop: For, analyzer: Analyzer) -> bool:
    """Whether a condition holds in every iteration; ``a * i + b < c`` in the last one suffices."""
    if analyzer.can_prove(condition):
        return True
    if not isinstance(condition, LT) or mentions(condition.b, loop.loop_var):
        return False
    linear = detect_linear_equation(condition.a, [loop.loop_var])
    if not linear or not analyzer.can_prove(op.greater_equal(linear[0], 0)):
        return False
    last = substitute(condition, {loop.loop_var: loop.extent - 1})
    return bool(analyzer.can_prove(last))


# ---- the two blocks


@dataclass
class _Factored:
    """The blocks and buffers that take the place of one reduction block."""

    realize: BlockRealize
    loop: For
    reduction: Reduction
    axis: int
    buffers: list[Buffer] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers = [self._buffer(buffer) for buffer in self.reduction.buffers]

    @property
    def block(self) -> Block:
        """The block as it was."""
        return self.realize.block

    def _buffer(self, buffer: Buffer) -> Buffer:
        """The buffer of partial results: compact, with the new dimension."""
        pointer = buffer.data.type_annotation
        assert isinstance(pointer, PointerType)
        shape = list(buffer.shape)
        shape.insert(self.axis, self.loop.extent)
        zero = op.is_const_int(buffer.elem_offset, 0)
        return buffer.with_(
            data=Var(f"{buffer.data.name}_rf", pointer),
            name=f"{buffer.name}_rf",
            shape=shape,
            strides=(),
            elem_offset=buffer.elem_offset if zero else None,
            axis_separators=(),
            buffer_type=1,
        )

    def _loop_axis(self, loop: For, kind: int) -> IterVar:
        return IterVar(loop.domain, loop.loop_var.with_(name=f"v{loop.loop_var.name}"), kind)

    def partial(self, loops: Sequence[For]) -> BlockRealize:
        """The block of partial results, under the old loops' variables."""
        own = self._loop_axis(self.loop, IterVar.DataPar)
        axes: list[IterVar] = [own]
        values: list[PrimExpr] = [self.loop.loop_var]
        of_loop: dict[Var, Var] = {self.loop.loop_var: own.var}
        mapping: dict[Var, PrimExpr] = {}
        split = self._split_axes()
        by_var = {loop.loop_var: loop for loop in loops}
        for axis, value in zip(self.block.iter_vars, self.realize.iter_values, strict=True):
            if axis.var not in split:
                axes.append(axis)
                values.append(value)
                continue
            for var in dict.fromkeys(collect(value, Var)):
                if var in by_var and var not in of_loop:
                    loop_axis = self._loop_axis(by_var[var], IterVar.CommReduce)
                    of_loop[var] = loop_axis.var
                    axes.append(loop_axis)
                    values.append(var)
            mapping[axis.var] = op.cast(axis.var.dtype, substitute(value, of_loop))
        return self._partial_realize(axes, values, mapping, own.var)

    def _split_axes(self) -> set[Var]:
        """The reduction axes that use the factored loop, or a loop that such an axis uses."""
        rest = {
            axis.var: set(collect(value, Var))
            for axis, value in zip(self.block.iter_vars, self.realize.iter_values, strict=True)
            if axis.iter_type != IterVar.DataPar
        }
        split: set[Var] = set()
        reach = {self.loop.loop_var}
        while more := {axis for axis, used in rest.items() if axis not in split and used & reach}:
            split |= more
            reach.update(*[rest[axis] for axis in more])
        return split

    def _partial_realize(
        self, axes: list[IterVar], values: list[PrimExpr], mapping: dict[Var, PrimExpr], own: Var
    ) -> BlockRealize:
        block, updated = self.block, dict(zip(self.reduction.buffers, self.buffers, strict=True))
        reads = [region for region in block.reads if region.buffer not in updated]
        point = Range.from_min_extent(own, IntImm(own.dtype, 1))
        writes = []
        for region in block.writes:
            ranges = list(region.region)
            ranges.insert(self.axis, point)
            writes.append(BufferRegion(updated[region.buffer], ranges))
        operands = substitute(self.reduction.operands, mapping)
        reduces = any(axis.iter_type != IterVar.DataPar for axis in axes)
        body, init = self._statements(self.buffers, self.indices(own), operands, reduces)
        partial = Block(
            axes,
            substitute(reads, mapping),
            writes,
            f"{block.name_hint}_rf",
            body,
            init,
            annotations=block.annotations,
        )
        return BlockRealize(values, self.realize.predicate, partial)

    def indices(self, own: PrimExpr) -> list[PrimExpr]:
        """The indices of a partial result."""
        indices = list(self.reduction.indices)
        indices.insert(self.axis, own)
        return indices

    def whole(self, predicate: PrimExpr) -> BlockRealize:
        """The block that joins the partial results, under the old loops' variables."""
        own = self._loop_axis(self.loop, IterVar.CommReduce)
        axes: list[IterVar] = [own]
        values: list[PrimExpr] = [self.loop.loop_var]
        renamed: dict[Var, Var] = {}
        for axis, value in zip(self.block.iter_vars, self.realize.iter_values, strict=True):
            if axis.iter_type == IterVar.DataPar:
                fresh = axis.var.copy_with_suffix("")
                renamed[axis.var] = fresh
                axes.append(IterVar(axis.dom, fresh, axis.iter_type, axis.thread_tag))
                values.append(value)
        element, partial = substitute(
            [list(self.reduction.indices), self.indices(own.var)], renamed
        )
        operands = [BufferLoad(buffer, partial) for buffer in self.buffers]
        body, init = self._statements(self.reduction.buffers, element, operands, True)
        joining = Block(
            axes,
            [points(buffer, partial) for buffer in self.buffers],
            [points(buffer, element) for buffer in self.reduction.buffers],
            self.block.name_hint,
            body,
            init,
            annotations=self.block.annotations,
        )
        return BlockRealize(values, predicate, joining)

    def _statements(
        self,
        buffers: Sequence[Buffer],
        indices: Sequence[PrimExpr],
        operands: Sequence[PrimExpr],
        join: bool,
    ) -> tuple[Stmt, Stmt | None]:
        """The body of a block, and its init; without ``join`` the operands are just stored."""
        reducer = self.reduction.reducer
        if not join:
            stores = zip(buffers, operands, strict=True)
            return seq(*[BufferStore(buffer, value, indices) for buffer, value in stores]), None
        mapping: dict[Var, PrimExpr] = dict(zip(reducer.rhs, operands, strict=True))
        for var, buffer in zip(reducer.lhs, buffers, strict=True):
            mapping[var] = BufferLoad(buffer, indices)
        results = substitute(list(reducer.result), mapping)
        starts = zip(buffers, reducer.identity_element, strict=True)
        init = seq(*[BufferStore(buffer, start, indices) for buffer, start in starts])
        if len(buffers) == 1:
            return BufferStore(buffers[0], results[0], indices), init
        lets = [
            Var(f"v_{buffer.name}", value.dtype)
            for buffer, value in zip(buffers, results, strict=True)
        ]
        pairs = zip(buffers, lets, strict=True)
        body = seq(*[BufferStore(buffer, var, indices) for buffer, var in pairs])
        for var, value in reversed(list(zip(lets, results, strict=True))):
            body = LetStmt(var, value, body)
        return body, init


# ---- the edit


def _apply(
    state: ScheduleState,
    sref: StmtSRef,
    scope: StmtSRef,
    blocks: tuple[BlockRealize, BlockRealize],
    factored: _Factored,
    reduced: set[Var],
) -> None:
    partial, whole = blocks
    loops = [loop_of(item) for item in tree.loops_above(sref)]
    chain = {id(loop): loop is factored.loop or loop.loop_var not in reduced for loop in loops}
    join = _without_loops(loops[0], chain, factored.realize, whole)
    outer = tree.block_of(scope)
    top = tree.loops_above(sref)[0]
    changes = {id(top.stmt): seq(rewrite.under_copies(partial, loops), join)}
    reuse = {factored.block: whole.block}
    new_scope = surgery.edited(outer, changes, surgery.path_up(top, scope), reuse)
    new_scope = new_scope.with_(alloc_buffers=[*new_scope.alloc_buffers, *factored.buffers])
    state.replace(scope, new_scope, {**reuse, outer: new_scope})


def _without_loops(
    stmt: Stmt, chain: dict[int, bool], old: BlockRealize, new: BlockRealize
) -> Stmt:
    """``stmt`` with the realization replaced; loops of ``chain`` that are False are dissolved."""
    if stmt is old:
        return new
    if isinstance(stmt, For) and id(stmt) in chain:
        body = _without_loops(stmt.body, chain, old, new)
        return stmt.with_(body=body) if chain[id(stmt)] else body
    if isinstance(stmt, SeqStmt):
        return seq(*[_without_loops(item, chain, old, new) for item in stmt.seq])
    return stmt
