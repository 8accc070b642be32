"""The largest sizes of tensors, from the attribute ``tir_var_upper_bound`` of their function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import POS_INF
from weft.arith.interval import IntervalSet, pos_inf
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import substitute
from weft.ir.node import Node
from weft.relax.expr import Function
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.shape_arith import INT64
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op
from weft.tir.expr import Var

BOUND: Final = "tir_var_upper_bound"
NON_NEGATIVE: Final = "tir_non_negative_var"
LARGEST_IN_ADVANCE: Final = 4 << 20
"""Bytes of a tensor up to which memory is planned for its largest size, whatever a call's is.

The range of a symbol may be a guard (2 to 16,777,216 rows) and not what anybody calls with.
"""


class UpperBounds:
    """The largest sizes that follow from a function's attributes about its symbols."""

    def __init__(self, func: Function) -> None:
        self.analyzer = Analyzer()
        self.limits: list[tuple[Var, int]] = []
        self.domains: dict[Var, IntervalSet] = {}
        self._points: dict[Var, IntImm] = {}
        limits = _limits(func)
        non_negative = {str(name) for name in func.attrs.get(NON_NEGATIVE, ())}
        for var in symbolic_vars(func.struct_info):
            limit = limits.get(var.name)
            if limit is not None:
                zero, top = IntImm(var.dtype, 0), IntImm(var.dtype, limit)
                self.analyzer.bind(var, Range(zero, IntImm(var.dtype, limit + 1)))
                self.domains[var] = IntervalSet(zero, top)
                self.limits.append((var, limit))
            elif var.name in non_negative:
                self.analyzer.bind_nonnegative(var)

    def shape(self, extents: Sequence[PrimExpr]) -> list[PrimExpr]:
        """The largest value of each extent; the extent itself if it has no bound."""
        return [self.extent(extent) for extent in extents]

    def extent(self, extent: PrimExpr) -> PrimExpr:
        """The largest value of an extent; the extent itself if it has no bound."""
        if isinstance(extent, IntImm) or not self.limits:
            return extent
        bound = self.analyzer.const_int_bound(extent)
        if bound.max_value != POS_INF:
            return IntImm(INT64, bound.max_value)
        known = self.analyzer.int_set(extent, self.domains)
        return extent if known.max_value is pos_inf() else known.max_value

    def size_in_bytes(self, extents: Sequence[PrimExpr], dtype: DataType) -> PrimExpr:
        """The largest size of a tensor: a number, or a number times the symbolic extents."""
        return _bytes(self.shape(extents), dtype)

    def planned_sizes(
        self, tensors: Iterable[tuple[Sequence[PrimExpr], DataType]]
    ) -> list[PrimExpr]:
        """The sizes that memory is planned for, of tensors given by their extents and dtypes.

        Their largest sizes, if all are known and none is above ``LARGEST_IN_ADVANCE``: then the
        plan is made once. Else those of the call.
        """
        given = list(tensors)
        largest = [self.size_in_bytes(*tensor) for tensor in given]
        if all(isinstance(s, IntImm) and s.value <= LARGEST_IN_ADVANCE for s in largest):
            return largest
        return [_bytes(*tensor) for tensor in given]

    def size_in_order(self, extents: Sequence[PrimExpr], dtype: DataType) -> PrimExpr:
        """Like ``size_in_bytes``, but as a product in the order of the extents."""
        size, *rest = [*self.shape(extents), op.const(dtype.itemsize, "int64")]
        for factor in rest:
            size = op.multiply(size, factor)
        return size

    def sample(self, expr: PrimExpr) -> int | None:
        """The value of an expression for one arbitrary assignment of its symbols.

        Equal expressions have equal samples. None if the value is not a number.
        """
        points: dict[Node, Node] = {var: self._point(var) for var in symbolic_vars(expr)}
        value = self.analyzer.simplify(substitute(expr, points))
        return value.value if isinstance(value, IntImm) else None

    def _point(self, var: Var) -> IntImm:
        """The value of a symbol in samples, within its bounds.

        The values are multiples of the golden ratio, which scatter well (Knuth, "The Art of
        Computer Programming" 3, 6.4).
        """
        if var not in self._points:
            scattered = (len(self._points) + 1) * 40503 % 65536 + 1
            limit = dict(self.limits).get(var, scattered)
            self._points[var] = IntImm(var.dtype, min(scattered, limit))
        return self._points[var]


def _bytes(extents: Sequence[PrimExpr], dtype: DataType) -> PrimExpr:
    factor, symbolic = dtype.itemsize, op.const(1, "int64")
    for extent in extents:
        if isinstance(extent, IntImm):
            factor *= extent.value
        else:
            symbolic = op.multiply(symbolic, op.cast("int64", extent))
    return op.multiply(op.const(factor, "int64"), symbolic)


def _limits(func: Function) -> dict[str, int]:
    bounds: Any = func.attrs.get(BOUND, {})
    if not isinstance(bounds, Mapping):
        raise IRTypeError(f"{BOUND}: expected a dict from names to integers, got {bounds!r}")
    limits = {}
    for name, value in bounds.items():
        limit = value.value if isinstance(value, IntImm) else value
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise IRTypeError(
                f"{BOUND}: expected an integer as the largest value of {name}, got {value}"
            )
        if limit <= 0:
            raise IRValueError(f"{BOUND}: the largest value of {name} must be positive: {limit}")
        limits[str(name)] = limit
    return limits
