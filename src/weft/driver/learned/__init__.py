"""A cost model that learns from what ``weft tune --collect`` wrote."""

from weft.support.facade import module_getattr

_NAMES = {
    "LearnedOrder": "weft.driver.learned.trees",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
