"""Whether a block computes the same as a tensor intrinsic, whatever its loops and indices are."""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect, rewrite
from weft.ir.node import Node
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.schedule.analysis.loop_mapping import description_of
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.stmt import Block, BufferStore


@dataclass
class Correspondence:
    """Buffers of a description and of a block that computes as it, with their indices."""

    axes: list[IterVar]
    desc_axes: list[IterVar]
    buffers: dict[Buffer, Buffer] = field(default_factory=dict)
    """Buffer of the description -> buffer of the block."""
    indices: dict[Buffer, list[PrimExpr]] = field(default_factory=dict)
    """Buffer of the block -> where it is accessed."""
    desc_indices: dict[Buffer, list[PrimExpr]] = field(default_factory=dict)


def computes_as(sch: Session, block: BlockRV, desc: PrimFunc) -> bool:
    """Whether a block computes what a description does, with the same operations and types."""
    return correspondence(sch, block, desc) is not None


def correspondence(sch: Session, block: BlockRV, desc: PrimFunc) -> Correspondence | None:
    """What stands for what; None where the block computes something else.

    Loops, extents and indices may differ: what a copy in another layout can change.
    """
    mine = sch.get(block)
    assert isinstance(mine, Block)
    its = description_of(desc)[0].block
    result = Correspondence(list(mine.iter_vars), list(its.iter_vars))
    kinds = {axis.iter_type for axis in (*result.axes, *result.desc_axes)}
    if not kinds <= {IterType.DataPar, IterType.CommReduce}:
        return None
    if not isinstance(mine.body, BufferStore) or not isinstance(its.body, BufferStore):
        return None
    accesses = zip(_accesses(mine.body), _accesses(its.body), strict=False)
    axes = [*result.axes, *result.desc_axes]
    analyzer = analyzer_of({axis.var: axis.dom for axis in axes if axis.dom is not None})
    if not all(_joined(result, left, right, analyzer) for left, right in accesses):
        return None
    return result if _same_values(result, mine.body.value, its.body.value) else None


def _accesses(store: BufferStore) -> list[BufferStore | BufferLoad]:
    return [store, *collect(store.value, BufferLoad)]


def _joined(
    result: Correspondence,
    mine: BufferStore | BufferLoad,
    its: BufferStore | BufferLoad,
    analyzer: Analyzer,
) -> bool:
    """Note that two accesses stand for each other; False if that contradicts earlier ones."""
    left, right = mine.buffer, its.buffer
    if left.dtype != right.dtype or result.buffers.setdefault(right, left) is not left:
        return False
    if len(set(result.buffers.values())) != len(result.buffers):
        return False
    if not all(isinstance(index, Var) for index in its.indices) and not _is_scalar(its):
        return False
    pairs = (
        (list(mine.indices), result.indices.setdefault(left, list(mine.indices))),
        (list(its.indices), result.desc_indices.setdefault(right, list(its.indices))),
    )
    return all(
        len(now) == len(before)
        and all(analyzer.can_prove_equal(a, b) for a, b in zip(now, before, strict=True))
        for now, before in pairs
    )


def _is_scalar(access: BufferStore | BufferLoad) -> bool:
    return len(access.indices) == 1 and op.is_const_int(access.indices[0], 0)


def _same_values(result: Correspondence, mine: PrimExpr, its: PrimExpr) -> bool:
    """Whether two expressions are the same but for the buffers that they load from."""
    names = {buffer: Var(buffer.name, buffer.dtype) for buffer in result.buffers.values()}
    of_desc = {desc: names[buffer] for desc, buffer in result.buffers.items()}

    def named(table: dict[Buffer, Var], node: Node) -> Node | None:
        return table.get(node.buffer) if isinstance(node, BufferLoad) else None

    left = rewrite(mine, lambda node: named(names, node))
    right = rewrite(its, lambda node: named(of_desc, node))
    return structural_equal(left, right, map_free_vars=False)
