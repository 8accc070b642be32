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
``T.prefetch(B[T.min(j + 1, 7), T.min(r, 1) * 512 + k // 2, k % 2 * 16], 0, 2, 1)``: the panel is
one run of memory, and two values of ``r`` prefetch half of it each, one line after the other. Of a
panel that is none, they prefetch one of the two lines of each row.

Where only the run tells how often ``r`` runs (``n`` times), one instruction more for each step lets
both few and many values of ``r`` fetch the whole panel: of 2048 lines, one half each if there are
two (``n < 3``), else one third each. In the latter case the third instruction repeats the first::

    each = T.Select(n < 3, 3, 2)   # for 384 steps in a run of 2048 lines, whose halves have 1024
    start = T.min(r, T.Select(n < 3, 1, 2)) * each * 384 + k * each
    start, start + 1, start + T.Select(n < 3, 2, 0)   # the lines of a step

Without this pass the processor waits for a panel, computes with it, waits for the next one, and so
on: hardware prefetches only within a page, and not past the end of a panel (Mowry, Lam and Gupta,
"Design and Evaluation of a Compiler Algorithm for Prefetching", 1992).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.node import expect
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Cast, Select, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, Evaluate, For, Stmt, seq
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

PREFETCH_NEXT: Final = "tir.prefetch_next"
"""The annotation of a loop whose next iteration's panel may be prefetched."""
CACHE_LINE: Final = 64
"""Bytes of a cache line."""
_SECOND_CACHE: Final = 2
"""The locality that tells LLVM's prefetch to use the second cache: a panel exceeds the first."""
_AT_ONCE: Final = 4
"""The most lines prefetched at a time: more would wait for each other, and loads for them."""
_RUNS: Final = 5
"""How many runs are assumed where only the run tells: they share out the panel, and runs after them
prefetch nothing new. Of an image of 5 x 8 pixels, each row is one."""
_FEW: Final = 2
"""So many runs, if only the run tells how many there are, share out a panel among themselves. If
there are more, that many and another one do, and those after them prefetch nothing new."""
_PRODUCTS: Final = 16
"""Multiply-adds of a line's elements in the time in which a line comes from memory."""


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
        return plain.with_(body=_Insert(finder.found).visit(plain.body))


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

    A reduction may read a copy of the panel that each iteration makes, maybe in another type. Then
    what is copied is prefetched.
    """

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.around: list[For] = []
        self.copies: dict[int, tuple[Sequence[PrimExpr], BufferLoad, set[Var]]] = {}
        """``id`` of a buffer -> the indices at which it is stored, the load that is stored, and the
        variables of the loops around that."""
        self.found: dict[Var, list[Stmt]] = {}

    def visit_For(self, loop: For) -> None:
        """Keep the loops around."""
        self.around.append(loop)
        self.visit_default(loop)
        self.around.pop()

    def visit_BufferStore(self, store: BufferStore) -> None:
        """Look at an accumulation: loops whose variables do not index it are the reduction's."""
        value = store.value
        copied = value.value if isinstance(value, Cast) else value
        if isinstance(copied, BufferLoad):
            loops = {loop.loop_var for loop in self.around}
            self.copies[id(store.buffer)] = store.indices, copied, loops
        loads = [self.origin(load) for load in collect(value, BufferLoad)]
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

    def origin(self, load: BufferLoad) -> BufferLoad:
        """What a copy that is read was made of; a load of anything else itself."""
        if id(load.buffer) not in self.copies:
            return load
        places, source, loops = self.copies[id(load.buffer)]
        given = zip(places, load.indices, strict=True)
        at = {place: index for place, index in given if isinstance(place, Var)}
        origin = expect(substitute(source, at), BufferLoad)
        ended = loops - {loop.loop_var for loop in self.around}
        return load if ended & set(collect(list(origin.indices), Var)) else origin


@dataclass(frozen=True)
class _Axis:
    """A loop, and how many places prefetches count along it."""

    loop: For
    size: int

    @property
    def place(self) -> PrimExpr:
        """Which of its places an iteration of the loop stands for."""
        return self.loop.loop_var - self.loop.min


@dataclass(frozen=True)
class _Panel:
    """The lines of a panel.

    ``axes``, the outermost first, count the elements of one run of memory, or the rows and the
    lines of each row of any other panel.
    """

    axes: Sequence[_Axis]
    width: int
    """How many elements a place along the columns stands for."""
    line: int
    """How many places, counted along all axes, a line has."""

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return -(-_count(self.axes) // self.line)

    def places(self, number: PrimExpr, columns: _Axis) -> dict[Var, PrimExpr]:
        """The values of the loop variables where a line begins."""
        values: dict[Var, PrimExpr] = {}
        for axis, place in zip(self.axes, _apart(number * self.line, self.axes), strict=True):
            here = place * self.width if axis.loop is columns.loop else place
            var = axis.loop.loop_var
            values[var] = axis.loop.min + op.cast(var.dtype, here)
        return values


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
    again, depth = _runs(around[: steps[0]]), _axes([around[place] for place in steps])
    tail = _axes([other for other in around[steps[-1] + 1 :] if other.loop_var in own])
    if not again or not depth or not tail or _count(again) < 2:
        return []
    if any(axis.loop.loop_var in own for axis in again):
        return []
    line = max(CACHE_LINE * 8 // load.dtype.bits, 1)
    in_lines = [*tail[:-1], _Axis(tail[-1].loop, -(-tail[-1].size // line))]
    inside = depth[: _level(again, depth, in_lines)]
    rest = [*depth[len(inside) :], *inside]
    # A panel of several blocks of columns is no run of memory, though each block may be one.
    run = _in_memory_order(load, [*tail, *rest]) if len(tail) == 1 else None
    panel = _Panel(run, 1, line) if run else _Panel([*in_lines, *rest], line, 1)
    is_known = all(isinstance(axis.loop.extent, IntImm) for axis in again)
    if run is None or is_known or panel.lines % _count(inside):
        numbers = _of_known_runs(again, inside, panel.lines)
    else:
        numbers = _of_unknown_runs(again, inside, panel.lines, _most_lines(around, inside, line))
    following = op.min(loop.loop_var + 1, loop.min + loop.extent - 1)
    fetches: list[tuple[Var, Stmt]] = []
    for number in numbers:
        mapping: dict[Any, Any] = {loop.loop_var: following, **panel.places(number, tail[-1])}
        fetch = Evaluate(_prefetch(expect(substitute(load, mapping), BufferLoad)))
        fetches.append((inside[-1].loop.loop_var, fetch))
    return fetches


def _most_lines(around: Sequence[For], inside: Sequence[_Axis], line: int) -> int:
    """How many lines of ``line`` elements come from memory while a step is computed: one or a few.

    ``inside`` are the loops over steps; the loops of ``around`` that follow them are a step's.
    """
    loops = [loop.loop_var for loop in around]
    within = around[loops.index(inside[-1].loop.loop_var) + 1 :]
    elements = _count([axis for loop in within for axis in _axes([loop])])
    return min(max(elements // (line * _PRODUCTS), 1), 2 * _AT_ONCE)


def _level(again: Sequence[_Axis], depth: Sequence[_Axis], tail: Sequence[_Axis]) -> int:
    """In how many of the reduction's loops the prefetches stand.

    Where these loops run more often than the panel has lines, a line would be prefetched again and
    again, so the innermost of them are left, unless that makes too many prefetches at a time.
    """
    lines, level = _count([*depth, *tail]), len(depth)
    while level > 1 and _count([*again, *depth[:level]]) > lines:
        if lines > _AT_ONCE * _count([*again, *depth[: level - 1]]):
            break
        level -= 1
    return level


def _of_known_runs(
    again: Sequence[_Axis], steps: Sequence[_Axis], lines: int
) -> Iterator[PrimExpr]:
    """The numbers of the lines, of ``lines`` in all, that an iteration prefetches.

    ``again`` are the loops of the runs, each of which takes a share of lines that follow each
    other, and ``steps`` those of the reduction. Runs after the last share take that one again: if
    shares are whole, this needs only the number of the run, which stays the same in all steps.
    """
    around, inside, each = list(again), list(steps), -(-lines // _count([*again, *steps]))
    while inside and lines % (each * _count(inside)):
        around.append(inside.pop(0))
    share = each * _count(inside)
    start = op.min(_number(around), -(-lines // share) - 1) * share
    if inside:
        start = start + _number(inside) * each
    for part in range(each):
        yield start + part if lines % each == 0 else op.min(start + part, lines - 1)


def _of_unknown_runs(
    again: Sequence[_Axis], steps: Sequence[_Axis], lines: int, most: int
) -> Iterator[PrimExpr]:
    """The same where only the run tells how many runs there are: at most ``most`` lines.

    Few runs and many have the same instructions. Those that only few need repeat others in many.
    Each step has equally many lines, so that their places are sums if the panel is a run of memory.
    """
    unknown = [axis for axis in again if not isinstance(axis.loop.extent, IntImm)]
    number, inside = math.prod([axis.loop.extent for axis in unknown]), _count(steps)
    known, share = _count([axis for axis in again if axis not in unknown]), lines // inside
    few, many = [_part(share, known * runs, most) for runs in (_FEW, _FEW + 1)]

    def chosen(of_few: int, of_many: int) -> PrimExpr:
        values = [op.const(value, steps[0].loop.loop_var.dtype) for value in (of_few, of_many)]
        return Select(number <= _FEW, *values) if of_few != of_many else values[0]

    each, last = chosen(few, many), chosen(share // few - 1, share // many - 1)
    start = op.min(_number(again), last) * (each * inside) + _number(steps) * each
    for part in range(few):
        yield start + part if part < many else start + chosen(many, 0) + (part - many)


def _part(share: int, runs: int, most: int) -> int:
    """The lines of ``share`` that each of ``runs`` takes: a divisor of it, at most ``most``.

    >>> _part(12, 2, 8), _part(12, 3, 8), _part(12, 2, 5), _part(10, 3, 8)
    (6, 4, 4, 5)
    """
    divisors = [part for part in range(1, share + 1) if share % part == 0]
    enough = [part for part in divisors if part * runs >= share]
    return max([part for part in divisors if part <= min(enough[0], most)])


def _in_memory_order(load: BufferLoad, axes: Sequence[_Axis]) -> list[_Axis] | None:
    """Axes of a panel, outermost first, as its lines lie in memory; None if they are no run of it.

    The processor goes on by itself where lines are asked for one after the other.
    """
    steps = {axis.loop.loop_var: _step(load, axis.loop.loop_var) for axis in axes}
    run = 1
    ordered = sorted(axes, key=lambda axis: steps[axis.loop.loop_var])
    for axis in ordered:
        size = expect(axis.loop.extent, IntImm).value
        if size > 1 and steps[axis.loop.loop_var] != run:
            return None
        run *= size
    return ordered[::-1]


def _step(load: BufferLoad, var: Var) -> int:
    """How many elements an access goes on when a variable grows by one; 0 if that varies."""
    place: PrimExpr = op.const(0, var.dtype)
    for size, index in zip(load.buffer.shape, load.indices, strict=True):
        place = place * size + index
    distance = Analyzer().simplify(substitute(place, {var: var + 1}) - place)
    return distance.value if isinstance(distance, IntImm) and not load.buffer.strides else 0


def _prefetch(load: BufferLoad) -> PrimExpr:
    return Call("int32", "tir.prefetch", [load, 0, _SECOND_CACHE, 1])


def _axes(loops: Sequence[For]) -> list[_Axis]:
    """The loops as axes; none if the extent of one is not constant."""
    axes = [_Axis(loop, loop.extent.value) for loop in loops if isinstance(loop.extent, IntImm)]
    return axes if len(axes) == len(loops) else []


def _runs(loops: Sequence[For]) -> list[_Axis]:
    """The loops of the runs as axes; the innermost of unknown extent counts as ``_RUNS`` runs."""
    axes: list[_Axis] = []
    assumed = _RUNS
    for loop in reversed(loops):
        if isinstance(loop.extent, IntImm):
            axes.insert(0, _Axis(loop, loop.extent.value))
            continue
        axes.insert(0, _Axis(loop, assumed))
        assumed = 1
    return axes


def _count(axes: Sequence[_Axis]) -> int:
    return math.prod([axis.size for axis in axes])


def _number(axes: Sequence[_Axis]) -> PrimExpr:
    """The number of an iteration among all of some loops: ``(1, 2)`` in ``(4, 8)`` -> 10."""
    number = axes[0].place
    for axis in axes[1:]:
        extent = axis.loop.extent
        number = number * (extent.value if isinstance(extent, IntImm) else extent) + axis.place
    return number


def _apart(number: PrimExpr, axes: Sequence[_Axis]) -> list[PrimExpr]:
    """The places along axes of a number among all: 10 in a box of ``(4, 8)`` -> ``[1, 2]``."""
    places: list[PrimExpr] = []
    for axis in reversed(axes[1:]):
        places.insert(0, op.floormod(number, axis.size))
        number = op.floordiv(number, axis.size)
    return [number, *places]


def prefetch_next_iterations(func: PrimFunc) -> PrimFunc:
    """Insert the prefetches that the annotated loops of a function ask for."""
    return rewrite_body(func, _Prefetches())


PrefetchNextIteration = define_pass("PrefetchNextIteration", prefetch_next_iterations)
