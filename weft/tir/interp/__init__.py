"""The reference interpreter: what a PrimFunc means (design.md 3.3).

``run(func, *arguments)`` executes a function, lowered or not, on numpy arrays in place: plain
loops, every index checked, numbers as docs/reference says. Schedules, passes and native code are
tested against it.
"""

from weft.tir.interp.machine import run

__all__ = ["run"]
