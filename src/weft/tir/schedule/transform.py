"""Changes of a schedule that take several primitives: tiling a block for an intrinsic."""

from __future__ import annotations

from weft.tir.schedule.analysis.loop_mapping import TensorizeInfo, get_tensorize_loop_mapping
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.tensor_intrinsic import TensorIntrin


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Split the loops of a block so that its inner tile has the extents of a tensor intrinsic.

    Args:
        sch: the schedule.
        block: the block that the intrinsic is to replace.
        intrin_name: the name of the intrinsic (``TensorIntrin.register``).
        allow_padding: whether extents that the intrinsic's do not divide may be padded.

    Returns:
        The outermost loop of the tile, for ``blockize`` or ``tensorize``; None if the loops do not
        fit, and then nothing changes.
    """
    intrin = TensorIntrin.get(intrin_name)
    assert intrin is not None
    info = get_tensorize_loop_mapping(sch, block, intrin.desc, allow_padding)
    if info is None or not info.loop_map:
        return None
    if info.block_iter_paddings is not None:
        _pad(sch, block, info.block_iter_paddings)
    inner = _split(sch, block, info)
    loops = sch.get_loops(block)
    first = min(loops.index(loop) for loop in loops if _is_one_of(sch, loop, inner))
    outer = [loop for loop in loops[first:] if not _is_one_of(sch, loop, inner)]
    sch.reorder(*outer, *inner)
    return inner[0]


def _split(sch: Schedule, block: BlockRV, info: TensorizeInfo) -> list[LoopRV]:
    """Split each loop; the inner parts, in the order of the description."""
    loops = {sch.get_sref(loop): loop for loop in sch.get_loops(block)}
    inner: dict[int, LoopRV] = {}
    for sref, desc_loop in info.loop_map.items():
        # The outer extent is left open, so that a trace fits other sizes.
        parts = sch.split(loops[sref], [None, desc_loop.extent])
        inner[info.desc_loop_indexer[desc_loop]] = parts[1]
    return [inner[place] for place in sorted(inner)]


def _is_one_of(sch: Schedule, loop: LoopRV, others: list[LoopRV]) -> bool:
    return any(sch.get_sref(loop) is sch.get_sref(other) for other in others)


def _pad(sch: Schedule, block: BlockRV, paddings: list[int]) -> None:
    """Pad the axes of a block; copies that only pad take in what they copy."""
    producers = {sch.get_sref(item) for item in sch.get_producers(block)}
    consumers = {sch.get_sref(item) for item in sch.get_consumers(block)}
    sch.pad_einsum(block, paddings)
    joined = []
    for copy in sch.get_producers(block):
        if sch.get_sref(copy) not in producers:
            joined += sch.get_producers(copy)
    for copy in sch.get_consumers(block):
        if sch.get_sref(copy) not in consumers and sch.get_consumers(copy):
            joined.append(copy)
    for item in joined:
        sch.compute_inline(item)
