"""The reference interpreter, which defines what a PrimFunc means.

``run(func, *arguments)`` executes a function, lowered or not, on numpy arrays in place: it runs the
loops one iteration after the other, checks every index, and computes numbers as docs/reference
says. Schedules, passes and native code are tested against it; ``VerifyResults`` does so after each
pass.
"""

from weft.tir.interp.machine import run
from weft.tir.interp.verify import VerifyResults

__all__ = ["VerifyResults", "run"]
