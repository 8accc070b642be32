"""LowerCrossThreadReduction: a reduction axis bound to threads becomes a reduction over threads.

Before: ``for k in thread_binding(32, "threadIdx.x"): with T.block("B"): B[vi] += A[vi, vk]``.
After: each thread reduces what is its own into ``in_thread_B``, ``T.tvm_thread_allreduce`` combines
the threads' parts into ``cross_thread_B``, and the first thread (every thread, if ``B`` is local)
writes it back. Serial reduction loops outside of the bound ones move inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.arith.iter_map.constraint import conjuncts
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.ir.node import Array
from weft.ir.structural import structural_equal
from weft.ir.transform import Pass
from weft.support.dtype import DataType
from weft.support.errors import ScheduleError
from weft.tir import op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import (
    Add,
    And,
    BinaryExpr,
    BufferLoad,
    CommReducer,
    IterType,
    Max,
    Min,
    Mul,
    Or,
    Var,
)
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import tvm_thread_allreduce
from weft.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    SeqStmt,
    Stmt,
    seq,
)
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body
from weft.tir.transform.thread_scope import binding_of, scope_of

_TRUE = IntImm(DataType("bool"), 1)
_COMMUTATIVE = (Add, Mul, Min, Max, And, Or)


@dataclass
class _Found:
    """A reduction block, and the loops around it in its scope, outermost first."""

    realize: BlockRealize
    serial: list[For]
    bound: list[For]
    store: BufferStore
    reducer: CommReducer
    value: PrimExpr
    in_thread: Buffer | None = None
    cross: Buffer = field(init=False)


def _loops_of(realize: BlockRealize, loops: list[For], kind: Any) -> set[Var]:
    used: set[Var] = set()
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if (axis.iter_type == IterType.CommReduce) is kind:
            used |= set(collect(value, Var))
    return {loop.loop_var for loop in loops if loop.loop_var in used}


def _is_thread(loop: For) -> bool:
    binding = binding_of(loop)
    return binding is not None and binding.tag.startswith("threadIdx.")


def _reduction(realize: BlockRealize) -> tuple[BufferStore, CommReducer, PrimExpr]:
    """The update, its reducer, and what one step adds."""
    block = realize.block
    name, body, init = block.name_hint, block.body, block.init
    if not isinstance(body, BufferStore) or not isinstance(init, BufferStore):
        raise ScheduleError(
            f"LowerCrossThreadReduction: block {name} is reduced over threads; expected one store "
            f"in its body and one in its init, got {type(body).__name__} and "
            f"{type(init).__name__}. Bind a loop of another axis, or use rfactor"
        )
    update = body.value
    if isinstance(update, BinaryExpr) and isinstance(update, _COMMUTATIVE):
        for own, other in ((update.a, update.b), (update.b, update.a)):
            if _is_element(own, body):
                return body, _reducer(type(update), body, init.value), other
    raise ScheduleError(
        f"LowerCrossThreadReduction: block {name} is reduced over threads; expected an update "
        f"{body.buffer.name} = {body.buffer.name} op value with op one of +, *, min, max, and, or; "
        f"got {update}"
    )


def _is_element(expr: Any, store: BufferStore) -> bool:
    if not isinstance(expr, BufferLoad) or expr.buffer is not store.buffer:
        return False
    return all(structural_equal(a, b) for a, b in zip(expr.indices, store.indices, strict=True))


def _reducer(kind: type[BinaryExpr], store: BufferStore, identity: PrimExpr) -> CommReducer:
    x, y = Var("x", store.buffer.dtype), Var("y", store.buffer.dtype)
    neutral = identity
    if not isinstance(identity, IntImm | FloatImm):
        raise ScheduleError(
            f"LowerCrossThreadReduction: {store.buffer.name} starts from {identity}, which is no "
            "constant; start from the identity and add the value after the reduction"
        )
    return CommReducer([x], [y], [kind(x, y)], [neutral])


class _Scan(StmtMutator):
    """Finds the blocks to change; nothing is rebuilt."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: list[For] = []
        self.found: list[_Found] = []

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return expr

    def visit_For(self, loop: For) -> Stmt:
        self.loops.append(loop)
        self.visit(loop.body)
        self.loops.pop()
        return loop

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        self.consider(realize)
        outer, self.loops = self.loops, []
        self.visit(realize.block.body)
        self.loops = outer
        return realize

    def consider(self, realize: BlockRealize) -> None:
        reducing = _loops_of(realize, self.loops, True)
        if realize.block.init is None:
            return
        bound = [loop for loop in self.loops if loop.loop_var in reducing and _is_thread(loop)]
        if not bound:
            return
        store, reducer, value = _reduction(realize)
        serial = [loop for loop in self.loops if loop.loop_var in reducing and loop not in bound]
        first = self.loops.index(bound[0])
        if serial:
            first = min(first, self.loops.index(serial[0]))
        for loop in self.loops[first:]:
            if loop.loop_var not in reducing and not _is_thread(loop):
                raise ScheduleError(
                    f"LowerCrossThreadReduction: block {realize.block.name_hint} is reduced over "
                    f"threads, but the spatial loop {loop.loop_var.name} is inside the reduction "
                    f"loop {self.loops[first].loop_var.name}; reorder it to the outside"
                )
        self.found.append(_Found(realize, serial, bound, store, reducer, value))


class _Lower(StmtMutator):
    def __init__(self, found: list[_Found]) -> None:
        super().__init__()
        self.found = {id(item.realize): item for item in found}
        self.starts = {id(item.serial[0] if item.serial else item.realize): item for item in found}
        self.moved: set[int] = set()
        self.added: list[Buffer] = []

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return expr

    def visit_Block(self, block: Block) -> Stmt:
        outer, self.added = self.added, []
        changed = self.visit_default(block)
        added, self.added = self.added, outer
        if not added:
            return changed
        return changed.with_(alloc_buffers=Array([*changed.alloc_buffers, *added]))

    def visit_For(self, loop: For) -> Stmt:
        item = self.starts.get(id(loop))
        if item is None:
            return loop.with_(body=self.visit(loop.body))
        return self.lowered(item, loop)

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        item = self.starts.get(id(realize))
        if item is None:
            return self.visit_default(realize)
        return self.lowered(item, realize)

    def lowered(self, item: _Found, start: Stmt) -> Stmt:
        """What stands for the reduction from its outermost serial loop (or the block) on."""
        buffer, name = item.store.buffer, item.realize.block.name_hint
        needs_own = bool(item.serial) or not _is_true(item.realize.predicate)
        item.cross = _scratch(f"cross_thread_{buffer.name}", buffer)
        self.added.append(item.cross)
        steps: list[Stmt] = []
        if needs_own:
            item.in_thread = _scratch(f"in_thread_{buffer.name}", buffer)
            self.added.append(item.in_thread)
            clear = BufferStore(item.in_thread, item.reducer.identity_element[0], [_zero()])
            steps.append(_opaque(f"{name}_in_thread_init", [], [item.in_thread], clear))
            steps.append(self.own_part(item, start))
        steps += [self.combined(item), self.write_back(item)]
        body = seq(*steps)
        inner = [loop for loop in item.bound if _is_inside(loop, start)]
        for loop in reversed(inner):
            body = loop.with_(body=body)
        return body

    def own_part(self, item: _Found, start: Stmt) -> Stmt:
        """The serial loops over the block, which now reduces into ``in_thread``."""
        assert item.in_thread is not None
        realize, target = item.realize, item.in_thread
        block = realize.block
        update: Any = item.store.value
        mine = BufferLoad(target, [_zero()])
        sides = (mine, item.value) if _is_element(update.a, item.store) else (item.value, mine)
        store = BufferStore(target, type(update)(*sides), [_zero()])
        changed = block.with_(
            body=store, init=None, name_hint=f"{block.name_hint}_in_thread",
            writes=Array([_whole(target)]),
        )  # fmt: skip
        return _Unbound(realize, realize.with_(block=changed), item.bound).visit(start)

    def combined(self, item: _Found) -> Stmt:
        """The call that reduces over threads."""
        block = item.realize.block
        threads = [loop.loop_var for loop in item.bound]
        own = item.in_thread
        source = item.value if own is None else BufferLoad(own, [_zero()])
        target = BufferLoad(item.cross, [_zero()])
        call = tvm_thread_allreduce(IntImm(DataType("uint32"), 1), source, _TRUE, target, *threads)
        null = op.reinterpret("handle", IntImm(DataType("uint64"), 0))
        body = AttrStmt(item.reducer, "reduce_scope", null, Evaluate(call))
        name = f"{block.name_hint}_cross_thread"
        if own is not None:
            return _opaque(name, [own], [item.cross], body)
        reads, axes = block.reads, block.iter_vars
        made = Block(axes, reads, [_whole(item.cross)], name, body)
        return BlockRealize(item.realize.iter_values, _TRUE, made)

    def write_back(self, item: _Found) -> Stmt:
        """The result goes where it belongs: by one thread, or by all if that is local."""
        realize, block = item.realize, item.realize.block
        axes, values, fresh = [], [], {}
        for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
            if axis.iter_type != IterType.CommReduce:
                var = Var(axis.var.name, axis.var.dtype)
                fresh[axis.var] = var
                axes.append(axis.with_(var=var))
                values.append(value)
        reducing = {loop.loop_var for loop in [*item.serial, *item.bound]}
        conditions = [
            part
            for part in conjuncts(realize.predicate)
            if not _is_true(part) and not reducing & set(collect(part, Var))
        ]
        if scope_of(item.store.buffer) != "local":
            conditions += [op.equal(loop.loop_var, loop.min) for loop in item.bound]
        indices = substitute(item.store.indices, fresh)
        store = BufferStore(item.store.buffer, BufferLoad(item.cross, [_zero()]), indices)
        region = BufferRegion(
            item.store.buffer, [Range.from_min_extent(i, IntImm(i.dtype, 1)) for i in indices]
        )
        made = Block(axes, [_whole(item.cross)], [region], f"{block.name_hint}_write_back", store)
        return BlockRealize(values, op.all(*conditions) if conditions else _TRUE, made)


class _Unbound(StmtMutator):
    """The loops around a block without those bound to threads, the block replaced."""

    def __init__(self, old: BlockRealize, new: BlockRealize, bound: list[For]) -> None:
        super().__init__()
        self.old, self.new, self.bound = old, new, bound

    def visit_For(self, loop: For) -> Stmt:
        if any(loop is item for item in self.bound):
            body: Stmt = self.visit(loop.body)
            return body
        return loop.with_(body=self.visit(loop.body))

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        raise ScheduleError(
            f"LowerCrossThreadReduction: block {self.old.block.name_hint} is reduced over threads, "
            f"and shares a reduction loop with {len(stmt.seq) - 1} other statements; give it loops "
            "of its own"
        )

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt:
        return self.new if realize is self.old else realize


def _is_inside(loop: For, start: Stmt) -> bool:
    return any(item is loop for item in collect(start, For))


def _is_true(expr: PrimExpr) -> bool:
    return isinstance(expr, IntImm) and bool(expr.value)


def _zero() -> IntImm:
    return IntImm(DataType("int32"), 0)


def _scratch(name: str, like: Buffer) -> Buffer:
    return decl_buffer([1], like.dtype, name, strides=[1], scope="local")


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, [Range(0, 1)])


def _opaque(name: str, reads: list[Buffer], writes: list[Buffer], body: Stmt) -> Stmt:
    made = Block((), [_whole(b) for b in reads], [_whole(b) for b in writes], name, body)
    return BlockRealize((), _TRUE, made)


def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """The function with its reductions over threads explicit."""
    scan = _Scan()
    scan.visit(func.body)
    return rewrite_body(func, _Lower(scan.found)) if scan.found else func


def LowerCrossThreadReduction() -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.LowerCrossThreadReduction``."""
    return make_pass("LowerCrossThreadReduction", lower_cross_thread_reduction)
