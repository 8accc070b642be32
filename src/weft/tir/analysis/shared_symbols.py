"""Refuses modules of which two PrimFuncs have the same symbol: a call could mean either of them."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.support.errors import IRValueError
from weft.tir.function import PrimFunc


def refuse_shared_symbols(mod: IRModule) -> None:
    """Raise IRValueError if two PrimFuncs have the same ``global_symbol``.

    A PrimFunc without that attribute has its name in the module as its symbol.
    """
    owners: dict[str, str] = {}
    for gvar, func in mod.functions.items():
        if not isinstance(func, PrimFunc):
            continue
        symbol = str(func.attrs.get("global_symbol", gvar.name_hint))
        owner = owners.setdefault(symbol, gvar.name_hint)
        if owner != gvar.name_hint:
            raise IRValueError(
                f"{gvar.name_hint}: expected a symbol of its own, but the function {owner} is "
                f"{symbol!r}, too; give one of them another, as by "
                f'func.with_attr("global_symbol", "{gvar.name_hint}_2")'
            )
