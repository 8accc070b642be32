"""How many arithmetic operations the kernels of a module do (for profiles)."""

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
    """The counts of the PrimFuncs of a module, but for those that are not known.

    These are kernels with a loop whose extent is data.
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
    """The count of one function; TVMError where it is not known before data are."""
    places = _places(func)
    total = count_flops(func, places)
    if not isinstance(total, PrimExpr):
        return FlopCount(int(total))
    names = Symbols()
    for index, symbol in enumerate(places):
        names.names[id(symbol)] = f"s{index}"
    return FlopCount(names.text(total), tuple(places.values()))


def _places(func: PrimFunc) -> dict[Var, tuple[int, int | None]]:
    """Symbol -> the argument and the axis (None: itself) that tells its value."""
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
