"""decompose_reduction makes the init of a reduction a block of its own."""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjunction, conjuncts, conjuncts_without
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.tir import op
from weft.tir.buffer import BufferLoad, BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import checks, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.flags import running_values
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import runs_once_per_instance
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, For, Stmt, seq


class LoopPositionError(ScheduleFailure):
    """The loop is not around the block."""


class LoopHeightError(ScheduleFailure):
    """A loop of the reduction is outside of the loop at which it shall be decomposed."""


class RepeatedBlockError(ScheduleFailure):
    """A loop repeats the reduction: an init before the loop would run once for all repetitions."""


class LateReductionError(ScheduleFailure):
    """The block does not run the first term of its sums, so another block runs the init."""


class InitPredicateError(ScheduleFailure):
    """A condition of the block depends on both spatial and reduction loops."""


@primitive("DecomposeReduction", "block loop")
def decompose_reduction(self: Session, block: BlockRV | str, loop: LoopRV) -> BlockRV:
    """Give the init of a reduction a block of its own, just before a loop.

    Without this, the init stands in the reduction's block and is tested for in each iteration.

    Args:
        block: the reduction, or its name. It is called ``<name>_update`` afterwards.
        loop: the loop around the block before which the init runs. The loops that run a reduction
            axis must be this one or inside it.

    Returns:
        The block of the init, ``<name>_init``.

    Raises:
        LoopPositionError: ``loop`` is not around the block.
        LoopHeightError: a loop outside ``loop`` runs a reduction axis.
        NotReductionBlockError: the block is no reduction.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> k = te.reduce_axis((0, 32), name="k")
    >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> i, k = sch.get_loops("B")
    >>> sch.decompose_reduction("B", k)
    BlockRV(B_init)
    """
    state, sref, at = self.state, self._sref(block), self._sref(loop)
    loops = tree.loops_above(sref)
    _check(state, sref, at, loops)
    old = tree.block_of(sref)
    realize = tree.realize_of(state, sref)
    init, used = _init_realize(old, realize)
    inner = loops[loops.index(at) :]
    chosen = [item for item in inner if loop_of(item).loop_var in used]
    _check_first_terms(state, sref, realize, inner)
    others = [item for item in inner if item not in chosen]
    _check_no_repetition(state, sref, realize, inner, others)
    dropped = {loop_of(item).loop_var for item in inner if item not in chosen}
    running = {loop_of(item).loop_var for item in loops}
    kept = _kept_predicate(state, sref, realize.predicate, dropped, running - dropped)
    init = init.with_(predicate=kept)
    update = old.with_(name_hint=f"{old.name_hint}_update", init=None, reads=_update_reads(old))
    state.replace(sref, update)
    state.replace(at, seq(_loops_around(init, chosen), loop_of(at)))
    return self._block_rv(init.block)


def _check(state: ScheduleState, sref: StmtSRef, at: StmtSRef, loops: list[StmtSRef]) -> None:
    scope = checks.scope_root(state, sref)
    if at not in loops:
        raise LoopPositionError(state, f"{name_of(at)} is not around {name_of(sref)}", (at, sref))
    checks.check_reduction_or_scan_block(state, sref, scope)
    realize = tree.realize_of(state, sref)
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if not axis.accumulates:
            continue
        kind = "ordered" if axis.iter_type == IterVar.Ordered else "reduction"
        used = set(collect(value, Var))
        for outer in loops[: loops.index(at)]:
            if loop_of(outer).loop_var in used:
                raise LoopHeightError(
                    state,
                    f"{name_of(outer)} runs the {kind} axis {axis.var.name} and is outside of "
                    f"{name_of(at)}",
                    (outer, at),
                    f"decompose at {loop_of(outer).loop_var.name} or a loop around it",
                )


def _check_first_terms(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, inner: list[StmtSRef]
) -> None:
    """At the first iteration of the loops all axes that accumulate are at their start."""
    late = late_axis(realize, inner)
    if late is not None:
        axis, first = late
        assert axis.dom is not None
        raise LateReductionError(
            state,
            f"{name_of(sref)} starts axis {axis.var.name} at {first}, its domain starts at "
            f"{axis.dom.min}: its init does not run here",
            sref,
        )


def late_axis(realize: BlockRealize, loops: Sequence[StmtSRef]) -> tuple[IterVar, PrimExpr] | None:
    """An axis that accumulates and may be past its start when the loops start; where it is."""
    starts = {loop_of(item).loop_var: loop_of(item).min for item in loops}
    analyzer = tree.analyzer_above(loops[0]) if loops else Analyzer()
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if not axis.accumulates or axis.dom is None:
            continue
        first = value
        for _ in loops:  # the start of a loop may use the loops around it
            first = substitute(first, starts)
        if not analyzer.can_prove_equal(first, axis.dom.min):
            return axis, analyzer.simplify(first)
    return None


def _check_no_repetition(
    state: ScheduleState,
    sref: StmtSRef,
    realize: BlockRealize,
    inner: list[StmtSRef],
    others: list[StmtSRef],
) -> None:
    """Every loop without a spatial axis is one of the reduction."""
    used = set(collect(realize.iter_values, Var))
    for item in others:
        if loop_of(item).loop_var not in used and not op.is_const_int(loop_of(item).extent, 1):
            raise RepeatedBlockError(
                state,
                f"{name_of(item)} repeats {name_of(sref)}, whose axes do not use it",
                (item, sref),
                f"decompose at a loop inside of {loop_of(item).loop_var.name}",
            )
    if realize.iter_values and not runs_once_per_instance(realize, [loop_of(i) for i in inner]):
        raise RepeatedBlockError(
            state,
            f"the loops from {loop_of(inner[0]).loop_var.name} inwards may run an instance of "
            f"{name_of(sref)} again: the terms would be added twice to one init",
            (inner[0], sref),
        )


def _init_realize(block: Block, realize: BlockRealize) -> tuple[BlockRealize, set[Var]]:
    """The init as a block over the spatial axes, and the loops that these use."""
    assert block.init is not None
    axes, values, mapping = [], [], {}
    for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if axis.iter_type == IterVar.DataPar:
            fresh = axis.var.copy_with_suffix("")
            mapping[axis.var] = fresh
            axes.append(IterVar(axis.dom, fresh, axis.iter_type, axis.thread_tag))
            values.append(value)
    started = [region for region in block.writes if region.buffer in running_values(block)]
    init_block = Block(
        axes,
        [],
        substitute(started, mapping),
        f"{block.name_hint}_init",
        substitute(block.init, mapping),
        annotations=block.annotations,
    )
    return BlockRealize(values, IntImm("bool", 1), init_block), set(collect(values, Var))


def _kept_predicate(
    state: ScheduleState, sref: StmtSRef, predicate: PrimExpr, dropped: set[Var], others: set[Var]
) -> PrimExpr:
    """The conditions without those on loops that the init does not run.

    A condition on such a loop and ``others`` together could guard what the init writes: refused.
    """
    for part in conjuncts(predicate):
        used = set(collect(part, Var))
        if not (used.isdisjoint(dropped) or used.isdisjoint(others)):
            raise InitPredicateError(
                state, f"{name_of(sref)} runs where {part}, on loops of both kinds of axes", sref
            )
    return conjunction(conjuncts_without(predicate, dropped))


def _update_reads(block: Block) -> list[BufferRegion]:
    """What the update reads: also what it adds to."""
    loaded = {load.buffer for load in collect(block.body, BufferLoad)}
    added_to = (running_values(block) | loaded) - {region.buffer for region in block.reads}
    return [*[region for region in block.writes if region.buffer in added_to], *block.reads]


def _loops_around(init: BlockRealize, chosen: list[StmtSRef]) -> Stmt:
    """The init under copies of the loops that its axes use."""
    renamed = {
        loop_of(item).loop_var: loop_of(item).loop_var.copy_with_suffix("_init") for item in chosen
    }
    values, predicate = substitute([init.iter_values, init.predicate], renamed)
    body: Stmt = init.with_(iter_values=values, predicate=predicate)
    for item in reversed(chosen):
        loop = loop_of(item)
        binding = loop.thread_binding
        if binding is not None:
            binding = IterVar(
                binding.dom, binding.var.copy_with_suffix(""), binding.iter_type, binding.thread_tag
            )
        body = For(
            renamed[loop.loop_var],
            substitute(loop.min, renamed),
            substitute(loop.extent, renamed),
            loop.kind,
            body,
            binding,
        )
    return body
