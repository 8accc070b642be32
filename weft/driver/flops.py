"""How many arithmetic operations a kernel does on arguments of given shapes (for profiles)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.module import IRModule
from weft.support.errors import TVMError
from weft.tir.analysis.resources import estimate_tir_flops
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


def flops_of(mod: IRModule) -> Callable[[str, Sequence[Any]], float | None]:
    """``count(kernel, arguments)`` over the PrimFuncs of a module; None where it is not known."""

    def count(name: str, arguments: Sequence[Any]) -> float | None:
        func = mod[name] if name in mod else None
        if not isinstance(func, PrimFunc):
            return None
        fixed: dict[Var, Any] = {}
        for param, value in zip(func.params, arguments, strict=False):
            buffer = func.buffer_map.get(param)
            if buffer is not None and hasattr(value, "shape"):
                fixed[param] = decl_buffer(tuple(value.shape), buffer.dtype, buffer.name)
            elif isinstance(value, int | float):
                fixed[param] = value
        try:
            return estimate_tir_flops(func.specialize(fixed))
        except TVMError:
            return None  # a loop whose extent is data, or code that cannot be specialised

    return count
