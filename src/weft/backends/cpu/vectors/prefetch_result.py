"""PrefetchResult: while a tile is computed, the lines of memory that it is stored to come closer.

A store needs its whole line in the first cache, which waits for memory if the line is not there.
The processor goes on for as many stores as it can hold back, and a register tile has about that
many. For loops with the annotation ``PREFETCH_RESULT``, whose iterations end with the stores of a
tile, each iteration starts with prefetches of these lines, for writing (Mowry, Lam and Gupta,
"Design and Evaluation of a Compiler Algorithm for Prefetching", 1992). Runs before loops are cut,
so that the same guards are cut out of both. Before::

    for r in range(8):
        for k in range(1024):
            for c in T.vectorized(32): total[c] = total[c] + A[r, k] * B[k, c]
        for c in T.vectorized(32): C[r, c] = total[c]

After, with lines of 16 elements, an iteration of ``r`` starts with
``for c in T.unroll(2): T.prefetch(C[r, c * 16], 1, 3, 1)``.
"""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.vectors.prefetch_next import CACHE_LINE
from weft.ir.functor import collect, substitute
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate, For, ForKind, Stmt, seq, stmt_list
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

PREFETCH_RESULT: Final = "tir.prefetch_result"
"""The annotation of a loop whose iterations end with the stores of a tile."""
_TILE: Final = frozenset([ForKind.UNROLLED, ForKind.VECTORIZED])
"""The loops of a tile; what other loops store may be much more."""
_FIRST_CACHE: Final = 3
"""The locality that tells LLVM's prefetch to use the first cache."""


class _Results(StmtMutator):
    def visit_For(self, loop: For) -> For:
        inner: For = self.visit_default(loop)
        if PREFETCH_RESULT not in inner.annotations:
            return inner
        rest = {key: value for key, value in inner.annotations.items() if key != PREFETCH_RESULT}
        return inner.with_(annotations=rest, body=_AtStart().visit(inner.body))


class _AtStart(StmtMutator):
    """Puts prefetches of the tile that the last statement of a sequence stores before the first."""

    def visit_SeqStmt(self, stmt: Stmt) -> Stmt:
        last = stmt_list(stmt)[-1]
        stores = collect(last, BufferStore)
        kinds = {loop.kind for loop in collect(last, For)}
        if any(store.buffer.scope() == "local" for store in stores) or not kinds <= _TILE:
            return stmt
        return seq(_Lines().visit(last), stmt)

    def visit_For(self, loop: For) -> For:
        return loop


class _Lines(StmtMutator):
    """Makes prefetches of stores, one for each line that a loop of vectors stores to."""

    def visit_For(self, loop: For) -> Stmt:
        [store, *_] = collect(loop.body, BufferStore)
        is_vector = loop.kind is ForKind.VECTORIZED
        step = max(CACHE_LINE * 8 // store.buffer.dtype.bits, 1) if is_vector else 1
        var = Var(loop.loop_var.name, loop.loop_var.dtype)  # of its own, as all loops have one
        place = {loop.loop_var: loop.min + (var - loop.min) * step}
        body = substitute(self.visit(loop.body), place)
        count = (loop.extent + (step - 1)) // step
        return loop.with_(loop_var=var, kind=ForKind.UNROLLED, extent=count, body=body)

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        place = BufferLoad(store.buffer, list(store.indices))
        return Evaluate(Call("int32", "tir.prefetch", [place, 1, _FIRST_CACHE, 1]))


def prefetch_results(func: PrimFunc) -> PrimFunc:
    """Insert the prefetches that the annotated loops of a function ask for."""
    return rewrite_body(func, _Results())


PrefetchResult = define_pass("PrefetchResult", prefetch_results)
