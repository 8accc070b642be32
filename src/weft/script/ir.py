"""``I``: the names that belong to modules (``from weft.script import ir as I``)."""

from __future__ import annotations

import sys
from types import FrameType

from weft.ir.expr import Range
from weft.ir.module import IRModule
from weft.script.ir_builder.ir import (
    dummy_global_info,
    function_names,
    module_attrs,
    module_global_infos,
    vdevice,
)
from weft.script.parser.entry import parse_definition
from weft.support.errors import wrong_type

__all__ = [
    "Range", "dummy_global_info", "function_names", "ir_module", "module_attrs",
    "module_global_infos", "vdevice",
]  # fmt: skip


def ir_module(mod: type | None = None, /, *, check_well_formed: bool = True) -> object:
    """Parse a class as a module: each method is one of its functions.

    Args:
        mod: the class; left out where ``@I.ir_module(...)`` has arguments.
        check_well_formed: refuse a module that breaks a rule of the language.

    >>> from weft.script import ir as I, relax as R
    >>> @I.ir_module
    ... class Module:
    ...     @R.function
    ...     def main(x: R.Tensor((4,), "float32")):
    ...         return R.add(x, x)
    >>> [var.name_hint for var in Module.get_global_vars()]
    ['main']
    """
    frame = sys._getframe(1)
    if mod is not None:
        return _parse(mod, frame, check_well_formed)

    def apply(given: type) -> IRModule:
        return _parse(given, sys._getframe(1), check_well_formed)

    return apply


def _parse(given: type, frame: FrameType, check_well_formed: bool) -> IRModule:
    if not isinstance(given, type):
        raise wrong_type("@I.ir_module: expected a class", given)
    module: IRModule = parse_definition(given, frame, "ir", {}, check_well_formed)
    return module


ir_module.dispatch_token = "ir"  # type: ignore[attr-defined] # as TVM has it
