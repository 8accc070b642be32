"""Comparisons for tests of schedules, under TVM's names."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal
from weft.tir.function import PrimFunc

NO_NAME = ""


def assert_structural_equal_ignore_global_symbol(
    mod1: PrimFunc | IRModule, mod2: PrimFunc | IRModule, map_free_vars: bool = False
) -> None:
    """``assert_structural_equal`` of two functions (or modules) whose global symbols may differ."""
    assert_structural_equal(_unnamed(mod1), _unnamed(mod2), map_free_vars)


def _unnamed(given: PrimFunc | IRModule) -> PrimFunc | IRModule:
    """A function, or a module of functions, all under one and the same global symbol."""
    if isinstance(given, IRModule):
        functions = {
            var: func.with_attr("global_symbol", NO_NAME) if isinstance(func, PrimFunc) else func
            for var, func in given.functions.items()
        }
        return IRModule(functions, attrs=given.attrs, global_infos=given.global_infos)
    return given.with_attr("global_symbol", NO_NAME)
