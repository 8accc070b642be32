"""Numbers of loops and indices: bounds, extents, strides, logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from weft.ir.expr import IntImm, PrimExpr
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Add, Call, Cast, FloorDiv, FloorMod, Max, Min, Mul, Select, Sub, Var
from weft.tir.stmt import For

Bounds: TypeAlias = tuple[int, int]
"""The least and the largest value."""
MOST: Final = 2**63 - 1
UNKNOWN: Final[Bounds] = (-MOST, MOST)


def slog(x: float) -> float:
    """The logarithm of 1 + |x| to the base 2."""
    return math.log2(abs(x) + 1)


def extent_of(loop: For, default: int = 1) -> int:
    """The iterations of a loop, if they are known."""
    return loop.extent.value if isinstance(loop.extent, IntImm) else default


def shape_of(buffer: Buffer, bounds: Mapping[Var, Bounds]) -> list[int]:
    """The extents of a buffer; the largest that a symbolic one can be, or 1."""
    shape = []
    for extent in buffer.shape:
        largest = bounds_of(extent, bounds)[1]
        shape.append(largest if 0 <= largest < MOST else 1)
    return shape


def bounds_of(expr: PrimExpr, bounds: Mapping[Var, Bounds]) -> Bounds:
    """The bounds of an integer expression, by the bounds of its variables."""
    if isinstance(expr, IntImm):
        return expr.value, expr.value
    if isinstance(expr, Var):
        return bounds.get(expr, UNKNOWN)
    if isinstance(expr, Cast):
        return bounds_of(expr.value, bounds)
    if isinstance(expr, Select):
        return _hull(bounds_of(expr.true_value, bounds), bounds_of(expr.false_value, bounds))
    if isinstance(expr, (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)):
        return _of_operands(expr, bounds_of(expr.a, bounds), bounds_of(expr.b, bounds))
    return UNKNOWN


def _of_operands(expr: PrimExpr, a: Bounds, b: Bounds) -> Bounds:
    if isinstance(expr, Min):
        return min(a[0], b[0]), min(a[1], b[1])
    if isinstance(expr, Max):
        return max(a[0], b[0]), max(a[1], b[1])
    if UNKNOWN in (a, b) and not isinstance(expr, FloorMod):
        return UNKNOWN
    if isinstance(expr, Add):
        return a[0] + b[0], a[1] + b[1]
    if isinstance(expr, Sub):
        return a[0] - b[1], a[1] - b[0]
    if isinstance(expr, Mul):
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if b[0] <= 0:
        return UNKNOWN
    if isinstance(expr, FloorDiv):
        corners = [x // y for x in a for y in b]
        return min(corners), max(corners)
    is_below = 0 <= a[0] and a[1] < b[0]
    return a if is_below else (0, b[1] - 1)


def _hull(a: Bounds, b: Bounds) -> Bounds:
    return min(a[0], b[0]), max(a[1], b[1])


def coefficient_of(expr: PrimExpr, var: Var) -> int:
    """By how much an index grows with a variable: 0 if not at all, 1 in sums of plain terms.

    Of ``i * 4 + j`` it is 4 for ``i``. As in Ansor, the last constant factor that a term with the
    variable has counts.
    """
    search = _Coefficient(var)
    search.walk(expr)
    if search.has_var and not search.has_factor and not search.has_sum:
        return 1
    return search.stride if search.has_var else 0


class _Coefficient:
    """Walks an index from its leaves up, and notes what stands above the variable."""

    def __init__(self, var: Var) -> None:
        self.var = var
        self.stride = 0
        self.has_var = self.has_sum = self.has_factor = False

    def walk(self, expr: PrimExpr) -> None:
        for operand in operands_of(expr):
            self.walk(operand)
        if expr is self.var:
            self.has_var, self.stride = True, 2
        elif isinstance(expr, Mul) and self.has_var and not self.has_sum:
            factor = expr.a if isinstance(expr.a, IntImm) else expr.b
            if isinstance(factor, IntImm):
                self.has_factor, self.stride = True, factor.value
        elif isinstance(expr, Add) and self.has_var and not self.has_factor:
            self.has_sum, self.stride = True, 1


def operands_of(expr: PrimExpr) -> Sequence[PrimExpr]:
    """The expressions that an expression consists of; of a load, its indices."""
    if isinstance(expr, BufferLoad):
        return expr.indices
    if isinstance(expr, Call):
        return [argument for argument in expr.args if isinstance(argument, PrimExpr)]
    operands: list[PrimExpr] = []
    for name in type(expr).CHILDREN:
        value = getattr(expr, name)
        if isinstance(value, PrimExpr):
            operands.append(value)
        elif isinstance(value, tuple):
            operands += [item for item in value if isinstance(item, PrimExpr)]
    return operands
