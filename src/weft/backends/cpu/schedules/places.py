"""How the axes of a block move through memory: which act there as one axis, which as several.

Two axes act as one if in every buffer that is read or written the outer one goes on where the inner
one ends, as ``i`` and ``j`` of ``x[i, j]`` do. One axis acts as two if its quotient and remainder
index what is read: the channel of a blocked layout in ``x[c // 16, h, w, c % 16]``, or the column
of a matrix in which the heads of attention stand side by side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.arith.analyzer import Analyzer
from weft.arith.data import has_data
from weft.dlight.nest import Nest, loops_of
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, collect, mentions, substitute
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import FloorDiv, FloorMod, Var
from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.transform.wide_index import ARITHMETIC, widened


@dataclass(frozen=True)
class Part:
    """An axis of the block, or a digit of it: 64 channels that are read as ``c // 16`` and
    ``c % 16`` have one part of extent 4 and one of extent 16.
    """

    axis: Var
    """The axis of the block."""
    var: Var
    """A variable for the value of the part."""
    extent: int


class Places:
    """How far each part moves in the memory of the result and of each load.

    ``steps[part]`` has the stride in the result and then the stride in each load, in elements. None
    stands for a stride that is not constant.
    """

    def __init__(self, nest: Nest, parts: Sequence[Part]) -> None:
        self.parts = parts
        [store] = nest.stores
        accesses = [(store.buffer, *_without_data(store.indices))]
        accesses += [(load.buffer, *_without_data(load.indices)) for load in nest.loads]
        self.steps = {part: [self._step(*access, part) for access in accesses] for part in parts}

    def _step(
        self, buffer: Buffer, indices: Sequence[PrimExpr], data: Sequence[PrimExpr], part: Part
    ) -> int | None:
        """How far an access moves in its buffer when ``part`` grows by one; None: not constant."""
        if mentions(data, part.axis):
            return None
        if not mentions(indices, part.axis):
            return 0
        plain = self._plain_step(buffer, indices, part)
        if plain is not None:
            return plain
        analyzer = Analyzer()
        for piece in self.parts:  # the last value of the part cannot grow
            extent = piece.extent - 1 if piece is part else piece.extent
            dtype = piece.var.dtype
            analyzer.bind(piece.var, Range(op.const(0, dtype), op.const(extent, dtype)))
        here, after = [
            _place(buffer, [substitute(index, self._values(more)) for index in indices], analyzer)
            for more in (None, part)
        ]
        distance = analyzer.simplify(op.subtract(after, here))
        return distance.value if isinstance(distance, IntImm) else None

    def _plain_step(self, buffer: Buffer, indices: Sequence[PrimExpr], part: Part) -> int | None:
        """As ``_step``, without an analyzer, where the axis itself is an index; None elsewhere."""
        mine = [piece for piece in self.parts if piece.axis is part.axis]
        inside = mine[mine.index(part) + 1 :]
        step = 0
        stride: int | None = math.prod([piece.extent for piece in inside])
        for size, index in zip(reversed(buffer.shape), reversed(indices), strict=True):
            if index is part.axis and stride is not None:
                step += stride
            elif mentions(index, part.axis):
                return None
            if stride is not None:
                stride = stride * size.value if isinstance(size, IntImm) else None
        return step

    def _values(self, more: Part | None) -> dict[Var, PrimExpr]:
        """Each axis put together from its parts (``c_0 * 16 + c_1``); ``more`` is one larger."""
        value: dict[Var, PrimExpr] = {}
        for part in self.parts:
            here = op.add(part.var, 1) if part is more else part.var
            before = value.get(part.axis)
            value[part.axis] = (
                here if before is None else op.add(op.multiply(before, part.extent), here)
            )
        return value

    def run(self, last: Part, others: Sequence[Part]) -> list[Part]:
        """The parts that together move through every buffer as one axis; ``last`` is innermost."""
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
    """Indices in which a variable replaces what depends on data, and what was replaced.

    The indices ``table[i] + j`` become ``data + j``, and ``table[i]``.
    """
    replacer = _DataReplacer()
    return [replacer.visit(index) for index in indices], replacer.data


class _DataReplacer(Mutator):
    """Replaces what depends on data, and keeps the arithmetic around it."""

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
    """The offset of an access from the start of its buffer, in elements, simplified."""
    place: PrimExpr = op.const(0, "int64")
    for size, index in zip(buffer.shape, indices, strict=True):
        place = op.add(op.multiply(place, size), widened(index, analyzer))
    return analyzer.simplify(place)


def parts_of(nest: Nest, least: int = 1) -> list[Part] | None:
    """The parts of the axes of constant size that have more than one value.

    An axis is cut where loads use its quotients and remainders. The last axis stays whole if its
    innermost part would have fewer than ``least`` elements. None if an axis has no exact parts.
    """
    parts: list[Part] = []
    for axis in nest.spatial:
        extent = nest.extent(axis)
        if extent is None:
            continue
        sizes = _cuts(nest, axis, extent, least if axis is nest.spatial[-1] else 1)
        if sizes is None:
            return None
        parts += [
            Part(axis, Var(f"{axis.name}_{at}", axis.dtype), size)
            for at, size in enumerate(sizes)
            if extent > 1
        ]
    return parts


def _cuts(nest: Nest, axis: Var, extent: int, least: int) -> list[int] | None:
    """The extents of the parts of an axis, outermost first; None if it has no exact parts.

    This looks at offsets in memory, not at indices: in a buffer of shape ``(4, 16)`` the access
    ``x[c // 16, c % 16]`` has the offset ``c``, for which the axis need not be cut.
    """
    analyzer = nest.analyzer()
    places = [
        _place(load.buffer, _without_data(load.indices)[0], analyzer)
        for load in nest.loads
        if mentions(load.indices, axis)
    ]
    divisors = {extent}
    for place in places:
        for part in collect(place, (FloorDiv, FloorMod)):
            if mentions(part.a, axis):
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
    """Split the loops of the axes that have several parts.

    Returns the loop of each part, and the loops that belong to no part. Returns None, with nothing
    split, if an axis has no loop of its own.
    """
    of_axes = loops_of(sch, nest)
    of_parts = {
        axis: mine
        for axis in nest.spatial
        if (mine := [part for part in parts if part.axis is axis])
    }
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
