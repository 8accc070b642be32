"""The default schedules for CPUs (``weft.backends.cpu.schedules``) under TVM's name."""

from weft.support.facade import module_getattr

_NAMES = {
    "Default": "weft.backends.cpu.schedules.rule",
    "Winograd": "weft.backends.cpu.schedules.winograd",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
