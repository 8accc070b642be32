"""What one call of a compiled function costs before its first instruction, beside its peers.

The function takes five float32 tensors and returns at once. Each figure is the median over rounds
of the mean of many calls, in microseconds: ``python benchmarks/call_overhead.py``.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import timeit
from collections.abc import Callable

import numpy as np

from weft import nd
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.native_library import (
    FunctionSpec,
    NativeFunction,
    NativeLibrary,
    ParamSpec,
)
from weft.runtime.ndarray import fresh
from weft.support.dtype import DataType

NOTHING = "define i32 @nothing(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e) {\n  ret i32 0\n}"
SHAPE = (1, 128)


def compiled(shape: tuple[int | str, ...]) -> NativeFunction:
    """The function that does nothing, for tensors of that shape."""
    params = tuple(
        ParamSpec("buffer", name, "float32", shape, is_output=name == "e", noalias=True)
        for name in "abcde"
    )
    library = NativeLibrary(object_from_ir(NOTHING), "benchmark")
    return library.function(FunctionSpec("nothing", params))


def median_us(call: Callable[[], object], rounds: int, calls: int) -> float:
    """Median over rounds, in microseconds per call."""
    timer = timeit.Timer(call)
    timer.timeit(calls)
    return statistics.median(timer.repeat(rounds, calls)) / calls * 1e6


def cases() -> dict[str, Callable[[], object]]:
    """What is measured, by the name that is printed."""
    function, symbolic = compiled(SHAPE), compiled((1, "n"))
    arrays = [np.ones(SHAPE, "float32") for _ in range(5)]
    nds = [nd.array(array) for array in arrays]
    raw = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5)(function.address)
    addresses = [array.ctypes.data for array in arrays]
    float32 = DataType("float32")
    found: dict[str, Callable[[], object]] = {
        "ctypes call, no checks": lambda: raw(*addresses),
        "weft, five NDArrays": lambda: function(*nds),
        "weft, five NDArrays, symbolic shape": lambda: symbolic(*nds),
        "weft, five numpy arrays": lambda: function(*arrays),
        "weft, a fresh output NDArray": lambda: fresh(SHAPE, float32),
        "numpy.add(a, b, out=c)": lambda: np.add(arrays[0], arrays[1], out=arrays[2]),
        "numpy.from_dlpack(NDArray)": lambda: np.from_dlpack(nds[0]),
    }
    try:
        import torch  # noqa: PLC0415 - an optional peer
    except ImportError:
        return found
    tensors = [torch.ones(SHAPE) for _ in range(5)]
    found["weft, five torch tensors"] = lambda: function(*tensors)
    found["torch.add(a, b, out=c)"] = lambda: torch.add(tensors[0], tensors[1], out=tensors[2])
    found["torch.from_dlpack(NDArray)"] = lambda: torch.from_dlpack(nds[0])
    return found


def main() -> None:
    """Measure and print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    print(f"{'median of ' + str(options.rounds) + ' rounds':<40}{'µs per call':>12}")
    for name, call in cases().items():
        print(f"{name:<40}{median_us(call, options.rounds, options.calls):>12.2f}")


if __name__ == "__main__":
    main()
