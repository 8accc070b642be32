"""Machines of a Ray cluster that work for a search."""

from weft.support.facade import module_getattr

_NAMES = {
    "JobLostError": "weft.driver.cluster.errors",
    "Machines": "weft.driver.cluster.machines",
    "NoMachineError": "weft.driver.cluster.errors",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
