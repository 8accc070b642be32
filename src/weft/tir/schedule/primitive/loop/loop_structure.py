"""loop_partition, add_unit_loop and reorder_block_iter_var."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import mentions
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_read_write_region
from weft.tir.buffer import BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import RootBlockError, ScheduleFailure, name_of
from weft.tir.schedule.primitive.loop.loops import AnnotatedLoopError, loops_with
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of
from weft.tir.stmt import Block, BlockRealize, For, ForKind, Stmt, seq
from weft.tir.stmt_functor import redefined


class AxisOrderError(ScheduleFailure):
    """The order given is no permutation of the axes of the block."""


class SymbolicLoopError(ScheduleFailure):
    """The bounds of the loop are not constant."""


class PartitionFactorError(ScheduleFailure):
    """The parts do not fit the loop."""


class PartitionedReductionError(ScheduleFailure):
    """The loop runs a reduction that starts with an init, which each part would run again."""

    hint = "use decompose_reduction first"


# ---- reorder_block_iter_var


def _plain_order(self: Session, arguments: dict[str, Any]) -> None:
    arguments["new_order"] = [getattr(item, "value", item) for item in arguments["new_order"]]


@primitive("ReorderBlockIterVar", "block new_order", canonical=_plain_order)
def reorder_block_iter_var(self: Session, block: BlockRV | str, new_order: list[int]) -> None:
    """Put the axes of a block into another order; the loops stay as they are.

    Args:
        block: the block, or its name.
        new_order: the old place of each axis, in the new order.

    Raises:
        AxisOrderError: ``new_order`` does not name each place once.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.reorder_block_iter_var("B", new_order=[1, 0])
    >>> [axis.var.name for axis in sch.get(sch.get_block("B")).iter_vars]
    ['v_j', 'v_i']
    """
    sref = self._sref(block)
    old = tree.block_of(sref)
    count = len(old.iter_vars)
    if sorted(new_order, key=str) != sorted(range(count), key=str):
        raise AxisOrderError(
            self.state,
            f"{name_of(sref)} has {count} axes, {new_order} is no order of them",
            sref,
            f"list each of 0 to {count - 1} once" if count else "give an empty list",
        )
    if count < 2:
        return
    reordered = old.with_(iter_vars=[old.iter_vars[place] for place in new_order])

    def changed(realize: BlockRealize) -> Stmt:
        values = [realize.iter_values[place] for place in new_order]
        return realize.with_(iter_values=values, block=reordered)

    _replace_realize(self.state, sref, changed, {old: reordered})


def _replace_realize(
    state: ScheduleState, sref: StmtSRef, change: Any, reuse: rewrite.Reuse
) -> Any:
    """Replace the realization of a block; the new statement."""
    parent = sref.parent
    assert parent is not None
    above = tree.stmt_of(parent)
    realize = next(
        item
        for item in tree.child_references(above)
        if isinstance(item, BlockRealize) and item.block is sref.stmt
    )
    new = change(realize)
    new_parent = tree.replace_child(above, realize, new)
    assert new_parent is not None
    state.replace(parent, new_parent, reuse)
    return new


# ---- add_unit_loop


@primitive("AddUnitLoop", "block_or_loop")
def add_unit_loop(self: Session, block_or_loop: BlockRV | LoopRV) -> LoopRV:
    """Put a loop of one iteration around a loop or block.

    Args:
        block_or_loop: what the new loop shall be around.

    Returns:
        The new loop.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> unit = sch.add_unit_loop(sch.get_loops("B")[0])
    >>> sch.get(unit).extent.value
    1
    """
    sref = self._sref(block_or_loop)
    if isinstance(sref.stmt, For):
        unit = _unit_loop(sref.stmt)
        self.state.replace(sref, unit)
    elif sref.parent is None:
        raise RootBlockError(self.state, "a loop cannot stand around the root block", sref)
    else:
        unit = _replace_realize(self.state, sref, _unit_loop, {})
    return self._loop_rv(unit)


def _unit_loop(body: Stmt) -> For:
    return For(Var("u", "int32"), IntImm("int32", 0), IntImm("int32", 1), ForKind.SERIAL, body)


# ---- loop_partition


@primitive("LoopPartition", "loop *factors")
def loop_partition(
    self: Session,
    loop: LoopRV,
    factors: list[int | ExprRV | None],
    preserve_unit_iters: bool = True,
) -> list[LoopRV]:
    """Cut a loop into several that run one after the other, each a part of its iterations.

    Args:
        loop: the loop to cut; its extent is constant. It is gone afterwards.
        factors: how many iterations each part has, in order. One may be None: it takes what the
            others leave. Without a None, what they leave becomes one more part.
        preserve_unit_iters: keep parts of one iteration in what the axes of blocks are bound to.

    Returns:
        The loops of the parts. Each stands in a block of its own, and all of these in one more.

    Raises:
        PartitionFactorError: a number is not positive, or no iteration is left for the last part.
        SymbolicLoopError: the extent is no constant.
        PartitionedReductionError: the init of a reduction inside would run in each part.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> head, tail = sch.loop_partition(sch.get_loops("B")[1], factors=[24, None])
    >>> sch.get(tail).extent.value
    8
    """
    del preserve_unit_iters  # the new loops are bound as the old one was
    sref = self._sref(loop)
    state = self.state
    old = loop_of(sref)
    if old.annotations or old.thread_binding is not None:
        what = ", ".join(old.annotations) if old.annotations else "a thread binding"
        raise AnnotatedLoopError(state, f"{name_of(sref)} has {what}", sref)
    ends = _ends(state, sref, self._evaluated_all(factors))
    _check_no_init(state, sref)
    first = tree.child_realizes(old)
    name = f"{first[0].block.name_hint if first else 'empty'}_{old.loop_var.name}"
    variables, parts = [], []
    assert isinstance(old.min, IntImm)
    begin = old.min.value
    for number, end in enumerate(ends):
        variable = old.loop_var.copy_with_suffix(str(number))
        body = _part(old, variable, begin, end)
        variables.append(variable)
        parts.append(_opaque(f"{name}{number}_partition", body, first))
        begin = end
    around = tree.analyzer_above(sref)
    whole = _declaring(_opaque(f"{name}_common", seq(*parts), first), around)
    inside = seq(*[_declaring(part, around) for part in parts])
    state.replace(sref, whole.with_(block=whole.block.with_(body=inside)))
    return self._loop_rvs(loops_with(state, variables))


def _ends(state: ScheduleState, sref: StmtSRef, factors: Sequence[PrimExpr | None]) -> list[int]:
    """Where the parts end."""
    loop = loop_of(sref)
    if not isinstance(loop.min, IntImm) or not isinstance(loop.extent, IntImm):
        raise SymbolicLoopError(
            state,
            f"{name_of(sref)} runs from {loop.min} over {loop.extent}, which is not constant",
            sref,
        )
    shown = ", ".join(["?" if factor is None else str(factor) for factor in factors])
    sizes: list[int | None] = []
    for factor in factors:
        if factor is not None and not (isinstance(factor, IntImm) and factor.value > 0):
            raise PartitionFactorError(
                state,
                f"{name_of(sref)}: the factors {shown} have {factor}",
                sref,
                "factors must be constants of at least 1",
            )
        sizes.append(None if factor is None else factor.value)
    if not sizes or sizes.count(None) > 1:
        raise PartitionFactorError(
            state,
            f"{name_of(sref)}: expected factors, and None for one of them at most; got [{shown}]",
            sref,
        )
    total = sum([size for size in sizes if size is not None])
    left = loop.extent.value - total
    if left <= 0:
        raise PartitionFactorError(
            state,
            f"{name_of(sref)} has extent {loop.extent}, the factors {shown} add up to {total}",
            sref,
            "their sum must be less: a last part is added",
        )
    ends, end = [], loop.min.value
    for size in sizes if None in sizes else [*sizes, None]:
        end += left if size is None else size
        ends.append(end)
    return ends


def _check_no_init(state: ScheduleState, sref: StmtSRef) -> None:
    """No block below is a reduction over the loop that starts with an init."""
    variable = loop_of(sref).loop_var
    for realize in _realizes_below(loop_of(sref)):
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            reduces = axis.accumulates and realize.block.init is not None
            if reduces and mentions(value, variable):
                block = state.sref_of(realize)
                raise PartitionedReductionError(
                    state,
                    f"{name_of(sref)} runs axis {axis.var.name} of {name_of(block)}, a reduction "
                    "with an init",
                    (sref, block),
                )


def _realizes_below(stmt: For | Block) -> Iterator[BlockRealize]:
    """Every block below a statement, those in blocks too."""
    for realize in tree.child_realizes(stmt):
        yield realize
        yield from _realizes_below(realize.block)


class _Part(rewrite.BlockMutator):
    """Names the blocks of a part, and narrows the axes that are bound to its loop."""

    def __init__(self, variable: Var, domain: Range) -> None:
        super().__init__()
        self.variable, self.domain = variable, domain

    def visit_BlockRealize(self, node: BlockRealize) -> BlockRealize:
        axes = [
            IterVar(self.cast(axis), axis.var, axis.iter_type, axis.thread_tag)
            if value is self.variable
            else axis
            for axis, value in zip(node.block.iter_vars, node.iter_values, strict=True)
        ]
        block = node.block.with_(
            iter_vars=axes,
            name_hint=f"{node.block.name_hint}_{self.variable.name}",
            body=self.visit(node.block.body),
        )
        return node.with_(block=block)

    def cast(self, axis: IterVar) -> Range:
        """The domain of the part in the type of an axis."""
        dtype = axis.var.dtype
        return Range.from_min_extent(
            op.cast(dtype, self.domain.min), op.cast(dtype, self.domain.extent)
        )


def _part(old: For, variable: Var, begin: int, end: int) -> For:
    """The loop from ``begin`` to ``end``, with variables of its own."""
    dtype = variable.dtype
    low, extent = IntImm(dtype, begin), IntImm(dtype, end - begin)
    body, _ = rewrite.substitute(old.body, {old.loop_var: variable})
    body = _Part(variable, Range.from_min_extent(low, extent)).visit(body)
    return For(variable, low, extent, ForKind.SERIAL, redefined(body))


def _opaque(name: str, body: Stmt, inside: Sequence[BlockRealize]) -> BlockRealize:
    """A block without axes around ``body``, which declares what the blocks in it do."""
    buffers = {
        region.buffer.data: region.buffer
        for realize in inside
        for region in (*realize.block.reads, *realize.block.writes)
    }
    block = Block([], [], [], name, body)
    reads, writes = get_block_read_write_region(block, buffers)
    return BlockRealize([], op.const(True, "bool"), block.with_(reads=reads, writes=writes))


def _declaring(realize: BlockRealize, around: Analyzer) -> BlockRealize:
    """The block, with empty regions where its loops have no iteration in this part."""
    block = realize.block
    reads, writes = (
        [
            BufferRegion(region.buffer, [tree.not_negative(rng, around) for rng in region.region])
            for region in regions
        ]
        for regions in (block.reads, block.writes)
    )
    return realize.with_(block=block.with_(reads=reads, writes=writes))
