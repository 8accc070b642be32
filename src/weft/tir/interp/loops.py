"""Loops of the interpreter: their iterations, and jumps (break, continue) out of their bodies.

A body is either a plain action, or a generator that waits at barriers; both are supported.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from typing import NamedTuple

from weft.ir.expr import PrimExpr
from weft.support.errors import RuntimeFault
from weft.tir.interp.calls import BreakSignal, ContinueSignal
from weft.tir.interp.state import Action, State, Thunk
from weft.tir.interp.values import Value
from weft.tir.stmt import For, ForKind, While

Rounds = Callable[[State], Iterator[None]]
"""Yields once for each iteration, after it has set the loop variable."""
Share = tuple[tuple[int, ...], list[Value] | None]
"""A thread's part of a reduction: its rank in the order, and its values, or None."""


class Request(NamedTuple):
    """The barrier or reduction for which a thread waits, and the threads that must come to it."""

    kind: str
    """``shared`` or ``warp``, the barrier of a block or a warp, or ``allreduce``."""
    site: int
    """The ``id`` of the statement: threads only wait for each other at the same statement."""
    group: Hashable
    """Only threads of the same group wait for each other."""
    combine: Callable[[list[Share]], list[Value]] | None = None
    """For a reduction: computes the result for all threads of the group from their shares."""
    share: Share | None = None
    """For a reduction: the share of this thread."""


Waiting = Generator[Request, list[Value] | None, None]
"""A running thread: it yields where it has to wait, and is sent the result of a reduction."""
Steps = Callable[[State], Waiting]
"""Executes a statement that may wait."""


def rounds_of(loop: For | While, expression: Callable[[PrimExpr], Thunk]) -> Rounds:
    """The iterations of a loop; ``expression`` compiles its bounds or its condition."""
    if isinstance(loop, While):
        condition = expression(loop.condition)

        def tested(state: State) -> Iterator[None]:
            while condition(state):
                yield

        return tested
    low, extent, key = expression(loop.min), expression(loop.extent), id(loop.loop_var)

    def counted(state: State) -> Iterator[None]:
        begin, outer = low(state), state.values.get(key)
        for value in range(begin, begin + extent(state)):
            state.values[key] = value
            yield
        if outer is not None:  # a loop around this one has the same variable
            state.values[key] = outer

    return counted


def repeated(loop: For | While, rounds: Rounds, body: Action) -> Action:
    """The action that runs a body in every iteration."""

    def run(state: State) -> None:
        for _ in rounds(state):
            try:
                body(state)
            except ContinueSignal:
                continue
            except BreakSignal:
                _leave(loop)
                return

    return run


def repeated_steps(loop: For | While, rounds: Rounds, body: Steps) -> Steps:
    """As ``repeated``, for a body that waits."""

    def run(state: State) -> Waiting:
        for _ in rounds(state):
            try:
                yield from body(state)
            except ContinueSignal:
                continue
            except BreakSignal:
                _leave(loop)
                return

    return run


def _leave(loop: For | While) -> None:
    """Raise RuntimeFault for a break out of a parallel loop, whose iterations have no order."""
    if isinstance(loop, For) and loop.kind is ForKind.PARALLEL:
        raise RuntimeFault(
            f"break_loop leaves the parallel loop {loop.loop_var.name}, whose iterations have no "
            "order; make the loop serial"
        ) from None
