"""Patterns without other patterns below them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.relax.dpl.kinds import FAILS, HOLDS, DFPattern, Dim, dimensions_of
from weft.relax.dpl.matcher import Alternative, Site
from weft.relax.expr import Constant, DataflowVar, ExternFunc, ShapeExpr, Var
from weft.relax.ir.shape_arith import same_dims


class WildcardPattern(DFPattern):
    """Any expression."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        return HOLDS


class ExprPattern(DFPattern):
    """An expression that is structurally equal to a given one; an operator."""

    __slots__ = ("expr",)

    def __init__(self, expr: RelaxExpr) -> None:
        super().__init__()
        self.expr = expr

    def __repr__(self) -> str:
        return self.expr.name if isinstance(self.expr, Op) else f"is_expr({self.expr})"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if self.expr is at.value or self.expr is at.expr:
            return HOLDS
        if isinstance(self.expr, Op | Var) or type(self.expr) is not type(at.value):
            return FAILS
        return HOLDS if structural_equal(self.expr, at.value) else FAILS


class VarPattern(DFPattern):
    """A variable of a name, or ("") any variable."""

    __slots__ = ("name",)
    KINDS: tuple[type, ...] = (Var,)

    def __init__(self, name_hint: str = "") -> None:
        super().__init__()
        self.name = name_hint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def subject(self, at: Site) -> RelaxExpr | None:
        """The variable, not what it is bound to."""
        return at.expr

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.expr, self.KINDS):
            return FAILS
        return HOLDS if self.name in ("", getattr(at.expr, "name_hint", None)) else FAILS


class DataflowVarPattern(VarPattern):
    """A dataflow variable of a name, or ("") any."""

    __slots__ = ()
    KINDS = (DataflowVar,)


class GlobalVarPattern(VarPattern):
    """A GlobalVar whose name contains the given one: passes number names (``relu``, ``relu1``)."""

    __slots__ = ()

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        matched = isinstance(at.expr, GlobalVar) and self.name in at.expr.name_hint
        return HOLDS if matched else FAILS


class ExternFuncPattern(DFPattern):
    """A registered function of a symbol, or ("") any."""

    __slots__ = ("global_symbol",)

    def __init__(self, global_symbol: str = "") -> None:
        super().__init__()
        self.global_symbol = global_symbol

    def __repr__(self) -> str:
        return f"ExternFuncPattern({self.global_symbol!r})"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, ExternFunc):
            return FAILS
        return HOLDS if self.global_symbol in ("", at.value.global_symbol) else FAILS


class ConstantPattern(DFPattern):
    """A constant tensor."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        return HOLDS if isinstance(at.value, Constant) else FAILS


class PrimArrPattern(DFPattern):
    """A shape as a value."""

    __slots__ = ("fields",)

    def __init__(self, shape: Sequence[Dim]) -> None:
        super().__init__()
        self.fields = dimensions_of("is_shape", shape)

    def __getitem__(self, index: int) -> PrimExpr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, ShapeExpr):
            return FAILS
        return HOLDS if same_dims(self.fields, at.value.values) else FAILS
