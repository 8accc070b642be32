"""Weights in the order in which the loops read them.

A parameter that may have any layout (``layout_free_buffers`` of the function) is copied by a block
that is marked for it; who compiles a model computes that copy once, beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weft.ir.expr import IntImm
from weft.ir.functor import collect, substitute
from weft.meta_schedule.annotations import LAYOUT_FREE, LAYOUT_REWRITE
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import functions
from weft.support.errors import ScheduleError
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.schedule import tree
from weft.tir.schedule.analysis.layout_by_use import suggest_index_map
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Block, BlockRealize, For, Stmt


class _Use(NamedTuple):
    """Where a buffer is read, and the layout that would suit it."""

    block: str
    place: int
    index_map: IndexMap


class RewriteLayout(Postproc):
    """Copies buffers whose layout is free into the layout in which their reader goes through them.

    A schedule where a primitive refuses that is refused.
    """

    def apply(self, sch: Schedule) -> bool:
        """Rewrite the layouts; False if one cannot be."""
        try:
            for var, func in functions(sch):
                for buffer in _free_buffers(func):
                    _rewrite(sch, var.name_hint, func, buffer)
        except ScheduleError:
            return False
        return True


def _free_buffers(func: PrimFunc) -> list[Buffer]:
    """The buffers of a function that may have any layout."""
    marked: Sequence[object] = func.attrs.get("layout_free_buffers", ())
    places = [item.value if isinstance(item, IntImm) else int(str(item)) for item in marked]
    buffers = [func.buffer_map[func.params[place]] for place in places]
    for block in collect(func.body, Block):
        inner: Sequence[Buffer] = block.annotations.get(LAYOUT_FREE, ())
        buffers += [item for item in inner if isinstance(item, Buffer)]
    return buffers


def _rewrite(sch: Schedule, function: str, func: PrimFunc, buffer: Buffer) -> None:
    """Rewrite the layout of one buffer: of the copies that it goes through, and of a new one."""
    chain = _copies_of(buffer, func)
    last = buffer if not chain else chain[-1].writes[0].buffer
    use = _use_of(last, func)
    if use is None:
        return
    block = sch.get_block(use.block, function)
    if not chain:
        _add_copy(sch, block, use.place)
    sch.transform_layout(block, ("read", use.place), use.index_map)
    for copy in reversed(chain):
        block = sch.get_block(copy.name_hint, function)
        if copy is chain[0]:
            _add_copy(sch, block, 0)
        sch.transform_layout(block, ("read", 0), use.index_map)


def _add_copy(sch: Schedule, block: BlockRV, place: int) -> None:
    copy = sch.cache_read(block, place, "global")
    sch.annotate(copy, LAYOUT_REWRITE, True)


def _copies_of(buffer: Buffer, func: PrimFunc) -> list[Block]:
    """The blocks that hand the buffer on, each reading what the one before it writes."""
    chain: list[Block] = []
    for block in [item for item in tree.all_references(func.body) if isinstance(item, Block)]:
        is_copy = block.init is None and len(block.reads) == len(block.writes) == 1
        if is_copy and block.reads[0].buffer is buffer:
            chain.append(block)
            buffer = block.writes[0].buffer
    return chain


def _use_of(buffer: Buffer, func: PrimFunc) -> _Use | None:
    """The last read of a buffer, and the layout that suits it; None if none does."""
    use = None
    for realize, loops in _with_loops(func.body, ()):
        block = realize.block
        places = [n for n, region in enumerate(block.reads) if region.buffer is buffer]
        bindings = tree.bindings_of(realize)
        for load in _own_loads(block):
            if load.buffer is buffer and places:
                indices = [substitute(index, bindings) for index in load.indices]
                index_map = suggest_index_map(buffer, indices, loops, realize.predicate)
                use = None if index_map is None else _Use(block.name_hint, places[0], index_map)
    return use


def _own_loads(block: Block) -> list[BufferLoad]:
    """The loads of a block that stand in no block inside it."""
    inner = {id(load) for item in tree.child_realizes(block) for load in collect(item, BufferLoad)}
    return [load for load in collect(block.body, BufferLoad) if id(load) not in inner]


def _with_loops(
    stmt: Stmt, loops: tuple[For, ...]
) -> Iterator[tuple[BlockRealize, tuple[For, ...]]]:
    """Each block with all loops around it, outermost first."""
    if isinstance(stmt, BlockRealize):
        yield stmt, loops
    if isinstance(stmt, For):
        loops = (*loops, stmt)
    for inner in tree.substatements(stmt):
        yield from _with_loops(inner, loops)
