"""BindTarget: gives every PrimFunc an attribute ``target``."""

from __future__ import annotations

from weft.ir.transform import Pass
from weft.target.target import Target, TargetLike
from weft.tir.function import PrimFunc
from weft.tir.transform.prim_func_pass import define_pass


def BindTarget(target: TargetLike) -> Pass:  # noqa: N802 - TVM's name
    """The pass ``tir.BindTarget``; a function with a target of its own keeps it."""
    bound = target if isinstance(target, Target) else Target(target)

    def bind(func: PrimFunc) -> PrimFunc:
        return func if "target" in func.attrs else func.with_attr("target", bound)

    return define_pass("BindTarget", bind)()
