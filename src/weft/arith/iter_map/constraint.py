"""Reads predicates such as ``i*4 + j < 30 and 2 <= i`` as bounds of sums of loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjuncts
from weft.arith.facts import is_index
from weft.arith.iter_map.integer import add, const_like, maximum, minimum, sub
from weft.arith.iter_map.padding import NotAffine
from weft.ir.expr import IntImm, PrimExpr, Range, integer_range
from weft.ir.functor import collect
from weft.ir.node import Node
from weft.tir.expr import GE, GT, LE, LT, Add, CompareExpr, Sub, Var


@dataclass(frozen=True, slots=True)
class Constraint:
    """``low <= sum < high``; either may be None."""

    sum: PrimExpr
    low: PrimExpr | None
    high: PrimExpr | None


# Comparison -> (is the bound above when it stands on the right, does equality count)
_COMPARISONS: Final[dict[type[CompareExpr], tuple[bool, bool]]] = {
    LT: (True, False), LE: (True, True), GT: (False, False), GE: (False, True)
}  # fmt: skip


def read_predicate(
    predicate: PrimExpr, iters: Mapping[Var, Range]
) -> tuple[dict[Var, Range], list[Constraint]]:
    """The loops, narrowed by bounds of single variables, and the bounds of sums.

    The smallest sums come first, so that a sum inside of another is constrained before it.
    """
    domains = dict(iters)
    constraints: list[Constraint] = []
    for part in conjuncts(predicate):
        if not isinstance(part, (LT, LE, GT, GE)) or not _is_integer(part.a, part.b):
            raise NotAffine(f"the predicate {part} is no comparison of integers by < <= > >=")
        constraint = _constraint(part, domains)
        if constraint is None:
            continue
        if isinstance(constraint.sum, Var) and constraint.sum in domains:
            domains[constraint.sum] = _narrowed(domains[constraint.sum], constraint)
        else:
            constraints.append(constraint)
    constraints.sort(key=_size)
    return domains, constraints


def uses(expr: PrimExpr, variables: Iterable[PrimExpr]) -> bool:
    """Whether one of the variables stands in the expression."""
    if type(expr) is IntImm:
        return False
    for var in collect(expr, Var):
        if var in variables:
            return True
    return False


def _is_integer(*exprs: PrimExpr) -> bool:
    return all(expr.dtype.is_int or expr.dtype.is_uint for expr in exprs)


def _size(constraint: Constraint) -> int:
    return len(collect(constraint.sum, Node))


def _constraint(part: CompareExpr, domains: Mapping[Var, Range]) -> Constraint | None:
    """What a comparison says of a sum of loops; None where it says nothing."""
    above, equal = _COMPARISONS[type(part)]
    total, bound = part.a, part.b
    if not uses(bound, domains):
        if not uses(total, domains):
            return None
    elif not uses(total, domains):
        total, bound, above = bound, total, not above
    elif is_index(total.dtype):
        total, bound = _separated(sub(total, bound), domains)
    if not is_index(total.dtype) and not (isinstance(total, Var) and type(bound) is IntImm):
        raise NotAffine(
            f"the predicate {part} is no constant bound of a loop, and sums of {total.dtype} wrap"
        )
    shift = 1 if above is equal else 0  # to the limit that the sum is below, or not below
    while isinstance(total, (Add, Sub)) and not uses(total.b, domains):
        sign = -1 if isinstance(total, Add) else 1
        if type(total.b) is IntImm:
            shift += sign * total.b.value
        else:
            bound = sub(bound, total.b) if sign < 0 else add(bound, total.b)
        total = total.a
    limit = _shifted(bound, shift)
    if isinstance(limit, int):
        if above == (limit < 0):
            raise NotAffine(f"the predicate {part} never holds")
        return None
    return Constraint(total, None, limit) if above else Constraint(total, limit, None)


def _shifted(bound: PrimExpr, shift: int) -> PrimExpr | int:
    """``bound + shift``; 1 or -1 where that lies above or below all numbers of the type."""
    if type(bound) is not IntImm:
        return add(bound, const_like(bound, shift)) if shift else bound
    low, high = integer_range(bound.dtype)
    value = bound.value + shift
    return IntImm(bound.dtype, value) if low <= value <= high else 1 if value > high else -1


def _separated(difference: PrimExpr, domains: Mapping[Var, Range]) -> tuple[PrimExpr, PrimExpr]:
    """``difference`` compared with 0 as terms with loops compared with terms without."""
    total: PrimExpr = const_like(difference, 0)
    bound: PrimExpr = total
    pending = [(difference, 1)]
    while pending:
        term, sign = pending.pop()
        if type(term) is Add or type(term) is Sub:
            pending.append((term.b, sign if type(term) is Add else -sign))
            pending.append((term.a, sign))
        elif uses(term, domains):
            total = add(total, term) if sign > 0 else sub(total, term)
        else:
            bound = sub(bound, term) if sign > 0 else add(bound, term)
    analyzer = Analyzer()
    return analyzer.simplify(total), analyzer.simplify(bound)


def _narrowed(dom: Range, constraint: Constraint) -> Range:
    """The part of a loop's range that a constraint leaves."""
    low, high = constraint.low, constraint.high
    if low is None:
        low = dom.min
    numbers = [end.value for end in (dom.min, dom.extent, low, high) if isinstance(end, IntImm)]
    dtype = constraint.sum.dtype
    if len(numbers) == (3 if high is None else 4):  # the end may be no number of a narrow type
        begin, extent, least, *limit = numbers
        first, stop = max(begin, least), min([begin + extent, *limit])
        return Range.from_min_extent(IntImm(dtype, first), IntImm(dtype, max(0, stop - first)))
    if not is_index(dtype):
        raise NotAffine(f"the end of {constraint.sum} is unknown, and sums of {dtype} wrap")
    start, end = maximum(dom.min, low), add(dom.min, dom.extent)
    return Range.from_min_extent(start, sub(end if high is None else minimum(end, high), start))
