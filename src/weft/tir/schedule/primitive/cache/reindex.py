"""reindex: a copy of a buffer with one dimension for each axis of the block that accesses it.

Also what ``reindex_cache`` needs: the one access of a block, whether different axes give different
indices, and blocks whose accesses get other indices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.arith.analyzer_of import analyzer_of
from weft.arith.conjunction import conjunction, conjuncts
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.iter_map import IterMapLevel, detect_iter_map
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.support.errors import TVMError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import IterVar, Let, Var
from weft.tir.index_map import IndexMap
from weft.tir.schedule import checks, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.dependence import writers_of
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.buffer.buffer_argument import buffer_position
from weft.tir.schedule.primitive.cache import cache_checks as legal
from weft.tir.schedule.primitive.cache.cache_access import accesses
from weft.tir.schedule.primitive.cache.cache_stage import (
    Place,
    body_items,
    edit_scope,
    point_copy_block,
    points,
    region_of,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.surgery import domains_of, executed_box
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, LetStmt, Stmt


class AccessPatternError(ScheduleFailure):
    """The block does not access the buffer at exactly one place, by loads and stores."""


class NotLeafBlockError(ScheduleFailure):
    """There are blocks inside the block."""


class LoopChainError(ScheduleFailure):
    """The block is not alone in its loops."""


class NotInjectiveError(ScheduleFailure):
    """Two elements would be stored at one place."""


# ---- what a block accesses


def single_access(state: ScheduleState, sref: StmtSRef, buffer: Buffer) -> list[PrimExpr]:
    """The indices with which the block loads or stores the buffer; they are the same everywhere."""
    block = tree.block_of(sref)
    if collect([block.body, block.init] if block.init is not None else block.body, BlockRealize):
        raise NotLeafBlockError(state, f"there are blocks inside {name_of(sref)}", sref)
    uses = accesses(block, buffer)
    if uses.pointer or uses.matched or uses.other is not None:
        raise AccessPatternError(
            state, f"{name_of(sref)} accesses {buffer.name} through a pointer or a view", sref
        )
    places = uses.indices
    if not places:
        raise AccessPatternError(
            state, f"{name_of(sref)} declares {buffer.name}, it does not access it", sref
        )
    for other in places[1:]:
        if not equal_indices(places[0], other):
            shown = [", ".join([str(index) for index in place]) for place in (places[0], other)]
            raise AccessPatternError(
                state,
                f"{name_of(sref)} accesses {buffer.name} at [{shown[0]}] and [{shown[1]}]",
                sref,
                "the accesses must have the same indices",
            )
    inner = {item.loop_var if isinstance(item, For) else item.var for item in _binders(block)}
    for var in collect(list(places[0]), Var):
        if var in inner:
            raise AccessPatternError(
                state,
                f"{name_of(sref)} accesses {buffer.name} at indices that use {var.name}, "
                "which is defined inside of it",
                sref,
            )
    return list(places[0])


def check_loads_settled(state: ScheduleState, sref: StmtSRef, indices: Sequence[PrimExpr]) -> None:
    """What is loaded to compute indices is written by no block of the scope."""
    scope = tree.scope_of(sref)
    assert scope is not None
    for load in collect(list(indices), BufferLoad):
        for writer in writers_of(load.buffer, tree.block_of(scope)):
            raise AccessPatternError(
                state,
                f"an index of {name_of(sref)} is loaded from {load.buffer.name}, which "
                f"{writer.name_hint} writes in the scope",
                (sref, state.sref_of(writer)),
            )
        legal.check_declared(state, load.buffer, scope, loads=False)
        legal.check_not_aliased(state, load.buffer, scope)


def _binders(block: Block) -> list[For | LetStmt | Let]:
    """What defines variables in the body of a block."""
    return collect(block.body, (For, LetStmt, Let))


def equal_indices(first: Sequence[PrimExpr], second: Sequence[PrimExpr]) -> bool:
    """Whether both are the same expressions."""
    for mine, its in zip(first, second, strict=True):
        if not expr_deep_equal(mine, its):
            return False
    return True


def is_injective(indices: Sequence[PrimExpr], domains: Mapping[Var, Range]) -> bool:
    """Whether different values of the variables surely give different indices."""
    plain = [index for index in indices if isinstance(index, Var)]
    left = [var for var, dom in domains.items() if not op.is_const_int(dom.extent, 1)]
    if all(any(var is index for index in plain) for var in left):
        return True
    iter_map = detect_iter_map(list(indices), dict(domains), True, IterMapLevel.Bijective)
    return bool(iter_map.indices) or _is_invertible(indices, domains)


def _is_invertible(indices: Sequence[PrimExpr], domains: Mapping[Var, Range]) -> bool:
    """Whether the map to the indices has an inverse, as ``v -> [v // 5, v % 5]`` has."""
    index_map = IndexMap(list(domains), list(indices))
    try:
        inverse, _ = index_map.non_surjective_inverse(list(domains.values()))
    except TVMError:
        return False
    analyzer = analyzer_of(domains)
    back = inverse.map_indices(indices, analyzer=analyzer)
    for var, value in zip(domains, back, strict=True):
        if not analyzer.can_prove_equal(var, value):
            return False
    return True


class Repoint(rewrite.BlockMutator):
    """Replaces the accesses of ``buffer`` in a block by accesses of ``cache`` at ``indices``."""

    def __init__(self, buffer: Buffer, cache: Buffer, indices: Sequence[PrimExpr]) -> None:
        super().__init__()
        self.buffer, self.cache, self.indices = buffer, cache, indices

    def visit_Buffer(self, node: Buffer) -> Buffer:
        return node

    def visit_BufferLoad(self, node: BufferLoad) -> BufferLoad:
        if node.buffer is self.buffer:
            return node.with_(buffer=self.cache, indices=self.indices)
        return self.visit_default(node)

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        if node.buffer is self.buffer:
            value = self.visit(node.value)
            return node.with_(buffer=self.cache, value=value, indices=self.indices)
        return self.visit_default(node)

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        if node.buffer is self.buffer:
            return points(self.cache, self.indices)
        return self.visit_default(node)


def with_index_reads(block: Block, indices: Sequence[PrimExpr]) -> Block:
    """The block, which also reads what is loaded to compute the indices of its access."""
    loads = collect(list(indices), BufferLoad)
    if not loads:
        return block
    return block.with_(reads=[*block.reads, *[points(i.buffer, i.indices) for i in loads]])


# ---- reindex


def _with_place(self: Session, arguments: dict[str, Any]) -> None:
    arguments["buffer"] = buffer_position(self, arguments["block"], arguments["buffer"])


@primitive("ReIndex", "block", canonical=_with_place)
def reindex(self: Session, block: BlockRV | str, buffer: Any) -> BlockRV:
    """Put a copy between a block and a buffer, laid out in the order of the block's axes.

    Args:
        block: the block, or its name. It must be alone in its loops.
        buffer: ``("read", i)`` or ``("write", i)`` for a place among the block's accesses, a name,
            or a Buffer. The block must access it by one set of indices.

    Returns:
        The block that copies: before the block for a read, after it for a write.

    Raises:
        AccessPatternError: the block accesses the buffer by several sets of indices.
        NotLeafBlockError: there are other blocks in the block.

    >>> from weft import te, tir
    >>> A = te.placeholder((32, 8), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[j, i] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> copy = sch.reindex("B", ("read", 0))
    >>> sch.get(copy).writes[0].buffer.shape
    [8, 32]
    """
    state, sref = self.state, self._sref(block)
    kind, index = buffer
    write = kind == "write"
    target, _ = checks.nth_access(state, sref, index, write=write)
    scope = checks.scope_root(state, sref, stage_pipeline=True)
    indices = single_access(state, sref, target)
    check_loads_settled(state, sref, indices)
    stmt = tree.block_of(sref)
    domains = domains_of(stmt.iter_vars)
    indices = _simplified(indices, domains)
    used = set(collect(indices, Var))
    axes = [axis for axis in stmt.iter_vars if axis.var in used]
    place = _around_nest(state, scope, sref, used, after=write)
    legal.check_declared(state, target, scope, loads=write)
    legal.check_not_aliased(state, target, scope)
    if write:
        _check_written(state, sref, scope, target, axes, indices)
    elif region_of(stmt.writes, target) is not None:
        raise AccessPatternError(
            state, f"{name_of(sref)} reads and writes {target.name}", sref, "reindex the write"
        )
    if scope.parent is not None:
        check_runs_all(state, sref, legal.ScopeRegionError)
    cache = _reindexed_buffer(target, axes)
    stage, copy = _reindex_stage(target, cache, axes, indices, write=write)
    redirect = Repoint(target, cache, [axis.var for axis in axes])
    edit_scope(state, scope, redirect, [stmt], [(place, stage)], [cache])
    return self._block_rv(copy)


def _simplified(indices: Sequence[PrimExpr], domains: Mapping[Var, Range]) -> list[PrimExpr]:
    analyzer = analyzer_of(domains)
    simple = [analyzer.simplify(index) for index in indices]
    return [
        old if isinstance(new, IntImm) else new for old, new in zip(indices, simple, strict=True)
    ]


def _around_nest(
    state: ScheduleState, scope: StmtSRef, sref: StmtSRef, used: set[Var], *, after: bool
) -> Place:
    """Before or after the loops of a block that is alone in them."""
    inner: Any = sref.stmt
    item = sref.parent
    while item is not None and item is not scope:
        assert isinstance(item.stmt, For)
        body = item.stmt.body
        if (body.block if isinstance(body, BlockRealize) else body) is not inner:
            raise LoopChainError(
                state,
                f"{name_of(sref)} is not all that {name_of(item)} runs",
                (item, sref),
                "give the block loops of its own",
            )
        if item.stmt.loop_var in used:
            raise AccessPatternError(
                state, f"{name_of(sref)} uses {name_of(item)} directly, not through an axis", sref
            )
        inner, item = item.stmt, item.parent
    for position, stmt in enumerate(body_items(tree.block_of(scope))):
        if (stmt.block if isinstance(stmt, BlockRealize) else stmt) is inner:
            return Place(scope, position + after)
    raise LoopChainError(
        state, f"{name_of(sref)} stands under a condition or let of {name_of(scope)}", sref
    )


def _check_written(
    state: ScheduleState,
    sref: StmtSRef,
    scope: StmtSRef,
    buffer: Buffer,
    axes: Sequence[IterVar],
    indices: Sequence[PrimExpr],
) -> None:
    """What is copied back is what the block writes, element by element."""
    for axis in axes:
        if axis.iter_type == IterVar.CommReduce:
            raise AccessPatternError(
                state,
                f"reduction axis {axis.var.name} indexes {buffer.name}, which "
                f"{name_of(sref)} writes",
                sref,
            )
    legal.check_previous_unused(state, sref, buffer)
    if not is_injective(indices, domains_of(axes)):
        shown = ", ".join([str(index) for index in indices])
        raise NotInjectiveError(
            state, f"{name_of(sref)} may write an element of {buffer.name} twice: [{shown}]", sref
        )
    alone = len(writers_of(buffer, tree.block_of(scope))) == 1
    if alone and legal.is_allocated_in(buffer, scope):
        return
    check_runs_all(state, sref)
    legal.check_writes_all(state, sref, points(buffer, indices))


def check_runs_all(
    state: ScheduleState, sref: StmtSRef, error: type[ScheduleFailure] = legal.PartialWriteError
) -> None:
    """The block runs for all values of its axes, as the copy does."""
    box = executed_box(state, sref)
    block = tree.block_of(sref)
    loops = tree.domains(tree.loops_above(sref))
    conditions = conjuncts(tree.realize_of(state, sref).predicate)
    if any(var not in loops for var in collect(conditions, Var)):
        box = None
    if box is None or any(
        mine is not axis.dom for axis, mine in zip(block.iter_vars, box, strict=True)
    ):
        raise error(
            state,
            f"{name_of(sref)} may not run for all values of its axes, for which the copy "
            "would be made",
            sref,
        )


def _reindexed_buffer(buffer: Buffer, axes: Sequence[IterVar]) -> Buffer:
    """``A_reindex``: the buffer with a dimension for each axis."""
    shape = [op.add(axis.dom.min, axis.dom.extent) for axis in axes if axis.dom is not None]
    return Buffer(
        buffer.data.copy_with_suffix("_reindex"),
        buffer.dtype,
        shape,
        (),
        None,
        f"{buffer.name}_reindex",
        buffer.data_alignment,
        buffer.offset_factor,
        1,
        (),
    )


def _reindex_stage(
    buffer: Buffer,
    cache: Buffer,
    axes: Sequence[IterVar],
    indices: Sequence[PrimExpr],
    *,
    write: bool,
) -> tuple[Stmt, Block]:
    """Loops over the domains of the axes around the copy."""
    variables = [Var(f"v{i}", axis.var.dtype) for i, axis in enumerate(axes)]
    loops = [Var(f"ax{i}", axis.var.dtype) for i, axis in enumerate(axes)]
    copy_axes = [
        IterVar(axis.dom, var, IterVar.DataPar) for axis, var in zip(axes, variables, strict=True)
    ]
    old = [axis.var for axis in axes]
    far = substitute(list(indices), dict(zip(old, variables, strict=True)))
    source, target = (cache, buffer) if write else (buffer, cache)
    reads, writes = (variables, far) if write else (far, variables)
    block = point_copy_block(source, target, reads, writes, copy_axes, f"{target.name}_reindex")
    block = with_index_reads(block, far)
    inside = inside_conditions(buffer, indices, domains_of(axes))
    condition = substitute(conjunction(inside), dict(zip(old, loops, strict=True)))
    stage: Stmt = BlockRealize(loops, condition, block)
    for loop, axis in zip(reversed(loops), reversed(axes), strict=True):
        assert axis.dom is not None
        stage = For(loop, axis.dom.min, axis.dom.extent, ForKind.SERIAL, stage)
    return stage, block


def inside_conditions(
    buffer: Buffer, indices: Sequence[PrimExpr], domains: Mapping[Var, Range]
) -> list[PrimExpr]:
    """The conditions under which the indices are those of an element, where they may not be."""
    analyzer = analyzer_of(domains)
    conditions = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        own = domains.get(index) if isinstance(index, Var) else None
        if own is not None and own.extent is extent and op.is_const_int(own.min, 0):
            continue
        if not analyzer.can_prove(op.greater_equal(index, 0)):
            conditions.append(op.less_equal(0, index))
        if not analyzer.can_prove(op.less(index, extent)):
            conditions.append(op.less(index, extent))
    return conditions
