"""Default schedules for CPUs: ``Default`` fits every function."""

from weft.dlight.cpu.rule import Default

__all__ = ["Default"]
