"""Extents that are a smallest or largest of numbers stay whole while expressions are simplified.

``i < min(m, n) + 1`` is simplified to ``i <= m and i <= n``. That is shorter, but says no longer
that ``i - 1`` is an index of an axis of ``min(m, n)`` elements: neither the proof that a read is
inside of its buffer nor ``NameExtents``, which writes a variable for the extent, finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.arith.analyzer import Analyzer
from weft.arith.deep_equal import expr_deep_equal
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, substitute
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Add, Max, Min, SizeVar, Sub, Var


class _Names(Mutator):
    """Writes the variable of an extent where its expression stands."""

    def __init__(self, names: dict[Var, PrimExpr]) -> None:
        super().__init__()
        self.names = names

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        for name, extent in self.names.items():
            if expr_deep_equal(expr, extent):
                return name
        return self.visit_default(expr)

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        """The load with its indices rewritten; its buffer stays the one that is declared."""
        return load.with_(indices=self.visit(load.indices))


class WholeExtents:
    """Such extents of buffers, each with a variable that stands for it."""

    def __init__(self) -> None:
        self.names: dict[Var, PrimExpr] = {}

    def add(self, buffers: Iterable[Buffer]) -> None:
        """Take in the extents of buffers."""
        for buffer in buffers:
            for dim in buffer.shape:
                term = _without_shift(dim)
                known = self.names.values()
                if isinstance(term, Min | Max) and not any(
                    expr_deep_equal(term, other) for other in known
                ):
                    # A size is 0 or more, which a term beside a shift need not be.
                    kind = SizeVar if term is dim else Var
                    self.names[kind(f"extent{len(self.names)}", dim.dtype)] = term

    def simplified(self, expr: PrimExpr, analyzer: Analyzer) -> PrimExpr:
        """The expression simplified, these extents in it as they are."""
        if not self.names:
            return analyzer.simplify(expr)
        named = analyzer.simplify(_Names(self.names).visit(expr))
        return substitute(named, self.names)


def _without_shift(dim: PrimExpr) -> PrimExpr:
    while isinstance(dim, Add | Sub) and isinstance(dim.b, IntImm):
        dim = dim.a
    return dim
