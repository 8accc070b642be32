"""Offsets in working memory for tensors by their lifetimes.

Static sizes are packed best-fit in order of size (the greedy-by-size strategy of Pisarchyk and
Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020): two tensors share memory
if their lives do not overlap. Sizes with symbols come after the static part, one after the other;
tensors of the same symbolic size share a slot when their lives allow it.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer

ALIGNMENT = 64
_INT64 = DataType("int64")


@dataclass(frozen=True)
class TensorLife:
    """A tensor, its size in bytes, and the first and last step that touch it."""

    buffer: Buffer
    size: PrimExpr
    first: int
    last: int

    def overlaps(self, other: TensorLife) -> bool:
        """Whether both are needed at one time."""
        return self.first <= other.last and other.first <= self.last


class ArenaPlan:
    """``offsets`` pairs each life with its offset; ``size`` is the whole in bytes."""

    def __init__(self, lives: list[TensorLife]) -> None:
        static = [life for life in lives if isinstance(life.size, IntImm)]
        symbolic = [life for life in lives if not isinstance(life.size, IntImm)]
        self.offsets: list[tuple[TensorLife, PrimExpr]] = []
        end = self._place_static(static)
        self.size: PrimExpr = IntImm(_INT64, end)  # a multiple of ALIGNMENT, as each offset is
        self._place_symbolic(symbolic)

    def _place_static(self, lives: list[TensorLife]) -> int:
        placed: list[tuple[int, int, TensorLife]] = []
        end = 0
        for life in sorted(lives, key=lambda item: -_bytes(item)):
            size = _bytes(life)
            taken = sorted((s, e) for s, e, other in placed if other.overlaps(life))
            start = _best_gap(taken, size)
            placed.append((start, start + size, life))
            self.offsets.append((life, IntImm(_INT64, start)))
            end = max(end, start + size)
        return end

    def _place_symbolic(self, lives: list[TensorLife]) -> None:
        slots: list[tuple[PrimExpr, PrimExpr, list[TensorLife]]] = []
        for life in lives:
            for size, start, users in slots:
                fits = structural_equal(size, life.size)
                if fits and not any(user.overlaps(life) for user in users):
                    users.append(life)
                    self.offsets.append((life, start))
                    break
            else:
                slots.append((life.size, self.size, [life]))
                self.offsets.append((life, self.size))
                self.size = op.add(self.size, _aligned(life.size))


def _bytes(life: TensorLife) -> int:
    assert isinstance(life.size, IntImm)
    return max(ALIGNMENT, -(-life.size.value // ALIGNMENT) * ALIGNMENT)


def _aligned(size: PrimExpr) -> PrimExpr:
    up = op.add(size, IntImm(_INT64, ALIGNMENT - 1))
    return op.multiply(op.floordiv(up, IntImm(_INT64, ALIGNMENT)), IntImm(_INT64, ALIGNMENT))


def _best_gap(taken: list[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between taken intervals that is large enough."""
    best: tuple[int, int] | None = None
    cursor = 0
    for start, end in taken:
        gap = start - cursor
        if gap >= size and (best is None or gap < best[0]):
            best = (gap, cursor)
        cursor = max(cursor, end)
    return cursor if best is None else best[1]
