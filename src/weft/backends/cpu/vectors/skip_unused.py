"""SkipUnused: of a band that has fewer elements than the others, only the groups that it has run.

For loops with the annotation ``SKIP_UNUSED``, which is the size of a group, inside of a loop over
bands of as many groups. Before, for bands of four groups of 14 elements::

    for band in T.parallel((n + 55) // 56):
        for group in range(4):    # annotated with 14
            ...

After::

    for band in T.parallel((n + 55) // 56):
        for group in range(T.min(4, (n - band * 56 + 13) // 14)):
            ...

A schedule asks for this where nobody uses what the other groups would compute.
"""

from __future__ import annotations

from typing import Final

from weft.arith.iter_map.integer import parts_counted
from weft.ir.expr import IntImm, PrimExpr
from weft.tir import op
from weft.tir.function import PrimFunc
from weft.tir.stmt import For
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

SKIP_UNUSED: Final = "tir.skip_unused"
"""The annotation of a loop over the groups of a band: how many elements a group has."""


class _Skip(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.around: list[For] = []

    def visit_For(self, loop: For) -> For:
        self.around.append(loop)
        inner: For = self.visit_default(loop)
        self.around.pop()
        if SKIP_UNUSED not in inner.annotations:
            return inner
        rest = {key: value for key, value in inner.annotations.items() if key != SKIP_UNUSED}
        extent = self._used(inner, int(inner.annotations[SKIP_UNUSED]))
        return inner.with_(annotations=rest, extent=extent)

    def _used(self, groups: For, size: int) -> PrimExpr:
        """How many groups the band has, around which the loop over bands is."""
        extent = groups.extent
        if isinstance(extent, IntImm):
            band = extent.value * size
            for loop in reversed(self.around):
                parts = parts_counted(loop.extent)
                if parts is not None and parts[1] == band:
                    left = parts[0] - (loop.loop_var - loop.min) * band
                    return op.min(extent, op.floordiv(left + (size - 1), size))
        return extent


def skip_unused(func: PrimFunc) -> PrimFunc:
    """The function without groups that nobody uses."""
    return rewrite_body(func, _Skip())


SkipUnused = define_pass("SkipUnused", skip_unused)
