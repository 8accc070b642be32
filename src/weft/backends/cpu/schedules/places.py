"""Where the axes of a block go in memory, and which of them are one there, or several.

Axes that follow each other in the memory of all that is read and written are one. An axis whose
quotient and remainder are axes of what is read is two: a channel of a blocked layout, or the
columns that heads of attention are put together to.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from weft.arith.analyzer import Analyzer
from weft.arith.data import has_data
from weft.dlight.nest import Nest, loops_of
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, collect, substitute
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import FloorDiv, FloorMod, Var
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.transform.wide_index import ARITHMETIC, widened


@dataclass(frozen=True)
class Part:
    """An axis of the block, or one of the axes that it is made of."""

    axis: Var
    var: Var
    extent: int


class Places:
    """How far each part of an axis goes in the memory of the result and of what is read."""

    def __init__(self, nest: Nest, parts: Sequence[Part]) -> None:
        self.parts = parts
        [store] = nest.stores
        accesses = [(store.buffer, *_without_data(store.indices))]
        accesses += [(load.buffer, *_without_data(load.indices)) for load in nest.loads]
        self.steps = {part: [self._step(*access, part) for access in accesses] for part in parts}

    def _step(
        self, buffer: Buffer, indices: Sequence[PrimExpr], data: Sequence[PrimExpr], part: Part
    ) -> int | None:
        """What one more of a part adds to a place; None if that is not constant."""
        if part.axis in collect(data, Var):
            return None
        if part.axis not in collect(indices, Var):
            return 0
        analyzer = Analyzer()
        for piece in self.parts:  # there is no one more than the last
            extent = piece.extent - 1 if piece is part else piece.extent
            dtype = piece.var.dtype
            analyzer.bind(piece.var, Range(op.const(0, dtype), op.const(extent, dtype)))
        here, after = [
            _place(buffer, [substitute(index, self._values(more)) for index in indices], analyzer)
            for more in (None, part)
        ]
        distance = analyzer.simplify(op.subtract(after, here))
        return distance.value if isinstance(distance, IntImm) else None

    def _values(self, more: Part | None) -> dict[Var, PrimExpr]:
        """The axes as made of their parts, where ``more`` is one more."""
        value: dict[Var, PrimExpr] = {}
        for part in self.parts:
            here = op.add(part.var, 1) if part is more else part.var
            before = value.get(part.axis)
            value[part.axis] = (
                here if before is None else op.add(op.multiply(before, part.extent), here)
            )
        return value

    def run(self, last: Part, others: Sequence[Part]) -> list[Part]:
        """The parts that walk all memory as one with ``last``, which is the innermost of them."""
        parts, size = [last], last.extent
        rest = [part for part in others if part is not last]
        while True:
            whole = [None if step is None else step * size for step in self.steps[last]]
            more = [part for part in rest if None not in whole and self.steps[part] == whole]
            if not more:
                return parts
            parts.insert(0, more[0])
            rest.remove(more[0])
            size *= more[0].extent


def _without_data(indices: Sequence[PrimExpr]) -> tuple[Sequence[PrimExpr], list[PrimExpr]]:
    """Indices with variables for what depends on data in them, and that: no place is in it."""
    apart = _Apart()
    return [apart.visit(index) for index in indices], apart.data


class _Apart(Mutator):
    def __init__(self) -> None:
        self.data: list[PrimExpr] = []

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        if not has_data(expr):
            return expr
        if isinstance(expr, ARITHMETIC):
            rest: PrimExpr = self.visit_default(expr)
            return rest
        self.data.append(expr)
        return Var("data", expr.dtype)


def _place(buffer: Buffer, indices: Sequence[PrimExpr], analyzer: Analyzer) -> PrimExpr:
    """How many elements from the start of a buffer an access is, simplified."""
    place: PrimExpr = op.const(0, "int64")
    for size, index in zip(buffer.shape, indices, strict=True):
        place = op.add(op.multiply(place, size), widened(index, analyzer))
    return analyzer.simplify(place)


def parts_of(nest: Nest, least: int = 1) -> list[Part] | None:
    """The axes that have more than one value, cut where loads take quotients of them.

    No cut leaves an innermost part of the last one of less than ``least``. None for symbolic sizes.
    """
    parts: list[Part] = []
    for axis in nest.spatial:
        extent = nest.extent(axis)
        if extent is None:
            return None
        sizes = _cuts(nest, axis, extent, least if axis is nest.spatial[-1] else 1)
        if sizes is None:
            return None
        parts += [
            Part(axis, Var(f"{axis.name}_{at}", axis.dtype), size)
            for at, size in enumerate(sizes) if extent > 1
        ]  # fmt: skip
    return parts


def _cuts(nest: Nest, axis: Var, extent: int, least: int) -> list[int] | None:
    """The extents of the parts of an axis, outermost first; None if no parts are exact.

    A quotient that its remainder makes whole again is none, so places are looked at, not indices.
    """
    analyzer = nest.analyzer()
    places = [
        _place(load.buffer, _without_data(load.indices)[0], analyzer) for load in nest.loads
        if axis in collect(load.indices, Var)
    ]  # fmt: skip
    divisors = {extent}
    for place in places:
        for part in collect(place, (FloorDiv, FloorMod)):
            if axis in collect(part.a, Var):
                if not isinstance(part.b, IntImm):
                    return None
                divisors.add(part.b.value)
    ends = sorted(divisors, reverse=True)
    if ends[-1] < least:
        return [extent]
    if any(size % inner for size, inner in itertools.pairwise(ends)):
        return None
    if ends[0] != extent or ends[-1] < 1:
        return None
    return [size // inner for size, inner in zip(ends, [*ends[1:], 1], strict=True)]


def loops_of_parts(
    sch: Schedule, nest: Nest, parts: Sequence[Part]
) -> tuple[dict[Part, LoopRV], list[LoopRV]] | None:
    """The loop that runs each part, after splitting those of axes of several parts, and the others.

    None if an axis has no loop of its own.
    """
    of_axes = loops_of(sch, nest)
    of_parts = {
        axis: mine for axis in nest.spatial
        if (mine := [part for part in parts if part.axis is axis])
    }  # fmt: skip
    for axis in of_parts:
        extent = sch.get(of_axes[axis]).extent if axis in of_axes else None
        if not isinstance(extent, IntImm) or extent.value != nest.extent(axis):
            return None
    by_part: dict[Part, LoopRV] = {}
    for axis, mine in of_parts.items():
        loop = of_axes[axis]
        split = sch.split(loop, [part.extent for part in mine]) if len(mine) > 1 else [loop]
        by_part |= dict(zip(mine, split, strict=True))
    known = {sch.get(loop) for loop in by_part.values()}
    return by_part, [loop for loop in sch.get_loops(nest.rv) if sch.get(loop) not in known]
