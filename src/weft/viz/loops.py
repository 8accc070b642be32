"""The loops of a scheduled kernel: extents, trip counts, bytes and operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.script.printed import Printed
from weft.support.errors import TVMError
from weft.support.recursion import deep_recursion
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.analysis.resources import estimate_tir_flops
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, SeqStmt, Stmt, While

Row = dict[str, object]
_UNBOUNDED: Final = 1 << 31
KINDS: Final = {
    ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized", ForKind.UNROLLED: "unrolled",
}  # fmt: skip


@deep_recursion
def loop_rows(printed: Printed) -> list[Row]:
    """A row for each loop, in order.

    ``trip`` is how often the body runs in one execution of the loop, ``bytes`` the memory outside
    of registers that one execution touches, each byte once, at most, ``flops`` its operations on
    floats, where the last tile counts as a whole one.
    """
    analyzer = Analyzer()
    for loop in collect(printed.func.body, For):
        analyzer.bind(loop.loop_var, loop.domain, True)
    return [
        {
            "var": loop.loop_var.name,
            "extent": str(loop.extent.value if isinstance(loop.extent, IntImm) else loop.extent),
            "trip": loop.extent.value if isinstance(loop.extent, IntImm) else None,
            "kind": KINDS.get(loop.kind, "serial"),
            "depth": depth,
            "line": printed.lines.get(id(loop), 0),
            "bytes": bytes_of(loop, printed.func, analyzer),
            "flops": flops_of(loop),
        }
        for loop, depth in _loops(printed.func.body, 0)
    ]


def _loops(stmt: Stmt, depth: int) -> Iterator[tuple[For, int]]:
    if isinstance(stmt, For):
        yield stmt, depth
        depth += 1
    for name in stmt.CHILDREN:
        value = getattr(stmt, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Stmt):
                yield from _loops(item, depth)


@deep_recursion
def flops_of(stmt: Stmt) -> float | None:
    """Operations of a statement; None where they depend on data or on symbols."""
    if isinstance(stmt, For):
        inner = flops_of(stmt.body)
        if inner is None or not isinstance(stmt.extent, IntImm):
            return None
        return stmt.extent.value * inner
    if isinstance(stmt, BlockRealize):
        return flops_of(stmt.block.body)
    if isinstance(stmt, SeqStmt):
        parts = [flops_of(item) for item in stmt.seq]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None
    try:
        return float(estimate_tir_flops(stmt))
    except TVMError:
        return None


@deep_recursion
def accesses_of(func: PrimFunc) -> dict[Var, int] | None:
    """How many elements a call of a function reads and writes at most, by the buffer's data.

    A table from which some rows are taken is read far less than it holds. A buffer that is used in
    a loop of unknown extent is left out; None where the code reaches buffers by their addresses.
    """
    block = Block([], [], [], "body", func.body)
    buffers = {buffer.data: buffer for buffer in func.buffer_map.values()}
    if get_block_access_region(block, buffers)[2]:
        return None
    if any(inner.match_buffers for inner in collect(func.body, Block)):
        return None
    counts: dict[Var, float] = {}
    _count_accesses(func.body, 1, counts)
    return {data: int(count) for data, count in counts.items() if count < math.inf}


def _count_accesses(stmt: Stmt, times: float, counts: dict[Var, float]) -> None:
    if isinstance(stmt, For):
        times *= stmt.extent.value if isinstance(stmt.extent, IntImm) else math.inf
    elif isinstance(stmt, While):
        times = math.inf
    uses: list[BufferLoad | BufferStore] = [stmt] if isinstance(stmt, BufferStore) else []
    for name in stmt.CHILDREN:
        value = getattr(stmt, name)
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Stmt):
                _count_accesses(item, times, counts)
            elif isinstance(item, PrimExpr):
                uses += collect(item, BufferLoad)
    for use in uses:
        lanes = math.prod([index.dtype.lanes for index in use.indices])
        data = use.buffer.data
        counts[data] = counts.get(data, 0) + times * lanes


def bytes_of(stmt: Stmt, func: PrimFunc, analyzer: Analyzer) -> int | None:
    """Bytes that a statement touches outside of local buffers; None for symbolic sizes."""
    block = Block([], [], [], "loop", stmt)
    buffers = {buffer.data: buffer for buffer in func.buffer_map.values()}
    try:
        reads, writes, opaque = get_block_access_region(block, buffers)
    except TVMError:
        return None
    if opaque:
        return None
    return touched([*reads, *writes], analyzer)


def touched(regions: Iterable[BufferRegion], analyzer: Analyzer) -> int | None:
    """The bytes of regions at most; a buffer that is read and written counts once."""
    sizes: dict[Buffer, int] = {}
    for region in regions:
        buffer = region.buffer
        if buffer.scope() == "local":
            continue
        elements = 1
        for extent, whole in zip(
            [axis.extent for axis in region.region], buffer.shape, strict=True
        ):
            limits = [analyzer.const_int_bound(item).max_value for item in (extent, whole)]
            if min(limits) >= _UNBOUNDED:
                return None
            elements *= min(limits)
        size = elements * buffer.dtype.bits * buffer.dtype.lanes // 8
        sizes[buffer] = max(sizes.get(buffer, 0), size)
    return sum(sizes.values())
