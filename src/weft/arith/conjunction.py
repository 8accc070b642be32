"""The parts of conditions that hold together."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.expr import EQ, GE, GT, LE, LT, NE, And, Call, CompareExpr, Not, Or

_OPPOSITE: Final[dict[type[PrimExpr], type[CompareExpr]]] = {
    LT: GE, LE: GT, GT: LE, GE: LT, EQ: NE, NE: EQ,
}  # fmt: skip


def conjuncts(predicate: PrimExpr) -> list[PrimExpr]:
    """The parts of a conjunction, without ``likely`` around them."""
    if type(predicate) is And:
        return conjuncts(predicate.a) + conjuncts(predicate.b)
    if isinstance(predicate, Call) and getattr(predicate.op, "name", "") == "tir.likely":
        return conjuncts(predicate.args[0])
    return [predicate]


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
        return [_OPPOSITE[type(denied)](denied.a, denied.b)]
    return [part]
