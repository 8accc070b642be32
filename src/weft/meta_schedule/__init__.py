"""Search for schedules, with the interface of TVM's MetaSchedule."""

from weft.support.facade import module_getattr

_NAMES = {
    "derived_object": "weft.meta_schedule.utils",
}
_ROOMS = ("schedule_rule",)
__getattr__, __dir__ = module_getattr(__name__, _NAMES, _ROOMS)
