"""Lanes of vector expressions: a single lane, or the first lane and the stride between lanes."""

from __future__ import annotations

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator
from weft.tir import op
from weft.tir.expr import (
    Add,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CompareExpr,
    Mul,
    Ramp,
    Sub,
    is_call,
)


def lane_of(vector: PrimExpr, at: int) -> PrimExpr:
    """Lane ``at`` of a vector expression of ramps, broadcasts, arithmetic and loads.

    >>> from weft import tir
    >>> i = tir.Var("i", "int32")
    >>> lane_of(tir.Ramp(i, 2, 4) // tir.Broadcast(3, 4), 1)
    (i + 2) // 3
    """
    return _Lane(at).visit(vector)


class _Lane(Mutator):
    """Replaces each vector by one of its lanes."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def visit_Ramp(self, ramp: Ramp) -> PrimExpr:
        return op.add(ramp.base, op.multiply(ramp.stride, self.at))

    def visit_Call(self, call: Call) -> PrimExpr:
        """The lane of a checked vector; the condition still tests all lanes."""
        if not is_call(call, "checked"):
            return self.visit_default(call)
        return call.with_(dtype=call.dtype.element, args=[self.visit(call.args[0]), *call.args[1:]])

    def visit_Broadcast(self, broadcast: Broadcast) -> PrimExpr:
        return broadcast.value

    def visit_Cast(self, cast: Cast) -> PrimExpr:
        return op.cast(cast.dtype.element, self.visit(cast.value))


def _signed(stride: IntImm) -> int:
    """The stride as a signed number: the uint64 stride 2**64 - 1 is -1."""
    bits = stride.dtype.bits
    is_back = stride.dtype.is_uint and stride.value >= 1 << (bits - 1)
    return stride.value - (1 << bits) if is_back else stride.value


def as_ramp(expr: PrimExpr) -> tuple[PrimExpr, int] | None:
    """A vector index as (first element, constant stride), or None."""
    if isinstance(expr, Ramp):
        stride = expr.stride
        return (expr.base, _signed(stride)) if isinstance(stride, IntImm) else None
    if isinstance(expr, Broadcast):
        return expr.value, 0
    if isinstance(expr, Cast) and expr.dtype.is_int and expr.value.dtype.is_int:
        inner = as_ramp(expr.value)
        return None if inner is None else (Cast(expr.dtype.element, inner[0]), inner[1])
    if not isinstance(expr, BinaryExpr) or isinstance(expr, CompareExpr):
        return None
    a, b = as_ramp(expr.a), as_ramp(expr.b)
    if a is None or b is None:
        return None
    base: PrimExpr = type(expr)(a[0], b[0])
    if a[1] == 0 and b[1] == 0:
        return base, 0
    if isinstance(expr, Add):
        return base, a[1] + b[1]
    if isinstance(expr, Sub):
        return base, a[1] - b[1]
    if isinstance(expr, Mul):
        for side, other in ((a, b), (b, a)):
            if other[1] == 0 and isinstance(other[0], IntImm):
                return base, side[1] * other[0].value
    return None
