"""The reference interpreter: what a PrimFunc means (design.md 3.3).

``run(func, *arguments)`` executes a function, lowered or not, on numpy arrays in place: plain
loops, every index checked, numbers as docs/reference says. Schedules, passes and native code are
tested against it; ``VerifyResults`` does so after each pass.
"""

from weft.tir.interp.machine import run
from weft.tir.interp.verify import VerifyResults

__all__ = ["VerifyResults", "run"]
