"""The arithmetic steps in an integer expression that ``T.is_exact`` tests for overflow."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.tir import expr as e

_STEPS: Final = (e.Add, e.Sub, e.Mul)
_OTHERS: Final = (e.Min, e.Max, e.FloorDiv, e.FloorMod, e.Div, e.Mod)


def exact_steps(expr: PrimExpr) -> list[e.BinaryExpr]:
    """The sums, differences and products of signed integers from which ``expr`` is computed.

    The walk looks into quotients, min, max and integer casts as well; it stops at variables, loads
    and calls. Each object is listed once.

    >>> from weft.tir import Var, max
    >>> n = Var("n", "int64")
    >>> exact_steps(max(n * 3, 1) + 2)
    [T.max(n * T.int64(3), T.int64(1)) + T.int64(2), n * T.int64(3)]
    """
    steps: list[e.BinaryExpr] = []
    waiting, known = [expr], {id(expr)}
    while waiting:
        part = waiting.pop()
        if not part.dtype.is_int or isinstance(part, (e.Var, IntImm)):
            continue
        if isinstance(part, _STEPS):
            steps.append(part)
        for operand in _operands(part):
            if id(operand) not in known:
                known.add(id(operand))
                waiting.append(operand)
    return steps


def _operands(expr: PrimExpr) -> tuple[PrimExpr, ...]:
    """The operands into which the walk descends."""
    if isinstance(expr, _STEPS + _OTHERS):
        return expr.a, expr.b
    if isinstance(expr, e.Cast):
        return (expr.value,)
    return ()
