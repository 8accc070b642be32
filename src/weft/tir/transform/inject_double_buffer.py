"""InjectDoubleBuffer: a loop fills one half of a buffer while it uses the other half.

Before: ``for i: fill(B, i); use(B, i)``. After: ``fill(B[0], 0)``, then
``for i: fill(B[(i + 1) % 2], i + 1); use(B[i % 2], i)``, with the last iteration after the loop.

The attribute ``double_buffer_scope`` marks the statement that fills the buffer. The buffer's memory
is doubled and moved out of the loop; the statement runs once before the loop, and then in each
iteration for the next one. The option ``{"tir.InjectDoubleBuffer": {"split_loop": n}}`` unrolls the
loop by ``n``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.arith import fold
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.ir.transform import PassContext
from weft.support.errors import IRValueError, PassError
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
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
    SeqStmt,
    Stmt,
    seq,
)
from weft.tir.stmt_functor import redefined
from weft.tir.transform.part_of_memory import PartOfMemory, enlarged, enlarged_extents, flat_size
from weft.tir.transform.prim_func_pass import (
    StmtMutator,
    define_pass,
    rewrite_body,
)
from weft.tir.transform.remove_no_op import is_no_op

SCOPE = "double_buffer_scope"


@dataclass
class _Buffered:
    """A double buffer, and the loop that alternates between its halves."""

    loop: For
    allocation: Allocate
    declaration: DeclBuffer | None = None
    buffers: dict[int, Buffer] = field(default_factory=dict)
    before: Stmt | None = None

    def half(self, number: PrimExpr, stmt: Stmt) -> Stmt:
        """The statement with its accesses moved to half ``number % 2``."""
        two = IntImm(number.dtype, 2)
        sizes = {id(self.allocation.buffer_var): flat_size(self.allocation)}
        where = fold.floormod(number, two)
        return PartOfMemory(where, sizes, self.buffers).visit(stmt)


class _Inject(StmtMutator):
    def __init__(self, chosen: set[int], split: int) -> None:
        super().__init__()
        self.chosen, self.split = chosen, split
        self.loops: list[For] = []
        self.active: dict[int, _Buffered] = {}

    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        if id(stmt.buffer_var) not in self.chosen:
            return stmt.with_(body=self.visit(stmt.body))
        if not self.loops:
            raise IRValueError(
                f"InjectDoubleBuffer: {stmt.buffer_var.name} is allocated outside of every loop; "
                "expected it inside the loop whose iterations alternate"
            )
        item = _Buffered(self.loops[-1], stmt)
        for buffer in collect(stmt.body, Buffer):
            if buffer.data is stmt.buffer_var:
                item.buffers[id(buffer)] = enlarged(buffer, 2, "InjectDoubleBuffer")
        self.active[id(stmt.buffer_var)] = item
        return self.visit(stmt.body)

    def visit_DeclBuffer(self, stmt: DeclBuffer) -> Stmt:
        item = self.active.get(id(stmt.buffer.data))
        if item is None:
            return stmt.with_(body=self.visit(stmt.body))
        item.declaration = stmt
        return self.visit(stmt.body)

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        item = self.active.get(id(attr.node)) if attr.attr_key == SCOPE else None
        if item is None:
            return attr.with_(body=self.visit(attr.body))
        fill, loop = self.visit(attr.body), item.loop
        var, low = loop.loop_var, loop.min
        first = substitute(item.half(fold.const(var.dtype, 0), redefined(fill)), {var: low})
        item.before = first
        following = op.add(var, IntImm(var.dtype, 1))
        write = AttrStmt(attr.node, "double_buffer_write", attr.value, fill)
        end = op.add(low, loop.extent)
        return IfThenElse(op.less(following, end), write)

    def visit_For(self, loop: For) -> Stmt:
        self.loops.append(loop)
        body = self.visit(loop.body)
        self.loops.pop()
        mine = [item for item in self.active.values() if item.loop is loop]
        if not mine:
            return loop.with_(body=body)
        for item in mine:
            del self.active[id(item.allocation.buffer_var)]
            body = _Halves(item).visit(body)
        done = seq(*[item.before for item in mine], self.pipelined(loop, body))
        for item in mine:
            done = _allocated(item, done)
        return done

    def pipelined(self, loop: For, body: Stmt) -> Stmt:
        """The loop over all iterations: unrolled by ``split``, then the remaining ones."""
        unit = fold.const(loop.extent.dtype, 1)
        count = fold.const(loop.extent.dtype, self.split)
        rounds = fold.floordiv(fold.sub(loop.extent, unit), count)
        var = Var(f"{loop.loop_var.name}_outer", loop.loop_var.dtype)
        start = fold.add(fold.mul(var, count), loop.min)
        copies: list[Stmt] = []
        for index in range(self.split):
            place = fold.add(start, fold.const(var.dtype, index))
            copies.append(substitute(redefined(body), {loop.loop_var: place}))
        zero = fold.const(var.dtype, 0)
        main = For(var, zero, rounds, ForKind.SERIAL, _Taken(True).visit(seq(*copies)))
        done = fold.mul(rounds, count)
        left = fold.sub(loop.extent, done)
        if isinstance(left, IntImm) and left.value == 1:
            last = _Taken(False).visit(body)
            if is_no_op(last):
                return main
            place = fold.add(done, loop.min)
            return seq(main, substitute(redefined(last), {loop.loop_var: place}))
        if isinstance(left, IntImm) and left.value <= 0:
            return main
        rest = Var(loop.loop_var.name, loop.loop_var.dtype)
        place = fold.add(fold.add(rest, done), loop.min)
        tail = substitute(redefined(body), {loop.loop_var: place})
        return seq(main, For(rest, zero, left, loop.kind, tail, None, loop.annotations))


class _Taken(StmtMutator):
    """Removes the test of a fill where it is known whether another iteration follows."""

    def __init__(self, follows: bool) -> None:
        super().__init__()
        self.follows = follows

    def visit_IfThenElse(self, stmt: IfThenElse) -> Stmt:
        inner = stmt.then_case
        if isinstance(inner, AttrStmt) and inner.attr_key == "double_buffer_write":
            return inner.with_(body=self.visit(inner.body)) if self.follows else Evaluate(0)
        return self.visit_default(stmt)

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        kept = [item for item in [self.visit(part) for part in stmt.seq] if not is_no_op(item)]
        return seq(*kept)


class _Halves(StmtMutator):
    """Moves the fill to the half of the next iteration, and all other accesses to this one's."""

    def __init__(self, item: _Buffered) -> None:
        super().__init__()
        self.item = item
        var = item.loop.loop_var
        self.this = fold.sub(var, item.loop.min)
        self.following = fold.add(self.this, fold.const(var.dtype, 1))
        sizes = {id(item.allocation.buffer_var): flat_size(item.allocation)}
        two = IntImm(var.dtype, 2)
        self.access = PartOfMemory(fold.floormod(self.this, two), sizes, item.buffers)

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        mine = attr.node is self.item.allocation.buffer_var
        if attr.attr_key != "double_buffer_write" or not mine:
            return attr.with_(body=self.visit(attr.body))
        var = self.item.loop.loop_var
        filled = self.item.half(self.this, attr.body)
        following = op.add(var, IntImm(var.dtype, 1))
        return attr.with_(body=substitute(filled, {var: following}))

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return self.access.visit(store)

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return self.access.visit(expr)


def _allocated(item: _Buffered, body: Stmt) -> Stmt:
    """The doubled memory around the loop."""
    if item.declaration is not None:
        buffer = item.buffers[id(item.declaration.buffer)]
        body = item.declaration.with_(buffer=buffer, body=body)
    extents = enlarged_extents(item.allocation, 2)
    return item.allocation.with_(extents=extents, body=body)


def inject_double_buffer(func: PrimFunc) -> PrimFunc:
    """The function with double buffers where attributes ask for them."""
    given = PassContext.current().config.get("tir.InjectDoubleBuffer", {})
    split = int(given.get("split_loop", 1))
    if split < 1:
        raise PassError(f"tir.InjectDoubleBuffer: split_loop: expected 1 or more, got {split}")
    marked = [item for item in collect(func.body, AttrStmt) if item.attr_key == SCOPE]
    if not marked:
        return func
    return rewrite_body(func, _Inject({id(item.node) for item in marked}, split))


InjectDoubleBuffer = define_pass("InjectDoubleBuffer", inject_double_buffer)
