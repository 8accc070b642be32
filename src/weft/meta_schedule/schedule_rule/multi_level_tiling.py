"""Tiles over tiles: each loop of a product split several times, copies kept near in between.

Source: the sketches of Ansor (Zheng et al., OSDI 2020), as TVM's MetaSchedule has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from weft.meta_schedule import block_questions
from weft.meta_schedule.access_pattern import is_write_cache
from weft.meta_schedule.annotations import (
    FEWEST_THREADS,
    MOST_THREADS,
    TILING_STRUCTURE,
    WRITE_CACHE_LEVEL,
    annotation,
)
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.schedule_rule.cooperative_fetch import annotate_fetch
from weft.meta_schedule.schedule_rule.reuse_type import ReuseType, checked_reuse
from weft.meta_schedule.schedule_rule.software_pipeline import pipelined
from weft.meta_schedule.target_facts import compute_capability, number, target_of, warp_size
from weft.support.errors import IRValueError
from weft.tir.expr import IterType
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block

Filter: TypeAlias = Callable[[Schedule, StmtSRef | None], bool]
_ASYNC_COPIES = 80
"""The compute capability from which on GPUs copy to shared memory while they compute."""
_STAGES = (4, 5)


@dataclass
class Tiling:
    """A schedule in which a block is being tiled.

    ``tiles`` has the loops of each level of the structure, ``factors`` their extents; the reuses
    map the place of a buffer among the reads or writes of the block to the block of its copy.
    """

    sch: Schedule
    block: BlockRV
    tiles: list[list[LoopRV]] = field(default_factory=list)
    factors: list[list[ExprRV | None]] = field(default_factory=list)
    read_reuse: dict[int, BlockRV] = field(default_factory=dict)
    write_reuse: dict[int, BlockRV] = field(default_factory=dict)

    def copy(self) -> Tiling:
        """The same over a copy of the schedule."""
        return replace(
            self,
            sch=self.sch.copy(),
            tiles=[list(loops) for loops in self.tiles],
            read_reuse=dict(self.read_reuse),
            write_reuse=dict(self.write_reuse),
        )

    def last_loop(self, level: int) -> LoopRV:
        """The innermost loop of a level, which counts from 1."""
        return self.tiles[level - 1][-1]


class MultiLevelTiling(ScheduleRule):
    """Tiles blocks that reduce and reuse what they read: products, convolutions.

    Args:
        structure: the order of the tiles, S for the spatial loops and R for those of the reduction:
            "SSRSRS" on CPUs, "SSSRRSRS" on GPUs.
        tile_binds: the threads to which the first levels are bound; None for none.
        max_innermost_factor: the largest tile of the innermost level; None for no limit.
        vector_load_lens: how many elements a thread may copy at once into a read cache; None for no
            vectors there.
        reuse_read: copies of what is read; None for none.
        reuse_write: copies of what is written; None for none.
        filter_fn: blocks for which it is true are tiled whatever the rule thinks of them. It takes
            the schedule and the reference of the block.
    """

    def __init__(
        self,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        filter_fn: Filter | None = None,
    ) -> None:
        if not structure or set(structure) - set("SR"):
            raise IRValueError(
                f"structure: expected letters S (spatial) and R (reduction), got {structure!r}"
            )
        self.structure = structure
        self.tile_binds = list(tile_binds or ())
        self.max_innermost_factor = -1 if max_innermost_factor is None else max_innermost_factor
        self.vector_load_lens = list(vector_load_lens or ())
        self.reuse_read = checked_reuse(reuse_read, "reuse_read", ("no", "must"))
        self.reuse_write = checked_reuse(reuse_write, "reuse_write", ("no", "may", "must"))
        self.filter_fn = filter_fn
        self._threads: tuple[int, int] | None = None
        self._stages: tuple[int, ...] = ()

    def _initialize_with_tune_context(self, context: Context) -> None:
        target = target_of(context, type(self).__name__)
        most, warp = number(target, "max_threads_per_block"), warp_size(target)
        self._threads = None if most is None or warp is None else (warp, most)
        capability = compute_capability(target)
        self._stages = _STAGES if capability is not None and capability >= _ASYNC_COPIES else ()

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The tiled schedules; ``[sch]`` if the block is not to be tiled."""
        wanted = self.filter_fn is not None and self.filter_fn(sch, sch.get_sref(block))
        if not wanted:
            is_root = block_questions.is_root(sch, block)
            if is_root or not block_questions.needs_multi_level_tiling(sch, block):
                return [sch]
        sch.annotate(block, TILING_STRUCTURE, self.structure)
        return [tiling.sch for tiling in self._tilings(Tiling(sch, block))]

    def _tilings(self, tiling: Tiling) -> list[Tiling]:
        """All ways to go on from a block that is not tiled yet."""
        return each([tiling], self._tile, self._reuse_writes, self._reuse_reads, self._pipeline)

    # ---- tiles

    def levels(self, kind: IterType) -> list[int]:
        """The levels of the structure, counted from 0, that loops of a kind are split over."""
        letter = {IterType.DataPar: "S", IterType.CommReduce: "R"}.get(kind)
        return [level for level, item in enumerate(self.structure) if item == letter]

    def _tile(self, tiling: Tiling) -> list[Tiling]:
        return [self._tiled(tiling)]

    def _tiled(self, tiling: Tiling, spatial_loops: int | None = None) -> Tiling:
        """Split all loops, reorder the tiles, bind them; loops are those of the axes, in order.

        With ``spatial_loops``, only so many of the inner spatial loops are split; the others join
        the first level.
        """
        sch, block = tiling.sch, tiling.block
        loops = sch.get_loops(block)
        kinds = [axis.iter_type for axis in sch.get(block).iter_vars]
        outer = 0 if spatial_loops is None else kinds.count(IterType.DataPar) - spatial_loops
        whole: list[LoopRV] = []
        tiling.tiles = [[] for _ in self.structure]
        tiling.factors = [[] for _ in self.structure]
        work = 1
        for loop, kind in zip(loops, kinds, strict=True):
            if kind == IterType.DataPar and len(whole) < outer:
                whole.append(loop)
                continue
            if kind == IterType.DataPar:
                extent = block_questions.constant_extent(sch.get(loop))
                work = 0 if extent is None else work * extent
            self._distribute(tiling, loop, self.levels(kind))
        sch.reorder(*[loop for level in tiling.tiles for loop in level])
        if self.tile_binds:
            tiling.tiles[0][:0] = whole
        self._bind(tiling)
        self._limit_threads(tiling, work)
        return tiling

    def _distribute(self, tiling: Tiling, loop: LoopRV, levels: Sequence[int]) -> None:
        """Split a loop into one part for each level."""
        if len(levels) == 1:
            tiling.tiles[levels[0]].append(loop)
            return
        if not levels:
            return
        factors, parts = self._split(tiling.sch, tiling.block, loop, len(levels))
        for level, factor, part in zip(levels, factors, parts, strict=True):
            tiling.tiles[level].append(part)
            tiling.factors[level].append(factor)

    def _split(
        self, sch: Schedule, _block: BlockRV, loop: LoopRV, count: int
    ) -> tuple[Sequence[ExprRV | None], list[LoopRV]]:
        """Split a loop into tiles that fill it exactly: their extents, and the loops."""
        factors = sch.sample_perfect_tile(loop, count, self.max_innermost_factor)
        return factors, sch.split(loop, factors)

    def _bind(self, tiling: Tiling) -> None:
        """Fuse the loops of the first levels and bind them to threads."""
        for level, thread in enumerate(self.tile_binds[: len(tiling.tiles)]):
            fused = tiling.sch.fuse(*tiling.tiles[level])
            tiling.sch.bind(fused, thread)
            tiling.tiles[level] = [fused]

    def _limit_threads(self, tiling: Tiling, work: int) -> None:
        """Mark how many threads may run the block, by its spatial ``work`` (0: not known)."""
        if self._threads is None:
            return
        warp, most = self._threads
        tiling.sch.annotate(tiling.block, FEWEST_THREADS, warp if work > 2 * warp else 1)
        tiling.sch.annotate(tiling.block, MOST_THREADS, most)

    # ---- copies

    def _reuse_writes(self, tiling: Tiling) -> list[Tiling]:
        req, levels = self.reuse_write.req, self.reuse_write.levels
        if req == "no":
            return [tiling]
        block: Block = tiling.sch.get(tiling.block)
        fixed = annotation(block, WRITE_CACHE_LEVEL)
        if fixed is not None:
            levels = [int(str(level)) for level in _several(fixed)]
            req = "must"
        results = []
        if req == "may":
            consumers = tiling.sch.get_consumers(tiling.block)
            if len(consumers) == 1 and is_write_cache(tiling.sch.get(consumers[0])):
                tiling.write_reuse[0] = consumers[0]
                return [*_placed(tiling, consumers[0], levels), tiling]
            results.append(tiling.copy())
        cache = tiling.sch.cache_write(tiling.block, 0, self.reuse_write.scope)
        tiling.write_reuse[0] = cache
        return [*results, *_placed(tiling, cache, levels)]

    def _reuse_reads(self, tiling: Tiling) -> list[Tiling]:
        if self.reuse_read.req == "no":
            return [tiling]
        return [self._with_read_caches(tiling.copy(), level) for level in self.reuse_read.levels]

    def _with_read_caches(self, tiling: Tiling, level: int) -> Tiling:
        """Copy all that the block reads but does not write, inside a level of tiles."""
        sch, block = tiling.sch, tiling.block
        stmt: Block = sch.get(block)
        written = stmt.writes[0].buffer
        for place, region in enumerate(stmt.reads):
            if region.buffer is written:
                continue
            copy = sch.cache_read(block, place, self.reuse_read.scope, [block])
            sch.compute_at(copy, tiling.last_loop(level), preserve_unit_loops=True)
            sch.fuse(*sch.get_loops(copy)[-len(region.buffer.shape) :])
            annotate_fetch(sch, copy, self.vector_load_lens)
            tiling.read_reuse[place] = copy
        return tiling

    def _pipeline(self, tiling: Tiling) -> list[Tiling]:
        """The tiling as it is; where copies run beside computing, also in several stages."""
        levels = self.levels(IterType.CommReduce)
        if not levels or not self._stages:
            return [tiling]
        return [tiling, *pipelined(tiling, levels[0], self._stages)]


def each(tilings: list[Tiling], *steps: Callable[[Any], list[Tiling]]) -> list[Tiling]:
    """All results of the steps, each applied to all results of the one before.

    A rule's own steps may take its own kind of tiling.
    """
    for step in steps:
        tilings = [result for tiling in tilings for result in step(tiling)]
    return tilings


def _placed(tiling: Tiling, copy: BlockRV, levels: Sequence[int]) -> list[Tiling]:
    """For each level, a tiling in which the copy of the result stands there."""
    placed = [tiling.copy() for _ in levels]
    for other, level in zip(placed, levels, strict=True):
        other.sch.reverse_compute_at(copy, other.last_loop(level), preserve_unit_loops=True)
    return placed


def _several(value: object) -> list[object]:
    assert isinstance(value, Sequence)
    return list(value)
