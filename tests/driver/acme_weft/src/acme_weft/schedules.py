"""A rule that leaves every kernel as it is written, in one loop after the other."""

from weft.dlight import ScheduleRule
from weft.tir import Schedule

SEEN: list[str] = []


class Serial(ScheduleRule):
    """No schedule at all."""

    def apply(self, func, target, tunable):
        """The function as it stands."""
        SEEN.append(target.kind.name)
        return Schedule(func)
