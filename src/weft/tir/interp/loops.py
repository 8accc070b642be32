"""Loops of the interpreter: their rounds, and what a jump out of a body means.

A body runs as a plain action, or as steps between barriers; either way rounds and jumps are these.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from typing import NamedTuple

from weft.ir.expr import PrimExpr
from weft.support.errors import RuntimeFault
from weft.tir.interp.expression import BreakSignal, ContinueSignal
from weft.tir.interp.state import Action, State, Thunk
from weft.tir.interp.values import Value
from weft.tir.stmt import For, ForKind, While

Rounds = Callable[[State], Iterator[None]]
"""Yields once for each round, after the loop's variable has its value."""
Share = tuple[tuple[int, ...], list[Value] | None]
"""What a thread brings to a reduction: its place in the order, and its values if it has some."""


class Request(NamedTuple):
    """Why a thread waits: for which barrier or reduction, and for which other threads."""

    kind: str
    """``shared`` or ``warp``, the barrier of a block or a warp, or ``allreduce``."""
    site: int
    """The statement (its ``id``): threads that wait at different ones do not meet."""
    group: Hashable
    """Threads of one group meet."""
    combine: Callable[[list[Share]], list[Value]] | None = None
    """Of a reduction: what all threads of the group get, from what each of them brings."""
    share: Share | None = None
    """Of a reduction: what this thread brings."""


Waiting = Generator[Request, list[Value] | None, None]
"""A thread at work: it yields where it has to wait, and is sent what a reduction gives."""
Steps = Callable[[State], Waiting]
"""Executes a statement that may wait."""


def rounds_of(loop: For | While, expression: Callable[[PrimExpr], Thunk]) -> Rounds:
    """The rounds of a loop; ``expression`` compiles its bounds or its condition."""
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
        if outer is not None:  # the variable of a loop around this one, too
            state.values[key] = outer

    return counted


def repeated(loop: For | While, rounds: Rounds, body: Action) -> Action:
    """The action that runs a body in every round."""

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
    """Refuse a jump out of a loop whose rounds have no order."""
    if isinstance(loop, For) and loop.kind is ForKind.PARALLEL:
        raise RuntimeFault(
            f"break_loop leaves the parallel loop {loop.loop_var.name}, whose iterations have no "
            "order; make the loop serial"
        ) from None
