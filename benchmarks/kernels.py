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
TURNS: Final = 6
SECONDS: Final = 0.1
"""Of each of the two in each turn."""


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


def lowest(call: Callable[[], object]) -> float:
    """Processor seconds of a call: the lowest tenth of those that ``SECONDS`` have room for."""
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(found) < 3:
        start = time.thread_time()
        call()
        found.append(time.thread_time() - start)
    return float(np.quantile(found, 0.1))


def main() -> None:
    """Measure and print one line for each row, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    parser.add_argument("--least", type=float, default=10, help="MFLOP of a row (default 10)")
    options = parser.parse_args()
    set_num_threads(1)
    target = f"{options.target} -num-cores=1"
    peak, top = peak_of(target)

    def share(found: tuple[Callable[[], object], float]) -> float:
        turns = [lowest(peak) / lowest(found[0]) for _ in range(TURNS)]
        return statistics.median(turns) * found[1] / top

    print(f"{share(tile_of(target)):8.1%}          a tile whose operands are in the first cache")
    columns: tuple[list[float], list[float]] = ([], [])
    for operator in chosen([one for one in OPERATORS if is_measured(one)], options.only):
        alone = kernel_of(operator.alone, target, options.least * 1e6)
        if alone is None:
            continue
        columns[0].append(share(alone))
        whole = operator != operator.alone and kernel_of(operator, target, 0)
        columns[1].append(share(whole) if whole else columns[0][-1])
        print("".join([f"{column[-1]:8.1%}" for column in columns]), end="")
        print(f"  {alone[1] / 1e6:7.1f} MFLOP  {operator.name}", flush=True)
    if not columns[0]:
        raise IRValueError(f"--least {options.least}: no row has so many MFLOP")
    for text, of in (("geometric mean", statistics.geometric_mean), ("least", min)):
        print("".join([f"{of(found):8.1%}" for found in columns]) + f"  {text}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
