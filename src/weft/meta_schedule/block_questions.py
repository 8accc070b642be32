"""What rules ask about a block before they rewrite it.

Source of the conditions: TVM's MetaSchedule (Shao et al., "Tensor Program Optimization with
Probabilistic Programs", NeurIPS 2022), its predecessor Ansor (Zheng et al., OSDI 2020).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from weft.ir.expr import IntImm
from weft.ir.functor import collect, mentions
from weft.ir.op import Op
from weft.meta_schedule.annotations import TILING_STRUCTURE, annotation
from weft.tir import op
from weft.tir.expr import Call, IterType, Select, Var
from weft.tir.function import PrimFunc
from weft.tir.schedule import flags, tree
from weft.tir.schedule.analysis.block_kinds import (
    has_trivial_binding,
    is_spatial,
    is_spatial_function,
    loop_kind,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BlockRealize, For, IfThenElse, SeqStmt
from weft.tir.transform.threads.thread_scope import binding_of

_IF_THEN_ELSE = Op.get("tir.if_then_else")


def reference(sch: Schedule, block: BlockRV) -> StmtSRef:
    """The reference of a block that is known to be there."""
    sref = sch.get_sref(block)
    assert sref is not None
    return sref


def is_there(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block still exists: an earlier rule may have inlined it."""
    sref = sch._symbols.get(block)
    return isinstance(sref, StmtSRef) and sref.stmt is not None


def is_root(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block is the outermost of its function."""
    return reference(sch, block).parent is None


def function_of(sch: Schedule, block: BlockRV) -> PrimFunc:
    """The function that a block stands in."""
    return sch.state.function_of(reference(sch, block))[1]


def in_spatial_function(sch: Schedule, block: BlockRV) -> bool:
    """Whether no block of the function reduces."""
    return is_spatial_function(function_of(sch, block))


def loops_around(sch: Schedule, block: BlockRV) -> list[For]:
    """The loops around a block, outermost first."""
    loops = [sref.stmt for sref in tree.loops_above(reference(sch, block))]
    return [loop for loop in loops if isinstance(loop, For)]


def constant_extent(loop: For) -> int | None:
    """The extent of a loop; None if it is not constant."""
    return loop.extent.value if isinstance(loop.extent, IntImm) else None


def has_single_body(loop: For) -> bool:
    """Whether a loop runs one loop or block and nothing beside it."""
    return not isinstance(loop.body, SeqStmt)


def is_thread(loop: For) -> bool:
    """Whether a loop is bound to ``threadIdx``."""
    binding = binding_of(loop)
    return binding is not None and binding.tag.startswith("threadIdx.")


def is_tiled(block: Block) -> bool:
    """Whether multi-level tiling has been at the block."""
    return annotation(block, TILING_STRUCTURE) is not None


def calls_any(realize: BlockRealize, functions: Collection[Op]) -> bool:
    """Whether one of the functions is called in a block."""
    return any(call.op in functions for call in collect(realize, Call))


def has_condition(realize: BlockRealize) -> bool:
    """Whether a block has a predicate, a branch or a choice of values."""
    inner = [realize, *collect(realize, BlockRealize)]
    return (
        not all(op.is_const_int(item.predicate, 1) for item in inner)
        or bool(collect(realize, (IfThenElse, Select)))
        or calls_any(realize, (_IF_THEN_ELSE,))
    )


def needs_multi_level_tiling(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block reduces and reuses what it reads: an axis does not index one of its reads."""
    sref = reference(sch, block)
    stmt = tree.block_of(sref)
    if is_tiled(stmt) or len(stmt.writes) != 1 or not stmt.reads or is_spatial(stmt):
        return False
    if not has_trivial_binding(sch.state, sref):
        return False
    buffers = [region.buffer for region in stmt.reads]
    if len(set(buffers)) != len(buffers):
        return False
    operands = [region for region in stmt.reads if region.buffer is not stmt.writes[0].buffer]
    ranges = [item for region in operands for item in region.region]
    if not all(isinstance(item.extent, IntImm) for item in ranges):
        return False
    axes = spatial_axes(stmt)
    return any(
        not mentions([item.min for item in region.region], axis)
        for region in operands
        for axis in axes
    )


def spatial_axes(block: Block) -> list[Var]:
    """The spatial axes that have more than one value."""
    return [
        axis.var
        for axis in block.iter_vars
        if axis.iter_type == IterType.DataPar
        and not (axis.dom is not None and op.is_const_int(axis.dom.extent, 1))
    ]


class Sizes(NamedTuple):
    """The product of the extents of the spatial loops of a block, and of its reduction loops."""

    spatial: int
    reduced: int


def sizes(loops: list[For]) -> Sizes | None:
    """The sizes; None if a loop has a symbolic extent or runs axes of several kinds."""
    products = {IterType.DataPar: 1, IterType.CommReduce: 1}
    for loop in loops:
        kind, extent = loop_kind(loop), constant_extent(loop)
        if kind not in products or extent is None:
            return None
        products[kind] *= extent
    return Sizes(products[IterType.DataPar], products[IterType.CommReduce])


def needs_parallel_reduction(sch: Schedule, block: BlockRV, most_parallel: int) -> bool:
    """Whether a reduction is worth to be split among cores or threads.

    A product is not, where its spatial loops are as large as its reduction or keep all
    ``most_parallel`` jobs busy.
    """
    sref = reference(sch, block)
    stmt, scope = tree.block_of(sref), tree.scope_of(sref)
    if scope is None or not stmt.writes or is_tiled(stmt):
        return False
    if flags.reduction_violation(sch.state, sref, tree.stmt_of(scope)) is not None:
        return False
    if not has_trivial_binding(sch.state, sref):
        return False
    loops = loops_around(sch, block)
    if tree.alone_in(sref, tree.loops_above(sref)[::-1]) < len(loops):
        return False
    size = sizes(loops)
    if size is None or not any(loop_kind(loop) == IterType.CommReduce for loop in loops):
        return False
    if needs_multi_level_tiling(sch, block):
        return size.spatial < size.reduced and size.spatial <= most_parallel
    return size.reduced > 1
