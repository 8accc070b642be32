"""decompose_padding fills a buffer with a constant first, then computes only what is in bounds.

A padding block stores ``if_then_else(condition, value, constant)``. It becomes a block that stores
the constant everywhere, before the given loop, and one that stores the value where the condition
holds, which for conditions on single axes is a smaller box. Beyond TVM 0.20, refused are stores in
which two instances may write one element: the second block would undo a constant that was stored
after the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjunction, conjuncts
from weft.arith.iter_map import IterMapLevel, detect_iter_map
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import substitute
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.expr import Call, IterVar, Var
from weft.tir.schedule import checks, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.cache import cache_checks as legal
from weft.tir.schedule.primitive.cache.reindex import is_injective
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import check_pure, check_self_contained, domains_of, edited, path_up
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, seq


class PaddingPatternError(ScheduleFailure):
    """The block is no padding block: one store of if_then_else(condition, value, constant)."""


class PaddingRegionError(ScheduleFailure):
    """The condition does not bound the axes one by one."""


class PaddingPlaceError(ScheduleFailure):
    """The loop is not around the block, or the constant would be stored too early."""


@dataclass
class _Padding:
    """What a padding block does: ``box`` are the in-bounds values of its axes."""

    value: PrimExpr
    constant: PrimExpr
    predicate: PrimExpr
    box: list[Range]


@primitive("DecomposePadding", "block loop")
def decompose_padding(self: Session, block: BlockRV | str, loop: LoopRV) -> BlockRV:
    """Make two blocks of one that pads: one fills in the constant, the other copies without a test.

    Args:
        block: the block that pads, or its name: it stores a value where a condition holds and a
            constant elsewhere. It becomes the one that copies.
        loop: the loop around the block before which the constant is filled in.

    Returns:
        The block that fills, ``<name>_pad_const``.

    Raises:
        PaddingPatternError: the block does not store a value or a constant by a condition.
        PaddingRegionError: where the condition holds is not known to be a box.
        PaddingPlaceError: the loop is not around the block, or the buffer is read before it.

    >>> from weft import te, tir
    >>> A = te.placeholder((30,), name="A")
    >>> P = te.compute(
    ...     (32,), lambda i: tir.if_then_else(tir.all(1 <= i, i < 31), A[i - 1], 0.0), name="P"
    ... )
    >>> sch = tir.Schedule(te.create_prim_func([A, P]))
    >>> loop = sch.get_loops("P")[0]
    >>> zeros = sch.decompose_padding("P", loop)
    >>> zeros, sch.get(sch.get_loops("P")[0]).extent.value
    (BlockRV(P_pad_const), 30)
    """
    state, sref, loop_sref = self.state, self._sref(block), self._sref(loop)
    loops = tree.loops_above(sref)[::-1]  # innermost first
    padding = _check(state, sref, loop_sref, loops)
    realize = tree.realize_of(state, sref)
    upto = next(i for i, item in enumerate(loops) if item is loop_sref)
    alone = tree.alone_in(sref, loops[: upto + 1])
    stmts = [item.stmt for item in loops if isinstance(item.stmt, For)]
    fill, filler = _filling(realize, padding, stmts[: upto + 1], stmts[upto + 1 :])
    inner, computing = _computing(realize, padding, stmts, alone)
    place = loops[alone - 1] if alone else None
    old = tree.block_of(sref)
    reuse: rewrite.Reuse = {old: computing}
    target: Any = realize.block if place is None else place.stmt
    if place is loop_sref:
        state.replace(loop_sref, seq(fill, inner), reuse)
    else:
        path = path_up(sref if place is None else place, loop_sref)
        new_loop = edited(stmts[upto], {id(target): inner}, path, reuse)
        state.replace(loop_sref, seq(fill, new_loop), reuse)
    return self._block_rv(filler)


def can_decompose_padding(self: Session, block: BlockRV | str, loop: LoopRV) -> bool:
    """Return whether ``decompose_padding`` would accept a block and a loop; nothing is changed.

    Args:
        block: the block that pads, or its name.
        loop: the loop around the block before which the constant would be filled in.

    >>> from weft import te, tir
    >>> A = te.placeholder((30,), name="A")
    >>> P = te.compute(
    ...     (32,), lambda i: tir.if_then_else(tir.all(1 <= i, i < 31), A[i - 1], 0.0), name="P"
    ... )
    >>> sch = tir.Schedule(te.create_prim_func([A, P]))
    >>> sch.can_decompose_padding("P", sch.get_loops("P")[0])
    True
    """
    block_rv = self._block_named(block)
    sref, loop_sref = self._sref(block_rv), self._sref(loop)
    try:
        _check(self.state, sref, loop_sref, tree.loops_above(sref)[::-1])
    except ScheduleFailure:
        return False
    return True


def _check(
    state: ScheduleState, sref: StmtSRef, loop: StmtSRef, loops: Sequence[StmtSRef]
) -> _Padding:
    scope = checks.scope_root(state, sref)
    checks.check_complete_block(state, sref, scope)
    if not any(item is loop for item in loops):
        raise PaddingPlaceError(state, f"{name_of(loop)} is not around {name_of(sref)}", loop)
    check_self_contained(state, sref, loops)
    block = tree.block_of(sref)
    store, value, constant, condition = _matched(state, sref, block)
    check_pure(state, sref, [value])
    if not is_injective(store.indices, domains_of(block.iter_vars)):
        raise PaddingPatternError(
            state,
            f"{name_of(sref)} may store an element of {store.buffer.name} twice: what is in "
            "bounds in one instance would be padding in another",
            sref,
        )
    for reader in _early_readers(state, sref, scope, store):
        raise PaddingPlaceError(
            state,
            f"{reader.name_hint} reads {store.buffer.name} before {name_of(sref)} stores it",
            (state.sref_of(reader), sref),
        )
    return _bounded(state, sref, loops, value, constant, condition)


def _early_readers(
    state: ScheduleState, sref: StmtSRef, scope: StmtSRef, store: BufferStore
) -> list[Block]:
    assert isinstance(sref.stmt, Block)
    early, _ = legal.readers_around(store.buffer, scope, sref.stmt)
    return [item for item in early if item is not sref.stmt]


def _matched(
    state: ScheduleState, sref: StmtSRef, block: Block
) -> tuple[BufferStore, PrimExpr, PrimExpr, PrimExpr]:
    """The store of a padding block: its value, the constant, the condition."""
    store, reason = block.body, ""
    if not isinstance(store, BufferStore):
        reason = f"its body is a {type(store).__name__}, no store"
    elif not isinstance(store.value, Call) or getattr(store.value.op, "name", "") != (
        "tir.if_then_else"
    ):
        reason = f"the value is {store.value}, not T.if_then_else(condition, value, constant)"
    elif not isinstance(store.value.args[2], (IntImm, FloatImm)):
        reason = f"the value of padding, {store.value.args[2]}, is no constant"
    elif block.alloc_buffers or block.match_buffers or len(block.writes) != 1:
        reason = "it has buffers or views of its own"
    if reason:
        raise PaddingPatternError(state, f"{name_of(sref)} is no padding block: {reason}", sref)
    assert isinstance(store, BufferStore)
    assert isinstance(store.value, Call)
    condition, value, constant = store.value.args
    return store, value, constant, condition


def _bounded(
    state: ScheduleState,
    sref: StmtSRef,
    loops: Sequence[StmtSRef],
    value: PrimExpr,
    constant: PrimExpr,
    condition: PrimExpr,
) -> _Padding:
    """The box of the axes for which the condition holds."""
    realize = tree.realize_of(state, sref)
    domains = tree.domains(loops)
    analyzer = analyzer_of(domains)
    bound = substitute(condition, tree.bindings_of(realize))
    predicate = analyzer.simplify(conjunction(conjuncts(op.logical_and(bound, realize.predicate))))
    if op.is_const_int(predicate, 1):
        raise PaddingPatternError(
            state, f"{name_of(sref)} has no padding: {condition} always holds", sref
        )
    iter_map = detect_iter_map(
        realize.iter_values, domains, predicate, IterMapLevel.Surjective, analyzer=analyzer
    )
    if not iter_map.indices:
        reason = iter_map.errors[0] if iter_map.errors else "no affine map"
        raise PaddingRegionError(
            state,
            f"{condition} does not bound the axes of {name_of(sref)} one by one: {reason}",
            sref,
        )
    box = []
    for total in iter_map.indices:
        extent: PrimExpr = IntImm(total.dtype, 1)
        if total.args:
            if len(total.args) != 1 or not op.is_const_int(total.args[0].scale, 1):
                raise PaddingRegionError(
                    state, f"the in-bounds values of an axis of {name_of(sref)} have steps", sref
                )
            extent = total.args[0].extent
        box.append(Range.from_min_extent(total.base, extent))
    return _Padding(value, constant, predicate, box)


def _filling(
    realize: BlockRealize, padding: _Padding, loops: Sequence[For], outer: Sequence[For]
) -> tuple[Stmt, Block]:
    """The block that stores the constant, with loops of its own below the ``outer`` ones."""
    block = realize.block
    store = block.body
    assert isinstance(store, BufferStore)
    analyzer = Analyzer()
    mapping: dict[Var, PrimExpr] = {}
    axes = []
    for axis in block.iter_vars:
        mapping[axis.var] = axis.var.copy_with_suffix("")
        axes.append(IterVar(axis.dom, mapping[axis.var], IterVar.DataPar))
    indices = [_moved(index, mapping, analyzer) for index in store.indices]
    filler = Block(
        axes,
        [],
        [_region(block.writes[0], mapping, analyzer)],
        block.name_hint + "_pad_const",
        store.with_(value=padding.constant, indices=indices),
    )
    for loop in outer:
        analyzer.bind(loop.loop_var, loop.domain)
    for loop in loops:
        mapping[loop.loop_var] = loop.loop_var.copy_with_suffix("")
    values = [_moved(value, mapping, analyzer) for value in realize.iter_values]
    predicate = _moved(realize.predicate, mapping, analyzer)
    nest: Stmt = BlockRealize(values, predicate, filler)
    for loop in loops:
        nest = For(mapping[loop.loop_var], loop.min, loop.extent, ForKind.SERIAL, nest)
    return nest, filler


def _region(region: BufferRegion, mapping: dict[Var, PrimExpr], analyzer: Analyzer) -> BufferRegion:
    ranges = [
        Range.from_min_extent(
            _moved(rng.min, mapping, analyzer), _moved(rng.extent, mapping, analyzer)
        )
        for rng in region.region
    ]
    return BufferRegion(region.buffer, ranges)


def _moved(expr: PrimExpr, mapping: dict[Var, PrimExpr], analyzer: Analyzer) -> PrimExpr:
    """The expression over the variables of a new block."""
    return analyzer.simplify(substitute(expr, mapping))


def _computing(
    realize: BlockRealize, padding: _Padding, loops: Sequence[For], alone: int
) -> tuple[Stmt, Block]:
    """The block that stores the value in bounds, inside the loops that run nothing else.

    Such a loop bound to an axis runs over the in-bounds values alone.
    """
    block = realize.block
    store = block.body
    assert isinstance(store, BufferStore)
    ranges = {loop.loop_var: loop.domain for loop in loops}
    own = {loop.loop_var for loop in loops[:alone]}
    mapping: dict[Var, PrimExpr] = {}
    axes, bindings, narrowed = [], [], set()
    for axis, value, part in zip(block.iter_vars, realize.iter_values, padding.box, strict=True):
        var = axis.var.copy_with_suffix("")
        dom = Range.from_min_extent(IntImm(var.dtype, 0), part.extent)
        axes.append(IterVar(dom, var, IterVar.DataPar))
        mapping[axis.var] = op.add(var, part.min)
        if isinstance(value, Var) and value in own:
            ranges[value] = Range.from_min_extent(IntImm(value.dtype, 0), part.extent)
            mapping[value] = op.add(value, part.min)
            narrowed.add(value)
        bindings.append((value, part.min))
    analyzer = analyzer_of(ranges)
    values = [
        value if value in narrowed else analyzer.simplify(op.subtract(value, low))
        for value, low in bindings
    ]
    computing = Block(
        axes,
        [_region(region, mapping, analyzer) for region in block.reads],
        [_region(region, mapping, analyzer) for region in block.writes],
        block.name_hint,
        store.with_(
            value=_moved(padding.value, mapping, analyzer),
            indices=[_moved(index, mapping, analyzer) for index in store.indices],
        ),
    )
    nest: Stmt = BlockRealize(values, _moved(padding.predicate, mapping, analyzer), computing)
    for loop in loops[:alone]:
        dom = ranges[loop.loop_var]
        nest = loop.with_(min=dom.min, extent=dom.extent, body=nest)
    return nest, computing
