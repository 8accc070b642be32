"""Statements: one function for each class of node, found through ``STATEMENTS``."""

from __future__ import annotations

from typing import Final

from weft.codegen.llvm import allocation, memory
from weft.codegen.llvm.emitter import Binding, Emitter, StatementHandler
from weft.codegen.llvm.expr import branch_on, define
from weft.codegen.llvm.imported import IMPORT, import_text
from weft.ir.expr import IntImm, StringImm
from weft.ir.functor import collect
from weft.runtime.call.abi import FaultKind
from weft.support.errors import CodegenError
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.expr import is_call
from weft.tir.lowering.facts import is_single, loop_range
from weft.tir.stmt import ForKind


def _sequence(em: Emitter, stmt: s.SeqStmt) -> None:
    for item in stmt.seq:
        em.statement(item)


def _evaluate(em: Emitter, stmt: s.Evaluate) -> None:
    if not isinstance(stmt.value, IntImm):
        em.value(stmt.value)


def _let(em: Emitter, stmt: s.LetStmt) -> None:
    define(em, stmt.var, stmt.value)
    em.statement(stmt.body)


def _attr(em: Emitter, stmt: s.AttrStmt) -> None:
    if stmt.attr_key == IMPORT:
        text = import_text(stmt.value)
        if text not in em.context.imports:
            em.context.imports.append(text)
    em.statement(stmt.body)


def _decl_buffer(em: Emitter, stmt: s.DeclBuffer) -> None:
    em.statement(stmt.body)


def _assert(em: Emitter, stmt: s.AssertStmt) -> None:
    message = stmt.message
    text = message.value if isinstance(message, StringImm) else "assertion failed"
    b = em.b
    good, bad = b.label("ok"), b.label("fault")
    branch_on(em, stmt.condition, good, bad, "!0")
    b.start(bad)
    b.raise_fault(FaultKind.ASSERTION, f"{em.function.name}: {text}")
    b.start(good)
    em.statement(stmt.body)


def _if(em: Emitter, stmt: s.IfThenElse) -> None:
    b = em.b
    then, merge = b.label("then"), b.label("endif")
    other = b.label("else") if stmt.else_case is not None else merge
    branch_on(em, stmt.condition, then, other)
    for label, body in ((then, stmt.then_case), (other, stmt.else_case)):
        if body is None:
            continue
        b.start(label)
        em.statement(body)
        b.branch(merge)
    b.start(merge)


def _while(em: Emitter, stmt: s.While) -> None:
    b = em.b
    head, body, done = b.label("while"), b.label("do"), b.label("done")
    b.branch(head)
    b.start(head)
    branch_on(em, stmt.condition, body, done)
    b.start(body)
    em.loops.append((head, done, len(b.held)))
    em.statement(stmt.body)
    em.loops.pop()
    b.branch(head)
    b.start(done)


def _for(em: Emitter, stmt: s.For) -> None:
    if stmt.kind is ForKind.THREAD_BINDING:
        raise CodegenError(
            f"{em.function.name}: the loop {stmt.loop_var.name} is bound to a GPU thread, which a "
            "CPU target has not; schedule it for the CPU"
        )
    serial_loop(em, stmt)


def serial_loop(em: Emitter, stmt: s.For) -> None:
    """A For whose iterations run in order.

    A loop that surely runs once is its body; one that surely never runs is nothing.
    """
    low, extent = em.index(stmt.min), em.index(stmt.extent)
    size_range = em.ranges.of(stmt.extent)
    if size_range[1] <= 0:
        return
    end = memory.plus(em, low, extent)
    em.bind_range(stmt.loop_var, loop_range(em.ranges, stmt))
    if is_single(stmt):
        em.bind(stmt.loop_var, Binding(None, low))
        if not any(is_call(call, name) for call in collect(stmt.body, e.Call) for name in _JUMPS):
            em.statement(stmt.body)
            return
    _counted(em, stmt, (low, end), guarded=size_range[0] <= 0)


def _counted(em: Emitter, stmt: s.For, span: tuple[str, str], guarded: bool) -> None:
    """``for i in [low, end)``, with the test after the body.

    ``guarded``: the loop may have no iteration, which one more test before it finds out.
    """
    b = em.b
    low, end = span
    body, latch, done = b.label("loop"), b.label("next"), b.label("done")
    before = b.block
    if guarded:
        runs = b.op(f"icmp slt i64 {low}, {end}")
        b.branch_if(runs, body, done)
    else:
        b.branch(body)
    b.start(body)
    first_line = len(b.lines)
    counter, following = b.name(), b.name()
    b.lines.append(f"  {counter} = phi i64 [ {low}, %{before} ], [ {following}, %{latch} ]")
    em.bind(stmt.loop_var, Binding(None, counter))
    em.loops.append((latch, done, len(b.held)))
    is_parallel = stmt.kind is ForKind.PARALLEL
    if is_parallel:
        em.parallel_loops.append(len(em.loops))
    em.statement(stmt.body)
    if is_parallel:
        em.parallel_loops.pop()
    em.loops.pop()
    b.branch(latch)
    b.start(latch)
    b.lines.append(f"  {following} = add nsw i64 {counter}, 1")
    again = b.op(f"icmp slt i64 {following}, {end}")
    b.branch_if(again, body, done, loop=_unrolling(em, stmt, len(b.lines) - first_line))
    b.start(done)


def _unrolling(em: Emitter, loop: s.For, lines: int) -> str:
    """Metadata of a loop with so many lines of LLVM IR: how LLVM is to unroll it.

    Empty where LLVM decides. It is not to unroll

    - a loop over lanes each of which has its own test, as the tail of a symbolic extent leaves it:
      a tile of 8 by 48 would be a thousand branches and scalar sums, for which LLVM's search for
      vectors in straight code takes minutes;
    - a long body, beside which counting costs nothing. LLVM allows thousands of instructions in the
      loops of some processors (4,096 of a Zen 3 or Zen 4), and takes its time for them.
    """
    if loop.kind is ForKind.UNROLLED:
        is_short = isinstance(loop.extent, IntImm) and loop.extent.value <= _WHOLE
        return em.context.loop("full" if is_short else "enable")
    body = loop.body
    tests_each = isinstance(body, s.IfThenElse) and loop.loop_var in collect(body.condition, e.Var)
    return em.context.loop("disable") if tests_each or lines > _LONG_BODY else ""


_LONG_BODY: Final = 40
"""The most lines of LLVM IR in a loop that LLVM may unroll if it likes: those over the gates of an
LSTM, which gain from it, have 16 to 35, those of products 80 and more."""
_WHOLE: Final = 64
"""The most iterations of a loop that is unrolled wholly; a longer one is unrolled by a factor."""
_JUMPS: Final = ("break_loop", "continue_loop")

STATEMENTS: Final[dict[type, StatementHandler]] = {
    s.SeqStmt: _sequence, s.Evaluate: _evaluate, s.LetStmt: _let, s.AttrStmt: _attr,
    s.DeclBuffer: _decl_buffer, s.AssertStmt: _assert, s.IfThenElse: _if, s.While: _while,
    s.For: _for, s.BufferStore: memory.store, s.Allocate: allocation.allocate,
    s.AllocateConst: allocation.allocate_const,
}  # fmt: skip
