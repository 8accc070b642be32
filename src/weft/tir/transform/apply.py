"""Apply and Filter: passes from a plain function over PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.module import IRModule
from weft.ir.transform import FunctionPass, ModulePass, Pass, PassContext, PassInfo
from weft.tir.function import PrimFunc


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:  # noqa: N802 - TVM's name
    """Replace every PrimFunc by what ``ftransform`` returns."""
    return FunctionPass(lambda func, mod, ctx: ftransform(func), PassInfo(0, "Apply"), PrimFunc)


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:  # noqa: N802 - TVM's name
    """Keep the PrimFuncs for which ``fcond`` holds."""

    def keep(mod: IRModule, ctx: PassContext) -> IRModule:
        dropped = [
            var
            for var, func in mod.functions.items()
            if isinstance(func, PrimFunc) and not fcond(func)
        ]
        kept = mod.clone() if dropped else mod
        for var in dropped:
            del kept[var]
        return kept

    return ModulePass(keep, PassInfo(0, "Filter"))
