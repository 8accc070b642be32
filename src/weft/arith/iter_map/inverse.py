"""The inverse of an iteration map: loops as functions of the indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import (
    add,
    const_like,
    equal,
    floordiv,
    floormod,
    is_value,
    mul,
    sub,
)
from weft.arith.iter_map.nodes import IterSplitExpr, IterSumExpr
from weft.arith.iter_map.to_expr import ToExpr
from weft.ir.expr import PrimExpr, as_prim_expr
from weft.ir.node import Map
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Sub, Var


@deep_recursion
def inverse_affine_iter_map(
    iter_map: Sequence[IterSumExpr], outputs: Sequence[PrimExpr]
) -> Map[Var, PrimExpr]:
    """Variable -> its value where the indices of a bijective map have the values ``outputs``.

    For the map ``[l0 // 16, l0 % 16]`` and outputs ``a, b`` it is ``{l0: a*16 + b}``.
    """
    if len(iter_map) != len(outputs):
        raise IRValueError(
            f"inverse_affine_iter_map: {len(iter_map)} indices, but {len(outputs)} outputs"
        )
    return Map(_Inverse(iter_map, outputs).run())


class _Inverse:
    """Passes values from the indices down to the loops, each node after all its users."""

    def __init__(self, iter_map: Sequence[IterSumExpr], outputs: Sequence[Any]) -> None:
        self.analyzer = Analyzer()
        self.order: list[Any] = []
        self.values: dict[int, Any] = {}
        self.inverse: dict[Var, Any] = {}
        seen: set[int] = set()
        for total in iter_map:
            self.collect(total, seen)
        for total, output in zip(iter_map, outputs, strict=True):
            self.receive(total, as_prim_expr(output))

    def collect(self, expr: Any, seen: set[int]) -> None:
        """Nodes in post order."""
        if id(expr) in seen:
            return
        seen.add(id(expr))
        if isinstance(expr, IterSumExpr):
            for split in expr.args:
                self.collect(split, seen)
        elif isinstance(expr.source.source, IterSumExpr | IterSplitExpr):
            self.collect(expr.source.source, seen)
        self.order.append(expr)

    def receive(self, expr: Any, value: Any) -> None:
        """Add a part of the value of a node."""
        known = self.values.get(id(expr))
        self.values[id(expr)] = value if known is None else add(known, value)

    def text(self, expr: Any) -> str:
        """A node in messages."""
        return str(ToExpr(self.analyzer).convert(expr))

    def run(self) -> dict[Var, Any]:
        for expr in reversed(self.order):
            value = self.values.get(id(expr))
            if value is None:
                value = const_like(expr, 0)
            if isinstance(expr, IterSumExpr):
                self.visit_sum(expr, value)
            else:
                self.visit_split(expr, value)
        return self.inverse

    def visit_sum(self, total: IterSumExpr, value: Any) -> None:
        value = sub(value, total.base)
        if len(total.args) == 1:
            (split,) = total.args
            if not is_value(split.scale, 1) and not is_value(split.scale, -1):
                raise IRValueError(
                    f"inverse_affine_iter_map: the stride {split.scale} of {self.text(total)} "
                    "skips values"
                )
            self.receive(split, mul(value, split.scale))
            return
        expected = total.args[-1].scale if total.args else None
        for position in range(len(total.args) - 1, -1, -1):
            split = total.args[position]
            if not equal(self.analyzer, split.scale, expected):
                raise IRValueError(
                    f"inverse_affine_iter_map: {self.text(total)} is not bijective: expected the "
                    f"stride {expected}, got {split.scale}"
                )
            expected = mul(expected, split.extent)
            part = floordiv(value, split.scale)
            self.receive(split, part if position == 0 else floormod(part, split.extent))

    def visit_split(self, split: IterSplitExpr, value: Any) -> None:
        value = mul(value, split.lower_factor)
        source: Any = split.source.source
        if isinstance(source, IterSumExpr | IterSplitExpr):
            self.receive(source, value)
            return
        # The mark of a loop that does not start at 0 is ``var - min``.
        shift = None
        if not isinstance(source, Var):
            shift, source = source, source.a
        known = self.inverse.get(source)
        if known is not None:
            self.inverse[source] = add(known, value)
        elif type(shift) is Sub:
            self.inverse[source] = add(value, shift.b)
        else:
            self.inverse[source] = value if shift is None else sub(value, shift.b)
