"""ConvertSSA: every variable and buffer is defined in one place.

Passes that copy a subtree leave its variables defined twice; the second definition gets a new
variable, which replaces the old one in its scope. Two loops over one ``i`` become a loop over ``i``
and one over ``i_1`` (the printed name; the variable's own name stays ``i``).
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import PrimExpr
from weft.ir.functor import Mutator
from weft.ir.node import Array
from weft.ir.summary import bits_of, identities
from weft.tir.buffer import Buffer
from weft.tir.expr import IterVar, Let, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, AllocateConst, Block, DeclBuffer, For, LetStmt, Stmt
from weft.tir.stmt_functor import DEFINITIONS, buffer_copy
from weft.tir.transform.prim_func_pass import define_pass


class _Renew(Mutator):
    """Enters what defines something, and what uses a variable or buffer that was renamed."""

    def __init__(self, func: PrimFunc) -> None:
        super().__init__()
        self.skip_all_but(bits_of(DEFINITIONS))
        self.defined: set[int] = {id(param) for param in func.params}
        self.keep: list[object] = []
        self.renamed: dict[int, Any] = {}
        for buffer in func.buffer_map.values():
            self.defined |= {id(buffer), id(buffer.data)}
            for value in [*buffer.shape, *buffer.strides, buffer.elem_offset]:
                self.defined.add(id(value))
        self.symbols = dict.fromkeys(self.defined)
        """Parameters and symbols, which are in scope everywhere: a view's shape may use them."""

    def define(self, var: Var) -> Var:
        """The variable to define here: itself, or a new one if it is defined already."""
        if id(var) not in self.defined:
            self.defined.add(id(var))
            self.keep.append(var)
            return var
        new = type(var)(var.name, var.type_annotation)
        self.rename(var, new)
        return new

    def rename(self, old: Var | Buffer, new: Var | Buffer) -> None:
        self.renamed[id(old)] = new
        self.keep.append(new)
        self.skip_less(identities([old]))

    def define_buffer(self, buffer: Buffer, owns: bool) -> Buffer:
        """The buffer to define here; ``owns``: its data pointer is defined with it."""
        if owns:
            self.define(buffer.data)
        new = self.visit_default(buffer)
        if id(buffer) in self.defined and new is buffer:
            new = buffer_copy(buffer)
        self.defined.add(id(buffer))
        self.keep.append(buffer)
        if new is not buffer:
            self.rename(buffer, new)
        return new

    def visit_Var(self, var: Var) -> Any:
        return self.renamed.get(id(var), var)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        renamed: Buffer = self.renamed.get(id(buffer), buffer)
        return renamed

    def visit_Let(self, let: Let | LetStmt) -> PrimExpr | Stmt:
        value = self.visit(let.value)
        saved = dict(self.renamed)
        var = self.define(let.var)
        body = self.visit(let.body)
        self.renamed = saved
        return let.with_(var=var, value=value, body=body)

    visit_LetStmt = visit_Let

    def visit_For(self, loop: For) -> For:
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        saved = dict(self.renamed)
        var = self.define(loop.loop_var)
        body = self.visit(loop.body)
        self.renamed = saved
        return loop.with_(min=low, extent=extent, loop_var=var, body=body)

    def visit_Allocate(self, alloc: Allocate | AllocateConst) -> Stmt:
        extents = self.visit(alloc.extents)
        saved = dict(self.renamed)
        var = self.define(alloc.buffer_var)
        body = self.visit(alloc.body)
        self.renamed = saved
        return alloc.with_(buffer_var=var, extents=extents, body=body)

    visit_AllocateConst = visit_Allocate

    def visit_DeclBuffer(self, decl: DeclBuffer) -> DeclBuffer:
        saved = dict(self.renamed)
        buffer = self.define_buffer(decl.buffer, owns=False)
        body = self.visit(decl.body)
        self.renamed = saved
        return decl.with_(buffer=buffer, body=body)

    def visit_Block(self, block: Block) -> Block:
        saved = dict(self.renamed)
        axes = [self.axis(axis) for axis in block.iter_vars]
        buffers = [self.define_buffer(buffer, owns=True) for buffer in block.alloc_buffers]
        for match in block.match_buffers:
            for item in [*match.buffer.shape, *match.buffer.strides, match.buffer.elem_offset]:
                if isinstance(item, Var) and id(item) not in self.renamed | self.symbols:
                    self.define(item)
            self.define_buffer(match.buffer, owns=True)
        changed = block
        if any(new is not old for new, old in zip(axes, block.iter_vars, strict=True)):
            changed = changed.with_(iter_vars=Array(axes))
        if any(new is not old for new, old in zip(buffers, block.alloc_buffers, strict=True)):
            changed = changed.with_(alloc_buffers=Array(buffers))
        result: Block = self.visit_default(changed)
        self.renamed = saved
        return result

    def axis(self, axis: IterVar) -> IterVar:
        """The block axis with a variable of its own."""
        dom = self.visit(axis.dom)
        return axis.with_(dom=dom, var=self.define(axis.var))


def convert_ssa(func: PrimFunc) -> PrimFunc:
    """The function with one definition for each variable and buffer."""
    return func.with_(body=_Renew(func).visit(func.body))


ConvertSSA = define_pass("ConvertSSA", convert_ssa)
