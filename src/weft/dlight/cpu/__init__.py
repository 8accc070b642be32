"""Default schedules for CPUs: ``Default`` fits every function, ``Winograd`` those of its stages."""

from weft.dlight.cpu.rule import Default
from weft.dlight.cpu.winograd import Winograd

__all__ = ["Default", "Winograd"]
