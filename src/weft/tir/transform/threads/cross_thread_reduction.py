"""LowerCrossThreadReduction: a reduction axis bound to threads becomes a reduction over threads.

Before: ``for k in thread_binding(32, "threadIdx.x"): with T.block("B"): B[vi] += A[vi, vk]``.
After: each thread reduces its own iterations into ``in_thread_B``, ``T.tvm_thread_allreduce``
combines these into ``cross_thread_B``, and the first thread (every thread, if ``B`` is local)
stores that to ``B``. Serial reduction loops outside of the bound ones move inside. A block that
reduces several values at once (argmax) has such a pair of buffers for each, and one call for all.

Threads are combined in the order of the bound loops. Where the iterations of one thread are not
consecutive, an argmax that keeps the first of equal values may therefore give another index than
the loops do; an argmax that compares the indices of equal values gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.arith.conjunction import conjunction, conjuncts_without
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, Visitor, collect, substitute
from weft.ir.node import Array
from weft.support.dtype import DataType
from weft.support.errors import ScheduleError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion, decl_buffer
from weft.tir.constant import is_const_int
from weft.tir.expr import IterType, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import tvm_thread_allreduce
from weft.tir.reduction_form import Reduction, ReductionReadError, read_reduction
from weft.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    SeqStmt,
    Stmt,
    seq,
)
from weft.tir.transform.prim_func_pass import (
    StmtMutator,
    define_pass,
    rewrite_body,
)
from weft.tir.transform.threads.cross_thread_broadcast import BroadcastResults
from weft.tir.transform.threads.thread_scope import binding_of, has_threads, scope_of

_TRUE = IntImm(DataType("bool"), 1)


class CrossThreadReductionError(ScheduleError, ValueError):
    """A reduction is bound to threads, but has a form that they cannot compute together."""

    def __init__(self, realize: BlockRealize, reason: str) -> None:
        name = realize.block.name_hint
        super().__init__(
            f"LowerCrossThreadReduction: block {name} is reduced over threads, {reason}"
        )


@dataclass
class _Found:
    """A reduction block, and the loops around it from the outermost one that reduces."""

    realize: BlockRealize
    loops: list[For]
    reducing: set[Var]
    reduction: Reduction
    in_thread: list[Buffer] = field(default_factory=list)
    cross: list[Buffer] = field(default_factory=list)

    @property
    def threads(self) -> list[For]:
        """The loops over threads, which stand outside of all others afterwards."""
        return [loop for loop in self.loops if binding_of(loop) is not None]

    @property
    def bound(self) -> list[For]:
        """The loops over the threads that reduce together."""
        return [loop for loop in self.threads if loop.loop_var in self.reducing]


# ---- finding the blocks, and refusing those that cannot be reduced by threads


class _Scan(Visitor):
    """Finds the blocks to change, with the statements around them in their scope."""

    def __init__(self) -> None:
        self.path: list[Stmt] = []
        self.found: list[_Found] = []

    def visit_PrimExpr(self, expr: PrimExpr) -> None:
        """Expressions hold no blocks."""

    def visit_Stmt(self, stmt: Stmt) -> None:
        self.path.append(stmt)
        self.visit_default(stmt)
        self.path.pop()

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        reduction = _considered(realize, self.path)
        if reduction is not None:
            self.found.append(reduction)
        outer, self.path = self.path, []
        self.visit(realize.block.body)
        self.path = outer


def _considered(realize: BlockRealize, path: list[Stmt]) -> _Found | None:
    """A block that several threads reduce, with its loops; None for other blocks."""
    if realize.block.init is None:
        return None
    reducing = _variables(realize, IterType.CommReduce)
    around = [stmt for stmt in path if isinstance(stmt, For) and stmt.loop_var in reducing]
    if not any(binding_of(loop) for loop in around):
        return None
    path = path[path.index(around[0]) :]
    _check_path(realize, path, reducing)
    try:
        reduction = read_reduction(realize.block)
    except ReductionReadError as error:
        raise CrossThreadReductionError(
            realize, f"and {error}. Bind a loop of another axis, or use rfactor"
        ) from error
    _check_result(realize, path, reduction)
    return _Found(realize, [s for s in path if isinstance(s, For)], reducing, reduction)


def _variables(realize: BlockRealize, kind: int) -> set[Var]:
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    return set(collect([value for axis, value in pairs if axis.iter_type == kind], Var))


def _check_path(realize: BlockRealize, path: list[Stmt], reducing: set[Var]) -> None:
    """Only reduction loops and loops over threads stand from the outermost one to the block."""
    first, spatial = path[0], _variables(realize, IterType.DataPar)
    assert isinstance(first, For)
    for stmt in path:
        if isinstance(stmt, SeqStmt):
            continue
        if not isinstance(stmt, For):
            raise CrossThreadReductionError(
                realize,
                f"but a {type(stmt).__name__} stands inside the reduction loop "
                f"{first.loop_var.name}; move it into the block, or out of the loop",
            )
        binding = binding_of(stmt)
        if stmt.loop_var in reducing & spatial:
            raise CrossThreadReductionError(
                realize, f"but loop {stmt.loop_var.name} runs spatial axes too; split it"
            )
        if stmt.loop_var in reducing:
            if binding is not None and not binding.tag.startswith("threadIdx."):
                raise CrossThreadReductionError(
                    realize,
                    f"but the reduction loop {stmt.loop_var.name} is bound to {binding.tag}; only "
                    "threadIdx.x, threadIdx.y and threadIdx.z reduce together",
                )
        elif binding is None or not binding.tag.startswith("threadIdx."):
            raise CrossThreadReductionError(
                realize,
                f"but the spatial loop {stmt.loop_var.name} is inside the reduction loop "
                f"{first.loop_var.name}; reorder it to the outside",
            )


def _check_result(realize: BlockRealize, path: list[Stmt], reduction: Reduction) -> None:
    """The result does not depend on the reduction axes, and nothing reads it before it is done."""
    block, buffers = realize.block, reduction.buffers
    axes = {axis.var for axis in block.iter_vars if axis.iter_type == IterType.CommReduce}
    for var in collect(list(reduction.indices), Var):
        if var in axes:
            raise CrossThreadReductionError(
                realize, f"but {buffers[0].name} is indexed by the reduction axis {var.name}"
            )
    scopes = {scope_of(buffer): buffer.name for buffer in buffers}
    if len(scopes) > 1 and "local" in scopes:
        shown = ", ".join([f"{name} in {scope} memory" for scope, name in scopes.items()])
        raise CrossThreadReductionError(
            realize, f"but its results are {shown}; expected all of them in local memory, or none"
        )
    for position, stmt in enumerate(path):
        if isinstance(stmt, SeqStmt):
            below = path[position + 1] if position + 1 < len(path) else realize
            _check_neighbours(realize, stmt, below, reduction)
            if any(binding_of(inner) for inner in path[position + 1 :]):
                raise CrossThreadReductionError(
                    realize,
                    f"inside a loop that it shares with {len(stmt.seq) - 1} other statements; "
                    "give it loops of its own, or bind a loop outside of all of them",
                )


def _check_neighbours(
    realize: BlockRealize, stmt: SeqStmt, below: Stmt, reduction: Reduction
) -> None:
    """Statements that share a reduction loop come before the block, and leave its result alone."""
    if stmt.seq[-1] is not below:
        raise CrossThreadReductionError(
            realize, "but it is not the last statement in its reduction loop; give it its own loops"
        )
    written = {buffer.data for buffer in reduction.buffers}
    accesses: Any = collect(list(stmt.seq[:-1]), (BufferLoad, BufferStore, BufferRegion))
    for access in accesses:
        if access.buffer.data in written:
            raise CrossThreadReductionError(
                realize,
                f"but another statement in its reduction loop accesses {access.buffer.name} before "
                "it is finished",
            )


# ---- the statements that replace them


class _Lower(StmtMutator):
    def __init__(self, reductions: list[_Found]) -> None:
        super().__init__()
        self.starts = {id(item.loops[0]): item for item in reductions}
        self.added: list[Buffer] = []

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
        body = seq(*self.steps(item))
        for thread in reversed(item.threads):
            body = thread.with_(body=body)
        return body

    def steps(self, item: _Found) -> list[Stmt]:
        """The statements of one thread that replace the reduction from its outermost loop on."""
        buffers, block = item.reduction.buffers, item.realize.block
        item.cross = [_scratch(f"cross_thread_{buffer.name}", buffer) for buffer in buffers]
        self.added += item.cross
        new: BlockRealize | None = None
        steps: list[Stmt] = []
        if len(item.bound) < len(item.loops) or not is_const_int(item.realize.predicate, 1):
            item.in_thread = [_scratch(f"in_thread_{buffer.name}", buffer) for buffer in buffers]
            self.added += item.in_thread
            pairs = zip(item.in_thread, item.reduction.reducer.identity_element, strict=True)
            clear = seq(*[BufferStore(buffer, start, [_zero()]) for buffer, start in pairs])
            steps.append(_opaque(f"{block.name_hint}_in_thread_init", [], item.in_thread, clear))
            new = _in_thread(item)
        own = _Own(item, new).visit(item.loops[0])
        rest = [] if own is None else [self.visit(own)]  # neighbours may reduce over threads too
        return [*steps, *rest, _combined(item), _write_back(item)]


class _Own(StmtMutator):
    """Removes the loops over threads around a block, and replaces the block or leaves it out."""

    def __init__(self, item: _Found, new: BlockRealize | None) -> None:
        super().__init__()
        self.old, self.new = item.realize, new
        self.loops = {id(loop) for loop in item.loops}
        self.threads = {id(loop) for loop in item.threads}

    def visit_For(self, loop: For) -> Stmt | None:
        if id(loop) not in self.loops:
            return loop
        body: Stmt | None = self.visit(loop.body)
        return body if body is None or id(loop) in self.threads else loop.with_(body=body)

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        done = [self.visit(item) for item in stmt.seq]
        return seq(*[item for item in done if item is not None])

    def visit_BlockRealize(self, realize: BlockRealize) -> Stmt | None:
        return self.new if realize is self.old else realize


class _Redirect(Mutator):
    """Turns accesses of the results into accesses of the thread's own buffers."""

    def __init__(self, item: _Found) -> None:
        pairs = zip(item.reduction.buffers, item.in_thread, strict=True)
        self.parts = {id(buffer): part for buffer, part in pairs}

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        part = self.parts.get(id(load.buffer))
        return self.visit_default(load) if part is None else BufferLoad(part, [_zero()])

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        part = self.parts.get(id(store.buffer))
        if part is None:
            return self.visit_default(store)
        return BufferStore(part, self.visit(store.value), [_zero()])

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer


def _in_thread(item: _Found) -> BlockRealize:
    """The block, which now reduces into the thread's own buffers."""
    block = item.realize.block
    results = item.reduction.buffers
    changed = block.with_(
        body=_Redirect(item).visit(block.body),
        init=None,
        name_hint=f"{block.name_hint}_in_thread",
        reads=Array([r for r in block.reads if not any(r.buffer is b for b in results)]),
        writes=Array([_whole(part) for part in item.in_thread]),
    )
    return item.realize.with_(block=changed)


def _combined(item: _Found) -> Stmt:
    """The call that combines the threads' values: their own buffers, or the operands themselves."""
    block, count = item.realize.block, IntImm(DataType("uint32"), len(item.cross))
    sources = [BufferLoad(part, [_zero()]) for part in item.in_thread] or item.reduction.operands
    targets = [BufferLoad(buffer, [_zero()]) for buffer in item.cross]
    threads = [loop.loop_var for loop in item.bound]
    call = tvm_thread_allreduce(count, *sources, _TRUE, *targets, *threads)
    null = op.reinterpret("handle", IntImm(DataType("uint64"), 0))
    body = AttrStmt(item.reduction.reducer, "reduce_scope", null, Evaluate(call))
    name = f"{block.name_hint}_cross_thread"
    if item.in_thread:
        return _opaque(name, item.in_thread, item.cross, body)
    writes = [_whole(buffer) for buffer in item.cross]
    return BlockRealize(
        item.realize.iter_values, _TRUE, Block(block.iter_vars, block.reads, writes, name, body)
    )


def _write_back(item: _Found) -> Stmt:
    """The block that stores the results: in one thread, or in all if the buffer is local."""
    realize, block = item.realize, item.realize.block
    buffers = item.reduction.buffers
    axes, values, fresh = [], [], {}
    for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if axis.iter_type != IterType.CommReduce:
            var = Var(axis.var.name, axis.var.dtype)
            fresh[axis.var] = var
            axes.append(axis.with_(var=var))
            values.append(value)
    inside = {loop.loop_var for loop in item.loops} & item.reducing
    conditions = conjuncts_without(realize.predicate, inside)
    if scope_of(buffers[0]) != "local":
        conditions += [op.equal(loop.loop_var, loop.min) for loop in item.bound]
    indices = substitute(item.reduction.indices, fresh)
    point = [Range.from_min_extent(i, IntImm(i.dtype, 1)) for i in indices]
    stores = [
        BufferStore(buffer, BufferLoad(result, [_zero()]), indices)
        for buffer, result in zip(buffers, item.cross, strict=True)
    ]
    write_back = Block(
        axes,
        [_whole(result) for result in item.cross],
        [BufferRegion(buffer, point) for buffer in buffers],
        f"{block.name_hint}_write_back",
        seq(*stores),
    )
    return BlockRealize(values, conjunction(conditions), write_back)


def _zero() -> IntImm:
    return IntImm(DataType("int32"), 0)


def _scratch(name: str, like: Buffer) -> Buffer:
    return decl_buffer([1], like.dtype, name, strides=[1], scope="local")


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, [Range(0, 1)])


def _opaque(name: str, reads: list[Buffer], writes: list[Buffer], body: Stmt) -> Stmt:
    block = Block((), [_whole(b) for b in reads], [_whole(b) for b in writes], name, body)
    return BlockRealize((), _TRUE, block)


def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """The function with a ``tvm_thread_allreduce`` for each reduction over threads."""
    if not has_threads(func.body):
        return func
    scan = _Scan()
    scan.visit(func.body)
    if not scan.found:
        return func
    results = {buffer.data: item.bound for item in scan.found for buffer in item.reduction.buffers}
    return rewrite_body(rewrite_body(func, _Lower(scan.found)), BroadcastResults(results))


LowerCrossThreadReduction = define_pass("LowerCrossThreadReduction", lower_cross_thread_reduction)
