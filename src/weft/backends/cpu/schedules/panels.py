"""Panels: copies of a tiled reduction's operands in which what a tile reads lies together.

An operand is copied into panels ``[..., columns / width, reduction, width]`` if it is a weight, or
if its rows are not contiguous along the vector axis (Goto and van de Geijn, 2008). A weight is
copied once, when the model is built. With ``width`` 4, a weight of 2 steps and 8 columns becomes

    a b c d e f g h          [[a b c d]      [[e f g h]
    i j k l m n o p    ->     [i j k l]],     [m n o p]]
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from weft.backends.cpu.schedules.elementwise import run_in_parallel
from weft.dlight.nest import Access, Nest
from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.te.primfunc import LAYOUT_REWRITE_PREPROC
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


def can_pack(nest: Nest, load: Access, column: Var) -> bool:
    """Whether panels would hold each element of an operand once: all its indices are plain axes."""
    plain = [index for index in load.indices if isinstance(index, Var)]
    others = [index for index in load.indices if collect(index, Var) and index not in plain]
    again = [other for other in nest.loads if other.buffer is load.buffer]
    return load.position(column) is not None and not others and len(again) == 1


def is_panel(nest: Nest, load: Access, column: Var, width: int) -> bool:
    """Whether an operand is a panel already: steps follow each other in memory, all columns fit."""
    size = nest.extent(column)
    return load.stride_one(column) and size is not None and size <= width


def panel(
    sch: Schedule,
    nest: Nest,
    load: Access,
    column: Var,
    width: int,
    weights: Collection[Buffer],
) -> BlockRV | None:
    """Copy an operand into panels, by the block returned; None: once, when the model is built."""
    index = [region.buffer for region in nest.block.reads].index(load.buffer)
    copy = sch.cache_read(nest.rv, index, "global")
    sch.transform_layout(
        nest.rv,
        ("read", index),
        _panel_map(nest, load, column, width),
        pad_value=op.const(0, load.buffer.dtype),
    )
    if load.buffer not in weights:
        return copy
    sch.annotate(copy, LAYOUT_REWRITE_PREPROC, True)
    return None


def _panel_map(nest: Nest, load: Access, column: Var, width: int) -> Callable[..., list[PrimExpr]]:
    """The index map of the panels: other axes, columns / width, axes of the reduction, width."""
    at = load.position(column)
    assert at is not None
    reduced = set(nest.reduced)
    inner = [d for d, index in enumerate(load.indices) if reduced & set(collect(index, Var))]

    def panels(*place: Any) -> list[PrimExpr]:
        before = [place[d] for d in range(len(place)) if d != at and d not in inner]
        after = [place[d] for d in inner]
        return [*before, place[at] // width, *after, place[at] % width]

    return panels


def schedule_panel(sch: Schedule, panel: BlockRV, machine: Machine) -> None:
    """Run in parallel the outer loops of a panel that every call copies anew."""
    loops = sch.get_loops(panel)
    if len(loops) > 2:
        run_in_parallel(sch, loops[:-2], machine)
