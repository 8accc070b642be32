"""What building a small model and calling it cost: ``python benchmarks/model_call.py``.

1. One call of ``vm["main"](x)`` whose kernels have nothing to do (one input, four bound weights),
   with NDArrays and with torch tensors in and out, and of a compiled model of four elements on
   arrays and tensors: median of 10,000 calls in microseconds, beside two calls of torch (a bare
   ctypes call is in call_overhead.py).
2. Building the FashionMNIST perceptron in fresh processes: with an empty object cache, again with
   what the first build left there (both load the compiler first), and once more in one process.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from benchmarks.cold import cold_environment
from weft import relax
from weft.script import tir as T

CALLS = 10_000
BUILD = """
import time, weft
from weft.cli.demo_mlp import Script as module
for _ in range(2):
    begin = time.perf_counter()
    weft.relax.build(module, "llvm")
    print(time.perf_counter() - begin)
"""


@T.prim_func
def nothing(
    x: T.Buffer((4,), "float32"),
    a: T.Buffer((4,), "float32"),
    b: T.Buffer((4,), "float32"),
    c: T.Buffer((4,), "float32"),
    d: T.Buffer((4,), "float32"),
    out: T.Buffer((4,), "float32"),
):
    """Do nothing."""
    T.evaluate(0)


def empty_model() -> Any:
    """A virtual machine whose ``main`` takes one tensor and passes four constants on."""
    builder = relax.BlockBuilder()
    kernel = builder.add_func(nothing, "nothing")
    info = relax.TensorStructInfo((4,), "float32")
    x = relax.Var("x", info)
    weights = [relax.const(np.full(4, value, "float32")) for value in range(4)]
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit(relax.call_tir(kernel, [x, *weights], out_sinfo=info))
            output = builder.emit_output(result)
        builder.emit_func_output(output)
    return relax.VirtualMachine(relax.build(builder.get(), "llvm"), weft.cpu())


def median_us(call: Callable[[], object]) -> float:
    """The median of single calls, in microseconds."""
    for _ in range(100):
        call()
    samples = []
    for _ in range(CALLS):
        begin = time.perf_counter_ns()
        call()
        samples.append(time.perf_counter_ns() - begin)
    return statistics.median(samples) / 1e3


def calls() -> dict[str, float]:
    """Microseconds per call, by what is called."""
    machine = empty_model()
    data = weft.nd.array(np.zeros(4, "float32"))
    found = {"vm['main'](x), NDArray in and out": median_us(lambda: machine["main"](data))}
    try:
        import torch  # noqa: PLC0415 - an optional peer
    except ImportError:
        return found
    tensor = torch.zeros(4)
    found["vm['main'](x), torch in and out"] = median_us(
        lambda: torch.from_dlpack(machine["main"](tensor))
    )
    model = weft.compile(torch.nn.ReLU(), (tensor,))
    array = tensor.numpy()
    found["compiled ReLU, numpy in and out"] = median_us(lambda: model(array))
    found["compiled ReLU, torch in and out"] = median_us(lambda: model(tensor))
    identity = torch.nn.Identity()
    add = torch.add
    found["torch.nn.Identity()(x)"] = median_us(lambda: identity(tensor))
    found["torch.add(x, x)"] = median_us(lambda: add(tensor, tensor))
    return found


def build_seconds() -> tuple[float, float, float]:
    """Seconds to build the perceptron: object cache empty, full, and full in a warm process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = cold_environment(folder)
        seconds = []
        for _ in range(2):
            run = subprocess.run(
                [sys.executable, "-c", BUILD],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            seconds.append([float(line) for line in run.stdout.split()])
    return seconds[0][0], seconds[1][0], seconds[1][1]


def main() -> None:
    """Print both tables."""
    print(f"one call, median of {CALLS:,} (µs)")
    for name, value in calls().items():
        print(f"  {name:36s} {value:8.2f}")
    cold, cached, warm = build_seconds()
    print("building the perceptron (s)")
    print(f"  {'fresh process, object cache empty':36s} {cold:8.3f}")
    print(f"  {'fresh process, from the cache':36s} {cached:8.3f}")
    print(f"  {'same process, from the cache':36s} {warm:8.3f}")


if __name__ == "__main__":
    main()
