"""ScopeVisitor: a visitor that tracks which variables are in scope, the base of analyses."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.expr import PrimExpr
from weft.ir.functor import Visitor
from weft.ir.node import Node
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import CommReducer, IterVar, Reduce, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    LetStmt,
)


class ScopeVisitor(Visitor):
    """Calls ``define``, ``leave`` and ``use`` for variables as they come into and out of scope."""

    def define(self, var: Var, where: Node) -> None:
        """``var`` comes into scope (hook)."""

    def leave(self, variables: Iterable[Var]) -> None:
        """Variables go out of scope (hook)."""

    def use(self, var: Var) -> None:
        """``var`` is used (hook)."""

    def is_defined(self, var: Var) -> bool:
        """Whether ``var`` is in scope: a symbol of a shape is defined where it appears first."""
        return False

    def visit_Var(self, node: Var) -> None:
        self.use(node)

    def function(self, func: PrimFunc) -> None:
        """Visit a whole function: parameters, then the symbols of the buffers, then the body."""
        for param in func.params:
            self.define(param, func)
        buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
        defined: list[Var] = [*func.params]
        for buffer in buffers:
            defined += self.define_buffer(buffer, func, symbols=True)
        for buffer in buffers:
            self.visit([*buffer.shape, *buffer.strides, buffer.elem_offset])
        self.visit(func.body)
        self.leave(defined)

    def define_buffer(self, buffer: Buffer, where: Node, *, symbols: bool) -> list[Var]:
        """Define a buffer's data variable and, if ``symbols``, the symbols of its shape."""
        candidates: list[PrimExpr] = [buffer.data]
        if symbols:
            candidates += [*buffer.shape, *buffer.strides, buffer.elem_offset]
        fresh: list[Var] = []
        for item in candidates:
            if isinstance(item, Var) and not self.is_defined(item) and item not in fresh:
                self.define(item, where)
                fresh.append(item)
        return fresh

    def visit_Buffer(self, node: Buffer) -> None:
        self.visit(node.data)
        self.visit([*node.shape, *node.strides, node.elem_offset])

    def visit_BufferLoad(self, node: BufferLoad | BufferStore) -> None:
        self.visit(node.buffer.data)
        self.visit(node.indices)
        if node.predicate is not None:
            self.visit(node.predicate)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.visit(node.value)
        self.visit_BufferLoad(node)

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.define(node.loop_var, node)
        defined = [node.loop_var]
        binding = node.thread_binding
        if binding is not None and binding.var is not node.loop_var:
            if not self.is_defined(binding.var):
                self.define(binding.var, node)
                defined.append(binding.var)
            if binding.dom is not None:
                self.visit(binding.dom)
        self.visit(node.body)
        self.leave(defined)

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.visit(node.value)
        self.define(node.var, node)
        self.visit(node.body)
        self.leave([node.var])

    visit_Let = visit_LetStmt

    def visit_CommReducer(self, node: CommReducer) -> None:
        self.visit(node.identity_element)  # its result uses only its own variables

    def visit_Allocate(self, node: Allocate) -> None:
        self.visit(node.extents)
        if hasattr(node, "condition"):
            self.visit(node.condition)
        self.define(node.buffer_var, node)
        self.visit(node.body)
        self.leave([node.buffer_var])

    visit_AllocateConst = visit_Allocate

    def visit_DeclBuffer(self, node: DeclBuffer) -> None:
        fresh = self.define_buffer(node.buffer, node, symbols=False)
        self.visit(node.buffer)
        self.visit(node.body)
        self.leave(fresh)

    def visit_BufferRealize(self, node: BufferRealize) -> None:
        fresh = self.define_buffer(node.buffer, node, symbols=False)
        self.visit(node.bounds)
        self.visit(node.condition)
        self.visit(node.body)
        self.leave(fresh)

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        self.visit(node.value)
        defined = []
        if isinstance(node.node, IterVar):
            if not self.is_defined(node.node.var):
                self.define(node.node.var, node)
                defined.append(node.node.var)
        else:
            self.visit(node.node)
        self.visit(node.body)
        self.leave(defined)

    def visit_Block(self, node: Block) -> None:
        for axis in node.iter_vars:
            if axis.dom is not None:
                self.visit(axis.dom)
        self.enter_block(node)
        defined = [axis.var for axis in node.iter_vars]
        for var in defined:
            self.define(var, node)
        for buffer in node.alloc_buffers:
            defined += self.define_buffer(buffer, node, symbols=False)
            self.visit([*buffer.shape, *buffer.strides])
        for match in node.match_buffers:
            self.visit(match.source)
            defined += self.define_buffer(match.buffer, node, symbols=True)
        self.visit([*node.reads, *node.writes])
        if node.init is not None:
            self.visit(node.init)
        self.visit(node.body)
        self.leave(defined)

    def enter_block(self, node: Block) -> None:
        """Called after the domains of a block's axes are visited, before its inside (hook)."""

    def visit_BufferRegion(self, node: BufferRegion) -> None:
        self.visit(node.buffer.data)
        self.visit(node.region)

    def visit_Reduce(self, node: Reduce) -> None:
        defined = [axis.var for axis in node.axis]
        for axis in node.axis:
            self.visit(axis.dom)
            self.define(axis.var, node)
        with self.apart(id(node)):  # its axes mean nothing outside of it
            self.visit([*node.source, node.condition, *node.init])
        self.leave(defined)
