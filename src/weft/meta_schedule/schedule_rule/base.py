"""What a rule of a design space is: from one schedule, the schedules that a block may have."""

from __future__ import annotations

from abc import abstractmethod

from weft.meta_schedule.protocols import Part
from weft.meta_schedule.target_kinds import parts_of_kind
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


class ScheduleRule(Part):
    """Rewrites one block in one or more ways; sampling in them makes each a family."""

    @abstractmethod
    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that follow ``sch``; ``[sch]`` if the rule does not fit the block.

        ``sch`` itself may be changed and returned; where there are several, all but one are copies.
        """

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The rules that TVM uses for a kind of target, in their order.

        Args:
            kind: one of ``weft.meta_schedule.target_kinds.TARGET_KINDS``: "llvm", "cuda", ...

        >>> [type(rule).__name__ for rule in ScheduleRule.create("llvm")][:3]
        ['ApplyCustomRule', 'InlineConstantScalars', 'AutoInline']
        """
        rules: list[ScheduleRule] = parts_of_kind("schedule_rule", kind, "ScheduleRule.create")
        return rules


PyScheduleRule = ScheduleRule
"""TVM's name of the class that users derive from."""
