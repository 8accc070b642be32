"""The difference of two index expressions, if it is a constant that is easy to see.

``constant_difference(i * 4 + 3, i * 4)`` is 3. Slices and access regions need this so often that it
is computed here by collecting terms, which is faster than an Analyzer; harder cases need one.
"""

from __future__ import annotations

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.structural import structural_equal
from weft.tir.expr import Add, Mul, Sub, Var

Terms = list[tuple[PrimExpr, int]]


def constant_difference(lhs: PrimExpr, rhs: PrimExpr) -> int | None:
    """``lhs - rhs`` if all terms but constants cancel, else None."""
    if lhs is rhs:
        return 0
    if isinstance(lhs, Var) and isinstance(rhs, Var):
        return None
    terms: Terms = []
    constant = _add_terms(lhs, 1, terms) + _add_terms(rhs, -1, terms)
    for _, factor in terms:
        if factor:
            return None
    return constant


def _add_terms(expr: PrimExpr, factor: int, terms: Terms) -> int:
    """Add ``factor * expr`` to the linear form of (atom, factor); returns its constant part."""
    if isinstance(expr, IntImm):
        return factor * expr.value
    if isinstance(expr, Add):
        return _add_terms(expr.a, factor, terms) + _add_terms(expr.b, factor, terms)
    if isinstance(expr, Sub):
        return _add_terms(expr.a, factor, terms) + _add_terms(expr.b, -factor, terms)
    if isinstance(expr, Mul) and isinstance(expr.b, IntImm):
        return _add_terms(expr.a, factor * expr.b.value, terms)
    for position, (atom, known) in enumerate(terms):
        if _same(atom, expr):
            terms[position] = (atom, known + factor)
            return 0
    terms.append((expr, factor))
    return 0


def _same(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    if lhs is rhs:
        return True
    if type(lhs) is not type(rhs) or isinstance(lhs, Var):
        return False
    return structural_equal(lhs, rhs)
