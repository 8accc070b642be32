"""Loops that a schedule marks as software pipelines: statements of several iterations at a time.

A loop with ``software_pipeline_stage = [0, 0, 1]`` runs its first two statements an iteration ahead
of the third; those of the stages in ``software_pipeline_async_stages`` run beside the others. A
buffer that an early stage writes and a later one reads needs memory for several iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.stmt import BlockRealize, BufferStore, For, SeqStmt, Stmt

STAGE: Final = "software_pipeline_stage"
ORDER: Final = "software_pipeline_order"
ASYNC: Final = "software_pipeline_async_stages"


class PipelinedStmt(NamedTuple):
    """A statement of a pipelined loop, its stage, and whether it runs beside the others."""

    stmt: Stmt
    stage: int
    is_async: bool


def pipelined_stmts(loop: For) -> list[PipelinedStmt]:
    """The statements of a loop with their stages; none if it is no pipeline.

    Statements without a stage, as where the annotation is of another loop, are left out.
    """
    stages, beside = _numbers(loop, STAGE), _numbers(loop, ASYNC)
    body = _body(loop)
    parts = body.seq if isinstance(body, SeqStmt) else (body,)
    return [
        PipelinedStmt(stmt, stage, stage in beside)
        for stmt, stage in zip(parts, stages, strict=False)
    ]


def buffer_versions(loop: For) -> dict[Buffer, int]:
    """For how many iterations each buffer that the body allocates has to be kept; at least 2."""
    body = loop.body
    if not isinstance(body, BlockRealize):
        return {}
    stmts, versions = pipelined_stmts(loop), {}
    for buffer in body.block.alloc_buffers:
        writes = [
            item.stage
            for item in stmts
            if any(store.buffer is buffer for store in collect(item.stmt, BufferStore))
        ]
        reads = [
            item.stage
            for item in stmts
            if any(load.buffer is buffer for load in collect(item.stmt, BufferLoad))
        ]
        kept = max(reads, default=0) - min(writes, default=0) + 1
        if writes and kept > 1:
            versions[buffer] = kept
    return versions


def _body(loop: For) -> Stmt:
    """What a loop runs, inside of the block that allocates for it."""
    return loop.body.block.body if isinstance(loop.body, BlockRealize) else loop.body


def _numbers(loop: For, key: str) -> list[int]:
    value = loop.annotations.get(key)
    items: Iterator[object] = iter(value) if isinstance(value, list | tuple) else iter(())
    return [item.value if isinstance(item, IntImm) else int(str(item)) for item in items]
