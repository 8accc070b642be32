"""How a block maps the elements that it reads to those that it writes."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir import op
from weft.tir.buffer import BufferRegion
from weft.tir.expr import Var
from weft.tir.stmt import Block


class AccessPattern(NamedTuple):
    """A read whose indices are constants and axes of the write, maybe shifted by constants.

    Each axis counts once at most if the pattern is injective, at least once if it is surjective;
    ordered means that the axes stand in the order of the write.
    """

    surjective: bool
    injective: bool
    ordered: bool
    no_constant: bool
    no_shift: bool


def access_pattern(read: BufferRegion, write: BufferRegion) -> AccessPattern | None:
    """The pattern of a read; None if an index of it, or of the write, is of another form."""
    ranges = [*read.region, *write.region]
    if not all(isinstance(item.extent, IntImm) for item in ranges):
        return None
    if not all(isinstance(item.min, Var) for item in write.region):
        return None
    place = {item.min: number for number, item in reversed(list(enumerate(write.region)))}
    used: list[int] = []
    constants = shifts = 0
    for item in read.region:
        if isinstance(item.min, IntImm):
            constants += 1
            continue
        axis = _axis_of(item.min)
        if axis not in place:
            return None
        used.append(place[axis])
        shifts += axis is not item.min
    counts = Counter(used)
    return AccessPattern(
        surjective=len(counts) == len(write.region),
        injective=all(count == 1 for count in counts.values()),
        ordered=used == sorted(used),
        no_constant=constants == 0,
        no_shift=shifts == 0,
    )


def _axis_of(index: PrimExpr) -> Var | None:
    """The variable of ``var + constant``; None if an index is of another form."""
    if isinstance(index, Var):
        return index
    variables = collect(index, Var)
    if len(variables) != 1:
        return None
    rest = Analyzer().simplify(op.subtract(index, variables[0]))
    return variables[0] if isinstance(rest, IntImm) else None


def is_write_cache(block: Block) -> bool:
    """Whether a block only moves elements, in their order, into one buffer."""
    if len(block.writes) != 1:
        return False
    patterns = [access_pattern(read, block.writes[0]) for read in block.reads]
    return all(
        pattern is not None and pattern.injective and pattern.ordered for pattern in patterns
    )
