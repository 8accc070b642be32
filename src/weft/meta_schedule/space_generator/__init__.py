"""Generators of design spaces: from a module, the schedules whose decisions a search varies."""

from weft.meta_schedule.space_generator.base import (
    PySpaceGenerator,
    ScheduleFnType,
    SpaceGenerator,
)
from weft.meta_schedule.space_generator.default_schedule import DefaultSchedule
from weft.meta_schedule.space_generator.post_order_apply import PostOrderApply
from weft.meta_schedule.space_generator.schedule_fn import ScheduleFn
from weft.meta_schedule.space_generator.space_generator_union import SpaceGeneratorUnion

__all__ = [
    "DefaultSchedule",
    "PostOrderApply",
    "PySpaceGenerator",
    "ScheduleFn",
    "ScheduleFnType",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
]
create = SpaceGenerator.create
