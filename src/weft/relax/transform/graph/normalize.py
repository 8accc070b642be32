"""Normalize: brings functions into normal form: each intermediate value is bound to a variable, and
every expression has struct info.
"""

from __future__ import annotations

from weft.ir.module import IRModule, with_functions
from weft.ir.transform import Pass, PassContext
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Function
from weft.relax.transform.passes import make_module_pass


def normalize(mod: IRModule, _ctx: PassContext) -> IRModule:
    """The module in normal form; the same object if it is already."""
    builder = BlockBuilder(mod)
    functions = {
        gvar: builder.normalize(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return with_functions(mod, functions)


def Normalize() -> Pass:  # noqa: N802 - TVM's name
    """The pass that brings functions into normal form."""
    return make_module_pass("Normalize", normalize)
