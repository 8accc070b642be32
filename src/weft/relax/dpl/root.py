"""The operators at which a pattern can match: they make matching fast on large blocks."""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.dpl.kinds import AndPattern, CallPattern, OrPattern, Restriction
from weft.relax.dpl.leaves import ExprPattern
from weft.relax.dpl.matcher import Pattern
from weft.relax.expr import Call


def root_callees(pattern: Pattern) -> frozenset[RelaxExpr] | None:
    """The operators whose calls the pattern can match; None if it may match anything."""
    if isinstance(pattern, CallPattern):
        return _callees(pattern.op)
    if isinstance(pattern, Restriction):
        return root_callees(pattern.pattern)
    if isinstance(pattern, OrPattern):
        return _either(root_callees(pattern.left), root_callees(pattern.right))
    if isinstance(pattern, AndPattern):
        left, right = root_callees(pattern.left), root_callees(pattern.right)
        return left if right is None else right if left is None else left & right
    return None


def _callees(pattern: Pattern) -> frozenset[RelaxExpr] | None:
    if isinstance(pattern, ExprPattern) and isinstance(pattern.expr, Op):
        return frozenset({pattern.expr})
    if isinstance(pattern, OrPattern):
        return _either(_callees(pattern.left), _callees(pattern.right))
    return None


def _either(
    left: frozenset[RelaxExpr] | None, right: frozenset[RelaxExpr] | None
) -> frozenset[RelaxExpr] | None:
    return None if left is None or right is None else left | right


def may_match(callees: frozenset[RelaxExpr] | None, value: RelaxExpr) -> bool:
    """Whether a value (no variable) can be the root of a match."""
    return callees is None or (isinstance(value, Call) and value.op in callees)
