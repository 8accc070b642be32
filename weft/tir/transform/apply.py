"""Apply and Filter: passes from a plain function over PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.transform import FunctionPass, Pass, PassInfo
from weft.tir.function import PrimFunc


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:  # noqa: N802 - TVM's name
    """Replace every PrimFunc by what ``ftransform`` returns."""
    return FunctionPass(lambda func, mod, ctx: ftransform(func), PassInfo(0, "Apply"), PrimFunc)


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:  # noqa: N802 - TVM's name
    """Keep the PrimFuncs for which ``fcond`` holds."""
    return FunctionPass(
        lambda func, mod, ctx: func if fcond(func) else None, PassInfo(0, "Filter"), PrimFunc
    )
