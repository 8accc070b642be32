"""Tiles whose innermost loop fills a wide vector."""

from __future__ import annotations

from collections.abc import Sequence

from weft.meta_schedule.block_questions import constant_extent, reference
from weft.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling
from weft.meta_schedule.schedule_rule.reuse_type import ReuseType
from weft.tir import op
from weft.tir.schedule import tree
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import For


class MultiLevelTilingWideVector(MultiLevelTiling):
    """As ``MultiLevelTiling``; the loop over the last axis of the result always fills a vector.

    Args:
        structure: the order of the tiles, "SRSRS" or "SSRSRS".
        vector_length_in_bits: the size of a vector.
        max_innermost_factor: the largest tile of the innermost level; None for no limit.
        reuse_read: copies of what is read; None for none.
        reuse_write: copies of what is written; None for none.
    """

    def __init__(
        self,
        structure: str,
        vector_length_in_bits: int,
        max_innermost_factor: int | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        super().__init__(structure, None, max_innermost_factor, None, reuse_read, reuse_write)
        self.vector_length_in_bits = vector_length_in_bits

    def _split(
        self, sch: Schedule, block: BlockRV, loop: LoopRV, count: int
    ) -> tuple[Sequence[ExprRV | None], list[LoopRV]]:
        stmt: For = sch.get(loop)
        realize = tree.realize_of(sch.state, reference(sch, block))
        [write] = realize.block.writes
        if stmt.loop_var is not realize.iter_values[len(write.region) - 1]:
            return super()._split(sch, block, loop, count)
        lanes = self.vector_length_in_bits // write.buffer.dtype.bits
        extent = constant_extent(stmt)
        if extent is None or extent <= lanes:
            factors = [*[op.const(1, "int32")] * (count - 1), stmt.extent]
            return factors, sch.split(loop, factors)
        outer, inner = sch.split(loop, [None, lanes])
        sizes = sch.sample_perfect_tile(outer, count - 1, self.max_innermost_factor)
        return [*sizes, op.const(lanes, "int32")], [*sch.split(outer, sizes), inner]
