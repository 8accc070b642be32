"""The largest kernel of each product and convolution as a share of the FMA peak, in one thread.

    python -m benchmarks.kernels [--only TEXT] [--target "llvm -mcpu=haswell"] [--least 10]

The rows are those of ``python -m benchmarks ops``. What is timed is the kernel alone, between
blocked layouts and on weights that are laid out, in turn with the peak for the same target, both by
the processor time of the thread, so that other programs on the machine disturb little. FLOPs are
those of the direct algorithm without the products of padding (``benchmarks.work``), convolutions
are direct (``python -m benchmarks.winograd`` has the others); a matrix times a vector, which memory
limits, is left out.

The first column is the convolution or product alone, the second what the network has there: with
the activation, whose own operations are not among the FLOPs.

The first line is the share of a register tile whose operands stay in the first cache: where it is
below 100 %, the processor lowers its clock for loads beside multiply-adds, and no kernel gets more.

Another thread of the same core takes half of the instructions that start in a cycle. That leaves
the peak nearly as it is, but not kernels, which have other instructions beside multiply-adds. (In a
virtual machine it may be the thread of a stranger, whom no program here can see.) So the tile of
the first line runs before and after each measurement of a kernel, and measurements beside which it
is slower than it can be do not count. A row that has none that count says "disturbed".
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch

import weft
from benchmarks import operator_modules
from benchmarks.limits import chains_of, peak_program
from benchmarks.operators import OPERATORS, Operator
from benchmarks.options import chosen, status_of
from benchmarks.work import work_of
from weft import relax, tir
from weft.ir.transform import PassContext
from weft.relax.frontend.torch import from_exported_program
from weft.runtime.threads.parallel import set_num_threads
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.target.machine import machine_of

ROUNDS: Final = 20_000
TURNS: Final = 30
SECONDS: Final = 0.02
"""Of each of the programs in each turn."""
STEADY: Final = 0.97
"""The part of the tile's best share that it must have for a turn to count."""


def peak_of(target: str) -> tuple[Callable[[], object], float]:
    """Independent chains of multiply-adds in registers, and the FLOPs of a call of them."""
    machine = machine_of(target)
    lanes, chains = machine.lanes(), 24 if machine.vector_registers >= 32 else 12
    kernel = weft.build(peak_program(lanes, chains, ROUNDS), target=target)["peak"]
    return chains_of(kernel, lanes, chains), 2.0 * chains * lanes * ROUNDS


def tile_of(target: str) -> tuple[Callable[[], object], float]:
    """A register tile of a product, again and again in the first cache, and the FLOPs of a call."""
    machine = machine_of(target)
    depth, lanes, vectors = 128, machine.lanes(), 3
    rows, width = min(machine.accumulator_rows(vectors), 8), vectors * lanes

    @T.prim_func
    def tile(
        A: T.Buffer((depth, rows), "float32"), B: T.Buffer((depth, width), "float32"),
        C: T.Buffer((rows, width), "float32"),
    ):  # fmt: skip
        T.func_attr({"global_symbol": "tile", "tir.noalias": True})
        total = T.alloc_buffer((rows, width), "float32")
        for _ in range(ROUNDS // depth):
            for m in T.unroll(rows):
                for n in T.vectorized(width):
                    total[m, n] = T.float32(0)
            for k in range(depth // 4):
                for step in T.unroll(4):
                    for m in T.unroll(rows):
                        for n in T.vectorized(width):
                            total[m, n] = total[m, n] + A[k * 4 + step, m] * B[k * 4 + step, n]
            for m in T.unroll(rows):
                for n in T.vectorized(width):
                    C[m, n] = total[m, n]

    kernel = weft.build(tile, target=target)["tile"]
    arrays = [_array(tile.buffer_map[param]) for param in tile.params]
    return lambda: kernel(*arrays), 2.0 * rows * width * depth * (ROUNDS // depth)


def kernel_of(
    operator: Operator, target: str, least: float
) -> tuple[Callable[[], object], float] | None:
    """A call of the largest kernel of a row, and its FLOPs; None where they are too few."""
    module = operator_modules.make(operator).eval()
    inputs = [torch.from_numpy(item.array(np.random.default_rng(0))) for item in operator.inputs]
    flops = work_of(module, inputs)["flops"]
    if flops < least:
        return None
    exported = torch.export.export(module, tuple(inputs))
    with weft.target.Target(target), PassContext(config={"relax.winograd": False}):
        mod = relax.get_pipeline("weft")(from_exported_program(exported))
    kernels = {gvar.name_hint: func for gvar, func in mod.functions.items()
               if isinstance(func, tir.PrimFunc)}  # fmt: skip
    sizes = {name: float(tir.analysis.estimate_tir_flops(weft.IRModule({name: func})))
             for name, func in kernels.items()}  # fmt: skip
    name = max(sizes, key=lambda one: sizes[one])
    kernel = weft.build(weft.IRModule({name: kernels[name]}), target=target)[name]
    arrays = [_array(kernels[name].buffer_map[param]) for param in kernels[name].params]
    return lambda: kernel(*arrays), flops


def _array(buffer: tir.Buffer) -> Any:
    shape = [int(extent) for extent in buffer.shape]
    return weft.nd.array(np.random.default_rng(0).standard_normal(shape, np.float32))


def is_measured(operator: Operator) -> bool:
    """Whether a row is a convolution or a product of matrices."""
    rows = operator.inputs[0].shape[0]
    return operator.kind == "conv" or (operator.kind == "dense" and rows > 1)


def lowest(call: Callable[[], object], seconds: float = 0.1) -> float:
    """Processor seconds of a call: the lowest tenth of those that ``seconds`` have room for."""
    found: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(found) < 3:
        start = time.thread_time()
        call()
        found.append(time.thread_time() - start)
    return float(np.quantile(found, 0.1))


class Meter:
    """Measures kernels in turn with the peak and with a tile whose operands are in a cache."""

    def __init__(self, target: str) -> None:
        self.peak, self.top = peak_of(target)
        self.tile = tile_of(target)
        shares = [self._share(self.tile) for _ in range(TURNS)]
        self.best = float(np.quantile(shares, 0.8))
        """The tile's share where nothing disturbs it."""

    def share(self, kernel: tuple[Callable[[], object], float]) -> tuple[float, bool]:
        """The share of a kernel, and whether turns counted. If none did, it is of all turns."""
        turns = []
        for _ in range(TURNS):
            before, share, after = [
                self._share(program) for program in (self.tile, kernel, self.tile)
            ]
            turns.append((share, min(before, after)))
        steady = [share for share, tile in turns if tile >= STEADY * self.best]
        return statistics.median(steady or [share for share, _ in turns]), bool(steady)

    def _share(self, program: tuple[Callable[[], object], float]) -> float:
        call, flops = program
        return lowest(self.peak, SECONDS) / lowest(call, SECONDS) * flops / self.top


def main() -> None:
    """Measure and print one line for each row, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    parser.add_argument("--least", type=float, default=10, help="MFLOP of a row (default 10)")
    options = parser.parse_args()
    set_num_threads(1)
    target = f"{options.target} -num-cores=1"
    meter = Meter(target)
    print(f"{meter.best:8.1%}          a tile whose operands are in the first cache")
    columns: tuple[list[float], list[float]] = ([], [])
    for operator in chosen([one for one in OPERATORS if is_measured(one)], options.only):
        alone = kernel_of(operator.alone, target, options.least * 1e6)
        if alone is None:
            continue
        whole = operator != operator.alone and kernel_of(operator, target, 0)
        shares = [meter.share(kernel) for kernel in (alone, whole) if kernel]
        for column, (value, _) in zip(columns, [shares[0], shares[-1]], strict=True):
            column.append(value)
        print("".join([f"{column[-1]:8.1%}" for column in columns]), end="")
        mark = " " if all(counted for _, counted in shares) else "~"
        print(f" {mark}{alone[1] / 1e6:7.1f} MFLOP  {operator.name}", flush=True)
    if not columns[0]:
        raise IRValueError(f"--least {options.least}: no row has so many MFLOP")
    for text, of in (("geometric mean", statistics.geometric_mean), ("least", min)):
        print("".join([f"{of(found):8.1%}" for found in columns]) + f"  {text}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
