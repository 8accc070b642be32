"""A software pipeline: the steps of a loop, the stage of each, and whether they may run so.

Iteration ``i`` of a step of stage ``s`` runs at the time ``i + s``; steps of one time run by their
order. A buffer of the loop that an early stage writes and a later one reads has several versions,
of which iteration ``i`` has number ``i % versions``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import substitute
from weft.support.errors import IRValueError
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import Var
from weft.tir.stmt import Block, For


@dataclass(frozen=True)
class Step:
    """A statement of the loop as a block; ``position``: its place before it is pipelined."""

    block: Block
    position: int
    stage: int
    order: int

    def regions(self, buffer: Buffer, writes: bool) -> list[BufferRegion]:
        """What the step reads, or writes, of the buffer."""
        regions = self.block.writes if writes else self.block.reads
        return [region for region in regions if region.buffer.data is buffer.data]


@dataclass(frozen=True)
class Pipeline:
    """An annotated loop; ``buffers``: data variable -> buffer, of all that are defined here."""

    loop: For
    steps: tuple[Step, ...]
    allocated: tuple[Buffer, ...]
    buffers: Mapping[Var, Buffer]
    doubled: frozenset[Buffer]

    @property
    def depth(self) -> int:
        """The last stage."""
        return max([step.stage for step in self.steps])

    def versions(self, buffer: Buffer) -> int:
        """For how many iterations the loop keeps what it writes to a buffer of its own."""
        writers = [step for step in self.steps if step.regions(buffer, writes=True)]
        readers = [step for step in self.steps if step.regions(buffer, writes=False)]
        if not writers:
            return 1
        last = max([step.stage for step in readers], default=-1)
        count = max(last - min([step.stage for step in writers]) + 1, 1)
        if count == 2 and not any(
            writer.order < reader.order
            and writer.stage < reader.stage
            and self._may_meet(reader, writer, buffer, 1)
            for writer in writers
            for reader in readers
        ):
            count = 1  # the next iteration writes what was read before, or something else
        return 2 if count == 1 and buffer in self.doubled else count

    def check(self) -> None:
        """Raise IRValueError unless the pipeline computes what the loop does."""
        versions = {buffer.data: self.versions(buffer) for buffer in self.allocated}
        for buffer in self.allocated:
            if versions[buffer.data] > 1:
                self._check_start(buffer)
        for first, second in self._pairs():
            for buffer in _shared(first, second):
                self._check_pair(first, second, buffer, versions.get(buffer.data, 1))

    def _check_start(self, buffer: Buffer) -> None:
        users = [
            step
            for step in self.steps
            if step.regions(buffer, writes=True) or step.regions(buffer, writes=False)
        ]
        if users and users[0].regions(buffer, writes=False):
            raise IRValueError(
                f"InjectSoftwarePipeline: expected that each iteration writes {buffer.name} before "
                f"it reads it, since {buffer.name} gets a version for each of several iterations; "
                f"statement {users[0].position} reads what an earlier iteration wrote"
            )

    def _pairs(self) -> Iterator[tuple[Step, Step]]:
        for first in self.steps:
            for second in self.steps[first.position + 1 :]:
                yield first, second

    def _check_pair(self, first: Step, second: Step, buffer: Buffer, versions: int) -> None:
        extent = self.loop.extent
        furthest = min(self.depth, extent.value - 1) if isinstance(extent, IntImm) else self.depth
        for distance in range(-furthest, furthest + 1):
            was_first = distance >= 0
            is_first = (first.stage, first.order) < (second.stage + distance, second.order)
            if was_first == is_first or distance % versions:
                continue
            if distance == 0 or self._may_meet(first, second, buffer, distance):
                raise IRValueError(
                    f"InjectSoftwarePipeline: statements {first.position} (stage {first.stage}, "
                    f"order {first.order}) and {second.position} (stage {second.stage}, order "
                    f"{second.order}) cannot change places: both use {buffer.name}, which one of "
                    "them writes; give the first one the earlier stage, or the smaller order"
                )

    def _may_meet(self, first: Step, second: Step, buffer: Buffer, distance: int) -> bool:
        """Whether ``first`` and ``second`` so many iterations later may use one element."""
        loop, analyzer = self.loop, Analyzer()
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))
        later = {loop.loop_var: loop.loop_var + distance}
        for is_written in ((True, True), (True, False), (False, True)):
            for mine in first.regions(buffer, is_written[0]):
                for other in second.regions(buffer, is_written[1]):
                    if not _are_apart(mine.region, substitute(other.region, later), analyzer):
                        return True
        return False


def _shared(first: Step, second: Step) -> list[Buffer]:
    """The buffers that both steps use and one of them writes."""
    buffers = {region.buffer.data: region.buffer for region in first.block.writes}
    for region in first.block.reads:
        if second.regions(region.buffer, writes=True):
            buffers.setdefault(region.buffer.data, region.buffer)
    return [
        buffer
        for buffer in buffers.values()
        if second.regions(buffer, writes=True) or second.regions(buffer, writes=False)
    ]


def _are_apart(region: Sequence[Range], later: Sequence[Range], analyzer: Analyzer) -> bool:
    for mine, its in zip(region, later, strict=True):
        before: PrimExpr = mine.min + mine.extent <= its.min
        after: PrimExpr = its.min + its.extent <= mine.min
        if analyzer.can_prove(before) or analyzer.can_prove(after):
            return True
    return False


def numbers(loop: For, key: str, count: int) -> list[int]:
    """The annotation of a pipeline: a number of 0 or more for each of ``count`` statements."""
    value = loop.annotations[key]
    given = [int(item) for item in value] if isinstance(value, list | tuple) else None
    if given is None or len(given) != count or min(given, default=0) < 0:
        raise IRValueError(
            f"InjectSoftwarePipeline: {key} of the loop over {loop.loop_var.name}: expected a "
            f"number of at least 0 for each of its {count} statements, got {value}"
        )
    return given
