"""PrefetchNextIteration: while one iteration runs, the next one's panel comes from memory.

For loops with the annotation ``PREFETCH_NEXT``, in each iteration of which a reduction runs several
times over the same panel of an operand: each time it prefetches a part of the next iteration's
panel. Runs before VectorizeLoop. Before, without the statements that set ``C`` to zero::

    for j in range(8):
        for r in range(4):
            for k in range(1024):
                for c in T.vectorized(32):
                    C[c] = C[c] + A[r, k] * B[j, k, c]

After, with lines of 16 elements, the loop over ``k`` starts with
``T.prefetch(B[T.min(j + 1, 7), k, T.min(r, 1) * 16], 0, 2, 1)``.

Without this pass the processor waits for a panel, computes with it, waits for the next one, and so
on: hardware prefetches only within a page, and not past the end of a panel (Mowry, Lam and Gupta,
"Design and Evaluation of a Compiler Algorithm for Prefetching", 1992).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.node import expect
from weft.ir.transform import Pass
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate, For, Stmt, seq
from weft.tir.transform.prim_func_pass import StmtMutator, make_pass, rewrite_body

PREFETCH_NEXT: Final = "tir.prefetch_next"
"""The annotation of a loop whose next iteration's panel may be prefetched."""
_LINE: Final = 64
"""Bytes of a cache line."""
_SECOND_CACHE: Final = 2
"""The locality that tells LLVM's prefetch to use the second cache: a panel exceeds the first."""
_AT_ONCE: Final = 4
"""The most lines prefetched at a time: more would wait for each other, and loads for them."""


class _Prefetches(StmtMutator):
    def visit_For(self, loop: For) -> For:
        inner: For = self.visit_default(loop)
        if PREFETCH_NEXT not in inner.annotations:
            return inner
        rest = {key: value for key, value in inner.annotations.items() if key != PREFETCH_NEXT}
        plain = inner.with_(annotations=rest)
        finder = _Reductions(plain)
        finder.visit(plain.body)
        if not finder.found:
            return plain
        prefetching: For = plain.with_(body=_Insert(finder.found).visit(plain.body))
        return prefetching


class _Insert(StmtMutator):
    """Puts statements at the start of loop bodies; ``fetches`` maps loop variables to them."""

    def __init__(self, fetches: dict[Var, list[Stmt]]) -> None:
        self.found = fetches

    def visit_For(self, loop: For) -> For:
        visited: For = self.visit_default(loop)
        before = self.found.get(loop.loop_var, [])
        return visited.with_(body=seq(*before, visited.body)) if before else visited


class _Reductions(Visitor):
    """For each reduction inside of a loop: the statements that prefetch, by the variable of the
    loop in which they belong.
    """

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.around: list[For] = []
        self.found: dict[Var, list[Stmt]] = {}

    def visit_For(self, loop: For) -> None:
        """Keep the loops around."""
        self.around.append(loop)
        self.visit_default(loop)
        self.around.pop()

    def visit_BufferStore(self, store: BufferStore) -> None:
        """Look at an accumulation: loops whose variables do not index it are the reduction's."""
        loads = collect(store.value, BufferLoad)
        if not any(load.buffer is store.buffer for load in loads):
            return
        named = set(collect(list(store.indices), Var))
        steps = [place for place, loop in enumerate(self.around) if loop.loop_var not in named]
        used = set(collect([load.indices for load in loads], Var))
        steps = [place for place in steps if self.around[place].loop_var in used]
        for load in loads:
            if load.buffer is not store.buffer:
                for var, prefetch in _prefetches_of(load, self.loop, self.around, steps):
                    self.found.setdefault(var, []).append(prefetch)


def _prefetches_of(
    load: BufferLoad, loop: For, around: Sequence[For], steps: Sequence[int]
) -> list[tuple[Var, Stmt]]:
    """The prefetches of one operand, each with the variable of the loop in which it belongs.

    ``around`` are the loops around the accumulation and ``steps`` the positions of the reduction's
    loops among them. Each run of the reduction prefetches its share of the panel's lines.
    """
    own = set(collect(list(load.indices), Var))
    steps = [place for place in steps if around[place].loop_var in own]
    if loop.loop_var not in own or not steps or load.buffer.scope() == "local":
        return []
    again, inside = list(around[: steps[0]]), list(around[steps[-1] + 1 :])
    inside = [other for other in inside if other.loop_var in own]
    if any(other.loop_var in own for other in again) or not inside:
        return []
    times, sizes = _extents(again), _extents(inside)
    if times is None or sizes is None or math.prod(times) < 2:
        return []
    step = max(_LINE * 8 // load.dtype.bits, 1)
    lines = [*sizes[:-1], -(-sizes[-1] // step)]
    # Where a step of the reduction reads fewer cache lines than the reduction has runs, a line
    # would be prefetched again and again; so prefetch in an outer loop instead.
    while len(steps) > 1 and math.prod(lines) < math.prod(times):
        more = _extents([around[steps[-1]]])
        if more is None or math.prod([*more, *lines]) > _AT_ONCE * math.prod(times):
            break
        lines, inside = [*more, *lines], [around[steps[-1]], *inside]
        steps = steps[:-1]
    each = -(-math.prod(lines) // math.prod(times))
    number = _flat([other.loop_var - other.min for other in again], times)
    following = op.min(loop.loop_var + 1, loop.min + loop.extent - 1)
    fetches: list[tuple[Var, Stmt]] = []
    for part in range(each):
        line = op.min(number * each + part, math.prod(lines) - 1)
        places = _apart(line, lines)
        places[-1] = places[-1] * step
        mapping: dict[Any, Any] = {
            other.loop_var: other.min + place for other, place in zip(inside, places, strict=True)
        }
        mapping[loop.loop_var] = following
        fetch = Evaluate(_prefetch(expect(substitute(load, mapping), BufferLoad)))
        fetches.append((around[steps[-1]].loop_var, fetch))
    return fetches


def _prefetch(load: BufferLoad) -> PrimExpr:
    return Call("int32", "tir.prefetch", [load, 0, _SECOND_CACHE, 1])


def _extents(loops: Sequence[For]) -> list[int] | None:
    sizes = [loop.extent.value for loop in loops if isinstance(loop.extent, IntImm)]
    return sizes if len(sizes) == len(loops) else None


def _flat(places: Sequence[PrimExpr], sizes: Sequence[int]) -> PrimExpr:
    """The number of an index in a box of these sizes: ``(1, 2)`` in ``(4, 8)`` -> 10."""
    number = places[0]
    for place, size in zip(places[1:], sizes[1:], strict=True):
        number = number * size + place
    return number


def _apart(number: PrimExpr, sizes: Sequence[int]) -> list[PrimExpr]:
    """The inverse of ``_flat``: 10 in a box of ``(4, 8)`` -> ``[1, 2]``."""
    places: list[PrimExpr] = []
    for size in reversed(sizes[1:]):
        places.insert(0, op.floormod(number, size))
        number = op.floordiv(number, size)
    return [number, *places]


def prefetch_next_iterations(func: PrimFunc) -> PrimFunc:
    """Insert the prefetches that the annotated loops of a function ask for."""
    return rewrite_body(func, _Prefetches())


def PrefetchNextIteration() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.PrefetchNextIteration``."""
    return make_pass("PrefetchNextIteration", prefetch_next_iterations)
