"""Index expressions as Python text over named symbols, and struct info as run-time patterns."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from weft.ir.expr import IntImm, PrimExpr
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.runtime.extent import FUNCTIONS
from weft.runtime.vm.bytecode import Pattern
from weft.support.errors import UnsupportedError
from weft.tir.expr import Var
from weft.tir.extent_text import extent_text


class Symbols:
    """Names for symbolic variables: the variable's own, made unique and fit for Python."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.vars: dict[str, Var] = {}

    def name(self, var: Var) -> str:
        """The name of a variable."""
        name = self.names.get(id(var))
        if name is None:
            base = "".join(c if c.isalnum() or c == "_" else "_" for c in var.name) or "s"
            base = base if base[0].isalpha() or base[0] == "_" else f"s{base}"
            name, count = base, 0
            while name in self.vars or name in FUNCTIONS or keyword.iskeyword(name):
                count += 1
                name = f"{base}_{count}"
            self.names[id(var)] = name
            self.vars[name] = var
        return name

    def text(self, expr: PrimExpr) -> int | str:
        """An extent: a number, or text over the names."""
        return expr.value if isinstance(expr, IntImm) else self._text(expr)

    def _text(self, expr: PrimExpr) -> str:
        text = extent_text(expr, self.name)
        if text is None:
            raise UnsupportedError(f"a symbolic extent cannot be computed at run time: {expr}")
        return text

    def extents(self, values: Iterable[PrimExpr]) -> tuple[int | str, ...]:
        """Several extents."""
        return tuple([self.text(value) for value in values])

    def pattern(self, info: StructInfo | None) -> Pattern:
        """The run-time pattern of a struct info."""
        if isinstance(info, TensorStructInfo):
            dtype = "" if info.dtype == "void" else str(info.dtype)
            values = getattr(info.shape, "values", None)
            extents = None if values is None else self.extents(values)
            return ("tensor", dtype, extents, info.ndim)
        if isinstance(info, ShapeStructInfo):
            extents = None if info.values is None else self.extents(info.values)
            return ("shape", extents, info.ndim)
        if isinstance(info, PrimStructInfo):
            text = None if info.value is None else str(self.text(info.value))
            return ("prim", str(info.dtype), text if info.dtype.is_integral else None)
        if isinstance(info, TupleStructInfo):
            return ("tuple", tuple([self.pattern(field) for field in info.fields]))
        return ("object",)
