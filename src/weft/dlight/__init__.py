"""Default schedules: programs over the Schedule API, chosen by the structure of blocks."""

from weft.dlight import cpu as cpu
from weft.dlight.apply import ApplyDefaultSchedule, ScheduleGeneratedFunctions, ScheduleRule

__all__ = ["ApplyDefaultSchedule", "ScheduleGeneratedFunctions", "ScheduleRule", "cpu"]
