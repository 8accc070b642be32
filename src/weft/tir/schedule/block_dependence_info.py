"""BlockDependenceInfo: which blocks of a program need which, without a schedule."""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.ir.functor import Visitor
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.tir.function import PrimFunc
from weft.tir.schedule.dependence import BlockScope, hazards_below
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block


class BlockDependenceInfo:
    """The dependences between the blocks of a PrimFunc, or of all those of a module.

    >>> from weft.script import tir as T
    >>> @T.prim_func
    ... def program(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    ...     B = T.alloc_buffer((4,), "float32")
    ...     for i in range(4):
    ...         with T.block("B"):
    ...             v = T.axis.spatial(4, i)
    ...             B[v] = A[v] + 1.0
    ...     for i in range(4):
    ...         with T.block("C"):
    ...             v = T.axis.spatial(4, i)
    ...             C[v] = B[v] * 2.0
    >>> info = BlockDependenceInfo(program)
    >>> first = info.get_sref(program.body.block.body.seq[0].body.block)
    >>> [edge] = info.get_block_scope(first.parent).get_deps_by_src(first)
    >>> edge.kind.name, edge.dst.stmt.name_hint
    ('RAW', 'C')
    """

    def __init__(self, mod: PrimFunc | IRModule) -> None:
        self.mod = mod if isinstance(mod, IRModule) else IRModule({"main": mod})
        self._references: dict[Block, StmtSRef] = {}
        for func in self.mod.functions.values():
            if isinstance(func, PrimFunc):
                _References(self._references).visit(func.body)

    def get_sref(self, block: Block) -> StmtSRef | None:
        """The reference to a block, whose parent is the block around it; None for another one."""
        return self._references.get(block)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The dependences between the blocks inside of a block."""
        block = expect(block_sref.stmt, Block)
        return BlockScope(self._references.__getitem__, hazards_below(block))


class _References(Visitor):
    def __init__(self, references: dict[Block, StmtSRef]) -> None:
        self.references = references
        self.outer: StmtSRef | None = None

    def visit_Block(self, block: Block) -> None:
        outer, self.outer = self.outer, StmtSRef(block, self.outer)
        self.references[block] = self.outer
        self.visit_default(block)
        self.outer = outer

    def visit_PrimExpr(self, expr: PrimExpr) -> None:
        """There are no blocks in an expression."""
