"""Which block of a scope depends on which, and through what kind of hazard.

A scope is a block; its members are the blocks inside it that are in no other block inside it. The
order of the program and the regions that blocks declare give the edges (TVM's ``BlockScope``).
Buffers over one data variable are one memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from weft.ir.node import fact
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import Var
from weft.tir.schedule import tree
from weft.tir.schedule.tree import SRefTree, StmtSRef
from weft.tir.stmt import Block, For


class DepKind(IntEnum):
    """The kinds of dependence; the numbers are TVM's."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


@dataclass(frozen=True, slots=True)
class Hazard:
    """``dst`` comes after ``src`` in the program and must stay there."""

    src: Block
    dst: Block
    kind: DepKind


@dataclass(slots=True)
class Hazards:
    """The dependences among the blocks below one statement."""

    blocks: list[Block]
    of_source: dict[int, list[Hazard]] = field(default_factory=dict)
    of_target: dict[int, list[Hazard]] = field(default_factory=dict)
    writers: dict[Var, list[Block]] = field(default_factory=dict)
    """Data variable of a buffer -> the blocks that write it, in program order."""


def hazards_below(stmt: For | Block) -> Hazards:
    """The dependences among ``child_realizes(stmt)``, derived once per statement object."""
    return fact(stmt, "schedule.hazards", _hazards)


def _hazards(stmt: For | Block) -> Hazards:
    hazards = Hazards([realize.block for realize in tree.child_realizes(stmt)])
    readers: dict[Var, list[Block]] = {}
    seen: set[tuple[int, int, DepKind]] = set()

    def add(sources: list[Block], target: Block, kind: DepKind) -> None:
        for source in sources:
            key = (id(source), id(target), kind)
            if key not in seen:
                seen.add(key)
                edge = Hazard(source, target, kind)
                hazards.of_source.setdefault(id(source), []).append(edge)
                hazards.of_target.setdefault(id(target), []).append(edge)

    for block in hazards.blocks:
        reads = _data_of(block.reads)
        writes = _data_of(block.writes)
        for data in reads:
            add(hazards.writers.get(data, []), block, DepKind.RAW)
        for data in writes:
            add(hazards.writers.get(data, []), block, DepKind.WAW)
            add(readers.get(data, []), block, DepKind.WAR)
        for data in reads:
            readers.setdefault(data, []).append(block)
        for data in writes:
            hazards.writers.setdefault(data, []).append(block)
    return hazards


def _data_of(regions: Iterable[BufferRegion]) -> list[Var]:
    return list(dict.fromkeys([region.buffer.data for region in regions]))


class Dependency:
    """An edge between references, as ``BlockScope`` gives it."""

    def __init__(self, src: StmtSRef, dst: StmtSRef, kind: DepKind) -> None:
        self.src, self.dst, self.kind = src, dst, kind

    def __repr__(self) -> str:
        names = [getattr(s.stmt, "name_hint", "?") for s in (self.src, self.dst)]
        return f"Dependency({names[0]} -> {names[1]}, {self.kind.name})"


class BlockScope:
    """The dependences inside one block, between references (TVM's view of ``Hazards``)."""

    def __init__(self, sref_of: Callable[[Block], StmtSRef], hazards: Hazards) -> None:
        self._sref_of, self._hazards = sref_of, hazards

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """The edges that start at ``block``."""
        return self._edges(self._hazards.of_source.get(id(block.stmt), []))

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """The edges that end at ``block``."""
        return self._edges(self._hazards.of_target.get(id(block.stmt), []))

    def _edges(self, edges: list[Hazard]) -> list[Dependency]:
        sref = self._sref_of
        return [Dependency(sref(edge.src), sref(edge.dst), edge.kind) for edge in edges]


def block_scope(state: SRefTree, sref: StmtSRef) -> BlockScope:
    """The dependences inside the block of ``sref``."""
    block = tree.block_of(sref)
    return BlockScope(state.sref_of, hazards_below(block))


def producers_of(block: Block, scope: For | Block) -> list[Block]:
    """The blocks of ``scope`` that write what ``block`` reads or writes, without duplicates."""
    return _ends(hazards_below(scope).of_target.get(id(block), []), "src")


def consumers_of(block: Block, scope: For | Block) -> list[Block]:
    """The blocks of ``scope`` that read or write what ``block`` writes, without duplicates."""
    return _ends(hazards_below(scope).of_source.get(id(block), []), "dst")


def _ends(edges: list[Hazard], end: str) -> list[Block]:
    kinds = (DepKind.RAW, DepKind.WAW)
    blocks = {id(getattr(e, end)): getattr(e, end) for e in edges if e.kind in kinds}
    return list(blocks.values())


def writers_of(buffer: Buffer, scope: For | Block) -> list[Block]:
    """The blocks of ``scope`` that write the memory of ``buffer``."""
    return hazards_below(scope).writers.get(buffer.data, [])
