"""The inverse of an iteration map: loops as functions of the indices."""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.integer import add, const_like, equal, floordiv, floormod, mul, sub
from weft.arith.iter_map.nodes import IterSplitExpr, IterSumExpr
from weft.arith.iter_map.to_expr import ToExpr
from weft.ir.expr import PrimExpr, as_prim_expr
from weft.ir.node import Map
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.constant import is_const_int
from weft.tir.expr import Add, Sub, Var


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
    """Passes values from the indices down to the loops; a node is visited after all its users."""

    def __init__(self, iter_map: Sequence[IterSumExpr], outputs: Sequence[PrimExpr]) -> None:
        self.analyzer = Analyzer()
        self.order: list[IterSumExpr | IterSplitExpr] = []
        self.values: dict[int, PrimExpr] = {}
        self.inverse: dict[Var, PrimExpr] = {}
        seen: set[int] = set()
        for total in iter_map:
            self.collect(total, seen)
        for total, output in zip(iter_map, outputs, strict=True):
            self.receive(total, as_prim_expr(output))

    def collect(self, expr: IterSumExpr | IterSplitExpr, seen: set[int]) -> None:
        """Nodes in post order."""
        if id(expr) in seen:
            return
        seen.add(id(expr))
        if isinstance(expr, IterSumExpr):
            for split in expr.args:
                self.collect(split, seen)
        elif isinstance(expr.source.source, (IterSumExpr, IterSplitExpr)):
            self.collect(expr.source.source, seen)
        self.order.append(expr)

    def receive(self, expr: PrimExpr, value: PrimExpr) -> None:
        """Add a part of the value of a node."""
        known = self.values.get(id(expr))
        self.values[id(expr)] = value if known is None else add(known, value)

    def text(self, expr: PrimExpr) -> str:
        """A node in messages."""
        return str(ToExpr(self.analyzer).convert(expr))

    def run(self) -> dict[Var, PrimExpr]:
        for expr in reversed(self.order):
            value = self.values.get(id(expr))
            if value is None:
                value = const_like(expr, 0)
            if isinstance(expr, IterSumExpr):
                self.visit_sum(expr, value)
            else:
                self.visit_split(expr, value)
        return self.inverse

    def visit_sum(self, total: IterSumExpr, value: PrimExpr) -> None:
        value = sub(value, total.base)
        if len(total.args) == 1:
            (split,) = total.args
            if not is_const_int(split.scale, 1) and not is_const_int(split.scale, -1):
                raise IRValueError(
                    f"inverse_affine_iter_map: the stride {split.scale} of {self.text(total)} "
                    "skips values"
                )
            self.receive(split, mul(value, split.scale))
            return
        expected = total.args[-1].scale if total.args else const_like(value, 1)
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

    def visit_split(self, split: IterSplitExpr, value: PrimExpr) -> None:
        value = mul(value, split.lower_factor)
        source: PrimExpr = split.source.source
        if isinstance(source, (IterSumExpr, IterSplitExpr)):
            self.receive(source, value)
            return
        # The mark of a loop that does not start at 0 is ``var - min``.
        var = source.a if isinstance(source, (Add, Sub)) else source
        assert isinstance(var, Var)
        known = self.inverse.get(var)
        if known is not None:
            self.inverse[var] = add(known, value)
        elif isinstance(source, Sub):
            self.inverse[var] = add(value, source.b)
        elif isinstance(source, Add):
            self.inverse[var] = sub(value, source.b)
        else:
            self.inverse[var] = value
