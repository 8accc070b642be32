"""FillTails: blocks that store to the kernel's own memory store whole vectors, beyond the end too.

For blocks with the annotation ``FILL_TAIL``. The guard of a tail keeps a vector loop from running
past the last element: ``if o * 8 + v < 13: x[v] = y[v]``. If ``x`` is memory that the kernel
allocates and has room for a whole vector, the guard can go: nobody reads what lies behind the end,
and vectors of five lanes cost more than vectors of eight. (LLVM computes all eight lanes of them
anyway, and if subnormal numbers happen to lie in the last three, the processor is slow.) Before::

    for v in T.vectorized(8): if o * 8 + v < 13: x[v] = y[v]       # x and y allocated, 8 elements
    for v in range(8): if o * 8 + v < 13: y[v] = input[o * 8 + v]

After::

    for v in T.vectorized(8): x[v] = y[v]
    for v in range(8): if o * 8 + v < 13: y[v] = input[o * 8 + v] else: y[v] = 0

A store that reads other memory at ``v``, such as ``input``, keeps its guard and stores zeros behind
the end. Runs after LowerOpaqueBlock, which leaves the annotation directly below the guard, around
the store. A buffer whose stores are not all of this form keeps its guards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.arith.conjunction import conjuncts
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect, mentions
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, AttrStmt, BufferStore, For, IfThenElse, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

FILL_TAIL: Final = "pragma_fill_tail"
"""The annotation of a block that may write elements behind the end of its result."""


class _Buffers(Visitor):
    """The memory that a function allocates (``own``), and what is stored to in another form."""

    def __init__(self) -> None:
        self.own: set[Var] = set()
        self.other: set[Var] = set()
        self.extents: dict[Var, int] = {}
        self.marked = False

    def visit_Allocate(self, stmt: Allocate) -> None:
        self.own.add(stmt.buffer_var)
        self.visit(stmt.body)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        before, self.marked = self.marked, self.marked or attr.attr_key == FILL_TAIL
        self.visit(attr.body)
        self.marked = before

    def visit_For(self, loop: For) -> None:
        if isinstance(loop.extent, IntImm) and isinstance(loop.min, IntImm) and not loop.min.value:
            self.extents[loop.loop_var] = loop.extent.value
        self.visit(loop.body)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if not self.marked or self.lane_of(store.buffer, store.indices) is None:
            self.other.add(store.buffer.data)

    def visit_Call(self, call: Call) -> None:
        # A call that takes the memory itself may write to it.
        self.other |= {arg for arg in call.args if isinstance(arg, Var) and arg.dtype.is_handle}
        self.visit(call.args)

    def lane_of(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> Var | None:
        """The loop variable that is the last index, if the buffer has room for the whole loop."""
        if not indices or buffer.strides or not isinstance(buffer.shape[-1], IntImm):
            return None
        lane = indices[-1]
        if not isinstance(lane, Var) or mentions(indices[:-1], lane):
            return None
        extent = self.extents.get(lane)
        return lane if extent is not None and extent <= buffer.shape[-1].value else None


class _Fill(StmtMutator):
    def __init__(self, buffers: _Buffers) -> None:
        super().__init__()
        self.buffers = buffers

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        body: Stmt = self.visit(attr.body)
        return body if attr.attr_key == FILL_TAIL else attr.with_(body=body)

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        marked = stmt.then_case
        if not isinstance(marked, AttrStmt) or marked.attr_key != FILL_TAIL:
            return self.visit_default(stmt)
        store = marked.body
        if isinstance(store, BufferStore) and stmt.else_case is None:
            return self.filled(stmt.condition, store)
        return stmt.with_(then_case=store)

    def filled(self, condition: PrimExpr, store: BufferStore) -> Stmt:
        """The store without the guard of its lane, or with a zero stored where the guard fails."""
        data, known = store.buffer.data, self.buffers
        lane = known.lane_of(store.buffer, store.indices)
        if lane is None or data not in known.own or data in known.other:
            return IfThenElse(condition, store)
        guards = list(conjuncts(condition))
        tail = [guard for guard in guards if mentions(guard, lane)]
        rest = [guard for guard in guards if guard not in tail]
        inside: Stmt = store
        if tail and not self.may_read_all(store, lane):
            zero = BufferStore(store.buffer, op.const(0, store.buffer.dtype), store.indices)
            inside = IfThenElse(_all(tail), store, zero)
        return IfThenElse(_all(rest), inside) if rest else inside

    def may_read_all(self, store: BufferStore, lane: Var) -> bool:
        """Whether all buffers that are read at ``lane`` are own memory with room for all lanes."""
        for load in collect(store.value, BufferLoad):
            if not mentions(load.indices, lane):
                continue
            at = self.buffers.lane_of(load.buffer, load.indices)
            if at is not lane or load.buffer.data not in self.buffers.own:
                return False
        return True


def _all(guards: Sequence[PrimExpr]) -> PrimExpr:
    return guards[0] if len(guards) == 1 else op.all(*guards)


def fill_tails(func: PrimFunc) -> PrimFunc:
    """Make the annotated blocks of a function store whole vectors."""
    buffers = _Buffers()
    buffers.visit(func.body)
    return rewrite_body(func, _Fill(buffers))


FillTails = define_pass("FillTails", fill_tails)
