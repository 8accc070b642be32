"""SplitVectorLoop: a vectorized loop whose extent is no power of two becomes several vectors.

LLVM takes vectors of 24 or 48 lanes apart into scalars where they live across iterations of a loop;
three of 8 or 16 lanes stay in registers. Runs before VectorizeLoop. Before:
``for i in T.vectorized(24)``. After: ``for i in T.unroll(3): for i_1 in T.vectorized(8)`` with
``i * 8 + i_1`` for ``i``. An extent of at most 16 stays (LLVM pads it), and one that no power of
two from 4 on divides.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm
from weft.ir.functor import Mutator, substitute
from weft.ir.transform import Pass
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, ForKind
from weft.tir.transform.prim_func_pass import make_pass, rewrite_body

SHORTEST: Final = 4
PADDED: Final = 16
MOST_VECTORS: Final = 16


class _Split(Mutator):
    def visit_For(self, loop: For) -> For:
        visited: For = self.visit_default(loop)
        if visited.kind is not ForKind.VECTORIZED or not isinstance(visited.extent, IntImm):
            return visited
        if not isinstance(visited.min, IntImm) or visited.min.value != 0:
            return visited
        extent = visited.extent.value
        lanes = extent & -extent  # the largest power of two that divides it
        if extent <= PADDED or not SHORTEST <= lanes < extent or extent // lanes > MOST_VECTORS:
            return visited
        old = visited.loop_var
        outer, inner = Var(old.name, old.dtype), Var(f"{old.name}_1", old.dtype)
        body = substitute(visited.body, {old: outer * lanes + inner})
        vector = visited.with_(loop_var=inner, extent=IntImm(old.dtype, lanes), body=body)
        count = IntImm(old.dtype, extent // lanes)
        return For(outer, IntImm(old.dtype, 0), count, ForKind.UNROLLED, vector)


def split_vector_loops(func: PrimFunc) -> PrimFunc:
    """The function with its vectorized loops split where their extent is no power of two."""
    return rewrite_body(func, _Split())


def SplitVectorLoop() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.SplitVectorLoop``."""
    return make_pass("SplitVectorLoop", split_vector_loops)
