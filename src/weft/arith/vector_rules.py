"""Rewrite rules of vectors: arithmetic on ``ramp`` and ``broadcast`` becomes arithmetic on scalars.

Every rule holds for each lane. Those for sums, differences and products hold for arithmetic that
wraps, too; quotients and remainders of ramps are left alone if the numbers may wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.arith import fold
from weft.arith.data import has_data
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.facts import is_index
from weft.arith.rule import Simplifier
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.expr import (
    LT,
    Add,
    BinaryExpr,
    Broadcast,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Ramp,
    Sub,
)

Kind = type[BinaryExpr]


def vector_rule(expr: PrimExpr, simplifier: Simplifier) -> PrimExpr | None:
    """The simplified form of a vector with simplified operands; None if no rule applies."""
    if type(expr) is Not:
        negated = expr.a
        if type(negated) is not Broadcast:
            return None
        return Broadcast(fold.not_(negated.value), negated.lanes)
    if not isinstance(expr, BinaryExpr):
        return None
    kind, a, b = type(expr), expr.a, expr.b
    if type(a) is Broadcast and type(b) is Broadcast:
        return Broadcast(fold.BUILDERS[kind](a.value, b.value), a.lanes)
    rule = _RULES.get(kind)
    return rule(a, b, kind, simplifier) if rule is not None else None


def _ramp(base: PrimExpr, stride: PrimExpr, lanes: PrimExpr) -> PrimExpr:
    if type(stride) is IntImm and stride.value == 0:
        return Broadcast(base, lanes)
    return Ramp(base, stride, lanes)


def _linear(a: PrimExpr, b: PrimExpr, kind: Kind, simplifier: Simplifier) -> PrimExpr | None:
    """``ramp ± ramp``, ``ramp ± broadcast`` and ``broadcast ± ramp``."""
    build = fold.BUILDERS[kind]
    if type(a) is Ramp and type(b) is Ramp:
        return _ramp(build(a.base, b.base), build(a.stride, b.stride), a.lanes)
    if type(a) is Ramp and type(b) is Broadcast:
        return _ramp(build(a.base, b.value), a.stride, a.lanes)
    if type(a) is Broadcast and type(b) is Ramp:
        stride = fold.const(b.stride.dtype, 0)
        return _ramp(build(a.value, b.base), build(stride, b.stride), b.lanes)
    return None


def _product(a: PrimExpr, b: PrimExpr, kind: Kind, simplifier: Simplifier) -> PrimExpr | None:
    """``ramp * broadcast``."""
    if type(a) is Broadcast and type(b) is Ramp:
        a, b = b, a
    if type(a) is not Ramp or type(b) is not Broadcast:
        return None
    return _ramp(fold.mul(a.base, b.value), fold.mul(a.stride, b.value), a.lanes)


def _extreme(a: PrimExpr, b: PrimExpr, kind: Kind, simplifier: Simplifier) -> PrimExpr | None:
    """``min(min(x, broadcast(y)), broadcast(z))`` is ``min(x, broadcast(min(y, z)))``; max too."""
    if type(a) is not kind or type(b) is not Broadcast:
        return None
    for inner, rest in ((a.b, a.a), (a.a, a.b)):
        if type(inner) is Broadcast:
            scalar = fold.BUILDERS[kind](inner.value, b.value)
            return kind(rest, Broadcast(scalar, b.lanes))
    return None


def _less(a: PrimExpr, b: PrimExpr, kind: Kind, simplifier: Simplifier) -> PrimExpr | None:
    """Ramps with the same stride compare as their first elements do."""
    if type(a) is not Ramp or type(b) is not Ramp or not expr_deep_equal(a.stride, b.stride):
        return None
    if not is_index(a.base.dtype) or has_data(a) or has_data(b):
        return None
    return Broadcast(fold.lt(a.base, b.base), a.lanes)


def _division(a: PrimExpr, b: PrimExpr, kind: Kind, simplifier: Simplifier) -> PrimExpr | None:
    """``ramp // c`` and ``ramp % c`` where all lanes share a quotient, or the stride is aligned."""
    if type(a) is not Ramp or type(b) is not Broadcast:
        return None
    base, stride, by = a.base, a.stride, b.value
    if type(stride) is not IntImm or type(by) is not IntImm or by.value <= 0:
        return None
    if not is_index(base.dtype) or has_data(base):
        return None
    if kind in (Div, Mod) and simplifier.range_of(a)[0] < 0:
        return None
    quotient = kind is FloorDiv or kind is Div
    divide, modulo = (
        fold.BUILDERS[k] for k in ((Div, Mod) if kind in (Div, Mod) else (FloorDiv, FloorMod))
    )
    if stride.value % by.value == 0:
        if quotient:
            return _ramp(divide(base, by), divide(stride, by), a.lanes)
        return Broadcast(modulo(base, by), a.lanes)
    if type(a.lanes) is not IntImm:
        return None
    low, high = simplifier.range_of(simplifier.visit(fold.floormod(base, by)))
    span = stride.value * (a.lanes.value - 1)
    if low + min(span, 0) >= 0 and high + max(span, 0) < by.value:
        if quotient:
            return Broadcast(divide(base, by), a.lanes)
        return _ramp(modulo(base, by), stride, a.lanes)
    if not quotient and low == high and type(base) is not IntImm:
        return kind(_ramp(fold.const(base.dtype, low), stride, a.lanes), b)
    return None


VectorRule = Callable[[PrimExpr, PrimExpr, Kind, Simplifier], PrimExpr | None]
_RULES: Final[dict[Kind, VectorRule]] = {
    Add: _linear, Sub: _linear, Mul: _product, Min: _extreme, Max: _extreme, LT: _less,
    FloorDiv: _division, FloorMod: _division, Div: _division, Mod: _division,
}  # fmt: skip
