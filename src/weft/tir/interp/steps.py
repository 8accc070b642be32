"""Statements that contain barriers, compiled to generators.

A generator yields a ``Request`` where the thread has to wait: at a barrier of its block or warp, or
for the result of a reduction over a group of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.support.errors import UnsupportedError
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, CommReducer, Var, is_call
from weft.tir.interp.loops import Request, Share, Steps, Waiting, repeated_steps, rounds_of
from weft.tir.interp.state import Action, State, Thunk
from weft.tir.interp.values import Value
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BlockRealize,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    Stmt,
    While,
)
from weft.tir.transform.threads.thread_scope import Binding, binding_of, sync_of


class Compiler(Protocol):
    """The methods of Machine that compile statements without barriers."""

    tags: tuple[str, ...]

    def expression(self, expr: PrimExpr) -> Thunk:
        """The closure of an expression."""

    def compile(self, stmt: Stmt) -> Action:
        """The closure that executes a statement."""

    def prepare_LetStmt(self, stmt: LetStmt) -> Action: ...
    def prepare_DeclBuffer(self, stmt: DeclBuffer) -> Action: ...
    def prepare_Allocate(self, stmt: Allocate) -> Action: ...
    def prepare_axes(self, realize: BlockRealize) -> Callable[[State], bool]: ...
    def prepare_memory(self, buffers: Sequence[Buffer]) -> Action: ...
    def prepare_match(self, match: MatchBufferRegion) -> Action: ...
    def prepare_init(self, block: Block) -> Action: ...


class Launch(Protocol):
    """The threads of a kernel, as its body sees them."""

    thread_tags: list[str]
    variables: dict[int, str]
    """Variable (``id``) bound to threads -> the tag of the thread axis."""

    def entry(self, binding: Binding) -> Callable[[State], bool]:
        """An action that sets the bound variable; it returns False beyond the loop's extent."""


class StepCompiler:
    """Compiles statements with barriers to generators; statements without are plain actions."""

    def __init__(self, machine: Compiler, kernel: Launch) -> None:
        self.machine, self.kernel = machine, kernel
        self.reducer: CommReducer | None = None

    def steps(self, stmt: Stmt) -> Steps | None:
        """The generator function of a statement; None if it never waits."""
        if not _waits(stmt):
            return None
        binding = binding_of(stmt)
        if binding is not None:
            return self.bound(binding)
        method = getattr(self, f"steps_{type(stmt).__name__}", None)
        if method is None:
            raise UnsupportedError(
                f"the interpreter knows no barrier inside a {type(stmt).__name__}"
            )
        taken: Steps = method(stmt)
        return taken

    def any(self, stmt: Stmt) -> Steps:
        """The generator function of a statement, also of one that never waits."""
        steps = self.steps(stmt)
        return _plain(self.machine.compile(stmt)) if steps is None else steps

    def after(self, first: Action, body: Stmt) -> Steps:
        rest = self.any(body)

        def both(state: State) -> Waiting:
            first(state)
            yield from rest(state)

        return both

    def bound(self, binding: Binding) -> Steps:
        enter = self.kernel.entry(binding)
        outer, self.machine.tags = self.machine.tags, (*self.machine.tags, binding.tag)
        body = self.any(binding.body)
        self.machine.tags = outer

        def run(state: State) -> Waiting:
            if enter(state):
                yield from body(state)

        return run

    def steps_SeqStmt(self, stmt: SeqStmt) -> Steps:
        parts: list[tuple[Steps | None, Action | None]] = []
        for item in stmt.seq:
            steps = self.steps(item)
            parts.append((steps, None if steps is not None else self.machine.compile(item)))

        def run(state: State) -> Waiting:
            for steps, action in parts:
                if steps is not None:
                    yield from steps(state)
                elif action is not None:
                    action(state)

        return run

    def steps_For(self, loop: For) -> Steps:
        rounds = rounds_of(loop, self.machine.expression)
        return repeated_steps(loop, rounds, self.any(loop.body))

    def steps_While(self, stmt: While) -> Steps:
        rounds = rounds_of(stmt, self.machine.expression)
        return repeated_steps(stmt, rounds, self.any(stmt.body))

    def steps_IfThenElse(self, stmt: IfThenElse) -> Steps:
        condition, yes = self.machine.expression(stmt.condition), self.any(stmt.then_case)
        no = None if stmt.else_case is None else self.any(stmt.else_case)

        def run(state: State) -> Waiting:
            if condition(state):
                yield from yes(state)
            elif no is not None:
                yield from no(state)

        return run

    def steps_LetStmt(self, stmt: LetStmt) -> Steps:
        return self.after(self.machine.prepare_LetStmt(stmt), stmt.body)

    def steps_DeclBuffer(self, stmt: DeclBuffer) -> Steps:
        return self.after(self.machine.prepare_DeclBuffer(stmt), stmt.body)

    def steps_Allocate(self, stmt: Allocate) -> Steps:
        return self.after(self.machine.prepare_Allocate(stmt), stmt.body)

    def steps_AttrStmt(self, stmt: AttrStmt) -> Steps:
        outer = self.reducer
        if stmt.attr_key == "reduce_scope" and isinstance(stmt.node, CommReducer):
            self.reducer = stmt.node
        body = self.any(stmt.body)
        self.reducer = outer
        return body

    def steps_BlockRealize(self, realize: BlockRealize) -> Steps:
        bind = self.machine.prepare_axes(realize)
        body = self.block(realize.block)

        def run(state: State) -> Waiting:
            if bind(state):
                yield from body(state)

        return run

    def block(self, block: Block) -> Steps:
        first: list[Action] = []
        if block.alloc_buffers:
            first.append(self.machine.prepare_memory(block.alloc_buffers))
        first += [self.machine.prepare_match(match) for match in block.match_buffers]
        if block.init is not None:
            first.append(self.machine.prepare_init(block))
        body = self.any(block.body)

        def run(state: State) -> Waiting:
            for action in first:
                action(state)
            yield from body(state)

        return run

    def steps_Evaluate(self, stmt: Evaluate) -> Steps:
        if is_call(stmt.value, "tvm_thread_allreduce"):
            return self.allreduce(stmt)
        scope, site = sync_of(stmt) or "", id(stmt)

        def wait(state: State) -> Waiting:
            assert state.thread is not None
            yield Request(scope, site, state.thread.warp if scope == "warp" else 0)

        return wait

    def allreduce(self, stmt: Evaluate) -> Steps:
        """``tvm_thread_allreduce(count, values, condition, results, threads)``."""
        call = expect(stmt.value, Call)
        count = expect(call.args[0], IntImm).value
        values = [self.machine.expression(arg) for arg in call.args[1 : count + 1]]
        condition = self.machine.expression(call.args[count + 1])
        places = [expect(arg, BufferLoad) for arg in call.args[count + 2 : 2 * count + 2]]
        stores = [
            (place.buffer, [self.machine.expression(index) for index in place.indices])
            for place in places
        ]
        reduced = [
            self.kernel.variables[id(var)]
            for arg in call.args[2 * count + 2 :]
            for var in collect(arg, Var)
            if id(var) in self.kernel.variables
        ]
        kept = [tag for tag in self.kernel.thread_tags if tag not in reduced]
        combine = self.combiner()
        site = id(stmt)

        def run(state: State) -> Waiting:
            assert state.thread is not None
            group = tuple([(tag, state.thread.index[tag]) for tag in kept])
            rank = tuple([state.thread.index[tag] for tag in reduced])
            share = (rank, [value(state) for value in values] if condition(state) else None)
            result = yield Request(
                "allreduce", site, group, lambda shares: combine(state, shares), share
            )
            assert result is not None
            for (buffer, indices), value in zip(stores, result, strict=True):
                state.bound(buffer).store(tuple([index(state) for index in indices]), value)

        return run

    def combiner(self) -> Callable[[State, list[Share]], list[Value]]:
        """The function that reduces the values of a group of threads, in order of their ranks."""
        reducer = self.reducer
        if reducer is None:
            raise UnsupportedError(
                "tvm_thread_allreduce: expected an attribute reduce_scope with the reducer outside"
            )
        machine = self.machine
        results = [machine.expression(item) for item in reducer.result]
        identities = [machine.expression(item) for item in reducer.identity_element]
        left, right = [id(v) for v in reducer.lhs], [id(v) for v in reducer.rhs]

        def combine(state: State, shares: list[Share]) -> list[Value]:
            total = [identity(state) for identity in identities]
            for _, values in sorted(shares, key=lambda share: share[0]):
                if values is None:
                    continue
                state.values.update(zip(left, total, strict=True))
                state.values.update(zip(right, values, strict=True))
                total = [result(state) for result in results]
            return total

        return combine


def _plain(action: Action) -> Steps:
    def run(state: State) -> Waiting:
        action(state)
        yield from ()

    return run


def _waits(stmt: object) -> bool:
    """Whether a statement contains a barrier or a reduction over threads."""
    for item in collect(stmt, Evaluate):
        if sync_of(item) in ("shared", "warp") or is_call(item.value, "tvm_thread_allreduce"):
            return True
    return False
