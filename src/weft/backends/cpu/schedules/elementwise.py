"""Blocks that compute each element by itself: a parallel loop around a loop of vectors.

Axes that follow each other in the memory of everything that is read and written become one loop.
That may be all axes, or the last ones, such as those of the pixels of an image to which a number
per channel is added. This loop is marked as vectors as a whole. Lowering cuts it first where a
condition on it changes, as between the parts of a concatenation, and then into vectors
(SplitVectorLoop). Here it is cut only so that cores can share it, or so that what other rows read
again stays in the first cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.backends.cpu.schedules.parallel_depth import parallel_depth
from weft.backends.cpu.schedules.places import Part, Places, loops_of_parts, parts_of
from weft.dlight.nest import Nest, loops_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, mentions
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import BinaryExpr, Call, Cast, FloorDiv, Var, is_call
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import For
from weft.tir.transform.parallel_nests import DIGIT
from weft.tir.transform.vectorize_loop import MASKED_LANES

_VECTORS: Final = 4
"""Vectors of one iteration: the loads of one overlap with the arithmetic of another."""
_LEAST: Final = 16
"""An axis is cut only if its innermost part keeps at least this many elements."""
_FEW: Final = 4
"""How many values an axis may have whose elements lie between those of a vector (three colours)."""
_SHARES: Final = 64
"""A part of a row that other rows read again has one element for so many bytes of the first cache;
most of the cache is for what streams past."""
_IMAGES: Final = 8
"""How many images have the same row computed one after the other; rows of more images would fall to
the same places of the cache."""
_ROW: Final = 256
"""The longest row for which that is done, in elements."""
_ROWS: Final = 8
"""How many rows are computed together if elements at the same positions are taken from each, so
that a position is loaded once for all. More would leave no registers for the positions."""
_MASKED: Final = 64
"""The longest row that is computed in whole masked vectors, if some of its elements are chosen by
their position."""
_SHORT: Final = 1 << 14
"""The most elements that one loop computes if some are chosen by their position."""


class _Loops(NamedTuple):
    """The loops of a block in their order, outermost first."""

    outer: list[LoopRV]
    again: list[LoopRV]
    """Loops whose iterations read again what they read along ``inner``."""
    beside: list[LoopRV]
    """A short loop, unrolled around each vector: its elements lie between those of the vector, or
    it runs over rows from which elements at the same positions are taken."""
    inner: LoopRV
    """The loop that becomes vectors: all axes that act as one with the last axis."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a spatial block; False for any other block."""
    nest = Nest(sch, block)
    if not nest.is_spatial:
        return False
    loops = sch.get_loops(block)
    if not loops:
        return True
    outer, again, beside, inner = _order(sch, nest, loops)
    size = extent_of(sch, inner)
    is_alone = all(extent_of(sch, loop) == 1 for loop in (*outer, *again))
    part = _part(nest, size, is_alone, machine)
    part = _held(size, machine) if again else part
    part = machine.lanes() if beside else part
    if not again and not beside:
        outer, again = _rows_together(sch, nest, outer, size, is_cut=part is not None)
    if part is not None:
        around, inner = sch.split(inner, [None, part])
        sch.reorder(around, *again, *beside, inner)
        outer.append(around)
    outer += again
    for loop in beside:
        sch.unroll(loop)
    if size is None or size > 1:
        if _may_mask(nest, size, machine):
            sch.annotate(inner, MASKED_LANES, 1)
        sch.vectorize(inner)
    depth = parallel_depth(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    return True


def _may_mask(nest: Nest, size: int | None, machine: Machine) -> bool:
    """Whether the position on the last axis decides if a load is done, and vectors can mask it.

    Along an axis of unknown extent (``size`` None), its end decides.
    """
    bits = [load.buffer.dtype.bits for load in nest.loads]
    if size is None:
        return machine.masks(min([*bits, *[store.buffer.dtype.bits for store in nest.stores]]))
    is_chosen = size <= _MASKED and nest.spatial[-1] in _chosen_by(nest)
    return is_chosen and machine.masks(min(bits, default=0))


def _part(nest: Nest, size: int | None, is_alone: bool, machine: Machine) -> int | None:
    """How long the parts are that the inner loop is cut into, so that cores can share it.

    ``size`` is the extent of the inner loop, ``is_alone`` whether the other loops have one
    iteration. None: the loop stays whole.
    """
    width = machine.lanes(_widest(nest)) * _VECTORS
    if size is None:
        return width if is_alone else machine.lanes()
    if is_alone:
        return width if size > (_SHORT if _chosen_by(nest) else width) else None
    return _SHORT if size > 2 * _SHORT else None


def _widest(nest: Nest) -> int:
    """The bits of the widest float that is computed with, 32 at least: eight vectors of float64, as
    many numbers as four of float32, would leave no registers for a formula.
    """
    computed = collect(nest.block, (BinaryExpr, Call, Cast))
    return max([32, *[value.dtype.bits for value in computed if value.dtype.is_float]])


def _held(size: int | None, machine: Machine) -> int | None:
    """The longest part of a row that stays in the first cache while other rows read it again.

    None if the whole row does, or if no such part divides the row.
    """
    most = machine.l1 // _SHARES
    if size is None or size <= most:
        return None
    lanes = machine.lanes()
    return max([part for part in range(lanes, most + 1, lanes) if size % part == 0], default=None)


def _order(sch: Schedule, nest: Nest, loops: Sequence[LoopRV]) -> _Loops:
    """Split, fuse and reorder the loops of a block."""
    if len(loops) > 1 and _is_flat(nest):
        return _Loops([], [], [], sch.fuse(*loops))
    sizes = [nest.extent(axis) for axis in nest.spatial]
    is_known = None not in itertools.dropwhile(lambda size: size is None, sizes)
    parts = parts_of(nest, _LEAST) if len(nest.stores) == 1 and is_known else None
    split = loops_of_parts(sch, nest, parts) if parts else None
    if not parts or split is None:
        return _Loops([*loops[:-1]], [], [], loops[-1])
    of_parts, others = split
    chosen, last = _chosen_by(nest) | _computed_with(nest), parts[-1]
    free = [part for part in parts if part.axis not in chosen]
    places = Places(nest, parts)
    run = [last] if last.axis in chosen else places.run(last, free)
    between = [part for part in free if part not in run and _is_between(places, part, last)]
    beside = [] if last.axis in chosen else between[:1]
    around = [part for part in parts if part not in (*run, *beside)]
    taken = [] if beside else _read_places(nest, last)
    placed = [part for part in around if any(part.axis not in axes for axes in taken)]
    again = [part for part in around if not placed and _reads_again(places, part, last)]
    outer = [*others, *[of_parts[part] for part in around if part not in (*again, *placed[-1:])]]
    rows = [of_parts[part] for part in (*again, *placed[-1:], *beside)]
    inner = [of_parts[part] for part in run]
    sch.reorder(*outer, *rows, *inner)
    fused = sch.fuse(*inner)
    if placed:
        outermost, row = sch.split(rows[-1], [None, min(placed[-1].extent, _ROWS)])
        return _Loops([*outer, outermost], [], [row], fused)
    return _Loops(outer, rows[: len(again)], rows[len(again) :], fused)


def _rows_together(
    sch: Schedule, nest: Nest, outer: list[LoopRV], size: int | None, *, is_cut: bool
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Compute several rows one after the other that share what floats decide.

    ``size`` is how long a row is (None: symbolic), ``is_cut`` whether it is computed in parts.
    Returns the outer loops, and the loop over such rows inside of them; none if they share nothing.
    """
    if size is None:
        return _rows_at_places(sch, nest, outer)
    if size <= _ROW and not is_cut:
        return _images_together(sch, nest, outer)
    return outer, []


def _images_together(
    sch: Schedule, nest: Nest, outer: list[LoopRV]
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Compute a row of several images one after the other, if floats decide where it is read.

    An example is resizing: to compute from which row of the old image a new row is interpolated
    takes longer than the row itself, and all images can share it. Blocks that only move elements
    stay as they are. Returns the outer loops, and the loop over images inside of them.
    """
    if len(outer) < 2 or isinstance(nest.stores[0].value, BufferLoad):
        return outer, []
    placed = _placed_by_floats(sch, nest)
    if sch.get(outer[-1]) not in placed or sch.get(outer[-2]) in placed:
        return outer, []
    some = _shared(sch, outer[-2])
    if some == 1:
        return outer, []
    around, image = sch.split(outer[-2], [None, some])
    sch.reorder(around, outer[-1], image)
    return [*outer[:-2], around, outer[-1]], [image]


def _rows_at_places(
    sch: Schedule, nest: Nest, outer: list[LoopRV]
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Compute a vector for several rows, if floats decide where along a row it is read.

    An example is the resizing of columns: the vector of positions is computed once for all rows of
    a column. The rows are those of an axis of known extent, such as channels. Returns the outer
    loops, and the loop over rows inside of them.
    """
    placed = _placed_by_floats(sch, nest)
    inner = loops_of(sch, nest).get(nest.spatial[-1])
    if inner is None or sch.get(inner) not in placed:
        return outer, []
    rows = [loop for loop in outer if _shared(sch, loop) > 1 and sch.get(loop) not in placed]
    if not rows:
        return outer, []
    at = outer.index(rows[-1])
    around, row = sch.split(outer[at], [None, _shared(sch, outer[at])])
    sch.reorder(*outer[:at], around, *outer[at + 1 :], row)
    return [*outer[:at], around, *outer[at + 1 :]], [row]


def _shared(sch: Schedule, loop: LoopRV) -> int:
    """How many iterations of a loop share what is computed once: equal parts, at most ``_IMAGES``.

    Of 21 iterations, 7.
    """
    extent = extent_of(sch, loop) or 1
    return max(count for count in range(1, _IMAGES + 1) if extent % count == 0)


def _placed_by_floats(sch: Schedule, nest: Nest) -> list[For]:
    """The loops whose values become, by floats, places where a block reads."""
    loops = loops_of(sch, nest)
    casts = [
        cast
        for cast in collect(nest.block.body, Cast)
        if cast.value.dtype.is_float and not cast.dtype.is_float and not collect(cast, BufferLoad)
    ]
    return [sch.get(loops[axis]) for axis in set(collect(casts, Var)) if axis in loops]


def _reads_again(places: Places, part: Part, last: Part) -> bool:
    """Whether something that is read along ``last`` is read again for each value of ``part``."""
    steps = zip(places.steps[part][1:], places.steps[last][1:], strict=True)
    return any(stride == 0 and last_stride != 0 for stride, last_stride in steps)


def _read_places(nest: Nest, last: Part) -> list[set[Var]]:
    """The axes of each index that is itself loaded from memory along ``last``.

    In ``x[row, table[column]]`` these are the axes of ``table[column]``. Indices that are computed
    with floats or by functions are left out.
    """
    axes_of_places: list[set[Var]] = []
    for load in nest.loads:
        places = collect(load.indices, BufferLoad)
        if places and not _is_computed(load.indices):
            axes_of_places += [set(collect(place, Var)) for place in places]
    return [axes for axes in axes_of_places if last.axis in axes]


def _is_computed(indices: Sequence[PrimExpr]) -> bool:
    """Whether indices are computed with floats or by functions."""
    nodes = collect(indices, PrimExpr)
    return any(node.dtype.is_float or isinstance(node, Call) for node in nodes)


def _is_between(places: Places, part: Part, last: Part) -> bool:
    """Whether the few elements of ``part`` lie between two elements of ``last`` in what is read.

    The colours of a pixel lie between two pixels, for example: then the vectors of all colours read
    the same cache lines.
    """
    steps = zip(places.steps[part][1:], places.steps[last][1:], strict=True)
    return part.extent <= _FEW and (1, part.extent) in steps


def _chosen_by(nest: Nest) -> set[Var]:
    """The axes in the conditions of ``if_then_else``."""
    choices = [
        call.args[0] for call in collect(nest.block.body, Call) if is_call(call, "if_then_else")
    ]
    return set(collect(choices, Var))


def _is_flat(nest: Nest) -> bool:
    """Whether every access has the block's axes as its indices, so that all axes are one."""
    axes = [axis.var for axis in nest.axes if nest.extent(axis.var) != 1]
    places = [load.indices for load in nest.loads if load.indices]
    runs = nest.result_axes() == axes and all(_axes_of(place) == axes for place in places)
    return runs and not _computed_with(nest)


def _computed_with(nest: Nest) -> set[Var]:
    """The axes that values are computed with (``x[i] * i``), which are not joined with others.

    Joined, they would have to be computed back by quotients and remainders. If the last axis is
    short, that is better than short vectors, and no axis is excepted, unless the values are
    themselves quotients of it, which constant lanes make constants.
    """
    size = nest.extent(nest.spatial[-1]) if nest.spatial else None
    values = [_WithoutIndices().visit(store.value) for store in nest.stores]
    if size is not None and size < _LEAST:
        quotients = [item for item in collect(values, FloorDiv) if mentions(item, nest.spatial[-1])]
        values = values if quotients else []
    return set(collect(values, Var)) & set(nest.spatial)


class _WithoutIndices(Mutator):
    """Replaces the indices of all loads by zeros, so that only other uses of axes are left."""

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        return load.with_(indices=[op.const(0, index.dtype) for index in load.indices])


def _axes_of(place: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The indices without constant zeros."""
    return [index for index in place if not op.is_const_int(index, 0)]


def run_in_parallel(sch: Schedule, outer: Sequence[LoopRV], machine: Machine) -> LoopRV:
    """Fuse loops and run them in parallel (code generation decides whether that pays).

    Raises ScheduleError if two iterations would write the same element.
    """
    fused = sch.fuse(*outer)
    if machine.cores > 1:
        sch.parallel(fused)
    return fused


def run_together(sch: Schedule, outer: Sequence[LoopRV], machine: Machine) -> list[LoopRV]:
    """Run all iterations of loops in parallel, which stay apart if an extent is symbolic.

    Lowering fuses them then (``tir.FuseParallelLoops``), after the passes that would take quotients
    by symbols for indices. Returns the loops that there are.
    """
    if all(extent_of(sch, loop) == 1 for loop in outer):
        return [sch.fuse(*outer)]
    if all(extent_of(sch, loop) is not None for loop in outer):
        return [run_in_parallel(sch, outer, machine)]
    for at, loop in enumerate(outer):
        if machine.cores > 1:
            sch.parallel(loop)
        if at:
            sch.annotate(loop, DIGIT, 1)
    return list(outer)


def vectorize_inside(sch: Schedule, nest: Nest, axis: Var, skip: int, machine: Machine) -> None:
    """Make vectors of the loop of an axis, if it lies below the ``skip`` outermost loops."""
    loop = loops_of(sch, nest, skip).get(axis)
    if loop is None:
        return
    size = extent_of(sch, loop)
    if size is None or size > machine.lanes() * _VECTORS:
        _, loop = sch.split(loop, [None, machine.lanes()])
    sch.vectorize(loop)


def extent_of(sch: Schedule, loop: LoopRV) -> int | None:
    """The number of iterations; None if it is symbolic."""
    extent = sch.get(loop).extent
    return extent.value if isinstance(extent, IntImm) else None
