"""What this machine can do at most: multiply-adds in registers, copies of memory.

Each thread runs independent chains of fused multiply-adds that stay in vector registers, or copies
its part of an array by numpy. ``benchmarks.limits`` serves both beside what it compares.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from weft.driver.build import build
from weft.ir.node import expect
from weft.runtime.ndarray import array
from weft.script.parser.entry import from_source
from weft.target.machine import machine_of
from weft.tir.function import PrimFunc

ROUNDS: Final = 200_000
SMALLEST: Final = 1 << 14
LARGEST: Final = 1 << 27
"""Bytes of a copy: fewer would measure the call, more are not slower."""
MOVED: Final = 1 << 24
"""Bytes that the copies of one turn move at least."""
TURNS: Final = 9


PEAK: Final = """
from tvm.script import tir as T

@T.prim_func
def peak(X: T.Buffer(({chains}, {lanes}), "float32"), S: T.Buffer((2,), "float32")):
    T.func_attr({{"global_symbol": "peak", "tir.noalias": True}})
    chain = T.alloc_buffer(({chains}, {lanes}), "float32")
    for m in T.unroll({chains}):
        for n in T.vectorized({lanes}):
            chain[m, n] = X[m, n]
    for r in range({rounds}):
        for m in T.unroll({chains}):
            for n in T.vectorized({lanes}):
                chain[m, n] = chain[m, n] * S[0] + S[1]
    for m in T.unroll({chains}):
        for n in T.vectorized({lanes}):
            X[m, n] = chain[m, n]
"""


def peak_program(lanes: int, chains: int, rounds: int) -> PrimFunc:
    """Independent chains of multiply-adds that stay in registers."""
    text = PEAK.format(lanes=lanes, chains=chains, rounds=rounds)
    return expect(from_source(text), PrimFunc)


def chains_of(vector_registers: int) -> int:
    """More than ports times latency of any processor of today, and few enough for registers."""
    return 24 if vector_registers >= 32 else 12


@functools.cache
def peak_gflops(threads: int) -> float:
    """The most operations on float32 by so many threads, a multiply-add counting as two."""
    machine = machine_of()
    lanes, chains = machine.lanes(32), chains_of(machine.vector_registers)
    kernel = build(peak_program(lanes, chains, ROUNDS))["peak"]
    values = [array(np.full((chains, lanes), 0.5, np.float32)) for _ in range(threads)]
    factors = array(np.full(2, 0.5, np.float32))
    seconds = _shortest([functools.partial(kernel, value, factors) for value in values])
    return 2.0 * chains * lanes * ROUNDS * threads / seconds / 1e9


def copy_gbs(nbytes: int, threads: int) -> float:
    """Gigabytes a second that copies read and write which move so many bytes in all.

    Small copies stay in caches, as the data of small kernels does.
    """
    size = min(max(nbytes, SMALLEST), LARGEST)
    return _copy_gbs(1 << (size - 1).bit_length(), threads)


@functools.cache
def _copy_gbs(moved: int, threads: int) -> float:
    size, rounds = moved // 2 // threads, max(1, MOVED // moved)
    pairs = [(np.ones(size, np.uint8), np.empty(size, np.uint8)) for _ in range(threads)]

    def copies(source: np.ndarray, target: np.ndarray) -> None:
        for _ in range(rounds):
            np.copyto(target, source)

    seconds = _shortest([functools.partial(copies, *pair) for pair in pairs])
    return 2.0 * size * threads * rounds / seconds / 1e9


def _shortest(calls: Sequence[Callable[[], object]]) -> float:
    """Seconds that the calls take together, each in a thread, at best."""
    best = float("inf")
    with ThreadPoolExecutor(len(calls)) as pool:
        for _ in range(TURNS):
            begin = time.perf_counter()
            if len(calls) == 1:
                calls[0]()
            else:
                for done in [pool.submit(call) for call in calls]:
                    done.result()
            best = min(best, time.perf_counter() - begin)
    return best
