"""What tests of tuning need: programs to tune, and comparisons of design spaces."""

from weft.support.facade import module_getattr

_NAMES: dict[str, str] = {}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, ("space_generation", "te_workload"))
