"""Which calls are the last thing that a function does: they need no activation of their own.

A loop of a graph is a function whose last binding, perhaps in a branch of an ``if``, is a call of
the function itself. Both ways to run a function ask here: the bytecode lets the callee take the
place of the caller, a host function goes back to its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import Call, ExternFunc, Function, If, SeqExpr, Var, VarBinding

_WITHOUT_EFFECT: Final = frozenset(
    {"relax.memory.kill_storage", "relax.memory.kill_tensor", "relax.vm.kill_object"}
)
"""Operators that may stand behind the last call, for they say only which values are not needed."""


def last_binding(body: RelaxExpr) -> VarBinding | None:
    """The binding whose value a sequence returns, if nothing is computed after it."""
    if not isinstance(body, SeqExpr):
        return None
    result = body.body
    for block in reversed(body.blocks):
        for binding in reversed(block.bindings):
            value = binding.value
            if _is_without_effect(value):
                continue
            if not isinstance(binding, VarBinding) or binding.var is not result:
                return None
            if not isinstance(value, Var):
                return binding
            result = value
    return None


def _is_without_effect(value: RelaxExpr) -> bool:
    return isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in _WITHOUT_EFFECT


def ends(body: RelaxExpr) -> Iterator[VarBinding | None]:
    """How each path through a body ends: with the call of a function, or (None) with a value."""
    binding = last_binding(body)
    value = None if binding is None else binding.value
    if isinstance(value, If):
        yield from ends(value.true_branch)
        yield from ends(value.false_branch)
    elif isinstance(value, SeqExpr):
        yield from ends(value)
    elif isinstance(value, Call) and not isinstance(value.op, Op | ExternFunc):
        yield binding
    else:
        yield None


def tail_calls(function: Function, is_itself: Callable[[RelaxExpr], bool]) -> list[VarBinding]:
    """The bindings whose calls may take the place of the function; ``is_itself`` knows its names.

    None where every path ends with a call of the function itself: that is no loop but a mistake,
    and stays a recursion, whose depth has a limit.
    """
    paths = list(ends(function.body))
    calls = [binding for binding in paths if binding is not None]
    never_returns = len(calls) == len(paths) and all(
        is_itself(expect(call.value, Call).op) for call in calls
    )
    return [] if never_returns else calls
