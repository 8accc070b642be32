"""Index arithmetic in int64.

Where axes are int32 and sizes int64, casts keep the simplifier from seeing that two indices are
equal; after all is int64, it does.
"""

from __future__ import annotations

from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import PrimExpr
from weft.ir.functor import Mutator
from weft.tir import op
from weft.tir.expr import Add, Cast, FloorDiv, FloorMod, Mul, Sub

ARITHMETIC: Final = (Add, Sub, Mul, FloorDiv, FloorMod)
_NARROW: Final = 1 << 31


def widened(expr: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """An integer expression as int64, its casts moved inwards wherever it surely does not wrap.

    >>> from weft import tir
    >>> from weft.ir.expr import Range
    >>> i, analyzer = tir.Var("i", "int32"), Analyzer()
    >>> analyzer.bind(i, Range(0, 64))
    >>> widened(i // 16 * 4, analyzer)
    T.Cast("int64", i) // T.int64(16) * T.int64(4)
    """
    return _Widened(analyzer).visit(expr)


class _Widened(Mutator):
    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, ARITHMETIC) and self._is_wide_enough(expr):
            return type(expr)(self.visit(expr.a), self.visit(expr.b))
        if isinstance(expr, Cast) and expr.dtype == "int64" and expr.value.dtype.is_int:
            return self.visit(expr.value)
        return op.cast("int64", expr)

    def _is_wide_enough(self, expr: PrimExpr) -> bool:
        if expr.dtype == "int64":
            return True
        bound = self.analyzer.const_int_bound(expr)
        return expr.dtype == "int32" and -_NARROW <= bound.min_value and bound.max_value < _NARROW
