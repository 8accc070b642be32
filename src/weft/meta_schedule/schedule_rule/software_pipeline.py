"""Loops whose copies run ahead of the computation: annotations for software pipelining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar

from weft.tir.schedule.random_variable import LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import For, SeqStmt


class _Tiled(Protocol):
    sch: Schedule
    tiles: list[list[LoopRV]]

    def copy(self) -> Self: ...


_Work = TypeVar("_Work", bound=_Tiled)


def pipelined(tiling: _Work, level: int, stages: Sequence[int]) -> list[_Work]:
    """For each number of stages, a copy in which the loops of a level run in so many.

    None where the innermost of them does not run exactly two copies and a computation.
    """
    loop: For = tiling.sch.get(tiling.tiles[level][-1])
    parts = loop.body.seq if isinstance(loop.body, SeqStmt) else ()
    if len(parts) != 3 or not all(isinstance(part, For) for part in parts):
        return []
    copies = [tiling.copy() for _ in stages]
    for copy, count in zip(copies, stages, strict=True):
        fused = copy.sch.fuse(*copy.tiles[level])
        copy.sch.annotate(fused, "software_pipeline_stage", [0, 0, count - 2])
        copy.sch.annotate(fused, "software_pipeline_order", [0, 1, 2])
        copy.sch.annotate(fused, "software_pipeline_async_stages", [0])
    return copies
