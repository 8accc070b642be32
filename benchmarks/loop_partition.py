"""What taking guards out of loops gains: each schedule built without and with the pass.

    python -m benchmarks.loop_partition [--repeats N]

The guards are tails of splits that do not divide (of known and of unknown extents) and a padding
that was inlined into a convolution. Inside of a loop they cost a test per element, and keep a
vectorised loop scalar; ``PartitionGuardedLoops`` leaves them to the first and last iterations. The
peak of the processor (one thread, fused multiply-adds in registers) is measured in the same run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import weft
from benchmarks.limits import FLOPS, chains_of, peak
from benchmarks.matmul import best_of
from weft import te, tir, topi
from weft.backends.cpu.pipeline import LOWER
from weft.ir.transform import Sequential
from weft.script import tir as T

SIZE: Final = 250  # neither rows of 6 nor columns of 16 divide it
CHANNELS, WIDTH, KERNEL = 64, 56, 3
PASS: Final = "tir.PartitionGuardedLoops"

Case = tuple[tir.PrimFunc, list[np.ndarray], np.ndarray, float]
"""The scheduled function, its inputs, the expected output, operations of a call."""


@T.prim_func
def product(  # noqa: D103 - a program of its own language
    A: T.Buffer((250, 250), "float32"),
    B: T.Buffer((250, 250), "float32"),
    C: T.Buffer((250, 250), "float32"),
):
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(250, 250, 250):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def product_of_any_size(a: T.handle, b: T.handle, c: T.handle):  # noqa: D103
    T.func_attr({"tir.noalias": True})
    n = T.int32()
    A = T.match_buffer(a, (n, 250), "float32")
    B = T.match_buffer(b, (250, 250), "float32")
    C = T.match_buffer(c, (n, 250), "float32")
    for i, j, k in T.grid(n, 250, 250):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def tiled(func: tir.PrimFunc) -> tir.PrimFunc:
    """A register tile of 6 x 16, as of a product whose extents it divides."""
    sch = tir.Schedule(func)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    columns, column = sch.split(j, [None, 16])
    rows, row = sch.split(i, [None, 6])
    sch.reorder(columns, rows, k, row, column)
    copy = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(copy, rows)
    sch.vectorize(column)
    sch.unroll(row)
    *_, copied_row, copied_column = sch.get_loops(copy)
    sch.unroll(copied_row)
    sch.vectorize(copied_column)
    sch.decompose_reduction(block, k)
    return sch.mod["main"]


def matrix_product(func: tir.PrimFunc) -> Case:
    """The tiled product over random matrices."""
    rng = np.random.default_rng(0)
    a, b = (rng.random((SIZE, SIZE), np.float32) for _ in range(2))
    return tiled(func), [a, b], a @ b, 2.0 * SIZE**3


def convolution() -> Case:
    """A 3x3 convolution whose padding is inlined: each element of the input has a test."""
    data = te.placeholder((1, CHANNELS, WIDTH, WIDTH), name="data")
    weight = te.placeholder((CHANNELS, CHANNELS, KERNEL, KERNEL), name="weight")
    conv = topi.nn.conv2d(data, weight, 1, 1, 1)
    sch = tir.Schedule(te.create_prim_func([data, weight, conv]))
    block = sch.get_block("conv2d_nchw")
    sch.compute_inline(sch.get_block("pad_temp"))
    _, channel, row, column, in_channel, ky, kx = sch.get_loops(block)
    channels, few = sch.split(channel, [None, 4])
    columns, lane = sch.split(column, [None, 14])
    sch.reorder(channels, row, columns, in_channel, ky, kx, few, lane)
    sch.vectorize(lane)
    sch.unroll(few)
    sch.decompose_reduction(block, in_channel)
    rng = np.random.default_rng(0)
    x = rng.random((1, CHANNELS, WIDTH, WIDTH), np.float32)
    w = rng.random((CHANNELS, CHANNELS, KERNEL, KERNEL), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (KERNEL, KERNEL), axis=(2, 3)
    )
    expected = np.einsum("nchwyx,ocyx->nohw", windows, w, optimize=True)
    return sch.mod["main"], [x, w], expected, 2.0 * x.size * CHANNELS * KERNEL**2


CASES: Final[dict[str, Callable[[], Case]]] = {
    "matrix product, 250, tiles of 6 x 16": lambda: matrix_product(product),
    "the same, rows unknown until the call": lambda: matrix_product(product_of_any_size),
    "convolution 3x3, its padding inlined": convolution,
}


def seconds(case: Case, pipeline: Any, repeats: int) -> float:
    """The shortest call of the function, lowered so; its result is compared with numpy."""
    func, inputs, expected, _ = case
    func = func.with_attr("global_symbol", "main")
    built = weft.build(func, pipeline=pipeline)
    arguments = [weft.nd.array(value) for value in inputs]
    output = weft.nd.empty(expected.shape)
    found = best_of(lambda: built["main"](*arguments, output), repeats)
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-3)
    return found


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    kept = [step for step in LOWER if step.info.name != PASS]
    assert len(kept) == len(LOWER) - 1, f"{PASS} is no step of the lowering"
    without = Sequential(kept, name="tir.lower_without_partition")
    top = FLOPS / best_of(chains_of(weft.build(peak)["peak"]), 5)
    print(f"peak of one thread: {top / 1e9:.1f} GFLOP/s")
    print(f"{'':40} {'without':>10} {'with':>10} {'gain':>8} {'of the peak':>12}")
    for name, make in CASES.items():
        case = make()
        guarded, free = seconds(case, without, repeats), seconds(case, None, repeats)
        share = case[-1] / free / top
        print(
            f"{name:40} {guarded * 1e3:7.2f} ms {free * 1e3:7.2f} ms {guarded / free:7.1f}x"
            f" {share:12.1%}"
        )


if __name__ == "__main__":
    main()
