"""The names under which the functions of a module are called."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.tir.function import PrimFunc


def named_functions(mod: IRModule) -> dict[str, PrimFunc]:
    """The PrimFuncs of a module by name: ``global_symbol``, or else that of the GlobalVar."""
    return {
        _name(var.name_hint, func): func
        for var, func in mod.functions.items()
        if isinstance(func, PrimFunc)
    }


def name_of(func: PrimFunc, mod: IRModule) -> str:
    """The name of a function of a module."""
    if "global_symbol" in func.attrs:
        return _name("", func)
    return next(var.name_hint for var, known in mod.functions.items() if known is func)


def _name(hint: str, func: PrimFunc) -> str:
    symbol = func.attrs.get("global_symbol", hint)
    return str(getattr(symbol, "value", symbol))
