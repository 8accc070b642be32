"""PrefetchSteps: while a step of a reduction runs, the vectors of a later one come closer.

A panel that exceeds the first cache comes from the second one again for each tile of rows. The
processor asks for its lines by itself, but mostly one line ahead, and the multiply-adds wait for
the rest. For loops with the annotation ``PREFETCH_STEPS``, whose body accumulates vectors, each
step prefetches the vectors that the fourth step after it loads. Runs before VectorizeLoop. Before::

    for k in range(512):
        for r in T.unroll(8):
            for c in T.vectorized(32):
                C[r, c] = C[r, c] + A[r, k] * B[k, c]

After, with lines of 16 elements, an iteration of ``k`` starts with
``for c in T.unroll(2): T.prefetch(B[k + 4, c * 16], 0, 3, 1)``. Where a loop in the body unrolls
several steps, each of them has prefetches of its own: a core waits for few lines at a time, so they
must not be asked for all at once (Mowry, Lam and Gupta, "Design and Evaluation of a Compiler
Algorithm for Prefetching", 1992).

The last steps prefetch beyond the panel. What lies there is the next part of the same panel, or
nothing: a prefetch does not fault.
"""

from __future__ import annotations

from typing import Any, Final

from weft.backends.cpu.vectors.prefetch_next import CACHE_LINE
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.node import expect
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate, For, ForKind, LetStmt, Stmt, seq, stmt_list
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

PREFETCH_STEPS: Final = "tir.prefetch_steps"
"""The annotation of a loop over the steps of a reduction."""
_AHEAD: Final = 4
"""How many steps ahead vectors are asked for. A step of a tile that fills the registers takes about
twelve cycles, a line of the second cache about fourteen, and more while others are on their way."""
_FIRST_CACHE: Final = 3
"""The locality that tells LLVM's prefetch to use the first cache."""


class _Steps(StmtMutator):
    def visit_For(self, loop: For) -> For:
        inner: For = self.visit_default(loop)
        if PREFETCH_STEPS not in inner.annotations:
            return inner
        rest = {key: value for key, value in inner.annotations.items() if key != PREFETCH_STEPS}
        plain = inner.with_(annotations=rest)
        before, together = _unrolled_steps(plain)
        size = 1 if together is None else expect(together.extent, IntImm).value
        inside = plain.body if together is None else together.body
        visitor = _Operands(plain.loop_var)
        visitor.visit(inside)
        later = plain.loop_var + -(-_AHEAD // size)
        fetches = [
            _prefetches(load, tile, plain.loop_var, later) for load, tile in visitor.operands
        ]
        body = seq(*fetches, inside)
        if together is not None:
            body = seq(*before, together.with_(body=body))
        return plain.with_(body=body)


def _unrolled_steps(loop: For) -> tuple[list[Stmt], For | None]:
    """The loop that unrolls several steps, which ends the body and indexes no accumulator; and the
    statements before it.
    """
    *before, last = stmt_list(loop.body)
    if not isinstance(last, For) or last.kind is not ForKind.UNROLLED:
        return [], None
    places = [list(store.indices) for store in collect(last, BufferStore)]
    is_step = last.loop_var not in collect(places, Var) and isinstance(last.extent, IntImm)
    return (before, last) if is_step else ([], None)


class _Operands(Visitor):
    """The vectors that accumulations load in each step, with the loops of the tile around them."""

    def __init__(self, step: Var) -> None:
        self.step = step
        self.around: list[For] = []
        self.operands: list[tuple[BufferLoad, list[For]]] = []

    def visit_For(self, loop: For) -> None:
        """Keep the loops around."""
        self.around.append(loop)
        self.visit_default(loop)
        self.around.pop()

    def visit_LetStmt(self, let: LetStmt) -> None:
        """Leave out what may need a name that the prefetches would stand above."""

    def visit_BufferStore(self, store: BufferStore) -> None:
        """Look at what is added."""
        places = set(collect(list(store.indices), Var))
        for load in collect(store.value, BufferLoad):
            used = set(collect(list(load.indices), Var))
            tile = [loop for loop in self.around if loop.loop_var in used]
            is_vector = any(loop.kind is ForKind.VECTORIZED for loop in tile)
            is_tile = all(
                isinstance(loop.extent, IntImm) and loop.loop_var in places for loop in tile
            )
            is_operand = self.step in used and load.buffer is not store.buffer
            if is_vector and is_tile and is_operand and load.buffer.scope() != "local":
                self.operands.append((load, tile))


def _prefetches(load: BufferLoad, tile: list[For], step: Var, later: PrimExpr) -> Stmt:
    """Prefetches of the lines that an operand has in a later step: the loops of the tile."""
    line = max(CACHE_LINE * 8 // load.dtype.bits, 1)
    place: dict[Any, Any] = {step: later}
    loops = []
    for loop in tile:
        size = line if loop.kind is ForKind.VECTORIZED else 1
        var = Var(loop.loop_var.name, loop.loop_var.dtype)  # of its own, as all loops have one
        place[loop.loop_var] = loop.min + (var - loop.min) * size
        count = (loop.extent + (size - 1)) // size
        loops.append(loop.with_(loop_var=var, kind=ForKind.UNROLLED, extent=count))
    address = expect(substitute(load, place), BufferLoad)
    fetch: Stmt = Evaluate(Call("int32", "tir.prefetch", [address, 0, _FIRST_CACHE, 1]))
    for loop in reversed(loops):
        fetch = loop.with_(body=fetch)
    return fetch


def prefetch_steps(func: PrimFunc) -> PrimFunc:
    """Insert the prefetches that the annotated loops of a function ask for."""
    return rewrite_body(func, _Steps())


PrefetchSteps = define_pass("PrefetchSteps", prefetch_steps)
