"""Polynomials over the integers, in variables that are numbered: what ``proofs`` reasons with."""

from __future__ import annotations

from typing import Final

Monomial = tuple[int, ...]
"""A product of atoms, by their numbers in order: ``i * i * n`` may be (0, 0, 3), and 1 is ()."""
Poly = dict[Monomial, int]
"""A sum of products with their factors: ``i * n - 1`` may be {(0, 3): 1, (): -1}."""
ONE: Final[Poly] = {(): 1}


def add_scaled(a: Poly, b: Poly, factor: int) -> Poly:
    """a + factor * b."""
    result = dict(a)
    for key, value in b.items():
        total = result.get(key, 0) + factor * value
        if total:
            result[key] = total
        else:
            result.pop(key, None)
    return result


def multiply(a: Poly, b: Poly) -> Poly:
    """a * b."""
    result: Poly = {}
    for key_a, value_a in a.items():
        for key_b, value_b in b.items():
            key = tuple(sorted(key_a + key_b))
            total = result.get(key, 0) + value_a * value_b
            if total:
                result[key] = total
            else:
                result.pop(key, None)
    return result


def divided(poly: Poly, divisor: Poly) -> Poly | None:
    """``poly / divisor`` if that is a polynomial and the divisor one product; else None.

    ``12 * n * t + 24 * t`` by ``12 * t`` is ``n + 2``.
    """
    if len(divisor) != 1:
        return None
    [(taken, number)] = divisor.items()
    result: Poly = {}
    for key, value in poly.items():
        rest = list(key)
        for atom in taken:
            if atom not in rest:
                return None
            rest.remove(atom)
        if value % number:
            return None
        result[tuple(rest)] = value // number
    return result


def is_beyond(poly: Poly) -> bool:
    """Whether a factor fits in no type: of constants, the arithmetic has wrapped."""
    return any(abs(value) >= 1 << 63 for value in poly.values())


def cancelling(poly: Poly, fact: Poly) -> list[int]:
    """Positive numbers that, times ``fact``, have a term of ``poly``: subtracted, it cancels."""
    factors: list[int] = []
    for key, value in fact.items():
        mine = poly.get(key, 0)
        if key and mine and mine % value == 0 and mine // value > 0:
            factor = mine // value
            if factor not in factors:
                factors.append(factor)
    return factors[:3]
