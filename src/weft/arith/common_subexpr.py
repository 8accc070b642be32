"""Common subexpressions of an expression (TVM's ``arith.detect_common_subexpr``)."""

from __future__ import annotations

from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.ir.node import Map, Node
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Broadcast, BufferLoad, Call, Ramp
from weft.tir.intrinsic import CallEffectKind, effect_of


@deep_recursion
def detect_common_subexpr(expr: PrimExpr, threshold: int) -> Map[Any, int]:
    """The largest subexpressions that occur at least ``threshold`` times, and how often.

    Integer expressions that are proved equal count as one. Leaves, vectors, and what reads
    or changes state do not count.
    """
    if threshold < 0:
        raise IRValueError(f"detect_common_subexpr: expected threshold >= 0, got {threshold}")
    pending = _Occurrences(expr)
    found: dict[Any, int] = {}
    for part in [expr] if _eligible(expr) else _eligible_parts(expr):
        pending.add(part, 1)
    while pending.groups:
        part, count = pending.take_largest()
        if count >= threshold:
            found[part] = count
            continue
        for inner in _eligible_parts(part):
            pending.add(inner, count)
    return Map(found)


class _Occurrences:
    """Expressions that wait, each with the number of its occurrences."""

    def __init__(self, root: PrimExpr) -> None:
        self.groups: list[tuple[Any, int, int]] = []
        self.order = {id(part): at for at, part in enumerate(collect(root, Node))}
        self.analyzer = Analyzer()

    def add(self, expr: Any, times: int) -> None:
        for position, (first, size, count) in enumerate(self.groups):
            if self._same(first, expr):
                first = expr if self.order[id(expr)] < self.order[id(first)] else first
                self.groups[position] = first, size, count + times
                return
        self.groups.append((expr, len(collect(expr, Node)), times))

    def _same(self, a: Any, b: Any) -> bool:
        if a.dtype is not b.dtype or not a.dtype.is_integral:
            return expr_deep_equal(a, b)
        return self.analyzer.can_prove_equal(a, b)

    def take_largest(self) -> tuple[Any, int]:
        """Remove the largest expression: nothing that is left contains it."""
        at = max(range(len(self.groups)), key=lambda index: self.groups[index][1])
        expr, _, count = self.groups.pop(at)
        return expr, count


def children(expr: PrimExpr) -> list[PrimExpr]:
    """The expressions directly inside an expression."""
    found: list[PrimExpr] = []
    for name in expr.CHILDREN:
        value = getattr(expr, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, PrimExpr):
                found.append(item)
    return found


def _eligible_parts(expr: Any) -> list[PrimExpr]:
    """The outermost eligible expressions below ``expr``."""
    found: list[PrimExpr] = []
    for child in children(expr):
        if _eligible(child):
            found.append(child)
        else:
            found += _eligible_parts(child)
    return found


def _eligible(expr: Any) -> bool:
    if isinstance(expr, Ramp | Broadcast) or not children(expr):
        return False
    part: Any
    for part in collect(expr, (Call, BufferLoad)):
        if isinstance(part, BufferLoad) or effect_of(part) > CallEffectKind.Pure:
            return False
    return True
