"""reverse_compute_inline computes a block in the store of its only producer.

The producer stores ``T[f(u)] = value(u)``, the block stores ``B[h(v)] = w(v, T[g(v)])`` with an
invertible ``g``. The producer's store becomes ``B[h(v)] = w(v, value(u))`` with ``v = g^-1(f(u))``,
guarded where ``v`` can leave the instances of the block that were executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjunction, in_range
from weft.arith.int_set import eval_set
from weft.arith.iter_map import IterMapLevel, detect_iter_map, inverse_affine_iter_map
from weft.ir.expr import PrimExpr, Range
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.structural import structural_equal
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, IterVar, Select, Var, is_call
from weft.tir.schedule import checks, dependence, rewrite, surgery, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache.reused_memory import check_values_stay
from weft.tir.schedule.primitive.compute.compute_inline import (
    InlineBodyError,
    Inliner,
    SingleBufferError,
    check_gone,
    check_no_init,
    regions_of,
    single_store,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, IfThenElse, Stmt

Expressions = Sequence[PrimExpr]


class SingleProducerError(ScheduleFailure):
    """What the block reads is not written by one complete block alone."""


class NotCoveredError(ScheduleFailure):
    """The producer does not give a value to each instance of the block."""


class UnclearInstancesError(ScheduleFailure):
    """Which instances of a block are executed, and when, is not known exactly."""


@dataclass(frozen=True)
class _Producer:
    """The producer: itself, the blocks around it below the scope, its store and its condition."""

    sref: StmtSRef
    chain: list[StmtSRef]
    store: BufferStore
    condition: PrimExpr | None


@primitive("ReverseComputeInline", "block")
def reverse_compute_inline(self: Session, block: BlockRV | str) -> None:
    """Compute a block where its only producer stores; the block and the buffer between disappear.

    Args:
        block: the block that consumes, or its name. It reads the buffer at one element, in one
            statement, and has no predicate.

    Raises:
        SingleProducerError: the buffer has no producer, several, or another consumer.
        InlineBodyError: the block is not one statement, or the element it reads cannot be solved
            for its axes.
        NotCoveredError: it reads elements that the producer does not compute.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.reverse_compute_inline("C")
    >>> sch.get_child_blocks(sch.get_block("root"))
    [BlockRV(B)]
    """
    sref = self._sref(block)
    state = self.state
    scope = checks.scope_root(state, sref)
    check_no_init(state, sref)
    buffer = _single_read(state, sref, scope)
    checks.check_complete_block(state, sref, scope)
    checks.scope_root(state, sref, stage_pipeline=True)
    producer = _producer(state, sref, scope, buffer)
    checks.check_not_output_block(state, producer.chain[0], scope)
    _check_only_consumer(state, sref, scope, producer)
    check_values_stay(state, sref, tree.lowest_common_ancestor([sref, producer.sref]))
    store = _consumer_store(state, sref)
    box = _executed(state, sref)
    _check_same_value(state, sref, producer)
    solution = _solved(state, sref, buffer, store, producer)
    realize = _inlined(state, sref, producer, store, solution, box)
    changes = {id(sref.stmt): None, id(producer.sref.stmt): realize}
    path = [*surgery.path_up(sref, scope), *surgery.path_up(producer.sref, scope)]
    reuse = {tree.block_of(producer.sref): realize.block}
    left = surgery.edited(tree.block_of(scope), changes, path, reuse)
    work = Inliner(buffer, None, regions_of(tree.block_of(sref)))
    new_scope = work.run(left)
    check_gone(state, scope, new_scope, buffer)
    state.replace(scope, new_scope, rewrite.merged(reuse, work.reuse))


# ---- the producer and the consumer


def _single_read(state: ScheduleState, sref: StmtSRef, scope: StmtSRef) -> Buffer:
    """The one buffer the block reads that the scope computes."""
    writers = dependence.hazards_below(tree.block_of(scope)).writers
    by_data: dict[Var, Buffer] = {}
    for region in tree.block_of(sref).reads:
        if region.buffer.data in writers:
            by_data[region.buffer.data] = region.buffer
    if len(by_data) != 1:
        names = ", ".join([buffer.name for buffer in by_data.values()]) or "none"
        raise SingleBufferError(
            state,
            f"{name_of(sref)} reads {len(by_data)} buffers that the scope computes ({names}), "
            "expected one",
            sref,
        )
    return next(iter(by_data.values()))


def _producer(state: ScheduleState, sref: StmtSRef, scope: StmtSRef, buffer: Buffer) -> _Producer:
    """The innermost block that writes the buffer, each block around it being complete."""
    chain: list[StmtSRef] = []
    around = scope
    while writers := [
        state.sref_of(realize)
        for realize in tree.child_realizes(tree.block_of(around))
        if any(region.buffer.data is buffer.data for region in realize.block.writes)
    ]:
        if len(writers) > 1 or writers[0] is sref:
            names = ", ".join([name_of(writer) for writer in writers])
            raise SingleProducerError(
                state, f"{buffer.name} is written by {names}, expected one producer", tuple(writers)
            )
        checks.check_complete_block(state, writers[0], around)
        check_no_init(state, writers[0])
        chain.append(writers[0])
        around = writers[0]
    if not chain:
        raise SingleProducerError(state, f"no block of the scope writes {buffer.name}", sref)
    body: Any = tree.block_of(around).body
    condition = None
    if isinstance(body, IfThenElse) and body.else_case is None:
        body, condition = body.then_case, body.condition
    if not isinstance(body, BufferStore) or body.predicate is not None:
        raise InlineBodyError(
            state, f"the body of the producer, {name_of(around)}, is no single store", around
        )
    surgery.check_pure(state, around, [body.value, *body.indices])
    return _Producer(around, chain, body, condition)


def _check_only_consumer(
    state: ScheduleState, sref: StmtSRef, scope: StmtSRef, producer: _Producer
) -> None:
    """No other block needs the buffer that disappears."""
    for block in dependence.consumers_of(tree.block_of(producer.chain[0]), tree.block_of(scope)):
        if block is not sref.stmt:
            raise SingleProducerError(
                state,
                f"{producer.store.buffer.name} is read by block {block.name_hint} too",
                (sref, state.sref_of(block)),
                "inline that block first, or use compute_inline on the producer",
            )


def _consumer_store(state: ScheduleState, sref: StmtSRef) -> BufferStore:
    """The store that is the body of the block, which has no predicate and no effects."""
    store = single_store(state, sref)
    predicate = tree.realize_of(state, sref).predicate
    if not op.is_const_int(predicate, 1):
        raise InlineBodyError(state, f"{name_of(sref)} has the predicate {predicate}", sref)
    surgery.check_self_contained(state, sref, tree.loops_above(sref))
    surgery.check_pure(state, sref, [store.value, *store.indices])
    return store


def _executed(state: ScheduleState, sref: StmtSRef) -> list[Range]:
    """The instances of the block that are executed."""
    box = surgery.executed_box(state, sref)
    if box is None:
        values = tree.realize_of(state, sref).iter_values
        raise UnclearInstancesError(
            state,
            f"which instances of {name_of(sref)} are executed is not known; its axes are "
            + ", ".join([str(value) for value in values]),
            sref,
        )
    return box


def _check_same_value(state: ScheduleState, sref: StmtSRef, producer: _Producer) -> None:
    """An element has one value while the block may read it, so the block may run earlier.

    That is so if the producer is done before the block starts, or writes each element once.
    """
    meeting = tree.lowest_common_ancestor([producer.sref, sref])
    if not isinstance(meeting.stmt, For):
        return
    iter_map = detect_iter_map(
        producer.store.indices,
        surgery.domains_of(_axes(producer)),
        True,
        IterMapLevel.Bijective,
        simplify_trivial_iterators=False,
    )
    if iter_map.indices and (
        _reads_are_fixed(producer, meeting.stmt)
        or all(_once(state, link) for link in producer.chain)
    ):
        return
    raise UnclearInstancesError(
        state,
        f"{name_of(producer.sref)} may write an element of {producer.store.buffer.name} more than "
        f"once below {name_of(meeting)}, which {name_of(sref)} is in too",
        (meeting, producer.sref),
    )


def _reads_are_fixed(producer: _Producer, meeting: For) -> bool:
    writers = dependence.hazards_below(meeting).writers
    reads = [region for link in producer.chain for region in tree.block_of(link).reads]
    return all(region.buffer.data not in writers for region in reads)


def _once(state: ScheduleState, sref: StmtSRef) -> bool:
    loops = [loop.stmt for loop in tree.loops_above(sref) if isinstance(loop.stmt, For)]
    return surgery.runs_once_per_instance(tree.realize_of(state, sref), loops)


# ---- the instance of the block that belongs to one of the producer


def _solved(
    state: ScheduleState, sref: StmtSRef, buffer: Buffer, store: BufferStore, producer: _Producer
) -> tuple[dict[Var, PrimExpr], Expressions]:
    """The axes of the block from the producer's indices, and the indices of its loads."""
    loads = [
        load
        for load in collect([store.value, *store.indices], BufferLoad)
        if load.buffer.data is buffer.data
    ]
    if not loads:
        raise InlineBodyError(state, f"{name_of(sref)} does not load {buffer.name}", sref)
    indices = loads[0].indices
    for load in loads[1:]:
        if not structural_equal(load.indices, indices):
            raise InlineBodyError(
                state,
                f"{name_of(sref)} loads {buffer.name} at different places: {loads[0]} and {load}",
                sref,
            )
    inverse = _inverse(sref, indices, indices)
    if inverse is None or not _is_identity(sref, inverse):
        raise InlineBodyError(
            state,
            f"{name_of(sref)} loads {loads[0]}, which is no invertible affine map of its axes",
            sref,
        )
    solved = _inverse(sref, indices, producer.store.indices)
    assert solved is not None
    _check_covered(state, sref, producer, solved)
    return solved, indices


def _inverse(
    sref: StmtSRef, indices: Expressions, outputs: Expressions
) -> dict[Var, PrimExpr] | None:
    """The value of each axis if the indices have the values ``outputs``; None if not known."""
    axes = tree.block_of(sref).iter_vars
    iter_map = detect_iter_map(
        indices,
        surgery.domains_of(axes),
        True,
        IterMapLevel.NoCheck,
        simplify_trivial_iterators=False,
    )
    if indices and not iter_map.indices:
        return None
    values = {
        axis.var: surgery.domain(axis).min
        for axis in axes
        if op.is_const_int(surgery.domain(axis).extent, 1)
    }
    try:
        solved = inverse_affine_iter_map(iter_map.indices, outputs)
    except IRValueError:
        return None
    values.update(solved)
    if any(axis.var not in values for axis in axes):
        return None
    return {var: op.cast(var.dtype, value) for var, value in values.items()}


def _is_identity(sref: StmtSRef, inverse: Mapping[Var, PrimExpr]) -> bool:
    """Whether the indices of its loads determine each instance of the block."""
    axes = tree.block_of(sref).iter_vars
    analyzer = analyzer_of(surgery.domains_of(axes))
    return all(analyzer.can_prove_equal(inverse[axis.var], axis.var) for axis in axes)


def _check_covered(
    state: ScheduleState, sref: StmtSRef, producer: _Producer, solved: Mapping[Var, PrimExpr]
) -> None:
    """The producer's instances reach the ends of each axis of the block."""
    domains = surgery.domains_of(_axes(producer))
    analyzer = Analyzer()
    for axis in tree.block_of(sref).iter_vars:
        dom = surgery.domain(axis)
        reached = eval_set(solved[axis.var], domains, analyzer)
        last = dom.min + dom.extent - 1
        if analyzer.can_prove(op.greater(reached.min_value, dom.min)) or analyzer.can_prove(
            op.less(reached.max_value, last)
        ):
            raise NotCoveredError(
                state,
                f"axis {axis.var.name} of {name_of(sref)} runs from {dom.min} to "
                f"{analyzer.simplify(last)}, {name_of(producer.sref)} gives {reached.min_value} to "
                f"{reached.max_value}",
                (producer.sref, sref),
            )


def _axes(producer: _Producer) -> list[IterVar]:
    return [axis for link in producer.chain for axis in tree.block_of(link).iter_vars]


# ---- the new producer


def _inlined(
    state: ScheduleState,
    sref: StmtSRef,
    producer: _Producer,
    store: BufferStore,
    solution: tuple[dict[Var, PrimExpr], Expressions],
    box: Sequence[Range],
) -> BlockRealize:
    """The producer that does the work of the block."""
    solved, indices = solution
    analyzer = analyzer_of(surgery.domains_of(_axes(producer)))
    wanted = _in_box(tree.block_of(sref), box, solved)
    inside = analyzer.simplify(wanted)
    inside = _at_same_place(analyzer, inside, indices, solved, producer.store.indices)
    realize = tree.realize_of(state, producer.sref)
    _check_written(state, sref, producer, store.value, indices, analyzer, inside)
    body: Stmt = _Inlined(solved, producer.store).visit(store)
    condition = producer.condition
    if condition is not None:
        if op.is_const_int(inside, 1) or structural_equal(inside, analyzer.simplify(condition)):
            body = IfThenElse(condition, body)
        else:
            inside = analyzer.simplify(op.logical_and(inside, condition))
    block = realize.block.with_(body=body)
    predicate = _predicate(state, producer.sref, realize, inside)
    return realize.with_(block=block, predicate=predicate)


def _in_box(block: Block, box: Sequence[Range], solved: Mapping[Var, PrimExpr]) -> PrimExpr:
    values = [solved[axis.var] for axis in block.iter_vars]
    return conjunction(map(in_range, values, box))


def _at_same_place(
    analyzer: Analyzer,
    inside: PrimExpr,
    indices: Expressions,
    solved: Mapping[Var, PrimExpr],
    written: Expressions,
) -> PrimExpr:
    """The condition under which the instance that was solved for loads the element written."""
    with analyzer.constraint_scope(inside):
        differs = [
            op.equal(there, here)
            for there, here in zip(substitute(list(indices), solved), written, strict=True)
            if not analyzer.can_prove_equal(there, here)
        ]
    for condition in differs:
        inside = op.logical_and(inside, condition)
    return analyzer.simplify(inside) if differs else inside


def _check_written(
    state: ScheduleState,
    sref: StmtSRef,
    producer: _Producer,
    value: PrimExpr,
    indices: Expressions,
    analyzer: Analyzer,
    inside: PrimExpr,
) -> None:
    """A block that loads under a condition has values where the producer stores nothing: refused.

    Without a condition it would be undefined there, and need not be computed.
    """
    buffer = producer.store.buffer
    if not _may_skip(value, buffer):
        return
    if producer.condition is not None:
        with analyzer.constraint_scope(inside):
            if not analyzer.can_prove(producer.condition):
                _fail_uncovered(state, sref, producer, f"only where {producer.condition}")
    around = analyzer_of(surgery.domains_of(tree.block_of(sref).iter_vars))
    for index, extent in zip(indices, buffer.shape, strict=True):
        low, high = op.greater_equal(index, 0), op.less(index, extent)
        if not (around.can_prove(low) and around.can_prove(high)):
            _fail_uncovered(state, sref, producer, f"nothing where {index} is outside of {extent}")


def _fail_uncovered(state: ScheduleState, sref: StmtSRef, producer: _Producer, what: str) -> None:
    raise NotCoveredError(
        state,
        f"{name_of(producer.sref)} stores {what}, {name_of(sref)} has values elsewhere too",
        (producer.sref, sref),
    )


def _may_skip(value: PrimExpr, buffer: Buffer) -> bool:
    """Whether a load of the buffer stands in an expression that is evaluated conditionally."""
    parts = collect(value, (Call, Select))
    choices = [part for part in parts if isinstance(part, Select) or is_call(part, "if_then_else")]
    return any(load.buffer.data is buffer.data for load in collect(choices, BufferLoad))


def _predicate(
    state: ScheduleState, sref: StmtSRef, realize: BlockRealize, inside: PrimExpr
) -> PrimExpr:
    """The predicate of the new producer: its old one, and that the block runs that instance."""
    if op.is_const_int(inside, 1):
        return realize.predicate
    new = Analyzer().simplify(substitute(inside, tree.bindings_of(realize)))
    if op.is_const_int(realize.predicate, 1):
        return new
    analyzer = surgery.outer_analyzer(state, sref)
    for var, dom in tree.domains(tree.loops_above(sref)).items():
        analyzer.bind(var, dom)
    with analyzer.constraint_scope(new):
        if analyzer.can_prove(realize.predicate):
            return new
    both = op.logical_and(realize.predicate, new)
    return analyzer.simplify(both)


class _Inlined(Mutator):
    """The block's store with the producer's value in place of the loads."""

    def __init__(self, solved: Mapping[Var, PrimExpr], stored: BufferStore) -> None:
        self.solved, self.stored = solved, stored

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.solved.get(node, node)

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return node

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        if node.buffer.data is self.stored.buffer.data:
            return self.stored.value
        return self.visit_default(node)
