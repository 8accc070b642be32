"""Default schedules: programs over the Schedule API, chosen by the structure of blocks.

The rules for a processor are part of its backend; those for CPUs are also ``dlight.cpu``.
"""

from weft.support.facade import module_getattr

_NAMES = {
    "ApplyDefaultSchedule": "weft.dlight.apply",
    "ScheduleGeneratedFunctions": "weft.dlight.apply",
    "ScheduleRule": "weft.dlight.apply",
}
_PLANNED = {
    "gpu": "code generation for GPUs; weft.dlight.cpu has the rules for CPUs",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, ("cpu",), _PLANNED)
