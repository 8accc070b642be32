"""Working memory of a host function: one block, the *arena*, with a place for every tensor.

Where all sizes are numbers, places are too (weft.runtime.memory.plan). Where a size has
symbols, the same planner runs at the call, once for each tuple of their values, and the host reads
the places from a table that it gets. Code that calls itself has an arena for each activation, which
it allocates (``is_own``); there, tensors share a place if their sizes are the same expression.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.structural import structural_equal
from weft.relax.ir.shape_arith import INT64
from weft.runtime.memory.plan import ALIGNMENT, plan_offsets
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer

_ANY_SIZE = 1 << 62


@dataclass(frozen=True)
class TensorLife:
    """A tensor, its size in bytes, and the first and last step that touch it."""

    buffer: Buffer
    size: PrimExpr
    first: int
    last: int


class ArenaPlan:
    """Where tensors live. ``arena`` and ``table`` are parameters of the host, None if not needed.

    ``places`` pairs each tensor with its offset; ``size`` is the whole in bytes, None if it is
    known at the call only.
    """

    def __init__(self, lives: list[TensorLife], is_own: bool = False) -> None:
        self.lives = lives
        self.arena: Buffer | None = None
        self.table: Buffer | None = None
        self.places: list[tuple[Buffer, PrimExpr]] = []
        self.size: int | None = 0
        if not lives:
            return
        sizes = [life.size.value for life in lives if isinstance(life.size, IntImm)]
        if len(sizes) == len(lives):
            offsets, self.size = plan_offsets(sizes, [(life.first, life.last) for life in lives])
            at: list[PrimExpr] = [IntImm(INT64, offset) for offset in offsets]
        elif is_own:
            at, total = _slots(lives)
            self.size = None
            self.arena = decl_buffer([total], "uint8", "arena")
        else:
            self.size = None
            self.table = decl_buffer([IntImm(INT64, len(lives))], "int64", "offsets")
            at = [BufferLoad(self.table, [IntImm(INT64, index)]) for index in range(len(lives))]
        if self.arena is None:
            extent = IntImm(INT64, _ANY_SIZE if self.size is None else self.size)
            self.arena = decl_buffer([extent], "uint8", "arena")
        self.places = list(zip([life.buffer for life in lives], at, strict=True))


def _slots(lives: list[TensorLife]) -> tuple[list[PrimExpr], PrimExpr]:
    """The offset of each tensor, and the size of the whole, over the symbols of the sizes."""
    slots: list[tuple[PrimExpr, int, PrimExpr]] = []  # size, last step, offset
    offsets: dict[int, PrimExpr] = {}
    end: PrimExpr = IntImm(INT64, 0)
    for index, life in sorted(enumerate(lives), key=lambda item: item[1].first):
        free = [
            number
            for number, (size, last, _) in enumerate(slots)
            if last < life.first and structural_equal(size, life.size)
        ]
        if free:
            offsets[index] = slots[free[0]][2]
            slots[free[0]] = (life.size, life.last, offsets[index])
            continue
        offsets[index] = end
        slots.append((life.size, life.last, end))
        lines = op.floordiv(op.add(life.size, ALIGNMENT - 1), ALIGNMENT)
        end = op.add(end, op.multiply(lines, ALIGNMENT))
    return [offsets[index] for index in range(len(lives))], end
