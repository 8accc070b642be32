"""How large the symbols of a PrimFunc may be: what its entry tests, proofs may rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.ir.expr import integer_range
from weft.ir.functor import collect
from weft.support.dtype import DataType
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.lowering.ranges import Interval

LARGEST_INT32_SIZE: Final = (1 << 31) - (1 << 16)
"""Symbols of int32 that come from shapes stay below, so that sums over them do not wrap."""
LARGEST_INT64_SIZE: Final = 1 << 47
"""Symbols of int64 likewise: no memory is larger, and an empty array has no use for more."""
_LIMITS: Final = {32: LARGEST_INT32_SIZE, 64: LARGEST_INT64_SIZE}


def largest_symbol(dtype: DataType) -> int:
    """The largest extent of that type that a function takes."""
    limit = _LIMITS.get(dtype.bits)
    return integer_range(dtype)[1] if limit is None else limit - 1


def symbol_ranges(func: PrimFunc) -> Iterator[tuple[Var, Interval]]:
    """The implicit symbols with the values that the entry of the function lets through.

    A symbol of int64 that is in no shape may be a stride, and negative.
    """
    shapes = [buffer.shape for buffer in func.buffer_map.values()]
    extents = {id(var) for var in collect(shapes, Var)}
    for var in implicit_symbols(func):
        if var.dtype.bits == 64 and id(var) not in extents:
            yield var, integer_range(var.dtype)
        else:
            yield var, (0, largest_symbol(var.dtype))
