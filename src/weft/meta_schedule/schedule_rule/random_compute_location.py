"""Moving a block to a random place among the loops of its consumers."""

from __future__ import annotations

from weft.meta_schedule.annotations import RANDOM_PRODUCER, annotation
from weft.meta_schedule.block_questions import is_root, is_tiled, reference
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.tir.schedule import tree
from weft.tir.schedule.dependence import consumers_of
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


class RandomComputeLocation(ScheduleRule):
    """Computes a block inside a random loop of its consumer, inlines it, or leaves it.

    This is for blocks with loops of their own that were not tiled. A producer that ``AddRFactor``
    marked moves as well.
    """

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """``[sch]``, in which the block may have moved."""
        if is_root(sch, block) or not _stands_alone(sch, block):
            return [sch]
        moved = [block]
        if annotation(sch.get(block), RANDOM_PRODUCER) == 1:
            # They are looked up first: the block may be inlined.
            moved += sch.get_producers(block)
            sch.unannotate(block, RANDOM_PRODUCER)
        for item in moved:
            sch.compute_at(item, sch.sample_compute_location(item), preserve_unit_loops=True)
        return [sch]


def _stands_alone(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block of the root has loops that run nothing else, and a consumer."""
    sref = reference(sch, block)
    scope = tree.scope_of(sref)
    loops = tree.loops_above(sref)
    if scope is None or scope.parent is not None or not loops or is_tiled(tree.block_of(sref)):
        return False
    alone = len(tree.child_realizes(tree.stmt_of(loops[0]))) == 1
    return alone and bool(consumers_of(tree.block_of(sref), tree.stmt_of(scope)))
