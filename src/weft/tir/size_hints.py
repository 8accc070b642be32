"""Size hints: what symbols of extents usually are. Cost models use them; no result depends on them.

A module carries them as an attribute, by the names of its graphs' symbols, and so does each kernel
once AttachSizeHints has run, by the names of its own: ``{"batch": 8}``. Where nothing is known of a
symbol, each cost model assumes what suits it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.ir.module import IRModule
from weft.tir.expr import Var
from weft.tir.function import PrimFunc

SIZE_HINTS: Final = "size_hints"
"""The attribute of modules and PrimFuncs: names of symbols -> integers."""


def size_hints_of(subject: IRModule | PrimFunc) -> dict[str, int]:
    """The hints of a module or a PrimFunc; none if it has no such attribute."""
    return {str(name): int(size) for name, size in subject.attrs.get(SIZE_HINTS, {}).items()}


def likely_size(extent: PrimExpr, hints: Mapping[str, int]) -> int | None:
    """What an extent usually is; None if it has a symbol without a hint.

    >>> n = Var("n", "int64")
    >>> likely_size(n * 2 + 1, {"n": 8})
    17
    """
    if isinstance(extent, IntImm):
        return int(extent.value)
    symbols = set(collect(extent, Var))
    if not symbols or not all(var.name in hints for var in symbols):
        return None
    sizes = {var: IntImm(var.dtype, hints[var.name]) for var in symbols}
    size = Analyzer().simplify(substitute(extent, sizes))
    return int(size.value) if isinstance(size, IntImm) else None
