"""InjectVirtualThread replaces a virtual thread by a copy of its statements for each index.

Memory that each virtual thread writes for itself is multiplied by their number; every statement
that depends on the virtual thread is repeated for each of them. Before: ``B[i] = A[i + vx]``
under ``virtual_thread`` of 2. After: ``B[i] = A[i + 0]; B[i + n] = A[i + 1]``. Up to
``UNROLLED`` copies are written out; more become a loop.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect, substitute
from weft.support.errors import UnsupportedError
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)
from weft.tir.stmt_functor import redefined
from weft.tir.transform.part_of_memory import PartOfMemory, enlarged, enlarged_extents, flat_size
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.threads.thread_scope import binding_of

UNROLLED: Final = 16


class _Touched(Visitor):
    """Variables (and memory inside the scope) whose values differ between virtual threads."""

    def __init__(self, var: Var, inside: set[int]) -> None:
        self.touched: set[int] = {id(var)}
        self.inside = inside

    def depends(self, node: object) -> bool:
        if any(id(var) in self.touched for var in collect(node, Var)):
            return True
        return any(id(load.buffer.data) in self.touched for load in collect(node, BufferLoad))

    def visit_LetStmt(self, let: LetStmt) -> None:
        if self.depends(let.value):
            self.touched.add(id(let.var))
        self.visit_default(let)

    def visit_For(self, loop: For) -> None:
        if self.depends([loop.min, loop.extent]):
            self.touched.add(id(loop.loop_var))
        self.visit_default(loop)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if self.depends([store.value, store.indices]):
            if id(store.buffer.data) in self.inside:
                self.touched.add(id(store.buffer.data))

    def visit_Call(self, call: Call) -> None:
        """A call that depends on the thread may write through its pointers."""
        if is_call(call, "call_extern", "call_packed") and self.depends(call.args):
            for item in collect(call.args, Call):
                if is_call(item, "tvm_access_ptr") and getattr(item.args[4], "value", 2) & 2:
                    if id(item.args[1]) in self.inside:
                        self.touched.add(id(item.args[1]))
        self.visit_default(call)


class _Inject(StmtMutator):
    """One virtual thread: its copies go down to the statements that depend on it."""

    def __init__(self, var: Var, count: int, body: Stmt) -> None:
        super().__init__()
        self.var, self.count = var, count
        inside = {id(item.buffer_var) for item in collect(body, Allocate)}
        search = _Touched(var, inside)
        known = -1
        while known != len(search.touched):
            known = len(search.touched)
            search.visit(body)
        self.search = search
        self.sizes: dict[int, PrimExpr] = {}
        self.buffers: dict[int, Buffer] = {}
        self.prepare(body)

    def prepare(self, body: Stmt) -> None:
        """Enlarge the buffers that each thread has for itself."""
        for item in collect(body, Allocate):
            if id(item.buffer_var) in self.search.touched:
                self.sizes[id(item.buffer_var)] = flat_size(item)
        for buffer in collect(body, Buffer):
            if id(buffer.data) not in self.sizes:
                continue
            self.buffers[id(buffer)] = enlarged(buffer, self.count, "InjectVirtualThread")

    def needs(self, node: object) -> bool:
        return self.search.depends(node)

    def copies(self, stmt: Stmt) -> Stmt:
        """A copy of the statement for each virtual thread."""
        if self.count >= UNROLLED:
            var = Var(f"{self.var.name}_s", self.var.dtype)
            body = substitute(
                PartOfMemory(var, self.sizes, self.buffers).visit(stmt), {self.var: var}
            )
            low, extent = IntImm(var.dtype, 0), IntImm(var.dtype, self.count)
            return For(var, low, extent, ForKind.SERIAL, body)
        done = []
        for index in range(self.count):
            number = IntImm(self.var.dtype, index)
            moved = PartOfMemory(number, self.sizes, self.buffers).visit(stmt)
            done.append(substitute(redefined(moved) if index else moved, {self.var: number}))
        return seq(*done)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        mine = id(store.buffer.data) in self.search.touched
        needed = mine or self.needs([store.value, store.indices])
        return self.copies(store) if needed else store

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        return self.copies(stmt) if self.needs(stmt.value) else stmt

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        if self.needs(let.value):
            return self.copies(let)
        return let.with_(body=self.visit(let.body))

    def visit_AssertStmt(self, stmt: AssertStmt) -> Stmt:
        if self.needs(stmt.condition):
            return self.copies(stmt)
        return stmt.with_(body=self.visit(stmt.body))

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if self.needs(attr.value) and binding_of(attr) is None:
            return self.copies(attr)
        return attr.with_(body=self.visit(attr.body))

    def visit_For(self, loop: For) -> Stmt:
        if self.needs([loop.min, loop.extent]):
            return self.copies(loop)
        return loop.with_(body=self.visit(loop.body))

    def visit_While(self, stmt: While) -> Stmt:
        return self.copies(stmt)

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        if self.needs(stmt.condition):
            return self.copies(stmt)
        other = None if stmt.else_case is None else self.visit(stmt.else_case)
        return stmt.with_(then_case=self.visit(stmt.then_case), else_case=other)

    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        body = self.visit(stmt.body)
        if id(stmt.buffer_var) not in self.sizes:
            return stmt.with_(body=body)
        return stmt.with_(extents=enlarged_extents(stmt, self.count), body=body)

    def visit_DeclBuffer(self, stmt: DeclBuffer) -> Stmt:
        buffer = self.buffers.get(id(stmt.buffer), stmt.buffer)
        return stmt.with_(buffer=buffer, body=self.visit(stmt.body))


class _Find(StmtMutator):
    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        attr = attr.with_(body=self.visit(attr.body))
        if attr.attr_key != "virtual_thread":
            return attr
        if not isinstance(attr.value, IntImm):
            raise UnsupportedError(
                f"InjectVirtualThread: the number of virtual threads {attr.node.var.name} is "
                f"{attr.value}; expected a constant"
            )
        return _Inject(attr.node.var, attr.value.value, attr.body).visit(attr.body)


def inject_virtual_thread(func: PrimFunc) -> PrimFunc:
    """The function without virtual threads."""
    return rewrite_body(func, _Find())


InjectVirtualThread = define_pass("InjectVirtualThread", inject_virtual_thread)
