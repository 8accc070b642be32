"""Common subexpressions of an expression (TVM's ``arith.detect_common_subexpr``)."""

from __future__ import annotations

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect, contains
from weft.ir.node import Map, Node
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Broadcast, Call, Ramp
from weft.tir.intrinsic import CallEffectKind, effect_of


@deep_recursion
def detect_common_subexpr(expr: PrimExpr, threshold: int) -> Map[PrimExpr, int]:
    """The largest subexpressions that occur at least ``threshold`` times, and how often.

    Integer expressions that are proved equal count as one. Leaves, vectors, and what reads
    or changes state do not count.
    """
    if threshold < 0:
        raise IRValueError(f"detect_common_subexpr: expected threshold >= 0, got {threshold}")
    pending = _Occurrences(expr)
    common: dict[PrimExpr, int] = {}
    for part in [expr] if _eligible(expr) else _eligible_parts(expr):
        pending.add(part, 1)
    while pending.groups:
        part, count = pending.take_largest()
        if count >= threshold:
            common[part] = count
            continue
        for inner in _eligible_parts(part):
            pending.add(inner, count)
    return Map(common)


class _Occurrences:
    """A queue of expressions, each with the number of its occurrences."""

    def __init__(self, root: PrimExpr) -> None:
        self.groups: list[tuple[PrimExpr, int, int]] = []
        self.order = {id(part): at for at, part in enumerate(collect(root, Node))}
        self.analyzer = Analyzer()

    def add(self, expr: PrimExpr, times: int) -> None:
        for position, (first, size, count) in enumerate(self.groups):
            if self._same(first, expr):
                first = expr if self.order[id(expr)] < self.order[id(first)] else first
                self.groups[position] = first, size, count + times
                return
        self.groups.append((expr, len(collect(expr, Node)), times))

    def _same(self, a: PrimExpr, b: PrimExpr) -> bool:
        if a.dtype is not b.dtype or not a.dtype.is_integral:
            return expr_deep_equal(a, b)
        return self.analyzer.can_prove_equal(a, b)

    def take_largest(self) -> tuple[PrimExpr, int]:
        """Remove and return the largest expression, which no other one in the queue contains."""
        at = max(range(len(self.groups)), key=lambda index: self.groups[index][1])
        expr, _, count = self.groups.pop(at)
        return expr, count


def children(expr: PrimExpr) -> list[PrimExpr]:
    """The expressions directly inside an expression."""
    inside: list[PrimExpr] = []
    for name in expr.CHILDREN:
        value = getattr(expr, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, PrimExpr):
                inside.append(item)
    return inside


def _eligible_parts(expr: PrimExpr) -> list[PrimExpr]:
    """The outermost eligible expressions below ``expr``."""
    eligible: list[PrimExpr] = []
    for child in children(expr):
        if _eligible(child):
            eligible.append(child)
        else:
            eligible += _eligible_parts(child)
    return eligible


def _eligible(expr: PrimExpr) -> bool:
    if isinstance(expr, (Ramp, Broadcast)) or not children(expr):
        return False
    if contains(expr, BufferLoad):
        return False
    return all(effect_of(call) <= CallEffectKind.Pure for call in collect(expr, Call))
