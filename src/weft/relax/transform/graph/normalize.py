"""Normalize: brings functions into normal form: each intermediate value is bound to a variable, and
every expression has struct info.
"""

from __future__ import annotations

from weft.ir.module import IRModule, with_functions
from weft.ir.transform import define_module_pass
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Function


def normalize(mod: IRModule) -> IRModule:
    """The module in normal form; the same object if it is already."""
    builder = BlockBuilder(mod)
    functions = {
        gvar: builder.normalize(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return with_functions(mod, functions)


Normalize = define_module_pass("Normalize", normalize)
