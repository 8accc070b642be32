"""Attention without the matrix of all scores: softmax(Q K^T) V for a block of queries at a time.

Each block of queries passes all stages while its scores stay in cache. The scores are stored with
the queries innermost, so that vectors run over queries in every stage up to the division: the
product with the keys (a register tile of keys by queries, for which a block of queries is
transposed in registers first), the largest score, the powers and their sum. No stage has to sum
across the lanes of a vector. In the product with the values, vectors run over features; each tile
is divided by the sums of its queries when it is stored.

Source: Dao, Fu, Ermon, Rudra and Re, "FlashAttention" (NeurIPS 2022), and Rabe and Staats,
"Self-attention Does Not Need O(n^2) Memory" (2021). They sum over blocks of keys and correct the
sums when a larger score comes. That is not needed here: the scores of a block, ``keys * queries of
a block`` numbers, fit the second cache for up to thousands of keys, and beyond that each score is
read once for ``4 * features`` operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.backends.cpu.schedules.elementwise import run_in_parallel
from weft.backends.cpu.schedules.tile_loops import mark_tile, order_sum
from weft.backends.cpu.schedules.tiles import Tile, most_rows
from weft.backends.cpu.vectors.fill_tails import FILL_TAIL
from weft.backends.cpu.vectors.transpose_tile import TRANSPOSE
from weft.dlight.nest import Access, Nest, blocks_of, loops_of, product
from weft.ir.functor import collect
from weft.target.machine import Machine
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Var
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.transform.loop_partition import HINT as LOOP_PARTITION_HINT

_VECTORS: Final = 2
"""Vectors of queries in a block: a tile that is two vectors wide has enough rows to hide loads."""
_WIDEST: Final = 4
"""The most vectors of features in a tile."""
_START: Final = 2
"""What the start and the end of a tile of scores cost, in keys: as long as two more would take."""
_LEAST: Final = 4
"""A tile of fewer keys takes as long as one of four: its multiply-adds wait for each other."""
_STREAM: Final = 16
"""Bytes of values that the second cache delivers in a cycle while everything else goes on."""


@dataclass(frozen=True)
class Parts:
    """The blocks of attention, once all others are inlined."""

    scores: BlockRV
    """(batch, head, query, key), summed over features."""
    logits: BlockRV
    """Scores scaled and masked."""
    largest: BlockRV
    """(batch, head, query), of the logits."""
    powers: BlockRV
    """``exp(logits - largest)``."""
    total: BlockRV
    """(batch, head, query), of the powers."""
    share: BlockRV
    """(batch, head, query), the reciprocal of the total."""
    combined: BlockRV
    """Batch, query, head and feature in any order, summed over keys."""
    result: BlockRV
    """What is combined times the share."""


def schedule(sch: Schedule, machine: Machine) -> bool:
    """Schedule a function that is one attention; False for all others, and for few queries."""
    parts = _parts(sch)
    if parts is None:
        return False
    scores = Nest(sch, parts.scores)
    query, key = _axes(scores)[2:]
    length, lanes = scores.extent(query), machine.lanes()
    if length is not None and length < lanes:
        return False  # vectors of queries would be empty
    if 1 in (scores.extent(key), *[scores.extent(axis) for axis in scores.reduced]):
        return False  # sums of one term
    across = _across(length, lanes)
    is_masked = Nest(sch, parts.logits).calls > 0
    keys = _keys_of_tile(machine, across, scores.extent(key), is_masked)
    for block in (parts.scores, parts.logits, parts.powers):
        sch.transform_layout(block, ("write", 0), lambda b, h, i, j: (b, h, j, i))
    packed = _transposed_queries(sch, scores, query)
    outer, inside = _blocks_of_queries(sch, parts, machine, across)
    _blocks_of_keys(sch, parts, inside, keys)
    sch.compute_at(packed, inside)
    depth = 1 if sch.get(outer) is sch.get(inside) else 2
    run_in_parallel(sch, [outer], machine)
    for block, after in ((parts.scores, parts.logits), (parts.combined, parts.result)):
        axes = _axes(Nest(sch, block))
        order_sum(sch, block, axes, len(sch.get_loops(after)) - 2)
    _transpose(sch, packed)
    _vectors_of_queries(sch, parts.powers, -2)
    for source, block in ((parts.logits, parts.largest), (parts.powers, parts.total)):
        _accumulate(sch, source, block, depth)
    sch.vectorize(sch.get_loops(parts.share)[-1])
    _fill_tails(sch, parts)
    return True


# The parts


def _parts(sch: Schedule) -> Parts | None:
    """The blocks of attention; None if the function is something else."""
    nests = [Nest(sch, block) for block in blocks_of(sch)]
    reductions = [nest.rv for nest in nests if nest.is_reduction]
    ranks = [len(_axes(nest)) for nest in nests if nest.is_reduction]
    if sorted(ranks) != [3, 3, 4, 4] or not all(nest.is_plain for nest in nests):
        return None
    (scores, combined), (largest, total) = [
        [block for block in reductions if len(_axes(Nest(sch, block))) == rank] for rank in (4, 3)
    ]
    logits, powers = _spatial_producer(sch, largest), _spatial_producer(sch, total)
    shares = [block for block in sch.get_consumers(total) if Nest(sch, block).is_spatial]
    if logits is None or powers is None or len(shares) != 1 or not nests[-1].is_spatial:
        return None
    parts = Parts(scores, logits, largest, powers, total, shares[0], combined, nests[-1].rv)
    for nest in nests:
        kept = {sch.get(block) for block in vars(parts).values()}  # inlining makes new blocks
        if sch.get(nest.rv) not in kept:
            sch.compute_inline(nest.rv)
    return parts if _is_attention(sch, parts) else None


def _spatial_producer(sch: Schedule, block: BlockRV) -> BlockRV | None:
    """The only block whose result ``block`` reads, if that is spatial; else None."""
    producers = sch.get_producers(block)
    return producers[0] if len(producers) == 1 and Nest(sch, producers[0]).is_spatial else None


def _is_attention(sch: Schedule, parts: Parts) -> bool:
    """Whether the blocks read each other, and the function's arguments, as in attention."""
    expected = {
        parts.logits: [parts.scores],
        parts.largest: [parts.logits],
        parts.powers: [parts.logits, parts.largest],
        parts.total: [parts.powers],
        parts.share: [parts.total],
        parts.combined: [parts.powers],
        parts.result: [parts.combined, parts.share],
    }
    for block, producers in expected.items():
        actual = {sch.get(producer) for producer in sch.get_producers(block)}
        if actual != {sch.get(producer) for producer in producers}:
            return False
    if any(len(_axes(Nest(sch, block))) != 4 for block in (parts.logits, parts.powers)):
        return False
    scores, result = Nest(sch, parts.scores), Nest(sch, parts.result)
    has_rows = _rows_of(sch, result, parts.share) is not None
    return has_rows and len(scores.loads) == 2 and _query_of(scores, _axes(scores)[2]) is not None


def _axes(nest: Nest) -> list[Var]:
    """The axes in the order in which they index the result; empty if indices are no plain axes."""
    if len(nest.stores) != 1:
        return []
    indices = nest.stores[0].indices
    axes = [index for index in indices if isinstance(index, Var)]
    return axes if len(axes) == len(indices) == len(set(axes)) else []


def _query_of(scores: Nest, query: Var) -> Access | None:
    """The load of the queries: the only one with ``query`` as an index; None if there is none."""
    queries = [load for load in scores.loads if load.uses(query)]
    return queries[0] if len(queries) == 1 and queries[0].position(query) is not None else None


# Layouts


def _transposed_queries(sch: Schedule, scores: Nest, query: Var) -> BlockRV:
    """Copy the queries to a buffer with queries innermost; returns the block that copies."""
    load = _query_of(scores, query)
    assert load is not None
    place = load.position(query)
    assert place is not None
    index = [region.buffer for region in scores.block.reads].index(load.buffer)
    copy = sch.cache_read(scores.rv, index, "global")
    sch.transform_layout(
        copy,
        ("write", 0),
        lambda *axes: [*[axis for at, axis in enumerate(axes) if at != place], axes[place]],
    )
    return copy


# Loops


def _blocks_of_queries(
    sch: Schedule, parts: Parts, machine: Machine, across: int
) -> tuple[LoopRV, LoopRV]:
    """Tile the result and the product with the values.

    Returns the parallel loop and the loop over blocks of queries. They are one loop, unless the
    last block is smaller and the heads alone keep the cores busy: lowering can cut off the last
    iteration of a loop that is not fused.
    """
    result = Nest(sch, parts.result)
    rows_of_result = _rows_of(sch, result, parts.share)
    assert rows_of_result is not None
    batch, head, query = rows_of_result
    [feature] = [axis for axis in _axes(result) if axis not in rows_of_result]
    loops = dict(zip([axis.var for axis in result.axes], sch.get_loops(parts.result), strict=True))
    tile = _tile_of(machine, across, result.extent(query), result.extent(feature))
    block, inner = sch.split(loops[query], [None, across])
    rows, row = sch.split(inner, [None, tile.rows])
    columns, column = sch.split(loops[feature], [None, tile.columns])
    sch.reorder(loops[batch], loops[head], block, rows, columns, row, column)
    sch.unroll(row)
    sch.vectorize(column)
    heads = [loops[batch], loops[head]]
    size = result.extent(query)
    is_whole = size is not None and size % across == 0
    if is_whole or not _keep_busy(product([result.extent(batch), result.extent(head)]), machine):
        outer = inside = sch.fuse(*heads, block)
    else:
        outer, inside = sch.fuse(*heads), block
    sch.set_scope(parts.combined, 0, "local")
    sch.compute_at(parts.combined, columns)
    return outer, inside


def _keep_busy(parts: int | None, machine: Machine) -> bool:
    """Whether equal parts, as many as ``parts``, keep the cores busy for 7/8 of the time."""
    return parts is not None and (parts % machine.cores == 0 or parts >= 8 * machine.cores)


def _across(length: int | None, lanes: int) -> int:
    """How many queries a block has: two vectors, or one if less of the last block is then empty."""
    if length is None:
        return lanes * _VECTORS
    sizes = [lanes * count for count in range(_VECTORS, 0, -1)]
    return min(sizes, key=lambda size: -(-length // size) * size)


def _keys_of_tile(machine: Machine, across: int, keys: int | None, is_masked: bool) -> int:
    """How many keys a register tile has, so that all tiles take the fewest cycles.

    With a mask, tiles that divide the keys come first: lowering cuts the loop at the mask already.
    """
    most = most_rows(machine, -(-across // machine.lanes()))
    if keys is None or keys <= most:
        return most if keys is None else keys
    sizes = range(-(-most // 2), most + 1)
    whole = [rows for rows in sizes if keys % rows == 0]
    return min(
        whole if is_masked and whole else sizes, key=lambda rows: (_tiles(keys, rows), -rows)
    )


def _tiles(keys: int, rows: int) -> float:
    """The cost of tiles of ``rows`` keys, in the time of a key."""
    whole, left = divmod(keys, rows)
    return whole * (rows + _START) + (max(left, _LEAST) + _START if left else 0)


def _tile_of(machine: Machine, across: int, length: int | None, columns: int | None) -> Tile:
    """The register tile of the product with the values that takes the fewest cycles.

    The values of a head stream from the second cache. The tile divides the block of queries, since
    else queries of the next block would be computed twice. It must not divide the last block, if
    that is smaller: the guard would be on whole tiles (``3 * block + tile < 5``), and the proof
    that producers cover what is read fails on such guards.
    """
    lanes = machine.lanes()
    width = 4 * lanes if columns is None else columns
    while lanes > 1 and lanes // 2 >= width:
        lanes //= 2
    tail = 0 if length is None else length % across
    tiles = [
        Tile(rows, vectors, lanes)
        for vectors in range(1, _WIDEST + 1)
        if vectors == 1 or (vectors - 1) * lanes < width
        for rows in range(1, min(most_rows(machine, vectors), across) + 1)
        if across % rows == 0 and (not tail or tail % rows)
    ]
    rest = Tile(lanes, 1, lanes)  # for targets that have more lanes than registers
    return min(tiles, key=lambda tile: (_cycles(machine, tile, width), -tile.rows), default=rest)


def _cycles(machine: Machine, tile: Tile, width: int) -> float:
    """Cycles per row of one step of the reduction over ``width`` columns."""
    streamed = 4 * tile.columns / _STREAM
    step = max(tile.products / machine.fma_ports, (tile.vectors + tile.rows) / 2, 4.75, streamed)
    return step / tile.rows * -(-width // tile.columns)


def _rows_of(sch: Schedule, result: Nest, share: BlockRV) -> tuple[Var, Var, Var] | None:
    """The axes by which the result reads the shares: batch, head, query; None for another form."""
    written = Nest(sch, share).stores[0].buffer
    loads = [load for load in collect(result.block.body, BufferLoad) if load.buffer is written]
    axes = [axis for axis in loads[0].indices if isinstance(axis, Var)] if loads else []
    same = all(list(load.indices) == axes for load in loads)
    if not same or len(axes) != 3 or not set(axes) <= set(_axes(result)) or len(set(axes)) != 3:
        return None
    return axes[0], axes[1], axes[2]


def _blocks_of_keys(sch: Schedule, parts: Parts, inside: LoopRV, rows: int) -> None:
    """Compute all stages before the product with the values in the loop over blocks of queries.

    The scores are computed in register tiles of ``rows`` keys.
    """
    for block in (parts.share, parts.total, parts.powers, parts.largest, parts.logits):
        sch.compute_at(block, inside)
    query, key = sch.get_loops(parts.logits)[-2:]
    keys, row = sch.split(key, [None, rows])
    sch.reorder(keys, row, query)
    sch.unroll(row)
    sch.vectorize(query)
    if len(Nest(sch, parts.logits).loads) == 1:
        # On the diagonal of a mask lanes choose between values in registers; no loop need be cut.
        sch.annotate(query, LOOP_PARTITION_HINT, 0)
    sch.set_scope(parts.scores, 0, "local")
    sch.compute_at(parts.scores, keys)


def _transpose(sch: Schedule, packed: BlockRV) -> None:
    """Mark the copy of a block of queries for TransposeTile."""
    query, feature = sch.get_loops(packed)[-2:]
    sch.reorder(feature, query)
    sch.annotate(feature, TRANSPOSE, 1)
    sch.vectorize(query)


def _vectors_of_queries(sch: Schedule, block: BlockRV, place: int) -> None:
    """Move the loop over queries, at position ``place``, innermost and make it vectors."""
    loops = list(sch.get_loops(block))
    query = loops[place]
    loops.remove(query)
    sch.reorder(*loops[-1:], query)
    sch.vectorize(query)


def _accumulate(sch: Schedule, source: BlockRV, block: BlockRV, depth: int) -> None:
    """Compute the largest logit, or the sum of powers, in the loops of ``source``, which it reads.

    ``depth`` is the number of loops around the loop over keys, or over tiles of keys.
    """
    keys = sch.get_loops(source)[depth]
    sch.reverse_compute_at(block, keys)
    nest = Nest(sch, block)
    loops = loops_of(sch, nest, depth + 1)
    query = loops[nest.spatial[-1]]
    key = [loop for axis, loop in loops.items() if axis in nest.reduced]
    sch.reorder(*key, query)
    mark_tile(sch, [*key, query])
    start = sch.decompose_reduction(block, keys)
    sch.vectorize(sch.get_loops(start)[-1])


def _fill_tails(sch: Schedule, parts: Parts) -> None:
    """Compute the last block of queries in whole vectors, in all buffers local to a block."""
    kept = {sch.get(block).writes[0].buffer.data for block in (parts.combined, parts.result)}
    for block in blocks_of(sch):
        if sch.get(block).writes[0].buffer.data not in kept:
            sch.annotate(block, FILL_TAIL, 1)
