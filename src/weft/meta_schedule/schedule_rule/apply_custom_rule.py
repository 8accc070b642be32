"""Rules of users, registered as functions and named by an annotation of the block."""

from __future__ import annotations

import logging

from weft.meta_schedule.annotations import SCHEDULE_RULE, annotation
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.target_facts import target_of
from weft.runtime.registry import get_global_func
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule


class ApplyCustomRule(ScheduleRule):
    """Schedules blocks that have the annotation ``schedule_rule`` by the function that it names.

    The function is ``meta_schedule.<key>.<name>`` for one of the keys of the target
    (``register_func``); it takes the schedule and the block and returns a list of schedules. Other
    rules leave such blocks alone. The name "None" stands for no rule: the block stays as it is. A
    block whose function is not registered is left to the other rules, with a warning.
    """

    def __init__(self) -> None:
        self.keys: tuple[str, ...] = ()
        self.logger = logging.getLogger("weft.meta_schedule")

    def _initialize_with_tune_context(self, context: Context) -> None:
        self.logger = context.logger
        self.keys = tuple(target_of(context, "ApplyCustomRule").keys)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """What the function of the block gives; ``[sch]`` for a block without annotation."""
        name = annotation(sch.get(block), SCHEDULE_RULE)
        if name is None or name == "None":
            return [sch]
        places = [f"meta_schedule.{key}.{name}" for key in self.keys]
        for place in places:
            function = get_global_func(place, allow_missing=True)
            if function is not None:
                return list(function(sch, block))
        self.logger.warning(
            "ApplyCustomRule: block %s asks for the rule %r, which is not registered as any of %s; "
            "the other rules schedule it",
            sch.get(block).name_hint,
            name,
            ", ".join(places),
        )
        sch.unannotate(block, SCHEDULE_RULE)
        return [sch]
