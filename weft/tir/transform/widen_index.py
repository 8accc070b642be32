"""WidenIndex: loop variables become int64, and offsets are computed without conversions.

Index arithmetic written in int32 must wrap as int32; where bounds prove that it cannot, the
conversion to int64 moves from the result to the leaves, and a loop variable of constant range
becomes an int64 one (its other uses convert it back). LLVM then sees plain 64-bit induction
variables, which its vectoriser needs. Before: ``A[int64(i * 4 + j)]``; after: ``A[i * 4 + j]``.
"""

from __future__ import annotations

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range, integer_range
from weft.ir.functor import Mutator
from weft.ir.transform import Pass
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Add, Cast, FloorDiv, FloorMod, Max, Min, Mul, Ramp, Sub, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, ForKind, LetStmt, Stmt
from weft.tir.transform.prim_func_pass import make_pass, rewrite_body

INT64 = DataType("int64")
_LINEAR = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)


class _Widen(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.wide: dict[int, Var] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def visit_For(self, loop: For) -> Stmt:
        old = loop.loop_var
        low, extent = self.visit(loop.min), self.visit(loop.extent)
        self.analyzer.bind(old, Range.from_min_extent(loop.min, loop.extent), True)
        eligible = old.dtype.is_int and old.dtype.bits < 64 and self.fits(old)
        if not eligible or loop.kind == ForKind.THREAD_BINDING:
            return loop.with_(min=low, extent=extent, body=self.visit(loop.body))
        var = self.wide[id(old)] = Var(old.name, INT64)
        body = self.visit(loop.body)
        return For(
            var, op.cast(INT64, low), op.cast(INT64, extent), loop.kind, body, None,
            loop.annotations, span=loop.span,
        )  # fmt: skip

    def visit_LetStmt(self, let: LetStmt) -> Stmt:
        if let.value.dtype.is_integral and let.value.dtype.lanes == 1:
            self.analyzer.bind(let.var, let.value, True)
        return self.visit_default(let)  # type: ignore[no-any-return]

    def visit_Var(self, var: Var) -> PrimExpr:
        wide = self.wide.get(id(var))
        return var if wide is None else Cast(var.dtype, wide)

    def visit_Cast(self, expr: Cast) -> PrimExpr:
        if expr.dtype is INT64 and expr.value.dtype.is_int and expr.value.dtype.lanes == 1:
            widened = self.widened(expr.value)
            if widened is not None:
                return widened
        return self.visit_default(expr)  # type: ignore[no-any-return]

    def widened(self, expr: PrimExpr) -> PrimExpr | None:
        """``expr`` computed in int64; None where a conversion of the whole is all there is."""
        if expr.dtype is INT64:
            return self.visit(expr)  # type: ignore[no-any-return]
        if isinstance(expr, IntImm):
            return IntImm(INT64, expr.value)
        if isinstance(expr, Var):
            wide = self.wide.get(id(expr))
            return Cast(INT64, expr) if wide is None else wide
        if isinstance(expr, _LINEAR) and self.fits(expr):
            a, b = self.widened(expr.a), self.widened(expr.b)
            if a is not None and b is not None:
                return type(expr)(a, b)
        return Cast(INT64, self.visit(expr))

    def fits(self, expr: PrimExpr) -> bool:
        """Whether the exact value of ``expr`` is proved to be in its type's range."""
        bound = self.analyzer.const_int_bound(expr)
        low, high = integer_range(expr.dtype)
        if isinstance(expr, Var):
            return bool(low < bound.min_value and bound.max_value < high)
        return bool(low <= bound.min_value and bound.max_value <= high)

    def visit_Ramp(self, expr: Ramp) -> PrimExpr:
        return self.visit_default(expr)  # type: ignore[no-any-return]


def widen_index(func: PrimFunc) -> PrimFunc:
    """The function with int64 loop variables and offsets."""
    return rewrite_body(func, _Widen())


def WidenIndex() -> Pass:  # noqa: N802 - the manner of TVM's names
    """The pass ``tir.WidenIndex``."""
    return make_pass("WidenIndex", widen_index)
