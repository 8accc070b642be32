"""What Winograd's algorithm gains: layers of networks with and without it, and how exact they are.

    python -m benchmarks.winograd [--threads N] [--target TEXT] [--only TEXT]

Each row is a 3x3 convolution with a relu, data in blocks of channels as inside of a network,
built twice: with UseWinograd and with it switched off. The fastest of many calls counts, both asked
in turn. The error is the largest difference to a convolution in float64, relative to the largest
result, beside that of the direct algorithm. "-" says that the cost model declines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import weft
from weft import relax, tir
from weft.ir.transform import PassContext
from weft.relax.transform.layout.winograd import UseWinograd
from weft.target.target import Target

BLOCK: Final = 16
KERNEL_RANK: Final = 6
"""The rank of a kernel in blocks; transformed weights have another one."""
SECONDS: Final = 1.5
"""How long both forms of a layer are called in all."""
LAYERS: Final = (
    # channels, filters, size of the image
    (64, 64, 224), (64, 128, 112), (64, 64, 56), (256, 256, 56), (128, 128, 28), (512, 512, 28),
    (256, 256, 14), (512, 512, 14), (512, 512, 7), (32, 32, 12),
)  # fmt: skip
"""Of VGG-11 and ResNet-18 and -50."""

Array = npt.NDArray[Any]


def layer(weights: Array, size: int) -> weft.IRModule:
    """A convolution and a relu of data (1, channels / 16, size, size, 16)."""
    filters, channels = weights.shape[:2]
    blocked = weights.reshape(filters // BLOCK, BLOCK, channels // BLOCK, BLOCK, 3, 3)
    kernel = np.ascontiguousarray(blocked.transpose(0, 2, 4, 5, 3, 1))
    layouts = {"data_layout": f"NCHW{BLOCK}c", "kernel_layout": f"OIHW{BLOCK}i{BLOCK}o"}
    builder = relax.BlockBuilder()
    shape = (1, channels // BLOCK, size, size, BLOCK)
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.nn.conv2d(x, relax.const(kernel), padding=1, **layouts))
            out = builder.emit_output(relax.op.nn.relu(made))
        builder.emit_func_output(out)
    return builder.get()


def expected(data: Array, weights: Array) -> Array:
    """The layer in float64: (1, filters / 16, size, size, 16)."""
    _, blocks, size, _, block = data.shape
    filters = len(weights)
    padded = np.pad(data[0].astype("float64"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((size * size, filters))
    for i, j in np.ndindex(3, 3):
        window = padded[:, i : i + size, j : j + size].transpose(1, 2, 0, 3)
        total += window.reshape(size * size, blocks * block) @ weights[:, :, i, j].T
    tiles = np.maximum(total, 0).reshape(size, size, filters // BLOCK, BLOCK)
    return tiles.transpose(2, 0, 1, 3)[None]


def algorithm_of(mod: weft.IRModule, target: Target) -> str | None:
    """The algorithm that the pass chooses, by its tile; None if it leaves the layer.

    One that transforms the kernel itself is "kernel".
    """
    with target:
        made = UseWinograd()(mod)
    funcs = [func for func in made.functions.values() if isinstance(func, tir.PrimFunc)]
    if not funcs:
        return None
    weights = funcs[0].buffer_map[funcs[0].params[1]].shape
    return "kernel" if len(weights) == KERNEL_RANK else f"F({int(weights[0]) - 2}, 3)"


def fastest(calls: list[Callable[[], Any]]) -> list[float]:
    """The fastest call of each in seconds, asked in turn."""
    best = [float("inf")] * len(calls)
    end, count = time.perf_counter() + SECONDS, 0
    while count < 5 or time.perf_counter() < end:
        for index, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[index] = min(best[index], time.perf_counter() - start)
        count += 1
    return best


def row(channels: int, filters: int, size: int, target: Target, threads: int) -> str:
    """One line of the table."""
    random = np.random.default_rng(size)
    weights = random.normal(size=(filters, channels, 3, 3)) / np.sqrt(channels * 9)
    data = random.normal(size=(1, channels // BLOCK, size, size, BLOCK)).astype("float32")
    mod = layer(weights.astype("float32"), size)
    algorithm = algorithm_of(mod, target)
    models = []
    for used in (False, True):
        with PassContext(config={"relax.winograd": used}):
            models.append(weft.compile(mod, target=target, num_threads=threads, cache=False))
    truth = expected(data, weights.astype("float32"))
    direct, other = [np.abs(model(data) - truth).max() / truth.max() for model in models]
    name = f"{channels} to {filters}, {size} x {size}"
    if algorithm is None:
        return f"{name:24} {'-':>8} {'':>9} {'':>9} {direct:15.1e}"
    slow, fast = fastest([lambda model=model: model(data) for model in models])
    return f"{name:24} {algorithm:>8} {slow / fast:8.2f}x {other:9.1e} {direct:15.1e}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--only", default="", help="layers whose sizes hold this text")
    options = parser.parse_args()
    print(f"{'layer':24} {'used':>8} {'speed-up':>9} {'error':>9} {'error, direct':>15}")
    for channels, filters, size in LAYERS:
        if options.only in f"{channels} {filters} {size}":
            print(row(channels, filters, size, Target(options.target), options.threads), flush=True)


if __name__ == "__main__":
    main()
