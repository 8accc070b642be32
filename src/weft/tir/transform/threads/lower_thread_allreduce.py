"""LowerThreadAllreduce replaces a reduction over threads by a tree of steps in shared memory.

Each thread stores its values to shared memory. In each round half of the threads add what the other
half holds, with a barrier between rounds, until one sum is left, which all threads read. Before:
``tvm_thread_allreduce(1, v, cond, r[0], tx)``. After: ``red[tx] = v; barrier; if tx < 16: red[tx] =
red[tx] + red[tx + 16]; barrier; ...; r[0] = red[0]; barrier``. The first thread starts with the
identity, which may be more than that (``max`` from 5 on).

Values that are reduced together (argmax) are combined with those of the next thread first, then
with those of the next two, and so on: that keeps their order, so that the first of equal values
wins.

UnifyThreadBinding runs before, so that the call is inside of all thread loops of its kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Call, CommReducer, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import tvm_storage_sync
from weft.tir.stmt import AttrStmt, BufferStore, Evaluate, For, IfThenElse, Stmt, seq
from weft.tir.transform.lower_opaque_block import allocate
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.threads.reducer_step import combination, loads
from weft.tir.transform.threads.thread_scope import Binding, binding_of
from weft.tir.transform.threads.unify_thread_binding import unify_thread_binding


class _Lower(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[Var, int] = {}
        self.reducer: CommReducer | None = None

    def visit_For(self, loop: For) -> Stmt:
        return self.inside(binding_of(loop), loop)

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != "reduce_scope" or not isinstance(attr.node, CommReducer):
            return self.inside(binding_of(attr), attr)
        outer, self.reducer = self.reducer, attr.node
        body: Stmt = self.visit(attr.body)
        self.reducer = outer
        return body

    def inside(self, binding: Binding | None, stmt: AttrStmt | For) -> Stmt:
        if binding is None or not binding.is_thread:
            return self.visit_default(stmt)
        if not isinstance(binding.extent, IntImm):
            raise UnsupportedError(
                f"LowerThreadAllreduce: the extent of {binding.tag} is {binding.extent}; expected "
                "a constant"
            )
        self.threads[binding.var] = binding.extent.value
        body = self.visit(binding.body)
        del self.threads[binding.var]
        return stmt.with_(body=body)

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        if not is_call(stmt.value, "tvm_thread_allreduce"):
            return stmt
        if self.reducer is None:
            raise UnsupportedError("tvm_thread_allreduce: expected a reduce_scope outside of it")
        return self.tree(stmt.value, self.reducer)

    def number(self, variables: list[Var]) -> tuple[PrimExpr, int]:
        """A number for the values of some thread indices, and how many there are."""
        index: PrimExpr = IntImm(DataType("int32"), 0)
        count = 1
        for var in variables:
            index = op.add(op.multiply(index, self.threads[var]), op.cast("int32", var))
            count *= self.threads[var]
        return index, count

    def tree(self, call: Any, reducer: CommReducer) -> Stmt:
        size = int(call.args[0].value)
        values, condition = call.args[1 : size + 1], call.args[size + 1]
        targets = call.args[size + 2 : 2 * size + 2]
        over = [var for var in collect(call.args[2 * size + 2 :], Var) if var in self.threads]
        kept = [var for var in self.threads if var not in over]
        index, count = self.number(over)
        group, groups = self.number(kept)
        base = op.multiply(group, count)
        memory = [
            decl_buffer([groups * count], value.dtype, f"red_buf{i}", scope="shared")
            for i, value in enumerate(values)
        ]
        own = op.add(base, index)
        steps: list[Stmt] = []
        for i, value in enumerate(values):
            if not (isinstance(condition, IntImm) and condition.value):
                value = op.if_then_else(condition, value, reducer.identity_element[i])
            steps.append(BufferStore(memory[i], value, [own]))
        alone = combination(reducer, memory, [own], reducer.identity_element, loads(memory, [own]))
        steps += [IfThenElse(op.equal(index, 0), alone), _barrier()]
        for offset, other, joins in _rounds(index, count, in_order=size > 1):
            left, right = [op.add(base, offset)], [op.add(base, other)]
            join = combination(reducer, memory, left, loads(memory, left), loads(memory, right))
            steps += [IfThenElse(joins, join), _barrier()]
        for i, target in enumerate(targets):
            steps.append(BufferStore(target.buffer, BufferLoad(memory[i], [base]), target.indices))
        steps.append(_barrier())
        body = seq(*steps)
        for buffer in memory:
            body = allocate(buffer, body)
        return body


def _barrier() -> Stmt:
    return Evaluate(tvm_storage_sync("shared"))


def _rounds(
    index: PrimExpr, count: int, *, in_order: bool
) -> Iterator[tuple[PrimExpr, PrimExpr, PrimExpr]]:
    """For each round: the element a thread updates, the one it reads, and which threads do so."""
    step, width = 1, count
    while width > 1:
        half = (width + 1) // 2
        if in_order:
            own = op.multiply(index, 2 * step)
            yield own, op.add(own, step), op.less(index, width // 2)
        else:
            yield index, op.add(index, half), op.less(index, width - half)
        step, width = 2 * step, half


def lower_thread_allreduce(func: PrimFunc) -> PrimFunc:
    """The function with its reductions over threads lowered to trees in shared memory."""
    calls = [call for call in collect(func.body, Call) if is_call(call, "tvm_thread_allreduce")]
    if not calls:
        return func
    return rewrite_body(unify_thread_binding(func), _Lower())


LowerThreadAllreduce = define_pass("LowerThreadAllreduce", lower_thread_allreduce)
