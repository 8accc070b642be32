"""How statements use the memory of a buffer: by loads and stores, views, pointers."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import PrimExpr
from weft.ir.functor import Visitor
from weft.ir.node import Node
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var
from weft.tir.schedule import rewrite
from weft.tir.stmt import AllocateConst, Block, BufferStore, DeclBuffer, MatchBufferRegion


class Accesses(Visitor):
    """How statements use the memory of a buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.pointer = False
        self.other: Buffer | None = None
        self.loads: list[BufferLoad] = []
        self.stores: list[BufferStore] = []
        self.matched: list[Buffer] = []
        self.nested: list[Block] = []

    @property
    def indices(self) -> list[Sequence[PrimExpr]]:
        """The indices of every store and load."""
        stores = [store.indices for store in self.stores]
        return [*stores, *[load.indices for load in self.loads]]

    def visit_Var(self, node: Var) -> None:
        self.pointer = self.pointer or node is self.buffer.data

    def visit_Buffer(self, node: Buffer) -> None:
        if node.data is self.buffer.data and node is not self.buffer:
            self.other = node

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.visit_default(node)
        if node.buffer is self.buffer:
            self.loads.append(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.visit_default(node)
        if node.buffer is self.buffer:
            self.stores.append(node)

    def visit_MatchBufferRegion(self, node: MatchBufferRegion) -> None:
        self.visit_default(node)
        if node.source.buffer is self.buffer:
            self.matched.append(node.buffer)

    def visit_Block(self, node: Block) -> None:
        if self.buffer.data in rewrite.variables_of(node):
            self.nested.append(node)
            self.visit_default(node)


def accesses(stmt: Node | None, buffer: Buffer) -> Accesses:
    """How ``stmt`` (a block: what is inside it) uses the memory of ``buffer``."""
    uses = Accesses(buffer)
    if isinstance(stmt, Block):
        uses.visit_default(stmt)
    else:
        uses.visit(stmt)
    return uses


class Glue(Visitor):
    """The variables that a scope uses outside of its blocks: data that it loads, and others."""

    def __init__(self) -> None:
        self.loaded: set[Var] = set()
        self.used: set[Var] = set()

    def visit_Block(self, node: Block) -> None:
        del node

    def visit_Var(self, node: Var) -> None:
        self.used.add(node)

    def visit_Buffer(self, node: Buffer) -> None:
        self.used.add(node.data)

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        self.visit(node.body)  # other views are found in the blocks that use them

    def visit_AllocateConst(self, node: AllocateConst) -> None:
        self.visit(node.body)

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.loaded.add(node.buffer.data)
        self.visit(node.indices)


def glue_of(block: Block) -> Glue:
    """What a block uses outside of the blocks inside it."""
    glue = Glue()
    glue.visit(block.body)
    return glue
