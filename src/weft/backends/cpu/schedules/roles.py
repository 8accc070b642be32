"""What the axes of a tiled reduction (``tiled``) do, and what a tile holds of each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from weft.backends.cpu.schedules.panels import can_pack
from weft.dlight.nest import Access, Nest
from weft.tir.buffer import Buffer
from weft.tir.expr import Var


@dataclass(frozen=True)
class Roles:
    """What each axis of the result does in a tiled reduction."""

    column: Var
    """The axis along which vectors lie."""
    row: Var | None
    """The axis of the rows of a tile; None: a tile has one row."""
    wide: Var | None
    """The axis that counts blocks of columns (channels / 16 of a blocked layout): a tile may hold
    several."""
    tall: Var | None
    """The axis that counts sets of rows, such as lines of an image, whose rows are pixels: a tile
    may hold several short ones. Sets that choose what the columns index, as the rows of a mixture
    of experts do, come each in a tile of its own."""
    outer: tuple[Var, ...]
    """The other axes, in the order of the result."""
    steps: tuple[Var, ...]
    """The axes of the reduction; the one that walks memory with the smallest steps is last."""
    packed: tuple[Access, ...]
    """Operands that are copied into panels."""
    shared: bool
    """Whether an operand is loaded once for all rows of a tile."""


@dataclass(frozen=True)
class Sizes:
    """How much of each axis a tile holds."""

    columns: int
    several: int
    rows: int
    high: int


def roles_of(nest: Nest, weights: Collection[Buffer]) -> Roles | None:
    """The roles of the axes; None if the block is no reduction of this kind."""
    axes = nest.result_axes()
    if not nest.is_plain or not nest.is_reduction or not axes or len(nest.stores) != 1:
        return None
    column = axes[-1]
    rest = [axis for axis in axes[:-1] if nest.extent(axis) != 1]
    along = [load for load in nest.loads if load.uses(column)]
    if not along:
        return None
    contiguous = [load for load in along if load.stride_one(column)]
    strided = [load for load in along if not load.stride_one(column)]
    again = [axis for axis in rest if any(not load.walks(axis) for load in along)]
    row = (again or rest)[-1] if rest else None
    tall = again[-2] if len(again) > 1 else None
    free = [axis for axis in rest if axis is not row and axis is not tall]
    wide = None if nest.extent(column) is None else _wide_of(free, nest.loads, along)
    reused = [load for load in along if row is not None and not load.uses(row)]
    packed = [load for load in strided if can_pack(nest, load, column)]
    if len(packed) != len(strided):
        return None
    if any(load not in reused and load.buffer not in weights for load in strided):
        return None  # copying costs as much as computing
    # Panels are filled up with zeros: if the number of columns is symbolic, vectors may read there.
    panels = reused if nest.extent(column) is None else []
    packed += [
        load
        for load in contiguous
        if (load in panels or load.buffer in weights) and can_pack(nest, load, column)
    ]
    outer = tuple([axis for axis in axes[:-1] if axis not in (row, wide, tall)])
    steps = sorted(
        nest.reduced,
        key=lambda axis: (
            not _slides(nest, axis, row),
            -min(load.depth(axis) for load in nest.loads),
        ),
    )
    shared = row is None or len(reused) > 0
    return Roles(column, row, wide, tall, outer, tuple(steps), tuple(packed), shared)


def _slides(nest: Nest, axis: Var, row: Var | None) -> bool:
    """Whether two rows read the same element at different steps of an axis: ``x[2 * row + axis]``.

    If LLVM unrolls such an axis, it keeps these elements in registers for the other row, and spills
    accumulators to make room.
    """
    size = nest.extent(axis)
    for load in nest.loads:
        if row is not None and load.uses(row) and load.uses(axis):
            apart = load.step(row)
            if load.step(axis) == 1 and apart is not None and size is not None and apart < size:
                return True
    return False


def _wide_of(rest: Sequence[Var], loads: Sequence[Access], along: Sequence[Access]) -> Var | None:
    """The innermost axis that indexes only operands along the columns: it counts their blocks."""
    wide = [
        axis
        for axis in rest
        if any(load.uses(axis) for load in along)
        and not any(load.uses(axis) for load in loads if load not in along)
        and len(along) < len(loads)
    ]
    return wide[-1] if wide else None


def reads_once(nest: Nest) -> bool:
    """Whether every instance of the block reads one number, which no other instance reads."""
    if len(nest.loads) != 1:
        return False
    axes = [axis for axis in (*nest.spatial, *nest.reduced) if nest.extent(axis) != 1]
    places = [index for index in nest.loads[0].indices if isinstance(index, Var)]
    return set(axes) <= set(places)


def size_of(nest: Nest, axis: Var | None) -> int | None:
    """The extent of an axis; None if it is symbolic, 1 if there is none."""
    return 1 if axis is None else nest.extent(axis)
