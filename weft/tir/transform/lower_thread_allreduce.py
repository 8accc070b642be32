"""LowerThreadAllreduce: a reduction over threads becomes a tree in shared memory.

Each thread puts its values into shared memory; with a barrier between the rounds, half of the
threads add what the other half holds, until one sum is left, which all threads read. Before:
``tvm_thread_allreduce(1, v, cond, r[0], tx)``. After: ``red[tx] = v; barrier; if tx < 16: red[tx] =
red[tx] + red[tx + 16]; barrier; ...; r[0] = red[0]; barrier``.
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.ir.transform import Pass
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir import op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import BufferLoad, CommReducer, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import tvm_storage_sync
from weft.tir.stmt import (
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)
from weft.tir.transform.condition_range import is_call
from weft.tir.transform.lower_opaque_block import allocate
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body
from weft.tir.transform.thread_scope import Binding, binding_of


class _Lower(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[Var, int] = {}
        self.reducer: CommReducer | None = None

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return expr

    def visit_For(self, loop: For) -> Stmt:
        return self.inside(binding_of(loop), loop)

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != "reduce_scope" or not isinstance(attr.node, CommReducer):
            return self.inside(binding_of(attr), attr)
        outer, self.reducer = self.reducer, attr.node
        body: Stmt = self.visit(attr.body)
        self.reducer = outer
        return body

    def inside(self, binding: Binding | None, stmt: Any) -> Stmt:
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
        done: Stmt = stmt.with_(body=body)
        return done

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        if not is_call(stmt.value, "tvm_thread_allreduce"):
            return stmt
        if self.reducer is None:
            raise UnsupportedError("tvm_thread_allreduce: expected a reduce_scope outside of it")
        return self.tree(stmt.value, self.reducer)

    def number(self, variables: list[Var]) -> tuple[PrimExpr, int]:
        """A number for the values of some thread indices, and how many there are."""
        index: Any = IntImm(DataType("int32"), 0)
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
        steps.append(_barrier())
        width = count
        while width > 1:
            half = (width + 1) // 2
            join = _joined(reducer, memory, own, op.add(own, half))
            steps += [IfThenElse(op.less(index, width - half), join), _barrier()]
            width = half
        for i, target in enumerate(targets):
            steps.append(BufferStore(target.buffer, BufferLoad(memory[i], [base]), target.indices))
        steps.append(_barrier())
        body = seq(*steps)
        for buffer in memory:
            body = allocate(buffer, body)
        return body


def _barrier() -> Stmt:
    return Evaluate(tvm_storage_sync("shared"))


def _joined(reducer: CommReducer, memory: list[Buffer], own: PrimExpr, other: PrimExpr) -> Stmt:
    """``memory[own] = reducer(memory[own], memory[other])``, all read before any is written."""
    mapping: dict[Any, Any] = {}
    lets: list[tuple[Var, PrimExpr]] = []
    for i, (x, y) in enumerate(zip(reducer.lhs, reducer.rhs, strict=True)):
        for var, place in ((x, own), (y, other)):
            mapping[var] = Var(var.name, var.dtype)
            lets.append((mapping[var], BufferLoad(memory[i], [place])))
    body = seq(*[
        BufferStore(memory[i], substitute(result, mapping), [own])
        for i, result in enumerate(reducer.result)
    ])  # fmt: skip
    for var, value in reversed(lets):
        body = LetStmt(var, value, body)
    return body


def lower_thread_allreduce(func: PrimFunc) -> PrimFunc:
    """The function with its reductions over threads as trees in shared memory."""
    return rewrite_body(func, _Lower())


def LowerThreadAllreduce() -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.LowerThreadAllreduce``."""
    return make_pass("LowerThreadAllreduce", lower_thread_allreduce)
