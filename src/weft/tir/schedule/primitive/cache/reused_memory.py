"""Buffers that every iteration of a loop fills anew.

A block that moves out of the loop would read what the last iteration wrote, at each of its
instances. Region cover does not see that: it asks whether an element was written before it is
read, not in which iteration. So a block may leave a loop that it shares with a producer only if
the producer's iterations write different elements, or the same values.
"""

from __future__ import annotations

from weft.ir.functor import collect, mentions, substitute
from weft.tir import op
from weft.tir.expr import IterVar, Var
from weft.tir.schedule import dependence, tree
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef, loop_of


class ReusedMemoryError(ScheduleFailure):
    """The block would read, outside of a loop, what every iteration of the loop overwrites."""


class OverwritingAxisError(ScheduleFailure):
    """Instances of the block overwrite each other, so their order is part of the meaning."""


def check_values_stay(state: ScheduleState, sref: StmtSRef, top: StmtSRef) -> None:
    """What the block reads inside the loops up to ``top`` is still there after these loops."""
    block = tree.block_of(sref)
    scope = tree.scope_of(sref)
    assert scope is not None
    left = tree.loops_above(sref, stop=top)
    if not left:
        return
    data = {region.buffer.data for region in block.reads}
    for producer in dependence.producers_of(block, tree.block_of(scope)):
        other = state.sref_of(producer)
        if other is sref:
            continue
        above = {id(loop) for loop in tree.loops_above(other)}
        for loop in left:
            shared = id(loop) in above and not op.is_const_int(loop_of(loop).extent, 1)
            if shared and not _keeps(state, other, loop, data):
                name = next(r.buffer.name for r in producer.writes if r.buffer.data in data)
                raise ReusedMemoryError(
                    state,
                    f"{name_of(sref)} would leave {name_of(loop)}, at every iteration of which "
                    f"{name_of(other)} overwrites {name}",
                    (loop, other, sref),
                )


def _keeps(state: ScheduleState, producer: StmtSRef, loop: StmtSRef, data: set[Var]) -> bool:
    """Whether iterations of the loop write different places of the buffers, or equal values."""
    realize = tree.realize_of(state, producer)
    variable = loop_of(loop).loop_var
    bindings = tree.bindings_of(realize)
    written = [region for region in realize.block.writes if region.buffer.data in data]
    if all(mentions(substitute([p.min for p in r.region], bindings), variable) for r in written):
        return True
    if mentions([*realize.iter_values, realize.predicate], variable):
        return False
    inputs = {region.buffer.data for region in realize.block.reads}
    inside = dependence.hazards_below(loop_of(loop)).writers
    return not any(buffer in inside for buffer in inputs)


def check_places_differ(state: ScheduleState, sref: StmtSRef) -> None:
    """Every spatial axis of the block is in the indices of all that it writes."""
    block = tree.block_of(sref)
    for region in block.writes:
        used = set(collect([part.min for part in region.region], Var))
        for axis in block.iter_vars:
            single = axis.dom is not None and op.is_const_int(axis.dom.extent, 1)
            if axis.iter_type == IterVar.DataPar and axis.var not in used and not single:
                raise OverwritingAxisError(
                    state,
                    f"axis {axis.var.name} of {name_of(sref)} does not index {region.buffer.name}: "
                    "its instances overwrite each other",
                    sref,
                )
