"""What a rule of a design space is: from one schedule, the schedules that a block may have."""

from __future__ import annotations

from abc import abstractmethod

from weft.meta_schedule.protocols import Part
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


class ScheduleRule(Part):
    """Rewrites one block in one or more ways; sampling in them makes each a family."""

    @abstractmethod
    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that follow ``sch``; ``[sch]`` if the rule does not fit the block.

        ``sch`` itself may be changed and returned; where there are several, all but one are copies.
        """


PyScheduleRule = ScheduleRule
"""TVM's name of the class that users derive from."""
