"""What this machine can do at most: multiply-adds in registers, copies of memory.

Each thread runs independent chains of fused multiply-adds that stay in vector registers, or copies
its part of an array by numpy. ``benchmarks.limits`` serves both beside what it compares.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np

from weft.driver.build import build
from weft.runtime.ndarray import array
from weft.script import tir as T
from weft.target.machine import machine_of
from weft.tir.function import PrimFunc

ROUNDS: Final = 200_000
COPIED: Final = 1 << 27
"""Bytes that all threads together copy, which no cache holds."""
TURNS: Final = 5


class Limits(NamedTuple):
    """The most of a machine, by so many threads."""

    gflops: float
    """Operations on float32, a multiply-add counting as two."""
    gbs: float
    """Gigabytes of memory read and written."""


def peak_program(lanes: int, chains: int, rounds: int) -> PrimFunc:
    """Independent chains of multiply-adds that stay in registers."""

    @T.prim_func
    def peak(X: T.Buffer((chains, lanes), "float32"), S: T.Buffer((2,), "float32")):
        T.func_attr({"global_symbol": "peak", "tir.noalias": True})
        chain = T.alloc_buffer((chains, lanes), "float32")
        for m in T.unroll(chains):
            for n in T.vectorized(lanes):
                chain[m, n] = X[m, n]
        for _ in range(rounds):
            for m in T.unroll(chains):
                for n in T.vectorized(lanes):
                    chain[m, n] = chain[m, n] * S[0] + S[1]
        for m in T.unroll(chains):
            for n in T.vectorized(lanes):
                X[m, n] = chain[m, n]

    return peak


def chains_of(vector_registers: int) -> int:
    """More than ports times latency of any processor of today, and few enough for registers."""
    return 24 if vector_registers >= 32 else 12


@functools.cache
def measured_limits(threads: int) -> Limits:
    """Measure both; it takes about half a second, once in a process."""
    machine = machine_of()
    lanes, chains = machine.lanes(32), chains_of(machine.vector_registers)
    kernel = build(peak_program(lanes, chains, ROUNDS))["peak"]
    values = [array(np.full((chains, lanes), 0.5, np.float32)) for _ in range(threads)]
    factors = array(np.full(2, 0.5, np.float32))
    size = COPIED // threads
    pairs = [(np.ones(size, np.uint8), np.empty(size, np.uint8)) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        peak = _shortest(pool, [functools.partial(kernel, value, factors) for value in values])
        copy = _shortest(pool, [functools.partial(np.copyto, new, old) for old, new in pairs])
    flops = 2.0 * chains * lanes * ROUNDS * threads
    return Limits(flops / peak / 1e9, 2.0 * COPIED / copy / 1e9)


def _shortest(pool: ThreadPoolExecutor, calls: list[Callable[[], object]]) -> float:
    """Seconds that the calls take together, at best."""
    best = float("inf")
    for _ in range(TURNS):
        begin = time.perf_counter()
        for done in [pool.submit(call) for call in calls]:
            done.result()
        best = min(best, time.perf_counter() - begin)
    return best
