"""Products of 8-bit and 16-bit integers that are summed in int32, by instructions of dot products.

The tile is that of ``tiled``, but each of its steps is a dot product: x86 has instructions for
those of two int16 and of four bytes (``dot_intrinsics``). One operand must have the numbers of a
dot product next to each other in memory. The other is copied into panels
``[.., columns / width, steps / 4, width, 4]``; a weight is copied when the model is built. Columns
and steps are padded with zeros to whole tiles and dot products.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.backends.cpu.schedules import elementwise, tiled
from weft.backends.cpu.schedules.dot_intrinsics import DOTS, Dot
from weft.backends.cpu.schedules.roles import Roles, Sizes, roles_of, size_of
from weft.backends.cpu.schedules.tile_loops import mark_tile, unroll_some
from weft.backends.cpu.schedules.tiles import CHAIN, Work, best_tile
from weft.dlight.nest import Access, Nest, loops_of, product
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.te.primfunc import LAYOUT_REWRITE_PREPROC
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Add, Cast, Mul, Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_ADDITION: Final = 1.0
"""Cycles of an addition of integers, which is all that waits for the last one."""


@dataclass(frozen=True)
class _Product:
    """A sum of products that an instruction computes: the roles of its axes and operands."""

    roles: Roles
    dot: Dot
    """The instruction."""
    inner: Var
    """The axis of the reduction along which one instruction takes several steps."""
    panels: Access
    """The operand that the columns index, which is copied into panels."""
    is_weight: bool
    """Whether that operand is known when the model is built."""


def fits(nest: Nest, machine: Machine, weights: Collection[Buffer]) -> bool:
    """Whether a block is a sum of products that an instruction of the machine computes."""
    return _product_of(nest, machine, weights) is not None


def _product_of(
    nest: Nest, machine: Machine, weights: Collection[Buffer], is_exact: bool = False
) -> _Product | None:
    """The instruction for a block, and its operands; None if no instruction fits.

    ``is_exact`` says that int16 is known to hold the products of bytes in pairs.
    """
    roles = roles_of(nest, weights)
    if not machine.dot_products or roles is None or not _is_sum_of_products(nest):
        return None
    column = roles.column
    panels = [load for load in nest.loads if load.uses(column)]
    others = [load for load in nest.loads if not load.uses(column)]
    if len(panels) != 1 or len(others) != 1 or not others[0].indices:
        return None
    [panel], inner = panels, others[0].indices[-1]
    types = str(others[0].buffer.dtype), str(panel.buffer.dtype)
    dots = [DOTS[name] for name in machine.dot_products]
    if isinstance(inner, Var) and panel.position(inner) in nest.exact_byte_pairs(panel.buffer):
        is_exact = True
    dots = [dot for dot in dots if is_exact or not dot.is_cut_off]
    fitting = [dot for dot in dots if (dot.left, dot.right) == types]
    is_weight = panel.buffer in weights
    is_shared = roles.row is not None and not panel.uses(roles.row)
    if not fitting or not isinstance(inner, Var) or inner not in nest.reduced:
        return None
    if nest.extent(inner) is None or nest.extent(column) is None:
        return None
    if others[0].position(inner) is None or not all(map(_is_axis, panel.indices)):
        return None
    if panel.position(inner) is None or not (is_weight or is_shared):
        return None
    return _Product(roles, fitting[0], inner, panel, is_weight)


def _is_axis(index: PrimExpr) -> bool:
    """Whether an index is a plain axis, or the constant that is left of an axis of one value."""
    return isinstance(index, (Var, IntImm))


def _is_sum_of_products(nest: Nest) -> bool:
    """Whether the body is ``sum = sum + int32(a) * int32(b)``."""
    value = nest.stores[0].value
    if not isinstance(value, Add) or not isinstance(value.a, BufferLoad):
        return False
    if value.a.buffer is not nest.stores[0].buffer or not isinstance(value.b, Mul):
        return False
    return value.dtype == "int32" and all(
        isinstance(factor, Cast) and isinstance(factor.value, BufferLoad)
        for factor in (value.b.a, value.b.b)
    )


def schedule(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    machine: Machine,
    weights: Collection[Buffer],
) -> bool:
    """Tile a sum of products of integers, and ``result``, which reads it element by element.

    ``weights`` are buffers that are known when the model is built. Returns False if no instruction
    of the machine computes the sum.
    """
    nest = Nest(sch, block)
    dots = _product_of(nest, machine, weights)
    if dots is None:
        return False
    sizes = _sizes(nest, dots, machine)
    # If all columns are less than a tile, the tile is a copy of its own: computed in the loops of
    # the result, it would have only the columns that the result uses, and no whole vector.
    is_cut = (nest.extent(dots.roles.column) or 0) < sizes.columns
    copies, back = _pad(sch, nest, dots, sizes)
    if back is not None or copies:
        nest = Nest(sch, block)
        padded = nest.loads[0] if nest.loads[0].uses(_column(nest)) else nest.loads[1]
        given = [padded.buffer] if dots.is_weight else ()
        inner = _product_of(nest, machine, given, is_exact=dots.dot.is_cut_off)
        if inner is None:
            return False
        dots = replace(inner, is_weight=dots.is_weight)
    copies = _panels(sch, nest, dots, sizes, copies)
    if back is not None and result is not None:
        sch.compute_inline(back)
    end = result if result is not None else back
    if end is not None and not is_cut:
        sch.set_scope(block, 0, "local")
        tile = end
    else:
        tile = sch.cache_write(block, 0, "local")
    tiled.place_tile(sch, nest, dots.roles, (block, tile), sizes, machine)
    _tile_dots(sch, block, dots, tile, machine)
    for copy in copies:
        _schedule_copy(sch, copy, machine)
    if end is not None and is_cut:
        elementwise.schedule(sch, end, machine)
    return True


def _column(nest: Nest) -> Var:
    axes = nest.result_axes()
    assert axes
    return axes[-1]


def _sizes(nest: Nest, dots: _Product, machine: Machine) -> Sizes:
    """What a tile holds of each axis; columns are whole vectors, as many in each tile.

    An instruction that does not accumulate needs more registers than its operands.
    """
    roles, lanes = dots.roles, machine.lanes()
    left = machine.vector_registers - dots.dot.registers
    registers = replace(machine, vector_registers=left)
    vectors = -(-(nest.extent(roles.column) or 1) // lanes)
    steps = product([nest.extent(axis) for axis in nest.reduced])
    tile = best_tile(
        registers,
        Work(
            rows=size_of(nest, roles.row),
            columns=vectors * lanes,
            high=size_of(nest, roles.tall),
            blocks=size_of(nest, roles.wide) or 1,
            depth=None if steps is None else -(-steps // dots.dot.steps),
            likely_rows=nest.likely_extent(roles.row),
            likely_high=nest.likely_extent(roles.tall),
            cost=dots.dot.cost(machine),
            chain=CHAIN if dots.dot.accumulates else _ADDITION,
        ),
    )
    tiles = -(-vectors // max(tile.columns // lanes, 1))
    return Sizes(-(-vectors // tiles) * lanes, tile.several, tile.rows, tile.high)


def _pad(
    sch: Schedule, nest: Nest, dots: _Product, sizes: Sizes
) -> tuple[list[BlockRV], BlockRV | None]:
    """Pad columns to whole tiles and steps to whole dot products, where they are not.

    Returns the blocks that copy operands, and the block that copies the result without its padding
    (None if the result is not padded).
    """
    parts = {dots.roles.column: sizes.columns, dots.inner: dots.dot.steps}
    if all((nest.extent(axis) or 0) % size == 0 for axis, size in parts.items()):
        return [], None
    before = {sch.get(producer) for producer in sch.get_producers(nest.rv)}
    written = nest.stores[0].buffer
    sch.pad_einsum(nest.rv, [parts.get(axis.var, 1) for axis in nest.axes])
    producers = sch.get_producers(nest.rv)
    copies = [producer for producer in producers if sch.get(producer) not in before]
    if Nest(sch, nest.rv).stores[0].buffer.same_as(written):
        return copies, None
    [back] = sch.get_consumers(nest.rv)
    return copies, back


def _panels(
    sch: Schedule, nest: Nest, dots: _Product, sizes: Sizes, copies: list[BlockRV]
) -> list[BlockRV]:
    """Lay the operand with columns out in panels.

    Returns the copies that every call makes: ``copies``, and the panels unless they are a weight.
    """
    buffer = dots.panels.buffer
    at = [region.buffer for region in nest.block.reads].index(buffer)
    own = [copy for copy in copies if buffer in [w.buffer for w in sch.get(copy).writes]]
    panel = own[0] if own else sch.cache_read(nest.rv, at, "global")
    sch.transform_layout(nest.rv, ("read", at), _panel_map(nest, dots, sizes.columns))
    rest = [copy for copy in copies if copy not in own]
    if not dots.is_weight:
        return [*rest, panel]
    sch.annotate(panel, LAYOUT_REWRITE_PREPROC, True)
    return rest


def _panel_map(nest: Nest, dots: _Product, width: int) -> Callable[..., list[PrimExpr]]:
    """The index map of the panels.

    Its axes are the operand's axes that are not reduced, columns / width, the other axes that are
    reduced, steps / 4, width, 4 (or 2, for pairs of int16).
    """
    load, together = dots.panels, dots.dot.steps
    column, inner = load.position(dots.roles.column), load.position(dots.inner)
    assert column is not None
    assert inner is not None
    reduced = set(nest.reduced)
    steps = [d for d, index in enumerate(load.indices) if reduced & set(collect(index, Var))]

    def panels(*place: Any) -> list[PrimExpr]:
        before = [place[d] for d in range(len(place)) if d != column and d not in steps]
        after = [place[d] for d in steps if d != inner]
        return [
            *before,
            place[column] // width,
            *after,
            place[inner] // together,
            place[column] % width,
            place[inner] % together,
        ]

    return panels


def _schedule_copy(sch: Schedule, copy: BlockRV, machine: Machine) -> None:
    """Schedule a copy that every call makes: vectors along the last axis, the first in parallel."""
    *outer, last = sch.get_loops(copy)
    size = elementwise.extent_of(sch, last)
    if size is None or size > machine.lanes():
        around, last = sch.split(last, [None, machine.lanes()])
        outer = outer or [around]
    sch.vectorize(last)
    if outer:
        elementwise.run_in_parallel(sch, outer[:1], machine)


def _tile_dots(
    sch: Schedule, block: BlockRV, dots: _Product, result: BlockRV, machine: Machine
) -> None:
    """Order the loops of a tile: steps outermost, rows and vectors unrolled, then instructions."""
    roles = dots.roles
    tile = [axis for axis in (roles.tall, roles.row, roles.wide) if axis is not None]
    shared = len(sch.get_loops(result)) - len(tile) - 1
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, shared)
    other = [loops[axis] for axis in roles.steps if axis in loops and axis is not dots.inner]
    steps, inner = sch.split(loops[dots.inner], [None, dots.dot.steps])
    rows, column = [loops[axis] for axis in tile if axis in loops], loops[roles.column]
    sch.reorder(*other, steps, *rows, column, inner)
    start = sch.decompose_reduction(block, (*other, steps)[0])
    mark_tile(sch, sch.get_loops(start)[shared:])
    if dots.dot.accumulates:  # if not, more products would wait to be added than registers hold
        unroll_some(sch, steps, [*rows, column], machine)
    vectors, lanes = sch.split(column, [None, machine.lanes()])
    for loop in (*rows, vectors):
        sch.unroll(loop)
    sch.blockize(lanes)  # the block gets the guard of the last rows; an intrinsic can have none
    sch.tensorize(lanes, dots.dot.intrin(machine.lanes()))
