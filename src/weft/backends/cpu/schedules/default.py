"""The default schedule of a function for a CPU: which program fits each of its blocks.

A function that is one attention has a program of its own (``attention``). In other functions,
blocks that only move or combine elements are inlined first. Then, from the last block to the first,
each result is scheduled together with the blocks that only it needs, by the first program that
fits:

- ``windows`` or ``pixels``, if it reads element by element what windows over an image give;
- ``tiled`` or ``dots``, if it reads the result of a reduction element by element;
- ``rows``, if it needs reductions along rows;
- ``ragged``, if it is a reduction over windows of several sizes;
- ``scans``, if it is a running sum or its like;
- ``transposed``, if it reads along another axis than it writes;
- ``elementwise``, if it is spatial.

A block that no program fits stays as it is, so every function gets a schedule.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from weft.backends.cpu.schedules import (
    attention,
    borders,
    dots,
    elementwise,
    pixels,
    ragged,
    rows,
    scans,
    tiled,
    transposed,
    transposed_any,
    windows,
)
from weft.backends.cpu.schedules.joined import join_symbolic_rows
from weft.backends.cpu.schedules.roles import roles_of
from weft.dlight.nest import Nest, blocks_of
from weft.ir.expr import IntImm
from weft.support.errors import ScheduleError
from weft.support.events import happened
from weft.target.machine import Machine
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.joined_index import walks
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.transform.inline_elementwise import MOST_LOADS

Program = Callable[[Schedule], bool]

_FORMS: Final[Mapping[str, str]] = {
    "attention": "the function is not the two products and the softmax of one attention",
    "joined rows": "its rows cannot be joined to one axis",
    "scans": "it is no running sum or the like",
    "windows": "it reads no windows whose vectors run along channels or rows",
    "pixels": "it reads no windows over neighbouring pixels",
    "ragged": "it is no reduction over windows of several sizes",
    "tiled": "it is no reduction that reads two operands several times, as a product does",
    "dots": "it is no sum of products of small integers that the processor adds in groups",
    "rows": "it needs no reductions along rows",
    "transposed": "it reads along the axis that it writes along",
    "elementwise": "its elements do not depend on one index each",
    "inline": "its readers cannot compute it",
}  # fmt: skip
"""What a block is not where a program does not fit it, by the program."""


def schedule(sch: Schedule, machine: Machine, weights: Collection[Buffer]) -> Schedule:
    """Schedule every block of the function.

    ``weights`` are buffers that are known when the model is built. Returns a new schedule; ``sch``
    itself may stay as it was. The trace of the new one begins after rows of symbolic length have
    been joined: text cannot name such a length.
    """
    whole = _tried("attention", sch, lambda trial: attention.schedule(trial, machine))
    if whole is not sch:
        return whole
    sch = inlined(sch, machine, weights)
    sch = _with_joined_rows(sch, weights)
    waiting = blocks_of(sch)
    while waiting:
        result = waiting.pop()
        nest = Nest(sch, result)
        if _is_placed(sch, result):
            continue
        if _suits("scans", nest.is_scan):
            scan = functools.partial(scans.schedule, block=result, machine=machine)
            sch = _tried("scans", sch, scan)
        elif nest.is_spatial:
            sch = _with_its_producers(sch, result, waiting, machine, weights)
        elif _suits("windows", windows.fits(nest)):
            sch = _windows(sch, result, None, waiting, windows.schedule, machine)
        elif _suits("pixels", pixels.fits(nest)):
            sch = _windows(sch, result, None, waiting, pixels.schedule, machine)
        elif _suits("tiled", roles_of(nest, weights) is not None):
            sch = _tiled(sch, result, None, machine, weights)
        elif nest.is_plain and nest.is_reduction:
            if _suits("ragged", ragged.fits(nest)):
                sch = _tried("ragged", sch, _ragged(result, machine))
            else:
                sch = _tried("rows", sch, _rows(result, [], [], machine))
    return sch


def _is_placed(sch: Schedule, block: BlockRV) -> bool:
    """Whether the program of its reader has put a block inside of a loop of its own."""
    loops = sch.get_loops(block)
    return bool(loops) and len(sch.get_child_blocks(loops[0])) > 1


def _with_its_producers(
    sch: Schedule,
    result: BlockRV,
    waiting: list[BlockRV],
    machine: Machine,
    weights: Collection[Buffer],
) -> Schedule:
    """Schedule a spatial block with the blocks that only it needs, and remove those from
    ``waiting``.
    """
    only = _only_for(sch, result, waiting)
    for block in only:
        nest = Nest(sch, block)
        for program in (windows, pixels):
            if program.fits(nest) and _element_by_element(sch, block, result):
                scheduled = _windows(sch, block, result, waiting, program.schedule, machine)
                if scheduled is not sch:
                    waiting.remove(block)
                    return scheduled
        if roles_of(nest, weights) is not None and _element_by_element(sch, block, result):
            scheduled = _tiled(sch, block, result, machine, weights)
            if scheduled is not sch:
                waiting.remove(block)
                return scheduled
    group = [block for block in only if _may_be_rows(Nest(sch, block), weights)]
    group = _only_for(sch, result, group)
    reductions = [block for block in group if Nest(sch, block).is_reduction]
    if reductions:
        others = [block for block in group if block not in reductions]
        scheduled = _tried("rows", sch, _rows(result, reductions, others, machine))
        if scheduled is not sch:
            for block in group:
                waiting.remove(block)
            return scheduled
    scheduled = _tried("transposed", sch, lambda trial: transposed.schedule(trial, result, machine))
    if scheduled is not sch:
        return scheduled
    if transposed_any.fits(Nest(sch, result), machine):
        scheduled = _tried(
            "transposed", sch, lambda trial: transposed_any.schedule(trial, result, machine)
        )
        if scheduled is not sch:
            return scheduled
    return _tried("elementwise", sch, lambda trial: elementwise.schedule(trial, result, machine))


def _with_joined_rows(sch: Schedule, weights: Collection[Buffer]) -> Schedule:
    """Join the rows of symbolic length or number of tiled reductions, in a schedule of its own."""
    if not any(_has_symbolic_rows(Nest(sch, block), weights) for block in blocks_of(sch)):
        return sch
    first = joined = Schedule(sch.mod, debug_mask="none")
    for block in blocks_of(first):
        if _has_symbolic_rows(Nest(joined, block), weights):
            program = functools.partial(_join_rows, block=block, weights=weights)
            joined = _tried("joined rows", joined, program)
    return sch if joined is first else joined


def _has_symbolic_rows(nest: Nest, weights: Collection[Buffer]) -> bool:
    """Whether a block is a tiled reduction with sets of rows of symbolic length or number."""
    roles = roles_of(nest, weights) if nest.is_reduction else None
    if roles is None or roles.row is None or roles.tall is None:
        return False
    is_other = windows.fits(nest) or pixels.fits(nest)
    return None in (nest.extent(roles.row), nest.extent(roles.tall)) and not is_other


def _join_rows(sch: Schedule, block: BlockRV, weights: Collection[Buffer]) -> bool:
    """Join two axes of a reduction and of the one block that reads it element by element."""
    roles = roles_of(Nest(sch, block), weights)
    assert roles is not None
    pair = roles.tall, roles.row
    readers = sch.get_consumers(block)
    if len(readers) == 1 and _element_by_element(sch, block, readers[0]):
        return join_symbolic_rows(sch, Nest(sch, block), readers[0], pair)
    copy = sch.cache_write(block, 0, "local")
    return join_symbolic_rows(sch, Nest(sch, block), copy, pair)


def _windows(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    waiting: list[BlockRV],
    program: Callable[..., bool],
    machine: Machine,
) -> Schedule:
    """Schedule a block of windows with the blocks that pad for it, and remove those from
    ``waiting``.
    """
    before = {sch.get(pad) for pad in windows.paddings(sch, block)}
    padded = [other for other in waiting if sch.get(other) in before]
    name = program.__module__.rpartition(".")[2]  # windows or pixels
    scheduled = _tried(name, sch, lambda trial: program(trial, block, result, machine, padded))
    if scheduled is sch:
        return _tried(name, sch, lambda trial: program(trial, block, result, machine))
    for pad in padded:
        waiting.remove(pad)
    return scheduled


def _tiled(
    sch: Schedule,
    block: BlockRV,
    result: BlockRV | None,
    machine: Machine,
    weights: Collection[Buffer],
) -> Schedule:
    """Tile a reduction, with the processor's dot products if it is a sum of those."""
    if _suits("dots", dots.fits(Nest(sch, block), machine, weights)):
        scheduled = _tried(
            "dots", sch, lambda trial: dots.schedule(trial, block, result, machine, weights)
        )
        if scheduled is not sch:
            return scheduled
    for may_cut_depth in (True, False):
        scheduled = _tried(
            "tiled" if may_cut_depth else "tiled, its depth in one part",
            sch,
            functools.partial(
                tiled.schedule, block=block, result=result, machine=machine, weights=weights,
                may_cut_depth=may_cut_depth,
            ),
        )  # fmt: skip
        if scheduled is not sch:
            return scheduled
    return sch


def _rows(
    result: BlockRV, reductions: Sequence[BlockRV], others: Sequence[BlockRV], machine: Machine
) -> Program:
    return lambda sch: rows.schedule(sch, result, reductions, others, machine)


def _ragged(block: BlockRV, machine: Machine) -> Program:
    return lambda sch: ragged.schedule(sch, block, machine)


def _may_be_rows(nest: Nest, weights: Collection[Buffer]) -> bool:
    """Whether no other program wants a block that could be computed row by row with others."""
    return roles_of(nest, weights) is None and not ragged.fits(nest)


def _suits(name: str, answer: bool) -> bool:
    """The answer whether a program suits a block; an observer hears of a no."""
    if not answer:
        happened("program", name, _FORMS[name])
    return answer


def _tried(name: str, sch: Schedule, program: Program) -> Schedule:
    """The schedule after running a program; ``sch`` itself, unchanged, if it does not fit."""
    trial = sch.copy()
    try:
        if program(trial):
            happened("program", name, "")
            return trial
        happened("program", name, _FORMS[name.partition(",")[0]])
    except ScheduleError as error:
        happened("program", name, error)  # its text is the whole program: few ask for it
    except Exception as error:  # noqa: BLE001 - it must not cost the user the model
        happened("program", name, f"it failed: {type(error).__name__}: {error}")
        warnings.warn(
            f"weft: a default schedule failed, its block stays as written; please report this: "
            f"{type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
    return sch


def _only_for(sch: Schedule, result: BlockRV, waiting: Sequence[BlockRV]) -> list[BlockRV]:
    """The waiting blocks that only ``result`` reads, directly or through others of them.

    They keep their order.
    """
    inside = {sch.get(result)}
    only = []
    for block in reversed(waiting):
        consumers = sch.get_consumers(block)
        plain = Nest(sch, block).is_plain
        if plain and consumers and all(sch.get(consumer) in inside for consumer in consumers):
            inside.add(sch.get(block))
            only.append(block)
    return only[::-1]


def _element_by_element(sch: Schedule, block: BlockRV, result: BlockRV) -> bool:
    """Whether ``result`` alone reads what ``block`` writes, each element at its own index."""
    nest = Nest(sch, result)
    axes = nest.result_axes()
    written = {store.buffer for store in Nest(sch, block).stores}
    reads = [load.indices for load in nest.loads if load.buffer in written]
    consumers = [sch.get(consumer) for consumer in sch.get_consumers(block)]
    own = [nest.simplified(index) for index in nest.stores[0].indices]
    shape = nest.stores[0].buffer.shape
    if not all(isinstance(extent, IntImm) for extent in shape):  # rows may have been joined
        own = [index for index, _ in walks(own, shape)]
    return (
        axes is not None
        and consumers == [nest.block]
        and all(list(place) == own for place in reads)
    )


# Inlining


def inlined(sch: Schedule, machine: Machine, weights: Collection[Buffer]) -> Schedule:
    """Inline spatial blocks into the blocks that read them, unless that repeats costly work."""
    for block in blocks_of(sch):
        nest = Nest(sch, block)
        if nest.is_spatial and (
            _is_worth_inlining(sch, nest) or _is_left_out(sch, nest, machine, weights)
        ):
            sch = _tried("inline", sch, _inline(block))
    return sch


def _inline(block: BlockRV) -> Program:
    def program(sch: Schedule) -> bool:
        sch.compute_inline(block)
        return True

    return program


def _is_worth_inlining(sch: Schedule, nest: Nest) -> bool:
    """Whether a block only moves elements, or computes them cheaply or only once if inlined."""
    consumers = [Nest(sch, block) for block in sch.get_consumers(nest.rv)]
    if not consumers or len(nest.stores) != 1:
        return False
    if not all(consumer.is_plain for consumer in consumers):
        return False
    if isinstance(nest.stores[0].value, BufferLoad):
        return True  # only moves elements
    if any(_multiplies(nest, consumer) for consumer in consumers):
        return False
    if any(not consumer.is_spatial and _repeats(consumer) for consumer in consumers):
        return False
    return nest.calls == 0 or (len(consumers) == 1 and consumers[0].is_spatial)


def _multiplies(nest: Nest, consumer: Nest) -> bool:
    """Whether the consumer would hold the block's loads several times, and many of them.

    A chain of such blocks (a tensor joined with itself, and that again) would become a program that
    is exponential in its length.
    """
    written = nest.stores[0].buffer
    reads = sum(load.buffer is written for load in consumer.loads)
    return reads > 1 and reads * len(nest.loads) > MOST_LOADS


def _repeats(consumer: Nest) -> bool:
    """Whether a reduction reads elements more than once, as tiled reductions do."""
    return roles_of(consumer, ()) is not None


def _is_left_out(sch: Schedule, nest: Nest, machine: Machine, weights: Collection[Buffer]) -> bool:
    """Whether a block pads with zeros whose products the tiles of a sum leave out (``borders``)."""
    if not borders.is_padding(nest) or not borders.pads_with_zero(nest):
        return False
    consumers = [Nest(sch, block) for block in sch.get_consumers(nest.rv)]
    if len(consumers) != 1 or not borders.is_factor(nest, consumers[0]):
        return False
    [reader] = consumers
    share = borders.share_inside(nest, reader)
    return (
        not windows.fits(reader)
        and not pixels.fits(reader)
        and share < borders.WORTH
        and tiled.knows_ends(reader, weights, machine, share)
    )
