"""Operators by their default schedules, beside PyTorch and the processor's limit.

    python benchmarks/default_schedules.py [--threads N] [--only TEXT]

Each row is one operator of a real network, float32, batch 1, in one process with as many threads
for both. The limit is the FMA peak, measured in the same run by independent chains in registers
(benchmarks/matmul.py), or for operators that move memory the bandwidth of a large copy by numpy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

import weft
from benchmarks.matmul import CHAINS, LANES, ROUNDS, peak
from weft.runtime.threads import set_num_threads


@dataclass(frozen=True)
class Row:
    """An operator: its name, its work (FLOPs, or bytes that it must move), how to make it."""

    name: str
    flops: float
    nbytes: float
    make: Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]


def product(rows: int, outputs: int, inputs: int) -> Row:
    """A dense layer."""
    return Row(
        f"dense {rows} x {inputs} -> {outputs}", 2.0 * rows * outputs * inputs, 0,
        lambda: (torch.nn.Linear(inputs, outputs), (torch.randn(rows, inputs),)),
    )  # fmt: skip


def convolution(channels: int, filters: int, size: int, window: int, step: int = 1) -> Row:
    """A convolution with its activation, as networks have it."""
    out = size // step
    return Row(
        f"conv {window}x{window} {channels} -> {filters}, {size}" + f" / {step}" * (step > 1),
        2.0 * out * out * filters * channels * window * window, 0,
        lambda: (
            torch.nn.Sequential(
                torch.nn.Conv2d(channels, filters, window, step, window // 2), torch.nn.ReLU()
            ),
            (torch.randn(1, channels, size, size),),
        ),
    )  # fmt: skip


def moving(name: str, module: Callable[[], torch.nn.Module], *shape: int) -> Row:
    """An operator that reads and writes a tensor once."""
    return Row(name, 0, 8.0 * np.prod(shape), lambda: (module(), (torch.randn(*shape),)))


ROWS = (
    product(128, 768, 768), product(128, 3072, 768), product(128, 768, 3072),
    product(512, 512, 512), product(768, 768, 768), product(197, 768, 768),
    product(1, 1000, 2048), convolution(64, 64, 56, 3), convolution(128, 128, 28, 3),
    convolution(256, 256, 14, 3), convolution(512, 512, 7, 3), convolution(3, 64, 224, 7, 2),
    convolution(64, 256, 56, 1), convolution(256, 64, 56, 1), convolution(512, 128, 28, 1),
    convolution(1024, 256, 14, 1), convolution(2048, 512, 7, 1),
    moving("softmax 1536 x 128", lambda: torch.nn.Softmax(-1), 1536, 128),
    moving("layer norm 512 x 768", lambda: torch.nn.LayerNorm(768), 512, 768),
    moving("gelu 128 x 3072", torch.nn.GELU, 128, 3072),
    moving("relu 64 x 112 x 112", torch.nn.ReLU, 1, 64, 112, 112),
    moving("max pool 64 x 112 x 112", lambda: torch.nn.MaxPool2d(3, 2, 1), 1, 64, 112, 112),
)  # fmt: skip


def seconds_of(call: Callable[[], object], rounds: int = 15) -> float:
    """The median of several rounds of at least a millisecond each."""
    call()
    start = time.perf_counter()
    call()
    repeat = max(1, int(1e-3 / (time.perf_counter() - start)))
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeat):
            call()
        found.append((time.perf_counter() - start) / repeat)
    return statistics.median(found)


def limits(threads: int) -> tuple[float, float]:
    """FLOP/s of ``threads`` cores, bytes/s of a large copy."""
    kernel = weft.build(peak)["peak"]
    chains = weft.nd.array(np.full((CHAINS, LANES), 0.5, np.float32))
    flops = 2.0 * CHAINS * LANES * ROUNDS / seconds_of(lambda: kernel(chains), 5)
    source, target = np.ones(1 << 25, np.float32), np.empty(1 << 25, np.float32)
    moved = 2.0 * source.nbytes / seconds_of(lambda: np.copyto(target, source), 5)
    return flops * threads, moved


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    set_num_threads(options.threads)
    flops, moved = limits(options.threads)
    print(f"{options.threads} thread(s): {flops / 1e9:.0f} GFLOP/s, copy {moved / 1e9:.1f} GB/s")
    print(f"{'':34}{'weft':>10}{'torch':>10}{'ratio':>8}{'of the limit':>14}")
    ratios = []
    for row in ROWS:
        if options.only not in row.name:
            continue
        torch.manual_seed(0)
        module, inputs = row.make()
        module.eval()
        compiled = weft.compile(module, inputs, num_threads=options.threads)
        with torch.inference_mode():
            torch.testing.assert_close(compiled(*inputs), module(*inputs), rtol=1e-3, atol=1e-4)
            mine = seconds_of(lambda c=compiled, i=inputs: c(*i))
            its = seconds_of(lambda m=module, i=inputs: m(*i))
        share = row.flops / mine / flops if row.flops else row.nbytes / mine / moved
        ratios.append(its / mine)
        times = f"{mine * 1e3:7.3f} ms{its * 1e3:7.3f} ms{its / mine:7.2f}x"
        print(f"{row.name:34}{times}{share:13.0%}")
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}x")


if __name__ == "__main__":
    main()
