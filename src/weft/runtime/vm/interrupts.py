"""Ctrl-C in native loops: they call Python back from time to time, which raises what is pending.

A native loop counts its steps down in ``clock``, three numbers of int64: the steps left until it
calls, how many steps there were since the last call, and the time of that call in nanoseconds.
``between_steps`` chooses the next number so that calls are some 50 ms apart, whatever a step takes.
"""

from __future__ import annotations

import time
from typing import Final

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func

FIRST: Final = 64
"""Steps before the first call: most loops are shorter and are never interrupted."""
CLOCK: Final = (FIRST, FIRST, 0)
"""The clock as a loop begins."""
PERIOD: Final = 50_000_000
"""Nanoseconds between calls."""
MOST_GROWTH: Final = 16
"""The next number of steps is at most so many times the last one: steps differ."""


def between_steps(clock: NDArray) -> None:
    """Set the clock again. That Python runs at all lets it handle a signal, which may raise."""
    _, steps, last = clock.numpy().tolist()
    now = time.perf_counter_ns()
    following = steps
    if last:
        most = steps * MOST_GROWTH
        following = min(max(steps * PERIOD // max(now - last, 1), 1), most)
    clock._array[...] = (following, following, now)  # noqa: SLF001 - the same room


register_func("vm.builtin.between_steps", between_steps, override=True)
