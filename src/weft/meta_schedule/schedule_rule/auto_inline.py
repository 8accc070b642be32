"""Inlining: blocks that compute element by element disappear in those that use them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.op import Op
from weft.meta_schedule import block_questions
from weft.meta_schedule.access_pattern import access_pattern
from weft.meta_schedule.annotations import INLINE_RULE, TENSORIZE, annotation
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.tir.schedule import flags, tree
from weft.tir.schedule.analysis.block_kinds import is_output_block, would_apply
from weft.tir.schedule.dependence import consumers_of, producers_of
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Block


class AutoInline(ScheduleRule):
    """Inlines a block into its consumers, or else into its producer, where that is worth it.

    In a function without reductions every block that can be inlined is. In others the conditions
    of the arguments hold.

    Args:
        into_producer: whether a block may move into the block that it reads.
        into_consumer: whether a block may move into the blocks that read it.
        inline_const_tensor: whether blocks that read nothing are inlined whatever else holds.
        disallow_if_then_else: whether blocks with branches or padding stay.
        require_injective: whether each element that is read must be read once.
        require_ordered: whether the axes must keep their order.
        disallow_op: functions, such as "tir.exp", whose blocks stay since they are costly to
            compute again.
    """

    def __init__(
        self,
        into_producer: bool,
        into_consumer: bool,
        inline_const_tensor: bool,
        disallow_if_then_else: bool,
        require_injective: bool,
        require_ordered: bool,
        disallow_op: Sequence[str] | None = None,
    ) -> None:
        self.into_producer = into_producer
        self.into_consumer = into_consumer
        self.inline_const_tensor = inline_const_tensor
        self.disallow_if_then_else = disallow_if_then_else
        self.require_injective = require_injective
        self.require_ordered = require_ordered
        self.disallow_op = tuple([Op.get(name) for name in disallow_op or ()])

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """``[sch]``, in which the block may be inlined."""
        stmt: Block = sch.get(block)
        if len(stmt.writes) != 1 or block_questions.is_root(sch, block):
            return [sch]
        if self.inline_const_tensor and not stmt.reads and can_inline(sch, block):
            sch.compute_inline(block)
        elif self._is_cheap(sch, block) and annotation(stmt, INLINE_RULE) != "disable":
            if self.into_consumer and can_inline(sch, block):
                sch.compute_inline(block)
            elif self.into_producer and _can_join_producer(sch, block):
                sch.reverse_compute_inline(block)
        return [sch]

    def _is_cheap(self, sch: Schedule, block: BlockRV) -> bool:
        """Whether computing the block where it is used costs little more."""
        if block_questions.in_spatial_function(sch, block):
            return True
        realize = tree.realize_of(sch.state, block_questions.reference(sch, block))
        if block_questions.calls_any(realize, self.disallow_op):
            return False
        if self.disallow_if_then_else and block_questions.has_condition(realize):
            return False
        return self._reads_in_order(realize.block)

    def _reads_in_order(self, block: Block) -> bool:
        if not (self.require_injective or self.require_ordered):
            return True
        for read in block.reads:
            pattern = access_pattern(read, block.writes[0])
            if pattern is None or (self.require_injective and not pattern.injective):
                return False
            if self.require_ordered and not pattern.ordered:
                return False
        return True


def can_inline(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block has consumers and can be inlined into all of them."""
    sref = block_questions.reference(sch, block)
    scope = tree.scope_of(sref)
    assert scope is not None
    used = bool(consumers_of(tree.block_of(sref), tree.stmt_of(scope)))
    return used and would_apply(sch, lambda: sch.compute_inline(block))


def _can_join_producer(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block has one producer, complete and not for an intrinsic, that can take it in."""
    sref = block_questions.reference(sch, block)
    scope = tree.scope_of(sref)
    assert scope is not None
    producers = [
        sch.state.sref_of(item) for item in producers_of(tree.block_of(sref), tree.stmt_of(scope))
    ]
    if len(producers) != 1:
        return False
    producer = tree.block_of(producers[0])
    return (
        annotation(producer, TENSORIZE) is None
        and flags.complete_violation(producer, tree.stmt_of(scope)) is None
        and would_apply(sch, lambda: sch.reverse_compute_inline(block))
    )


class InlineConstantScalars(ScheduleRule):
    """Inlines blocks that compute one constant number.

    It stands before ``AutoInline``, which else would count them as producers.
    """

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """``[sch]``, in which the block may be inlined."""
        stmt: Block = sch.get(block)
        is_scalar = len(stmt.writes) == 1 and not stmt.reads and not stmt.writes[0].buffer.shape
        if is_scalar and not is_output_block(sch, block) and can_inline(sch, block):
            sch.compute_inline(block)
        return [sch]
