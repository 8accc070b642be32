"""Equality of products of sums, which the other normal forms keep as they are.

``b * (q + 1) * 80`` and ``(q * 80 + 80) * b`` are one polynomial: 80 b q + 80 b. What is no sum, no
product and no constant (a quotient, a maximum) is a variable of the polynomial. Integers that wrap
around obey the same laws, so that an equality holds for them, too.
"""

from __future__ import annotations

from typing import Final

from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.expr import Add, Mul, Sub

Polynomial = dict[tuple[int, ...], int]
"""Numbers of atoms, sorted -> the coefficient of their product."""
_MOST_TERMS: Final = 64


class _TooLongError(Exception):
    """A polynomial has more terms than are compared."""


def same_polynomial(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two expressions are equal as polynomials; False also where they are long.

    >>> from weft import tir
    >>> b, q = tir.Var("b", "int64"), tir.Var("q", "int64")
    >>> same_polynomial(b * (q + 1) * 80, (q * 80 + 80) * b), same_polynomial(b * q, b * q + b)
    (True, False)
    """
    if not (_multiplies_sums(a) or _multiplies_sums(b)):
        return False
    atoms: list[PrimExpr] = []
    try:
        return _polynomial(a, atoms) == _polynomial(b, atoms)
    except _TooLongError:
        return False


def _multiplies_sums(expr: PrimExpr) -> bool:
    """Whether there is a product of two factors neither of which is a constant."""
    if not isinstance(expr, Add | Sub | Mul):
        return False
    is_product = isinstance(expr, Mul)
    if is_product and not isinstance(expr.a, IntImm) and not isinstance(expr.b, IntImm):
        return True
    return _multiplies_sums(expr.a) or _multiplies_sums(expr.b)


def _polynomial(expr: PrimExpr, atoms: list[PrimExpr]) -> Polynomial:
    if isinstance(expr, IntImm):
        return {(): expr.value} if expr.value else {}
    if isinstance(expr, Add | Sub | Mul):
        left, right = _polynomial(expr.a, atoms), _polynomial(expr.b, atoms)
        if isinstance(expr, Mul):
            return _product(left, right)
        return _sum(left, right, 1 if isinstance(expr, Add) else -1)
    place = next((i for i, atom in enumerate(atoms) if expr_deep_equal(atom, expr)), len(atoms))
    if place == len(atoms):
        atoms.append(expr)
    return {(place,): 1}


def _sum(left: Polynomial, right: Polynomial, sign: int) -> Polynomial:
    total = dict(left)
    for power, number in right.items():
        total[power] = total.get(power, 0) + sign * number
    return _checked(total)


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for a, number in left.items():
        for b, other in right.items():
            power = tuple(sorted((*a, *b)))
            total[power] = total.get(power, 0) + number * other
    return _checked(total)


def _checked(terms: Polynomial) -> Polynomial:
    if len(terms) > _MOST_TERMS:
        raise _TooLongError
    return {power: number for power, number in terms.items() if number}
