"""The loops in a register tile: the reduction outermost, rows unrolled, columns as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.arith.linear import detect_linear_equation
from weft.backends.cpu.schedules.borders import crossing
from weft.backends.cpu.schedules.elementwise import extent_of
from weft.backends.cpu.schedules.long_rows import add_together, exceeds_registers
from weft.backends.cpu.schedules.roles import Roles, reads_once
from weft.backends.cpu.vectors.prefetch_steps import PREFETCH_STEPS
from weft.backends.cpu.vectors.skip_outside import SKIP_OUTSIDE
from weft.backends.cpu.vectors.skip_padding import has_padding
from weft.dlight.nest import Nest, loops_of, product
from weft.ir.expr import IntImm
from weft.ir.functor import mentions
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule

_UNROLLED: Final = 100
"""A reduction of at most this many multiply-adds of vectors is unrolled as a whole."""
_STEPS: Final = 4
"""How many steps of a longer reduction are unrolled together."""
_FEW: Final = 64
"""How many uses of a panel share the wait for it to come from memory: with more uses than this,
the wait no longer counts."""
_FILLED: Final = 0.75
"""Steps are unrolled together if accumulators take at most this share of the registers."""


def loops_like(sch: Schedule, result: BlockRV, nest: Nest, skip: int = 0) -> dict[Var, LoopRV]:
    """The loops of the result, below its ``skip`` outermost, that run axes of the reduction."""
    other = Nest(sch, result)
    axes, loops = other.result_axes(), loops_of(sch, other, skip)
    mine = nest.result_axes()
    assert axes is not None
    assert mine is not None
    return {axis: loops[same] for axis, same in zip(mine, axes, strict=True) if same in loops}


def loops_around(sch: Schedule, result: BlockRV, roles: Roles) -> int:
    """How many loops are around the tiles of the result."""
    return len(sch.get_loops(result)) - len(tile_axes(roles))


def tile_axes(roles: Roles) -> list[Var]:
    """The axes of a tile, outermost first."""
    # A number of one row is multiplied with all vectors before that of the next row is loaded, so
    # that few registers hold operands.
    tile = (roles.tall, roles.row, roles.wide, roles.column)
    return [axis for axis in tile if axis is not None]


def tile_reduction(
    sch: Schedule, block: BlockRV, roles: Roles, shared: int, machine: Machine
) -> LoopRV | None:
    """Order the loops inside a tile: the reduction outermost, then rows, unrolled, then columns as
    vectors.

    ``shared`` is the number of loops around the tile. Returns the innermost loop over steps that
    is left as a loop around a whole tile; None if there is none.
    """
    inside = tile_axes(roles)
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, shared)
    steps = [loops[axis] for axis in roles.steps if axis in loops]
    tail = [loops[axis] for axis in inside if axis in loops]
    sizes = [nest.extent(axis) for axis in nest.reduced]
    sch.reorder(*steps, *tail)
    if steps and reads_once(nest) and exceeds_registers(sch, tail, machine):
        rows = add_together(sch, steps[-1], tail[-1], machine)
        sch.decompose_reduction(block, [*steps[:-1], rows][0])
        return None
    mark_tile(sch, tail)
    if not steps:
        return None
    start = sch.decompose_reduction(block, steps[0])
    mark_tile(sch, sch.get_loops(start)[shared:])
    whole = product([*sizes, *[extent_of(sch, loop) for loop in tail[:-1]]])
    if whole is not None and whole <= _UNROLLED:
        for loop in steps:
            sch.unroll(loop)
        return None
    step = unroll_some(sch, steps[-1], tail, machine)
    if roles.row is not None and has_padding(nest.block):
        for axis in crossing(nest.loads, roles.steps, [roles.row]):
            sch.unroll(loops[axis])  # other pixels are outside in each step of the window
    elif roles.row is not None:
        pixels = [axis for axis in (roles.row, roles.tall) if axis is not None]
        for axis in crossing(nest.loads, roles.steps, pixels):
            if axis in loops and loops[axis] is not steps[-1] and _has_holes(nest, axis):
                sch.annotate(loops[axis], SKIP_OUTSIDE, True)
    return step


def _has_holes(nest: Nest, axis: Var) -> bool:
    """Whether neighbouring steps of a window are pixels apart that have others between them."""
    indices = [index for load in nest.loads for index in load.indices if mentions(index, axis)]
    steps = [detect_linear_equation(index, [axis]) for index in indices]
    return any(step and isinstance(step[0], IntImm) and step[0].value > 1 for step in steps)


def order_sum(sch: Schedule, block: BlockRV, axes: Sequence[Var], shared: int) -> list[LoopRV]:
    """Order the loops of a sum below ``shared`` loops: steps outermost, then the register tile.

    The tile runs over ``axes``; the init is a tile, too. Returns the loops over steps.
    """
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, shared)
    steps = [loops[axis] for axis in nest.reduced if axis in loops]
    tile = [loops[axis] for axis in axes if axis in loops]
    sch.reorder(*steps, *tile)
    mark_tile(sch, tile)
    if steps:
        start = sch.decompose_reduction(block, steps[0])
        mark_tile(sch, sch.get_loops(start)[shared:])
    return steps


def prefetch_steps(sch: Schedule, step: LoopRV | None) -> None:
    """Ask for the vectors of a later step in each one: a tile reads more than the first cache has.

    ``step`` is what ``tile_reduction`` returns.
    """
    if step is not None:
        sch.annotate(step, PREFETCH_STEPS, True)


def unroll_some(sch: Schedule, step: LoopRV, tail: Sequence[LoopRV], machine: Machine) -> LoopRV:
    """Unroll several steps of the reduction where registers are left for what they load.

    Returns the loop that is left.
    """
    size, width = extent_of(sch, step), extent_of(sch, tail[-1]) if tail else None
    rows = product([extent_of(sch, loop) for loop in tail[:-1]])
    if size is None or width is None or rows is None:
        return step
    vectors = -(-width // machine.lanes())
    products = rows * vectors
    # LLVM mixes such steps, and spills sums for the numbers of a step that it loads early.
    is_thin = vectors == 1 and products + _STEPS > machine.vector_registers * _FILLED
    if products <= machine.vector_registers * _FILLED and not is_thin:
        together = max(number for number in range(1, _STEPS + 1) if size % number == 0)
        if 1 < together < size:
            step, inner = sch.split(step, [None, together])
            sch.unroll(inner)
    return step


def mark_tile(sch: Schedule, tail: Sequence[LoopRV]) -> None:
    """Unroll the rows and make the columns vectors."""
    for loop in tail[:-1]:
        sch.unroll(loop)
    if tail:
        sch.vectorize(tail[-1])


def are_few(sch: Schedule, rows: Sequence[LoopRV]) -> bool:
    """Whether a panel has so few uses that the first one, which waits for memory, counts.

    It may have few where only the run tells: the last stages of a network have small images.
    """
    times = product([extent_of(sch, loop) for loop in rows])
    return times is None or 1 < times <= _FEW
