"""SplitVectorLoop: a vectorized loop whose extent is no power of two becomes several vectors.

LLVM takes vectors of 24 or 48 lanes apart into scalars where they live across iterations of a loop;
one of 16 lanes and one of 8 stay in registers. Runs before VectorizeLoop. Before:
``for i in T.vectorized(40)``. After: ``for i in T.unroll(2): for i_1 in T.vectorized(16)`` with
``i * 16 + i_1`` for ``i``, and ``for i in T.vectorized(8)`` with ``i + 32``. An extent of at most
16 stays (LLVM pads it), and one that no power of two from 4 on divides.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm
from weft.ir.functor import Mutator, substitute
from weft.ir.transform import Pass
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import For, ForKind, Stmt, seq
from weft.tir.transform.prim_func_pass import make_pass, rewrite_body
from weft.tir.transform.unroll_loop import renewed

SHORTEST: Final = 4
PADDED: Final = 16
"""Lanes of most vectors: LLVM takes them apart into what the machine has."""
MOST_VECTORS: Final = 16


class _Split(Mutator):
    def visit_For(self, loop: For) -> Stmt:
        visited: For = self.visit_default(loop)
        if visited.kind is not ForKind.VECTORIZED or not isinstance(visited.extent, IntImm):
            return visited
        if not isinstance(visited.min, IntImm) or visited.min.value != 0:
            return visited
        extent = visited.extent.value
        lanes = extent & -extent  # the largest power of two that divides it
        if extent <= PADDED or not SHORTEST <= lanes < extent:
            return visited
        lanes = max(lanes, PADDED)
        whole, rest = divmod(extent, lanes)
        if whole + rest.bit_count() > MOST_VECTORS:
            return visited
        parts = [_vectors(visited, whole, lanes)]
        for width in (8, 4):
            if rest & width:
                start = extent - rest % (2 * width)
                parts.append(_vector(visited, start, width))
        return seq(*parts)


def _vectors(loop: For, count: int, lanes: int) -> For:
    """The first ``count`` vectors, one after the other."""
    if count == 1:
        return _vector(loop, 0, lanes)
    old = loop.loop_var
    outer, inner = Var(old.name, old.dtype), Var(f"{old.name}_1", old.dtype)
    body = renewed(substitute(loop.body, {old: outer * lanes + inner}))
    vector = loop.with_(loop_var=inner, extent=IntImm(old.dtype, lanes), body=body)
    zero, extent = IntImm(old.dtype, 0), IntImm(old.dtype, count)
    return For(outer, zero, extent, ForKind.UNROLLED, vector)


def _vector(loop: For, start: int, lanes: int) -> For:
    """The vector of ``lanes`` elements that begins at ``start``."""
    old = loop.loop_var
    inner = Var(old.name, old.dtype)
    body = renewed(substitute(loop.body, {old: inner + start if start else inner}))
    return loop.with_(loop_var=inner, extent=IntImm(old.dtype, lanes), body=body)


def split_vector_loops(func: PrimFunc) -> PrimFunc:
    """The function with its vectorized loops split where their extent is no power of two."""
    return rewrite_body(func, _Split())


def SplitVectorLoop() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.SplitVectorLoop``."""
    return make_pass("SplitVectorLoop", split_vector_loops)
