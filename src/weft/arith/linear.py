"""Expressions as linear in chosen variables, and the bounds that conditions put on variables."""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith import fold
from weft.arith.analyzer import Analyzer
from weft.arith.facts import is_index
from weft.ir.expr import IntImm, PrimExpr, as_prim_expr
from weft.ir.functor import collect
from weft.ir.node import Array
from weft.support.recursion import deep_recursion
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    OPPOSITE,
    Add,
    And,
    CompareExpr,
    Max,
    Min,
    Mul,
    Not,
    Sub,
    Var,
)

_Entry = tuple[dict[Var, PrimExpr], PrimExpr]
"""Coefficients by variable (none are 0), and the rest."""


class _NotLinear(ArithmeticError):
    """The expression is not linear in the variables."""


def _linear(expr: PrimExpr, variables: set[Var]) -> _Entry:
    """Coefficients and the rest; raises _NotLinear, or ConstantOverflow where one of them wraps."""
    if isinstance(expr, Var) and expr in variables:
        return {expr: fold.const(expr.dtype, 1)}, fold.const(expr.dtype, 0)
    if isinstance(expr, (Add, Sub)):
        build = fold.add if type(expr) is Add else fold.sub
        (a, rest_a), (b, rest_b) = _linear(expr.a, variables), _linear(expr.b, variables)
        zero = fold.const(expr.dtype, 0)
        coefficients = dict(a)
        for var, value in b.items():
            coefficients[var] = fold.exact(build, a.get(var, zero), value)
        return _without_zeros(coefficients), fold.exact(build, rest_a, rest_b)
    if type(expr) is Mul:
        (a, rest_a), (b, rest_b) = _linear(expr.a, variables), _linear(expr.b, variables)
        if a and b:
            raise _NotLinear
        if b:
            a, rest_a, rest_b = b, rest_b, rest_a
        scaled = {var: fold.exact(fold.mul, value, rest_b) for var, value in a.items()}
        return _without_zeros(scaled), fold.exact(fold.mul, rest_a, rest_b)
    if any(var in variables for var in collect(expr, Var)):
        raise _NotLinear
    return {}, expr


def _without_zeros(coefficients: dict[Var, PrimExpr]) -> dict[Var, PrimExpr]:
    """The coefficients that are not the number 0: ``x + y - x`` does not depend on x."""
    return {
        var: value
        for var, value in coefficients.items()
        if type(value) is not IntImm or value.value != 0
    }


@deep_recursion
def detect_linear_equation(expr: PrimExpr, var_list: Sequence[Var]) -> Array[PrimExpr]:
    """[coefficient of each variable ..., rest] with expr = sum(coefficient * var) + rest.

    Empty where ``expr`` is not linear in the variables. Coefficients may be symbolic.
    """
    try:
        coefficients, rest = _linear(as_prim_expr(expr), set(var_list))
    except (_NotLinear, fold.ConstantOverflow):
        return Array()
    analyzer = Analyzer()
    values = [coefficients.get(var, fold.const(rest.dtype, 0)) for var in var_list]
    return Array([analyzer.simplify(value) for value in [*values, rest]])


@deep_recursion
def detect_clip_bound(expr: PrimExpr, var_list: Sequence[Var]) -> Array[PrimExpr | None]:
    """[low, high] of each variable, joined, as the condition bounds it; None if it does not.

    Empty where a part of the condition is not a comparison that is linear in one variable.
    """
    analyzer = Analyzer()
    low: dict[Var, PrimExpr] = {}
    high: dict[Var, PrimExpr] = {}
    try:
        for part in _parts(as_prim_expr(expr)):
            _add_bound(part, set(var_list), low, high, analyzer)
    except (_NotLinear, fold.ConstantOverflow):
        return Array()
    ends: list[PrimExpr | None] = []
    for var in var_list:
        for table in (low, high):
            ends.append(analyzer.simplify(table[var]) if var in table else None)
    return Array(ends)


def _add_bound(
    part: PrimExpr,
    variables: set[Var],
    low: dict[Var, PrimExpr],
    high: dict[Var, PrimExpr],
    analyzer: Analyzer,
) -> None:
    """Record the bound that a comparison gives; raises _NotLinear or ConstantOverflow."""
    if not isinstance(part, (LT, LE, GT, GE, EQ)) or not is_index(part.a.dtype):
        raise _NotLinear
    coefficients, rest = _linear(Sub(part.a, part.b), variables)
    if len(coefficients) != 1:
        raise _NotLinear
    ((var, coefficient),) = coefficients.items()
    sign = getattr(analyzer.simplify(coefficient), "value", 0)
    if sign not in (1, -1):
        raise _NotLinear
    limit = fold.exact(fold.sub, fold.const(rest.dtype, 0), rest) if sign == 1 else rest
    _limit(part, var, limit, sign, low, high)


def _parts(expr: PrimExpr) -> list[PrimExpr]:
    """The comparisons of a conjunction; ``min(a, b) >= c`` counts as ``a >= c`` and ``b >= c``."""
    if isinstance(expr, And):
        return _parts(expr.a) + _parts(expr.b)
    if isinstance(expr, Not):
        negated = expr.a
        if isinstance(negated, (LT, LE, GT, GE)) and negated.a.dtype.is_integral:
            return _parts(OPPOSITE[type(negated)](negated.a, negated.b))
    if isinstance(expr, (LT, LE, GT, GE)):
        kind, bounded = type(expr), expr.a
        if isinstance(bounded, Min if isinstance(expr, (GT, GE)) else Max):
            return _parts(kind(bounded.a, expr.b)) + _parts(kind(bounded.b, expr.b))
    return [expr]


def _limit(
    part: CompareExpr,
    var: Var,
    limit: PrimExpr,
    sign: int,
    low: dict[Var, PrimExpr],
    high: dict[Var, PrimExpr],
) -> None:
    """Record the bound of ``var`` that the comparison ``sign * var <op> sign * limit`` gives."""
    kind = type(part)
    step = fold.const(limit.dtype, 1)
    below = (kind in (LT, LE)) is (sign == 1)
    if kind is EQ or below:
        end = fold.exact(fold.sub, limit, step) if kind in (LT, GT) else limit
        high[var] = fold.min_(high[var], end) if var in high else end
    if kind is EQ or not below:
        end = fold.exact(fold.add, limit, step) if kind in (LT, GT) else limit
        low[var] = fold.max_(low[var], end) if var in low else end
