"""Symbols of a PrimFunc's buffers that are no parameters: who calls it has to know their values.

Python's callers read them off the arrays; another PrimFunc passes them behind the arguments.
"""

from __future__ import annotations

from weft.ir.functor import collect
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


def implicit_symbols(func: PrimFunc) -> list[Var]:
    """The symbols in the order in which a call passes them: buffer by buffer, in the order of the
    parameters; of each the shape, the strides, the offset.

    ``f(x: (n, m), k: int32, y: (m, k))`` → ``[n, m]``
    """
    known = {id(param) for param in func.params if param not in func.buffer_map}
    symbols: list[Var] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            continue
        for term in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            for var in collect(term, Var):
                if id(var) not in known:
                    known.add(id(var))
                    symbols.append(var)
    return symbols
