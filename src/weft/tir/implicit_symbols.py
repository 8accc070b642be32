"""Symbols in the buffers of a PrimFunc that are no parameters: its caller must supply their values.

A call from Python reads them from the arrays; a call from another PrimFunc passes them after the
arguments.
"""

from __future__ import annotations

from weft.ir.functor import collect
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


def implicit_symbols(func: PrimFunc) -> list[Var]:
    """The symbols in the order in which a call passes them.

    Buffers are in the order of the parameters; of each, first the shape, then the strides, then the
    offset. ``f(x: (n, m), k: int32, y: (m, k))`` gives ``[n, m]``.
    """
    known = {id(param) for param in func.params if param not in func.buffer_map}
    symbols: list[Var] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            continue
        for var in collect((buffer.shape, buffer.strides, buffer.elem_offset), Var):
            if id(var) not in known:
                known.add(id(var))
                symbols.append(var)
    return symbols
