"""A schedule that was found for one function, applied to another with the same anchor block.

An *anchor* is the reduction with the most arithmetic. What was tuned for a convolution alone fits
the same convolution with other additions behind it.
"""

from __future__ import annotations

from typing import Final

from weft.dlight.nest import Nest, blocks_of
from weft.support.errors import ScheduleError
from weft.target import Target
from weft.tir.analysis.anchor_block import find_anchor_block
from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace, bind_outputs, random_variables, translated
from weft.tir.stmt import Block, ForKind

_GET_BLOCK: Final = "GetBlock"
_CHILDREN: Final = "GetChildBlocks"
_INLINE: Final = {
    "ComputeInline": "reverse_compute_inline",
    "ReverseComputeInline": "compute_inline",
}
"""Inlining, and the other direction, which is taken where it is refused."""


def schedule_using_anchor_trace(sch: Schedule, anchor_trace: Trace, target: Target) -> None:
    """Apply the trace of another function with the same anchor block to ``sch``.

    Blocks behind the anchor that the trace does not name are inlined first. Calls of the trace on
    blocks that this function does not have are left out. A block that remains as it was is inlined
    into the block before it, or shared between cores on a CPU.
    """
    _inline_after_anchor(sch, _named_blocks(anchor_trace))
    before = {name: _shape(sch, name) for name in _names(sch)}
    _apply(sch, anchor_trace)
    for name in _names(sch):
        if before.get(name) == _shape(sch, name):
            _finish(sch, sch.get_block(name), target)


def _names(sch: Schedule) -> list[str]:
    blocks = [sch.get(block) for block in blocks_of(sch)]
    return [block.name_hint for block in blocks if isinstance(block, Block)]


def _named_blocks(trace: Trace) -> set[str]:
    """The names of the blocks that a trace gets."""
    return {str(inst.attrs[0]) for inst in trace.insts if inst.kind.name == _GET_BLOCK}


def _shape(sch: Schedule, name: str) -> list[ForKind]:
    """The kinds of the loops around a block, from which one sees that it was scheduled."""
    return [sch.get(loop).kind for loop in sch.get_loops(sch.get_block(name))]


def _inline_after_anchor(sch: Schedule, named: set[str]) -> None:
    """Inline spatial blocks that are not before the anchor and that the trace does not name."""
    anchor = find_anchor_block(sch.mod)
    kept = named if anchor is None else named | _and_producers(sch, anchor.name_hint)
    for name in [name for name in _names(sch) if name not in kept]:
        block = sch.get_block(name)
        if Nest(sch, block).is_spatial:
            _inline(sch, block)


def _and_producers(sch: Schedule, name: str) -> set[str]:
    """A block and all that it needs, by name."""
    names, waiting = set(), [sch.get_block(name)]
    while waiting:
        block = waiting.pop()
        stmt = sch.get(block)
        if isinstance(stmt, Block) and stmt.name_hint not in names:
            names.add(stmt.name_hint)
            waiting += sch.get_producers(block)
    return names


def _inline(sch: Schedule, block: BlockRV) -> None:
    """Inline a block into those that read it, else into the one that it reads, if either can be."""
    for primitive in (sch.compute_inline, sch.reverse_compute_inline):
        try:
            primitive(block)
        except ScheduleError:
            continue
        return


def _apply(sch: Schedule, trace: Trace) -> None:
    """Make the calls of a trace whose blocks and loops this function has."""
    known: dict[object, object] = {}
    for inst in trace.insts:
        inputs = list(random_variables(inst.inputs))
        if any(item not in known for item in inputs):
            continue
        arguments = inst.kind.arguments(
            [translated(item, known) for item in inst.inputs], inst.attrs
        )
        result = _called(sch, inst, arguments, trace.get_decision(inst))
        if result is _MISSING:
            continue
        if inst.kind.name == _CHILDREN and isinstance(result, list):
            result = result[: len(inst.outputs)]
        bind_outputs(inst.kind, inst.outputs, result, known)


_MISSING: Final = object()


def _called(
    sch: Schedule, inst: Instruction, arguments: dict[str, object], decision: object
) -> object:
    """What a call returns; ``_MISSING`` if it gets a block that this function does not have."""
    if inst.kind.name == _GET_BLOCK and arguments["name"] not in {*_names(sch), "root"}:
        return _MISSING
    try:
        return inst.kind.call(sch, arguments, decision)
    except ScheduleError:
        other = _INLINE.get(inst.kind.name)
        if other is None:
            raise
        return getattr(sch, other)(*arguments.values())


def _finish(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedule the one block that the trace left as it was."""
    producers = sch.get_producers(block)
    if len(producers) == 1 and Nest(sch, producers[0]).is_spatial:
        sch.reverse_compute_inline(block)
    elif target.kind.name == "llvm":
        loops: list[LoopRV] = sch.get_loops(block)
        if loops:
            sch.parallel(sch.fuse(*loops))
