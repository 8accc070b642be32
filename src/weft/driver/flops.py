"""Counts the arithmetic operations of a module's kernels, for profiles."""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.ir.module import IRModule
from weft.relax.vm.extents import Symbols
from weft.runtime.model.flops import FlopCount
from weft.support.errors import TVMError
from weft.tir.analysis.resources import count_flops
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


def count_kernels(mod: IRModule) -> dict[str, FlopCount]:
    """Name -> count, for the PrimFuncs of a module.

    Kernels with a loop whose extent depends on data are left out, since their count is not known.
    """
    counts = {}
    for var, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            try:
                counts[var.name_hint] = flop_count(func)
            except TVMError:
                continue
    return counts


def flop_count(func: PrimFunc) -> FlopCount:
    """The count of one function; raises TVMError if it depends on data."""
    places = _places(func)
    total = count_flops(func, places)
    if not isinstance(total, PrimExpr):
        return FlopCount(int(total))
    names = Symbols()
    for index, symbol in enumerate(places):
        names.names[id(symbol)] = f"s{index}"
    return FlopCount(names.text(total), tuple(places.values()))


def _places(func: PrimFunc) -> dict[Var, tuple[int, int | None]]:
    """Symbol -> (argument, axis) whose extent is its value; axis None: the argument itself is."""
    places: dict[Var, tuple[int, int | None]] = {}
    for index, param in enumerate(func.params):
        buffer = func.buffer_map.get(param)
        if buffer is None:
            if param.dtype.is_integral:
                places.setdefault(param, (index, None))
            continue
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, Var):
                places.setdefault(extent, (index, axis))
    return places
