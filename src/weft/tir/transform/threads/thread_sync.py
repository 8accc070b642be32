"""ThreadSync puts barriers between accesses of shared memory by different threads.

Before: ``S[tx] = A[tx]; B[tx] = S[31 - tx]``. After: ``T.tvm_storage_sync("shared")`` stands
between the two. The statements of a sequence, and the iterations of a loop, are compared; elements
that only one thread accesses need no barrier. Every thread has to reach a barrier: a conflict
inside a branch on the thread's index is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.int_set import IntervalSet
from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.transform import Pass
from weft.support.errors import IRValueError
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import intrinsic
from weft.tir.stmt import (
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
    stmt_list,
)
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.threads.thread_access import Access, Conflicts
from weft.tir.transform.threads.thread_scope import Binding, binding_of, sync_of


@dataclass
class _Summary:
    """Accesses before the first barrier and after the last; all in ``head`` if there is none."""

    head: list[Access] = field(default_factory=list)
    tail: list[Access] = field(default_factory=list)
    synced: bool = False

    def everything(self) -> list[Access]:
        return self.head if not self.synced and not self.tail else [*self.head, *self.tail]


class _Gather(Visitor):
    """The accesses of expressions and stores in one scope."""

    def __init__(self, owner: _Sync) -> None:
        self.owner = owner
        self.found: list[Access] = []

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit(load.indices)
        self.touch(load.buffer, load.indices, False)

    def touch(self, buffer: Buffer, indices: Any, is_write: bool) -> None:
        if _scope(buffer.data) != self.owner.scope:
            return
        region: Any = []
        for index in indices:
            if index.dtype.lanes != 1 or collect(index, (BufferLoad, Call)):
                region = None
                break
            value = substitute(index, self.owner.values)
            region.append(IntervalSet(value, value))
        where = None if region is None else tuple(region)
        self.found.append(Access(buffer.data, buffer, where, is_write))

    def visit_Call(self, call: Call) -> None:
        if is_call(call, "tvm_access_ptr", "address_of", "call_extern", "tvm_call_packed"):
            for var in collect(call, Var):
                if var.dtype.is_handle and _scope(var) == self.owner.scope:
                    self.found.append(Access(var, None, None, True))
        self.visit_default(call)


def _scope(data: Var) -> str:
    annotation: object = data.type_annotation
    return str(getattr(annotation, "storage_scope", "")).partition(".")[0]


class _Sync(StmtMutator):
    """Rebuilds statements with barriers; ``self.last`` is the summary of the last one visited."""

    def __init__(self, scope: str, strict: bool) -> None:
        super().__init__()
        self.barrier, self.scope, self.strict = scope, scope.partition(".")[0], strict
        self.threads: dict[Var, PrimExpr] = {}
        self.varying: set[int] = set()
        self.values: dict[Any, Any] = {}
        self.divergent: list[object] = []
        self.analyzer = Analyzer()
        self.last = _Summary()

    def summarised(self, stmt: Stmt) -> tuple[Stmt, _Summary]:
        """The rebuilt statement and what it accesses."""
        new = self.visit(stmt)
        return new, self.last

    def gathered(self, *parts: object) -> list[Access]:
        gather = _Gather(self)
        gather.visit(parts)
        return gather.found

    def conflicts(self, first: list[Access], second: list[Access]) -> bool:
        return Conflicts(self.threads, self.analyzer).between(first, second)

    def varies(self, expr: object) -> bool:
        """Whether the value may differ between threads."""
        value = substitute(expr, self.values)
        return any(var in self.threads or id(var) in self.varying for var in collect(value, Var))

    # Leaves.

    def visit_Stmt(self, stmt: Stmt) -> Stmt:
        binding = binding_of(stmt)
        if binding is not None:
            return self.bound(binding)
        body = getattr(stmt, "body", None)
        if body is None:
            self.last = _Summary(self.gathered(stmt))
            return stmt
        first = self.gathered(*[getattr(stmt, name) for name in stmt.CHILDREN if name != "body"])
        new, summary = self.summarised(body)
        self.last = _Summary([*first, *summary.head], summary.tail, summary.synced)
        return stmt.with_(body=new)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        gather = _Gather(self)
        gather.visit([store.value, store.indices])
        gather.touch(store.buffer, store.indices, True)
        self.last = _Summary(gather.found)
        return store

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        if sync_of(stmt) in (self.scope, "shared"):
            self.last = _Summary(synced=True)
        else:
            self.last = _Summary(self.gathered(stmt.value))
        return stmt

    # Structure.

    def bound(self, binding: Binding) -> Stmt:
        """A loop that is bound to threads (or blocks): its body runs once for each."""
        outermost = not self.threads
        if binding.is_thread:
            self.threads[binding.var] = binding.extent
        low = binding.low if binding.low is not None else IntImm(binding.var.dtype, 0)
        extent = binding.extent
        last = fold.sub(fold.add(low, extent), fold.const(low.dtype, 1))
        new, summary = self.summarised(binding.body)
        if binding.is_thread and outermost:
            summary = _relaxed(summary, {binding.var: IntervalSet(low, last)}, self.analyzer)
            self.threads = {}
        self.last = summary
        return binding.stmt.with_(body=new)

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        if self.varies(let.value) or collect(let.value, BufferLoad):
            self.varying.add(id(let.var))
        first = self.gathered(let.value)
        new, summary = self.summarised(let.body)
        self.last = _Summary([*first, *summary.head], summary.tail, summary.synced)
        return let.with_(body=new)

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        return seq(*self.sequence(stmt.seq, None))

    def visit_For(self, loop: For) -> Stmt:
        binding = binding_of(loop)
        if binding is not None:
            return self.bound(binding)
        first = self.gathered(loop.min, loop.extent)
        last = fold.sub(fold.add(loop.min, loop.extent), fold.const(loop.min.dtype, 1))
        domain = {loop.loop_var: IntervalSet(loop.min, last)}
        splits = self.varies(loop.min) or self.varies(loop.extent)
        if splits:
            self.divergent.append(loop.extent)
        items = self.sequence(stmt_list(loop.body), domain)
        if splits:
            self.divergent.pop()
        summary = _relaxed(self.last, domain, self.analyzer)
        self.last = _Summary([*first, *summary.head], summary.tail, summary.synced)
        if len(items) == len(stmt_list(loop.body)):
            same = all(a is b for a, b in zip(items, stmt_list(loop.body), strict=True))
            if same:
                return loop
        return loop.with_(body=seq(*items))

    def visit_While(self, stmt: While) -> Stmt:
        first = self.gathered(stmt.condition)
        splits = self.varies(stmt.condition)
        if splits:
            self.divergent.append(stmt.condition)
        items = self.sequence(stmt_list(stmt.body), {})
        if splits:
            self.divergent.pop()
        self.last = _Summary([*first, *self.last.head], self.last.tail, self.last.synced)
        return stmt.with_(body=seq(*items))

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        first = self.gathered(stmt.condition)
        splits = self.varies(stmt.condition)
        if splits:
            self.divergent.append(stmt.condition)
        yes, then_part = self.summarised(stmt.then_case)
        no, else_part = stmt.else_case, _Summary()
        if stmt.else_case is not None:
            no, else_part = self.summarised(stmt.else_case)
        if splits:
            self.divergent.pop()
        head = [*first, *then_part.head, *else_part.head]
        tail = [*then_part.tail, *else_part.tail]
        self.last = _Summary(head, tail, then_part.synced and else_part.synced)
        return stmt.with_(then_case=yes, else_case=no)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            self.values[axis.var] = substitute(value, self.values)
        first = self.gathered(realize.predicate, realize.iter_values)
        splits = self.varies(realize.predicate)
        if splits:
            self.divergent.append(realize.predicate)
        summaries = []
        new_init = block.init
        if block.init is not None:
            new_init, summary = self.summarised(block.init)
            summaries.append(summary)
        body, summary = self.summarised(block.body)
        if splits:
            self.divergent.pop()
        head = [*first, *[a for s in summaries for a in s.everything()], *summary.head]
        self.last = _Summary(head, summary.tail, summary.synced)
        return realize.with_(block=block.with_(init=new_init, body=body))

    def sequence(self, items: Any, loop: dict[Var, IntervalSet] | None) -> list[Stmt]:
        """The items with barriers where needed; ``loop``: they are the body of this loop."""
        done = [self.summarised(item) for item in items]
        before: set[int] = set()
        live: list[Access] = []
        for position, (_, summary) in enumerate(done):
            if self.conflicts(live, summary.head) and self.allowed():
                before.add(position)
                live = []
            live = summary.tail if summary.synced else [*live, *summary.everything()]
        if loop is not None:
            self.carried(done, before, live, loop)
        result: list[Stmt] = []
        total = _Summary()
        for position, (stmt, summary) in enumerate(done):
            if position in before:
                result.append(self.barrier_statement())
                total.synced, total.tail = True, []
            result.append(stmt)
            _append(total, summary)
        self.last = total
        return result

    def carried(
        self, done: list[Any], before: set[int], live: list[Access], loop: dict[Var, IntervalSet]
    ) -> None:
        """A barrier between the end of an iteration and the start of the next, if needed."""
        wide = [access.relaxed(loop, self.analyzer) for access in live]
        for position, (_, summary) in enumerate(done):
            if position in before:
                return
            head = [access.relaxed(loop, self.analyzer) for access in summary.head]
            if self.conflicts(wide, head) and self.allowed():
                before.add(position)
                return
            if summary.synced:
                return

    def barrier_statement(self) -> Stmt:
        return Evaluate(intrinsic("int32", "tvm_storage_sync", StringImm(self.barrier)))

    def allowed(self) -> bool:
        """Whether a barrier may stand here: every thread reaches it."""
        if not self.divergent:
            return True
        if self.strict:
            raise IRValueError(
                f"ThreadSync: a barrier for {self.scope} memory is needed where not all threads "
                f"come by: under {self.divergent[-1]}, which depends on the thread. Move the "
                "branch inside the statements that share memory"
            )
        return False


def _append(total: _Summary, item: _Summary) -> None:
    if total.synced:
        total.tail = item.tail if item.synced else [*total.tail, *item.everything()]
        if item.synced and not item.tail:
            total.tail = []
        return
    total.head = [*total.head, *item.head]
    total.tail = item.tail if item.synced else [*total.tail, *item.tail]
    total.synced = item.synced


def _relaxed(summary: _Summary, domain: Any, analyzer: Analyzer) -> _Summary:
    head = [access.relaxed(domain, analyzer) for access in summary.head]
    tail = [access.relaxed(domain, analyzer) for access in summary.tail]
    return _Summary(head, tail, summary.synced)


def thread_sync(func: PrimFunc, scope: str, strict: bool = True) -> PrimFunc:
    """The function with barriers for one storage scope.

    Without ``strict``, a conflict where no barrier can stand is left as it is and is no error.
    """
    if scope.partition(".")[0] not in ("shared", "warp"):
        return func
    return rewrite_body(func, _Sync(scope, strict))


def ThreadSync(storage_scope: str) -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.ThreadSync`` for ``shared``, ``shared.dyn`` or ``warp`` memory.

    There is no barrier between blocks of threads, so nothing is inserted for other scopes; the
    interpreter reports conflicts in them.
    """
    return define_pass("ThreadSync", thread_sync)(storage_scope)
