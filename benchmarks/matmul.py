"""A 768-cubed float32 product written by hand, against the processor's FMA peak and numpy.

    python -m benchmarks.matmul [--threads N]

The kernel is TVMScript: a 6x16 register tile over packed operands. The peak is measured in the same
run (benchmarks/limits.py), so both figures share one clock.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

import weft
from benchmarks.limits import FLOPS, chains_of, peak
from weft.runtime.threads.parallel import set_num_threads
from weft.script import tir as T

SIZE, ROWS, COLUMNS = 768, 6, 16


@T.prim_func
def product(  # noqa: D103 - a program of its own language
    A: T.Buffer((128, 768, 6), "float32"),
    B: T.Buffer((48, 768, 16), "float32"),
    C: T.Buffer((768, 768), "float32"),
):
    T.func_attr({"global_symbol": "product", "tir.noalias": True})
    for jo, io in T.grid(48, 128):
        with T.block("tile"):
            vj, vi = T.axis.remap("SS", [jo, io])
            tile = T.alloc_buffer((6, 16), "float32")
            for m in T.unroll(6):
                for n in T.vectorized(16):
                    tile[m, n] = T.float32(0)
            for k in range(768):
                for m in T.unroll(6):
                    for n in T.vectorized(16):
                        tile[m, n] = tile[m, n] + A[vi, k, m] * B[vj, k, n]
            for m in T.unroll(6):
                for n in T.vectorized(16):
                    C[vi * 6 + m, vj * 16 + n] = tile[m, n]


@T.prim_func
def product_parallel(  # noqa: D103
    A: T.Buffer((128, 768, 6), "float32"),
    B: T.Buffer((48, 768, 16), "float32"),
    C: T.Buffer((768, 768), "float32"),
):
    T.func_attr({"global_symbol": "product_parallel", "tir.noalias": True})
    for jo in T.parallel(48):
        for io in range(128):
            with T.block("tile"):
                vj, vi = T.axis.remap("SS", [jo, io])
                tile = T.alloc_buffer((6, 16), "float32")
                for m in T.unroll(6):
                    for n in T.vectorized(16):
                        tile[m, n] = T.float32(0)
                for k in range(768):
                    for m in T.unroll(6):
                        for n in T.vectorized(16):
                            tile[m, n] = tile[m, n] + A[vi, k, m] * B[vj, k, n]
                for m in T.unroll(6):
                    for n in T.vectorized(16):
                        C[vi * 6 + m, vj * 16 + n] = tile[m, n]


def best_of(call: Callable[[], object], times: int) -> float:
    """The shortest of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def packed(a: np.ndarray, b: np.ndarray) -> tuple[object, object]:
    """Row panels of a and column panels of b, each in the order in which the kernel reads it."""
    rows = a.reshape(SIZE // ROWS, ROWS, SIZE).transpose(0, 2, 1)
    columns = b.reshape(SIZE, SIZE // COLUMNS, COLUMNS).transpose(1, 0, 2)
    return weft.nd.array(np.ascontiguousarray(rows)), weft.nd.array(np.ascontiguousarray(columns))


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    threads = parser.parse_args().threads
    start = time.perf_counter()
    kernels = weft.build(
        weft.IRModule({"product": product, "product_parallel": product_parallel, "peak": peak})
    )
    build_seconds = time.perf_counter() - start
    rng = np.random.default_rng(0)
    a, b = (rng.random((SIZE, SIZE), np.float32) for _ in range(2))
    A, B = packed(a, b)
    C = weft.nd.empty((SIZE, SIZE))
    flops = 2.0 * SIZE**3
    top = FLOPS / best_of(chains_of(kernels["peak"]), 5)
    rows = [("FMA peak, 1 thread", top)]
    rows.append(("product, 1 thread", flops / best_of(lambda: kernels["product"](A, B, C), 20)))
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
    for count in range(1, threads + 1):
        set_num_threads(count)
        rate = flops / best_of(lambda: kernels["product_parallel"](A, B, C), 20)
        rows.append((f"product, T.parallel, {count} thread{'s' * (count > 1)}", rate))
    np.testing.assert_allclose(C.numpy(), a @ b, rtol=1e-4)
    rows.append(("numpy (its own threads)", flops / best_of(lambda: a @ b, 20)))
    print(f"768 x 768 x 768, float32; three kernels built in {build_seconds:.2f} s")
    for name, rate in rows:
        print(f"{name:34} {rate / 1e9:8.1f} GFLOP/s {rate / top:7.1%} of the peak")


if __name__ == "__main__":
    main()
