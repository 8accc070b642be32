"""The parts of conditions that hold together."""

from __future__ import annotations

from collections.abc import Container, Iterable

from weft.arith.fold import TRUE
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.tir.arithmetic import add, greater_equal, less, logical_and
from weft.tir.expr import OPPOSITE, And, CompareExpr, Not, Or, Var, is_call


def conjuncts(predicate: PrimExpr) -> list[PrimExpr]:
    """The parts of a conjunction, without ``likely`` around them; none of a true one."""
    if type(predicate) is And:
        return conjuncts(predicate.a) + conjuncts(predicate.b)
    if is_call(predicate, "likely"):
        return conjuncts(predicate.args[0])
    return [] if isinstance(predicate, IntImm) and predicate.value else [predicate]


def conjuncts_without(predicate: PrimExpr, variables: Container[Var]) -> list[PrimExpr]:
    """The parts of a conjunction that use none of the variables."""
    parts = conjuncts(predicate)
    return [part for part in parts if not any(var in variables for var in collect(part, Var))]


def conjunction(conditions: Iterable[PrimExpr]) -> PrimExpr:
    """The condition that all hold; true if there are none."""
    all_hold: PrimExpr = TRUE
    for condition in conditions:
        all_hold = logical_and(all_hold, condition)
    return all_hold


def in_range(value: PrimExpr, domain: Range) -> PrimExpr:
    """The condition that a value is in a range."""
    return logical_and(
        greater_equal(value, domain.min), less(value, add(domain.min, domain.extent))
    )


def claims(condition: PrimExpr) -> list[PrimExpr]:
    """What holds where a condition does: its parts, those of negations too.

    ``a < b and not (c or d < e)`` gives ``a < b``, ``not c`` and ``d >= e``.
    """
    return [claim for part in conjuncts(condition) for claim in _opened(part)]


def _opened(part: PrimExpr) -> list[PrimExpr]:
    if type(part) is not Not:
        return [part]
    denied = part.a
    if type(denied) is Or:
        return _opened(Not(denied.a)) + _opened(Not(denied.b))
    if isinstance(denied, CompareExpr) and denied.a.dtype.is_integral:
        return [OPPOSITE[type(denied)](denied.a, denied.b)]
    return [part]
