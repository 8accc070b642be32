"""SerializeThreads turns kernels for GPU threads into loops, so that a CPU runs them.

Blocks of threads become iterations of a parallel loop. Threads become loops around the statements
between two barriers: ``a; barrier; b`` runs as ``for tx: a`` and then ``for tx: b``; a loop with a
barrier in it stays outside of the loops over threads. Local memory that is used on both sides of a
barrier gets one element for each thread, warp memory one for each warp; shared memory is allocated
once in the body of the block.
Needs plain statements (after LowerOpaqueBlock); does nothing to functions without threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.node import Array
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import Call, CommReducer, Let, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from weft.tir.stmt_functor import redefined
from weft.tir.transform.lower_opaque_block import allocate
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.threads.reducer_step import combination, loads
from weft.tir.transform.threads.thread_scope import (
    WARP_SIZE,
    Binding,
    binding_of,
    has_threads,
    sync_of,
)
from weft.tir.transform.threads.thread_sync import thread_sync
from weft.tir.transform.threads.unify_thread_binding import unify_thread_binding

Access = TypeVar("Access", BufferLoad, BufferStore)

_SHARED = ("shared", "warp")


@dataclass
class _Axis:
    """One thread axis of a kernel."""

    var: Var
    extent: PrimExpr


def _scope(data: Var) -> str:
    annotation: object = data.type_annotation
    return str(getattr(annotation, "storage_scope", "")).partition(".")[0] or "global"


def _waits(stmt: object) -> bool:
    """Whether the statement holds a barrier, a reduction over threads or memory of all threads."""
    for item in collect(stmt, (Evaluate, Allocate)):
        if isinstance(item, Allocate):
            if _scope(item.buffer_var) in _SHARED:
                return True
        elif isinstance(item, Evaluate) and (
            sync_of(item) or is_call(item.value, "tvm_thread_allreduce")
        ):
            return True
    return False


class _Expand(Mutator):
    """Puts the thread's indices before the others in accesses of memory that each thread has."""

    def __init__(self, buffers: dict[int, Buffer], where: dict[int, list[PrimExpr]]) -> None:
        super().__init__()
        self.buffers, self.where = buffers, where

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        return self.moved(self.visit_default(load), load.buffer)

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        return self.moved(self.visit_default(store), store.buffer)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def moved(self, access: Access, buffer: Buffer) -> Access:
        new = self.buffers.get(id(buffer))
        if new is None:
            return access
        indices = [*self.where[id(buffer)], *access.indices]
        return access.with_(buffer=new, indices=Array(indices))


class _Kernel:
    """Turns the body of one kernel into loops."""

    def __init__(self, name: str, threads: list[_Axis]) -> None:
        self.name, self.threads = name, threads
        self.thread_vars = {axis.var for axis in threads}
        self.reducer: CommReducer | None = None

    def varies(self, expr: object) -> bool:
        """Whether the value may differ between threads."""
        return any(var in self.thread_vars for var in collect(expr, Var))

    def loops(self, body: Stmt, axes: list[_Axis] | None = None) -> Stmt:
        """``body`` for every thread, with variables of its own."""
        body = redefined(body)
        for axis in reversed(self.threads if axes is None else axes):
            var = Var(axis.var.name.replace(".", "_"), axis.var.dtype)
            body = substitute(body, {axis.var: var})
            body = For(var, IntImm(var.dtype, 0), axis.extent, ForKind.SERIAL, body)
        return body

    def run(self, stmt: Any) -> Stmt:
        """The statement for all threads."""
        if not _waits(stmt):
            return self.loops(stmt)
        method: Callable[[Any], Stmt] | None = _STRUCTURE.get(type(stmt))
        if method is None:
            raise UnsupportedError(
                f"{self.name}: a barrier inside a {type(stmt).__name__} is not available on a CPU"
            )
        done: Stmt = getattr(self, method.__name__)(stmt)
        return done

    def uniform(self, expr: PrimExpr, what: str) -> None:
        """Refuse control flow around a barrier that differs between threads."""
        if self.varies(expr):
            raise UnsupportedError(
                f"{self.name}: a barrier stands inside a {what} {expr}, which differs between "
                "threads; move the barrier (or what needs it) out of it"
            )

    def sequence(self, stmt: SeqStmt) -> Stmt:
        done: list[Stmt] = []
        group: list[Stmt] = []
        for item in stmt.seq:
            if not _waits(item):
                group.append(item)
                continue
            if group:
                done.append(self.loops(seq(*group)))
                group = []
            if sync_of(item) is None:
                done.append(self.run(item))
        if group:
            done.append(self.loops(seq(*group)))
        return seq(*done)

    def loop(self, stmt: For) -> Stmt:
        self.uniform(stmt.min, "loop from")
        self.uniform(stmt.extent, "loop of extent")
        kind = ForKind.SERIAL if stmt.kind is ForKind.VECTORIZED else stmt.kind
        return stmt.with_(kind=kind, body=self.run(stmt.body))

    def repeat(self, stmt: While) -> Stmt:
        self.uniform(stmt.condition, "while")
        return stmt.with_(body=self.run(stmt.body))

    def branch(self, stmt: IfThenElse) -> Stmt:
        self.uniform(stmt.condition, "branch on")
        other = None if stmt.else_case is None else self.run(stmt.else_case)
        return stmt.with_(then_case=self.run(stmt.then_case), else_case=other)

    def let(self, stmt: LetStmt) -> Stmt:
        reads = collect(stmt.value, (BufferLoad, Call, Let))
        if not self.varies(stmt.value) and not reads:
            return stmt.with_(body=self.run(stmt.body))
        if not reads:
            return self.run(substitute(stmt.body, {stmt.var: stmt.value}))
        own = self.temporary(stmt.var.name, stmt.var.dtype)
        where = [axis.var for axis in self.threads]
        first = self.loops(BufferStore(own, stmt.value, where))
        body = self.run(substitute(stmt.body, {stmt.var: BufferLoad(own, where)}))
        return allocate(own, seq(first, body))

    def temporary(self, name: str, dtype: DataType) -> Buffer:
        """Memory with one element for each thread."""
        return decl_buffer([axis.extent for axis in self.threads], dtype, f"{name}_of_threads")

    def attribute(self, stmt: AttrStmt) -> Stmt:
        outer = self.reducer
        if stmt.attr_key == "reduce_scope" and isinstance(stmt.node, CommReducer):
            self.reducer = stmt.node
            body = self.run(stmt.body)
            self.reducer = outer
            return body
        return stmt.with_(body=self.run(stmt.body))

    def declaration(self, stmt: DeclBuffer) -> Stmt:
        return stmt.with_(body=self.run(stmt.body))

    def evaluation(self, stmt: Evaluate) -> Stmt:
        if sync_of(stmt) is not None:
            return Evaluate(0)
        return self.allreduce(stmt.value)

    # Memory.

    def memory(self, stmt: Allocate) -> Stmt:
        """Shared memory stands outside of the loops over threads; other memory is expanded."""
        scope = _scope(stmt.buffer_var)
        if scope == "shared":
            return stmt.with_(body=self.run(stmt.body))
        where: list[PrimExpr] = [axis.var for axis in self.threads]
        extents = [axis.extent for axis in self.threads]
        if scope == "warp":
            number, count = self.linear()
            size = IntImm(number.dtype, WARP_SIZE)
            where, extents = [op.floordiv(number, size)], [op.ceildiv(count, size)]
        return self.expanded(stmt, extents, where)

    def linear(self) -> tuple[PrimExpr, PrimExpr]:
        """The thread's number, and how many there are; ``threadIdx.x`` changes fastest."""
        number: PrimExpr = IntImm(self.threads[0].var.dtype, 0)
        count: PrimExpr = IntImm(self.threads[0].var.dtype, 1)
        for axis in sorted(self.threads, key=_rank):
            number = op.add(op.multiply(number, axis.extent), axis.var)
            count = op.multiply(count, axis.extent)
        return number, count

    def expanded(self, stmt: Allocate, extents: list[PrimExpr], where: list[PrimExpr]) -> Stmt:
        data = stmt.buffer_var
        body: Stmt = stmt.body
        declared = [item for item in collect(body, DeclBuffer) if item.buffer.data is data]
        if len(declared) != 1 or [call for call in collect(body, Call) if data in call.args]:
            raise UnsupportedError(
                f"{self.name}: {data.name} lives across a barrier, and has {len(declared)} views "
                "or is passed by pointer; expected one view to give each thread memory of its own"
            )
        old = declared[0].buffer
        new = decl_buffer([*extents, *old.shape], old.dtype, old.name)
        body = _Drop(declared[0]).visit(body)
        body = _Expand({id(old): new}, {id(old): where}).visit(body)
        return allocate(new, self.run(body))

    # Reductions over threads.

    def allreduce(self, call: Any) -> Stmt:
        """Each thread's value into an array, a loop that combines, the result to each thread."""
        if self.reducer is None:
            raise UnsupportedError(f"{self.name}: tvm_thread_allreduce without a reduce_scope")
        reducer, count = self.reducer, int(call.args[0].value)
        values, condition = call.args[1 : count + 1], call.args[count + 1]
        targets = call.args[count + 2 : 2 * count + 2]
        reduced = [v for v in collect(call.args[2 * count + 2 :], Var) if v in self.thread_vars]
        kept = [axis for axis in self.threads if axis.var not in reduced]
        over = [axis for var in reduced for axis in self.threads if axis.var is var]
        every = [axis.var for axis in self.threads]
        group = [axis.var for axis in kept]
        own = [self.temporary("value", value.dtype) for value in values]
        total = [
            decl_buffer([axis.extent for axis in kept] or [1], value.dtype, "total_of_threads")
            for value in values
        ]
        place: list[PrimExpr] = list(group) or [IntImm(self.threads[0].var.dtype, 0)]
        puts, starts, takes = [], [], []
        for i, value in enumerate(values):
            identity = reducer.identity_element[i]
            if not (isinstance(condition, IntImm) and condition.value):
                value = op.if_then_else(condition, value, identity)
            puts.append(BufferStore(own[i], value, every))
            starts.append(BufferStore(total[i], identity, place))
            loaded = BufferLoad(total[i], place)
            takes.append(BufferStore(targets[i].buffer, loaded, targets[i].indices))
        step = combination(reducer, total, place, loads(total, place), loads(own, every))
        fold = self.loops(seq(*starts, self.loops(step, over)), kept)
        body = seq(self.loops(seq(*puts)), fold, self.loops(seq(*takes)))
        for buffer in [*own, *total]:
            body = allocate(buffer, body)
        return body


def _rank(axis: _Axis) -> tuple[bool, int]:
    """Slowest first: virtual threads, then z, y and x."""
    name = axis.var.name
    return not name.startswith("vthread"), "zyx".find(name[-1:])


class _Drop(StmtMutator):
    """Without one declaration."""

    def __init__(self, gone: DeclBuffer) -> None:
        super().__init__()
        self.gone = gone

    def visit_DeclBuffer(self, stmt: DeclBuffer) -> Any:
        if stmt is self.gone:
            return self.visit(stmt.body)
        return stmt.with_(body=self.visit(stmt.body))


_STRUCTURE: dict[type, Any] = {
    SeqStmt: _Kernel.sequence, For: _Kernel.loop, While: _Kernel.repeat,
    IfThenElse: _Kernel.branch, LetStmt: _Kernel.let, AttrStmt: _Kernel.attribute,
    DeclBuffer: _Kernel.declaration, Evaluate: _Kernel.evaluation, Allocate: _Kernel.memory,
}  # fmt: skip


class _Serialize(StmtMutator):
    """Finds kernels; memory of threads that is declared outside moves into them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.outside: list[tuple[Allocate, Buffer]] = []

    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        body = stmt.body
        own = _scope(stmt.buffer_var) in ("local", *_SHARED)
        if own and isinstance(body, DeclBuffer) and body.buffer.data is stmt.buffer_var:
            if has_threads(body):
                self.outside.append((stmt, body.buffer))
                inner: Stmt = self.visit(body.body)
                self.outside.pop()
                return inner
        return stmt.with_(body=self.visit(body))

    def visit_For(self, loop: For) -> Stmt:
        binding = binding_of(loop)
        return self.visit_default(loop) if binding is None else self.kernel(binding)

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        binding = binding_of(attr)
        return self.visit_default(attr) if binding is None else self.kernel(binding)

    def kernel(self, outermost: Binding) -> Stmt:
        blocks: list[_Axis] = []
        threads: list[_Axis] = []
        binding: Binding | None = outermost
        body: Stmt = outermost.stmt
        while binding is not None:
            (blocks if binding.is_block else threads).append(_Axis(binding.var, binding.extent))
            body = binding.body
            binding = binding_of(body)
        used = {id(buffer) for buffer in collect(body, Buffer)}
        for stmt, buffer in reversed(self.outside):
            if id(buffer) in used:
                body = stmt.with_(body=DeclBuffer(buffer, body))
        body = _Kernel(self.name, threads).run(body)
        for position, axis in enumerate(reversed(blocks)):
            outer = position == len(blocks) - 1
            kind = ForKind.PARALLEL if outer else ForKind.SERIAL
            body = For(axis.var, IntImm(axis.var.dtype, 0), axis.extent, kind, body)
        return body


def serialize_threads(func: PrimFunc) -> PrimFunc:
    """The function with loops instead of threads."""
    if not has_threads(func.body):
        return func
    unified = unify_thread_binding(func)
    if not [stmt for stmt in collect(func.body, Evaluate) if sync_of(stmt)]:
        for scope in _SHARED:
            unified = thread_sync(unified, scope)
    return rewrite_body(unified, _Serialize(str(func.attrs.get("global_symbol", "main"))))


SerializeThreads = define_pass("SerializeThreads", serialize_threads)
