"""For each buffer, the innermost loop or block that holds all its accesses."""

from __future__ import annotations

from weft.ir.functor import Visitor
from weft.ir.node import Map
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BlockRealize, BufferStore, For, Stmt


class _LCAFinder(Visitor):
    """Keeps the path of loops and blocks, and for each buffer the common part of its paths."""

    def __init__(self) -> None:
        self.path: list[Stmt] = []
        self.common: dict[Buffer, list[Stmt]] = {}
        self.by_data: dict[Var, list[Buffer]] = {}

    def register(self, buffer: Buffer) -> None:
        known = self.by_data.setdefault(buffer.data, [])
        if buffer not in known:
            known.append(buffer)

    def access(self, buffer: Buffer) -> None:
        """The buffer is used at the end of the current path."""
        old = self.common.get(buffer)
        if old is None:
            self.common[buffer] = list(self.path)
            return
        shared = 0
        for mine, its in zip(old, self.path, strict=False):
            if mine is not its:
                break
            shared += 1
        del old[shared:]

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.path.append(node)
        self.visit(node.body)
        self.path.pop()

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        self.visit(node.iter_values)
        self.visit(node.predicate)
        block = node.block
        for buffer in block.alloc_buffers:
            self.register(buffer)
        self.path.append(block)
        for match in block.match_buffers:
            self.access(match.source.buffer)
        for region in (*block.reads, *block.writes):
            self.visit(region.region)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        self.path.pop()

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.access(node.buffer)
        self.visit(node.indices)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.access(node.buffer)
        self.visit(node.value)
        self.visit(node.indices)

    def visit_Var(self, node: Var) -> None:
        for buffer in self.by_data.get(node, ()):
            self.access(buffer)

    def visit_Buffer(self, node: Buffer) -> None:
        pass


@deep_recursion
def detect_buffer_access_lca(func: PrimFunc) -> Map[Buffer, Stmt | None]:
    """Buffer -> the For or Block that holds all its accesses; None where that is the function."""
    finder = _LCAFinder()
    for buffer in func.buffer_map.values():
        finder.register(buffer)
    body = func.body
    if isinstance(body, BlockRealize):
        for buffer in body.block.alloc_buffers:
            finder.register(buffer)
    finder.visit(body)
    return Map({buffer: path[-1] if path else None for buffer, path in finder.common.items()})
