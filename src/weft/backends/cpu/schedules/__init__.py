"""Default schedules for CPUs: ``Default`` fits every function, ``Winograd`` those of its stages."""

from weft.backends.cpu.schedules.rule import Default
from weft.backends.cpu.schedules.winograd import Winograd

__all__ = ["Default", "Winograd"]
