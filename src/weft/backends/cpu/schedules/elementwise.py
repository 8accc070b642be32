"""Blocks that compute each element by itself: one parallel loop around one vector loop.

Axes that follow each other in memory, wherever they are used, are one: all of them, or the last
ones, as the pixels of an image to which a number for each channel is added. That axis becomes
vectors. It is not cut into vectors here but where its size is known to have rests: lowering cuts it
first where a condition on it changes, as between the parts of a concatenation, and then into
vectors (SplitVectorLoop).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.backends.cpu.schedules.places import Part, Places, loops_of_parts, parts_of
from weft.backends.cpu.schedules.together import together
from weft.dlight.nest import Nest, loops_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.target.machine import Machine
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Cast, Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.transform.vectorize_loop import MASKED_LANES

_VECTORS: Final = 4
"""Vectors in flight: loads of one hide behind the arithmetic of another."""
_LEAST: Final = 16
"""Elements of an innermost axis that is worth cutting another one for."""
_FEW: Final = 4
"""Elements that lie next to each other and are computed in vectors of their own."""
_SHARES: Final = 64
"""A part that other rows read again has an element for so many bytes of the first cache: most of
it is for what streams past."""
_IMAGES: Final = 8
_ROW: Final = 256
"""Images whose rows, of so many elements at most, are computed one after the other: the place of
the second is known by then. Of more images, rows would meet in the same places of the cache."""
_ROWS: Final = 8
"""Rows from which elements are taken at once, where they lie at the same places: those are read,
and computed, once. More leave no registers for places.
"""
_MASKED: Final = 64
"""Elements of a row, some of them chosen by their place, that is computed in whole vectors."""
_SHORT: Final = 1 << 14
"""Elements, some of them chosen by their place, that one loop computes."""


def schedule(sch: Schedule, block: BlockRV, machine: Machine) -> bool:
    """Schedule a spatial block; False if it is none."""
    nest = Nest(sch, block)
    if not nest.is_spatial:
        return False
    loops = sch.get_loops(block)
    if not loops:
        return True
    outer, again, inner, beside = _order(sch, nest, loops)
    size = extent_of(sch, inner)
    is_alone = all(extent_of(sch, loop) == 1 for loop in (*outer, *again))
    part = _part(nest, size, is_alone, machine)
    part = _held(size, machine) if again else part
    part = machine.lanes() if beside else part
    if not again and not beside and part is None and size is not None and size <= _ROW:
        outer, again = _placed_together(sch, nest, outer)
    if part is not None:
        around, inner = sch.split(inner, [None, part])
        sch.reorder(around, *again, *beside, inner)
        outer.append(around)
    outer += again
    for loop in beside:
        sch.unroll(loop)
    if size is None or size > 1:
        if size is not None and size <= _MASKED and _may_mask(nest, machine):
            sch.annotate(inner, MASKED_LANES, 1)
        sch.vectorize(inner)
    depth = together(sch, outer, machine)
    if depth:
        run_in_parallel(sch, outer[:depth], machine)
    return True


def _may_mask(nest: Nest, machine: Machine) -> bool:
    """Whether something is read or not by the place along the last axis, in lanes of vectors."""
    bits = min([load.buffer.dtype.bits for load in nest.loads], default=0)
    return nest.spatial[-1] in _chosen_by(nest) and machine.masks(bits)


def _part(nest: Nest, size: int | None, is_alone: bool, machine: Machine) -> int | None:
    """In what parts the inner loop runs, so that cores can share it; None: as a whole."""
    width = machine.lanes() * _VECTORS
    if size is None:
        return width if is_alone else machine.lanes()
    if is_alone:
        return width if size > (_SHORT if _chosen_by(nest) else width) else None
    return _SHORT if size > 2 * _SHORT else None


def _held(size: int | None, machine: Machine) -> int | None:
    """The longest part of a row that stays in the first cache while other rows read it again.

    None where it all does, or where no such part divides the row.
    """
    most = machine.l1 // _SHARES
    if size is None or size <= most:
        return None
    lanes = machine.lanes()
    return max([part for part in range(lanes, most + 1, lanes) if size % part == 0], default=None)


def _order(
    sch: Schedule, nest: Nest, loops: Sequence[LoopRV]
) -> tuple[list[LoopRV], list[LoopRV], LoopRV, list[LoopRV]]:
    """The outer loops; those of them, inside of the others, that read again what is read along
    the next; the one that becomes vectors, of all axes that are one with the last; and a loop
    whose elements lie next to each other in what is read, between those of the vectors.
    """
    if len(loops) > 1 and _is_flat(nest):
        return [], [], sch.fuse(*loops), []
    parts = parts_of(nest, _LEAST) if len(nest.stores) == 1 else None
    split = loops_of_parts(sch, nest, parts) if parts else None
    if not parts or split is None:
        return [*loops[:-1]], [], loops[-1], []
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
    fused = sch.fuse(*inner) if len(inner) > 1 else inner[0]
    if placed:
        outermost, row = sch.split(rows[-1], [None, min(placed[-1].extent, _ROWS)])
        return [*outer, outermost], [], fused, [row]
    return outer, rows[: len(again)], fused, rows[len(again) :]


def _placed_together(
    sch: Schedule, nest: Nest, outer: list[LoopRV]
) -> tuple[list[LoopRV], list[LoopRV]]:
    """Rows of a few images one after the other, where the place of a row is computed by floats.

    That takes longer than to compute on the row, as in images that are resized; rows that are only
    moved need nothing else meanwhile. Returns the outer loops, and those inside of them.
    """
    if len(outer) < 2 or isinstance(nest.stores[0].value, BufferLoad):
        return outer, []
    loops = loops_of(sch, nest)
    casts = [
        cast for cast in collect(nest.block.body, Cast)
        if cast.value.dtype.is_float and not cast.dtype.is_float and not collect(cast, BufferLoad)
    ]  # fmt: skip
    placed = [sch.get(loops[axis]) for axis in set(collect(casts, Var)) if axis in loops]
    if sch.get(outer[-1]) not in placed or sch.get(outer[-2]) in placed:
        return outer, []
    images = extent_of(sch, outer[-2]) or 1
    some = max(count for count in range(1, _IMAGES + 1) if images % count == 0)
    if some == 1:
        return outer, []
    around, image = sch.split(outer[-2], [None, some])
    sch.reorder(around, outer[-1], image)
    return [*outer[:-2], around, outer[-1]], [image]


def _reads_again(places: Places, part: Part, last: Part) -> bool:
    """Whether something is read along the last part that does not depend on this one."""
    steps = zip(places.steps[part][1:], places.steps[last][1:], strict=True)
    return any(stride == 0 and last_stride != 0 for stride, last_stride in steps)


def _read_places(nest: Nest, last: Part) -> list[set[Var]]:
    """The axes of each place that is read from memory along the last part, as columns that are
    taken of rows are; without those that floats, or functions, are computed for.
    """
    axes_of_places: list[set[Var]] = []
    for load in nest.loads:
        places = collect(load.indices, BufferLoad)
        if places and not _is_computed(load.indices):
            axes_of_places += [set(collect(place, Var)) for place in places]
    return [axes for axes in axes_of_places if last.axis in axes]


def _is_computed(indices: Sequence[PrimExpr]) -> bool:
    """Whether floats, or functions, are computed for indices."""
    nodes = collect(indices, PrimExpr)
    return any(node.dtype.is_float or isinstance(node, Call) for node in nodes)


def _is_between(places: Places, part: Part, last: Part) -> bool:
    """Whether a few elements of a part lie between two of the last one, as colours of pixels do.

    Then the vectors of all of them read the same lines of cache.
    """
    steps = zip(places.steps[part][1:], places.steps[last][1:], strict=True)
    return part.extent <= _FEW and (1, part.extent) in steps


def _chosen_by(nest: Nest) -> set[Var]:
    """The axes that what is computed is chosen by."""
    choices = [
        call.args[0] for call in collect(nest.block.body, Call)
        if getattr(call.op, "name", "") == "tir.if_then_else"
    ]  # fmt: skip
    return set(collect(choices, Var))


def _is_flat(nest: Nest) -> bool:
    """Whether every access is at the place of the instance, so that axes need not be told apart."""
    axes = [axis.var for axis in nest.axes if nest.extent(axis.var) != 1]
    places = [load.indices for load in nest.loads if load.indices]
    runs = nest.result_axes() == axes and all(_axes_of(place) == axes for place in places)
    return runs and not _computed_with(nest)


def _computed_with(nest: Nest) -> set[Var]:
    """The axes that values depend on otherwise than by what is read there: no runs of several.

    Empty where the last axis is short: better compute quotients and remainders than short vectors.
    """
    size = nest.extent(nest.spatial[-1]) if nest.spatial else None
    if size is not None and size < _LEAST:
        return set()
    values = [_Unread().visit(store.value) for store in nest.stores]
    return set(collect(values, Var)) & set(nest.spatial)


class _Unread(Mutator):
    """Takes the places out of all loads."""

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        return load.with_(indices=[op.const(0, index.dtype) for index in load.indices])


def _axes_of(place: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The indices but for those that are always the first."""
    return [index for index in place if not op.is_const_int(index, 0)]


def run_in_parallel(sch: Schedule, outer: Sequence[LoopRV], machine: Machine) -> LoopRV:
    """Fuse loops and run them in parallel; whether that pays is decided by code generation."""
    fused = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    if machine.cores > 1:
        sch.parallel(fused)
    return fused


def vectorize_inside(sch: Schedule, nest: Nest, axis: Var, skip: int, machine: Machine) -> None:
    """Make vectors of the loop that runs an axis, below the ``skip`` outermost loops."""
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
