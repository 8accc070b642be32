"""Which expressions depend on data. Integer arithmetic on data wraps, unlike that on indices."""

from __future__ import annotations

from typing import Final

from weft.arith.deep_equal import BINARY
from weft.ir.expr import FloatImm, IntImm, PrimExpr, StringImm
from weft.tir.expr import Broadcast, Call, Cast, Let, Not, Ramp, Select, SizeVar, Var

_PURE_CALLS: Final = frozenset(
    {"tir.if_then_else", "tir.likely", "tir.vscale", "tir.shift_right", "tir.bitwise_and"}
)

_WITH_PARTS: Final = (Broadcast, Call, Cast, Let, Not, Ramp, Select)


def has_data(expr: PrimExpr) -> bool:
    """Whether ``expr`` depends on data: buffer elements, results of calls, lets of these."""
    kind = type(expr)
    if kind in (IntImm, FloatImm, StringImm):
        return False
    if kind in (Var, SizeVar):
        return expr._cache is not None and "data" in expr._cache
    cache = expr._cache
    if cache is None:
        cache = expr._cache = {}
    known = cache.get("data")
    if known is None:
        if kind in BINARY:
            known = has_data(expr.a) or has_data(expr.b)  # type: ignore[attr-defined] # as BINARY
        else:
            known = _other_data(expr)
        cache["data"] = known
    return known


def may_change(expr: PrimExpr) -> bool:
    """Whether a store may change the value: it reads data itself, not only variables holding it."""
    if not has_data(expr) or type(expr) in (Var, SizeVar):
        return False
    if not isinstance(expr, (*BINARY, *_WITH_PARTS)):
        return True
    if isinstance(expr, Call) and getattr(expr.op, "name", "") not in _PURE_CALLS:
        return True
    for name in expr.CHILDREN:
        value = getattr(expr, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, PrimExpr) and may_change(item):
                return True
    return False


def data_variable(var: Var) -> Var:
    """A new variable that replaces ``var`` and is known to hold data: a let of a buffer element."""
    marked = type(var)(var.name, var.type_annotation)
    marked._cache = {"data": True}
    return marked


def _other_data(expr: PrimExpr) -> bool:
    if isinstance(expr, Call):
        if getattr(expr.op, "name", "") not in _PURE_CALLS:
            return True
    elif not isinstance(expr, (Cast, Select, Ramp, Broadcast, Not, Var, Let)):
        return True
    for name in expr.CHILDREN:
        value = getattr(expr, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, PrimExpr) and has_data(item):
                return True
    return isinstance(expr, Cast) and not expr.value.dtype.is_integral
