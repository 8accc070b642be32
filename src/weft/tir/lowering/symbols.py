"""How large the symbols of a PrimFunc, ``n`` of a shape, may be.

A compiled function tests that when it is entered, so that proofs may rest on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.ir.expr import integer_range
from weft.ir.functor import collect
from weft.support.dtype import DataType
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.lowering.ranges import Interval, factors_of

LARGEST_INT32_SIZE: Final = (1 << 31) - (1 << 16)
"""More than an int32 symbol of a shape may be: so small that ``n + 1`` and the like do not wrap."""
LARGEST_INT64_SIZE: Final = 1 << 47
"""The same for int64: no memory is larger, and an empty array has no use for more."""
_LIMITS: Final = {32: LARGEST_INT32_SIZE, 64: LARGEST_INT64_SIZE}


def largest_symbol(dtype: DataType) -> int:
    """The largest extent of a type that a function accepts."""
    limit = _LIMITS.get(dtype.bits)
    return integer_range(dtype)[1] if limit is None else limit - 1


def element_counts(func: PrimFunc) -> Iterator[tuple[Var, ...]]:
    """The symbols whose product is the number of elements of a parameter but for a constant.

    A compact array has real memory, so this product is at most ``LARGEST_INT64_SIZE``: of
    ``A: T.Buffer((n, 12, t, t))`` it is that of ``n, t, t``.
    """
    for buffer in func.buffer_map.values():
        factors = [factors_of(extent) for extent in buffer.shape]
        if buffer.strides or None in factors:
            continue
        known = [pair for pair in factors if pair is not None]
        symbols = [symbol for _, symbols in known for symbol in symbols]
        if all(number >= 1 for number, _ in known) and len(symbols) > 1:
            yield tuple(symbols)


def symbol_ranges(func: PrimFunc) -> Iterator[tuple[Var, Interval]]:
    """The implicit symbols of a function, each with its least and its largest value.

    A symbol of int64 that is in no shape may be a stride, which may be negative.
    """
    shapes = [buffer.shape for buffer in func.buffer_map.values()]
    extents = {id(var) for var in collect(shapes, Var)}
    for var in implicit_symbols(func):
        if var.dtype.bits == 64 and id(var) not in extents:
            yield var, integer_range(var.dtype)
        else:
            yield var, (0, largest_symbol(var.dtype))
