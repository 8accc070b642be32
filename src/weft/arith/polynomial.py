"""Equality of products of sums, which the other normal forms keep as they are.

``b * (q + 1) * 80`` and ``(q * 80 + 80) * b`` are one polynomial: 80 b q + 80 b. What is no sum, no
product and no constant (a remainder, a maximum) is a variable of the polynomial. Integers that wrap
around obey the same laws, so that an equality holds for them, too.

Quotients by a constant are variables as well. Those of indices, which do not wrap around, are told
apart by the polynomial that is divided: ``(b * q - 1) // 4`` is ``(q * b + 3) // 4 - 1``.
"""

from __future__ import annotations

from typing import Final

from weft.arith.deep_equal import expr_deep_equal
from weft.arith.facts import is_index
from weft.ir.expr import IntImm, PrimExpr
from weft.tir.expr import Add, FloorDiv, Mul, Sub

Polynomial = dict[tuple[int, ...], int]
"""Numbers of atoms, sorted -> the coefficient of their product."""
_Quotient = tuple[Polynomial, int]
"""A polynomial and the positive constant that divides it, which is larger than its own constant."""
_Atom = PrimExpr | _Quotient
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
    atoms: list[_Atom] = []
    try:
        return _polynomial(a, atoms) == _polynomial(b, atoms)
    except _TooLongError:
        return False


def _multiplies_sums(expr: PrimExpr) -> bool:
    """Whether there is a product of two factors neither of which is a constant."""
    if isinstance(expr, FloorDiv):
        return _multiplies_sums(expr.a)
    if not isinstance(expr, Add | Sub | Mul):
        return False
    is_product = isinstance(expr, Mul)
    if is_product and not isinstance(expr.a, IntImm) and not isinstance(expr.b, IntImm):
        return True
    return _multiplies_sums(expr.a) or _multiplies_sums(expr.b)


def _polynomial(expr: PrimExpr, atoms: list[_Atom]) -> Polynomial:
    if isinstance(expr, IntImm):
        return {(): expr.value} if expr.value else {}
    if isinstance(expr, Add | Sub | Mul):
        left, right = _polynomial(expr.a, atoms), _polynomial(expr.b, atoms)
        if isinstance(expr, Mul):
            return _product(left, right)
        return _sum(left, right, 1 if isinstance(expr, Add) else -1)
    if isinstance(expr, FloorDiv) and is_index(expr.dtype):
        by = expr.b
        if isinstance(by, IntImm) and by.value > 0:
            return _quotient(_polynomial(expr.a, atoms), by.value, atoms)
    return {(_place(expr, atoms),): 1}


def _quotient(divided: Polynomial, by: int, atoms: list[_Atom]) -> Polynomial:
    """``(p + 7) // 4`` as ``(p + 3) // 4 + 1``."""
    whole, rest = divmod(divided.get((), 0), by)
    place = _place((_sum(divided, {(): rest - divided.get((), 0)}, 1), by), atoms)
    return _sum({(place,): 1}, {(): whole}, 1)


def _place(atom: _Atom, atoms: list[_Atom]) -> int:
    """The number of an atom, which is put with the others if it is new."""
    for place, known in enumerate(atoms):
        if isinstance(atom, tuple):
            if isinstance(known, tuple) and atom == known:
                return place
        elif isinstance(known, PrimExpr) and expr_deep_equal(known, atom):
            return place
    atoms.append(atom)
    return len(atoms) - 1


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
