"""Putting intrinsics in the place of the blocks that are marked for them."""

from __future__ import annotations

from weft.meta_schedule.annotations import TENSORIZE, annotation
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.postproc.scheduled_functions import functions
from weft.support.errors import ScheduleError
from weft.tir.schedule import tree
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Block


class RewriteTensorize(Postproc):
    """Replaces blocks with the annotation ``meta_schedule.auto_tensorize`` by that intrinsic.

    A block that the intrinsic does not fit stays as loops, which compute the same.

    Args:
        vectorize_init_loop: whether the loop of an init without an intrinsic runs in a vector.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        """Replace the blocks; always True."""
        for name, function, intrinsic in _marked(sch):
            if not intrinsic and not self.vectorize_init_loop:
                continue
            block = sch.get_block(name, function)
            sch.unannotate(block, TENSORIZE)
            if intrinsic:
                _tensorize(sch, block, intrinsic)
            else:
                _vectorize(sch, block)
        return True


def _marked(sch: Schedule) -> list[tuple[str, str, str]]:
    """The marked blocks, inner ones first: names of block, function and intrinsic."""
    marked = [
        (item.name_hint, var.name_hint, str(annotation(item, TENSORIZE)))
        for var, func in functions(sch)
        for item in tree.all_references(func.body)
        if isinstance(item, Block) and annotation(item, TENSORIZE) is not None
    ]
    return marked[::-1]


def _tensorize(sch: Schedule, block: BlockRV, intrinsic: str) -> None:
    try:
        sch.tensorize(block, intrinsic)
    except ScheduleError:  # the loops of the block compute what the intrinsic would
        return


def _vectorize(sch: Schedule, block: BlockRV) -> None:
    """Run the loop of an init in a vector, if it is one loop around one block."""
    blocks = sch.get_child_blocks(block)
    loops = sch.get_loops(blocks[0]) if len(blocks) == 1 else []
    if len(loops) == 1:
        sch.vectorize(loops[0])
