"""What the processor can do at most: multiply-adds in registers, copies of memory.

``python -m benchmarks.limits`` serves both as engines that are asked in turn with those that are
compared (``weft.cli.engines``), so that all figures share one clock and one state of the machine.
Each thread runs independent chains of fused multiply-adds that stay in vector registers, or copies
its part of an array by numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

import weft
from weft.cli.engines import Call, Server, Setup, answer_requests
from weft.target.machine import machine_of
from weft.viz.limits import chains_of as chains_for
from weft.viz.limits import peak_program

PEAK, COPY = "FMA peak", "copy"
LANES: Final = machine_of().lanes(32)
CHAINS: Final = chains_for(machine_of().vector_registers)
ROUNDS: Final = 1_000_000
FLOPS: Final = 2.0 * CHAINS * LANES * ROUNDS
"""Of one run of ``peak`` in one thread."""
MOVED: Final = 1 << 28
"""Bytes that one call of the copy reads and writes at least, so that threads cost nothing."""
LARGEST: Final = 1 << 28
"""Bytes beyond which a copy gets no slower."""


peak: Final = peak_program(LANES, CHAINS, ROUNDS)


def chains_of(kernel: Callable[..., Any], lanes: int = LANES, chains: int = CHAINS) -> Call:
    """A call of the built ``peak_program`` on arrays of its own."""
    values = weft.nd.array(np.full((chains, lanes), 0.5, np.float32))
    factors = weft.nd.array(np.full(2, 0.5, np.float32))
    return lambda: kernel(values, factors)


def peak_setup(told: Mapping[str, Any]) -> Call:
    """``FLOPS`` in each thread."""
    kernel = weft.build(peak)["peak"]
    return _together([chains_of(kernel) for _ in range(told["threads"])])


def copy_setup(told: Mapping[str, Any]) -> Call:
    """Copies that move ``told["bytes"]``, half of them read and half written, ``copies`` times."""
    threads, number = told["threads"], copies(told["bytes"])
    size = max(1, half(told["bytes"]) // threads)

    def one_thread() -> Call:
        source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)

        def call() -> None:
            for _ in range(number):
                np.copyto(target, source)

        return call

    return _together([one_thread() for _ in range(threads)])


def half(nbytes: float) -> int:
    """The size of the array that is copied where an operator moves ``nbytes``.

    >>> half(1 << 20) == 1 << 19
    True
    """
    return int(min(nbytes, LARGEST)) // 2


def copies(nbytes: float) -> int:
    """How often one call copies it.

    >>> copies(1 << 27), copies(1 << 40)
    (2, 1)
    """
    return max(1, MOVED // max(2 * half(nbytes), 1))


def bytes_of_call(nbytes: float) -> float:
    """Bytes that one call of the copy moves."""
    return 2.0 * half(nbytes) * copies(nbytes)


def _together(calls: list[Call]) -> Call:
    """One call that makes all of them at the same time, each in a thread."""
    if len(calls) == 1:
        return calls[0]
    pool = ThreadPoolExecutor(len(calls))

    def call() -> None:
        for done in [pool.submit(one) for one in calls]:
            done.result()

    return call


LIMITS: Final[dict[str, Setup]] = {PEAK: peak_setup, COPY: copy_setup}

if __name__ == "__main__":
    answer_requests(Server(LIMITS))
