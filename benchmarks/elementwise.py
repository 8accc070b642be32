"""Every element-wise operator of Relax beside PyTorch, for each data type, in one thread.

    python -m benchmarks.elementwise [--only TEXT] [--dtypes float32,int64] [--size 1048576]

A row is an operator whose traits say that it is element-wise (``Trait.ELEMENTWISE``); the only ones
left out are those of ``LEFT_OUT``. A cell says how many times as long PyTorch takes as a call of
what weft compiled; then weft's share of the memory limit, a copy of as many bytes as the operator
reads and writes. Both allocate their result. The three are timed in turn by the processor time of
the thread; the lowest of all rounds counts. Where PyTorch has no such function of a type, the cell
is ``-`` and the share alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
import torch

import weft
from benchmarks.elementwise_rows import ROWS, Operation
from benchmarks.options import chosen, positive, status_of
from weft import relax
from weft.relax.op.definition import FUNCTIONS
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.threads.parallel import set_num_threads
from weft.support.errors import TVMError

DTYPES: Final = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "bool")
ROUNDS: Final = 7
SECONDS: Final = 0.004
"""Of each of the three in each round, at least; a call that takes longer is made once."""


@dataclass(frozen=True)
class Times:
    """Seconds of a call by weft, by PyTorch (None: it has no such function), and of the copy."""

    weft: float
    torch: float | None
    copy: float

    @property
    def ratio(self) -> float | None:
        """How many times as long PyTorch takes."""
        return None if self.torch is None else self.torch / self.weft

    @property
    def cell(self) -> str:
        """The ratio and the share of the memory limit."""
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f}"
        return f"{ratio} {self.copy / self.weft:4.0%}"


def numpy_type(dtype: str) -> Any:
    """The type of numpy's arrays."""
    return ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)


def arguments(row: Operation, dtype: str, size: int) -> list[Any]:
    """Random numbers of the row's ranges."""
    rng = np.random.default_rng(0)
    arrays = []
    for low, high in row.ranges_of(dtype):
        if dtype.startswith("int"):
            numbers = rng.integers(int(low), int(high), size)
        elif dtype == "bool":
            numbers = rng.integers(0, 2, size)
        else:
            numbers = rng.uniform(low, high, size)
        arrays.append(np.asarray(numbers).astype(numpy_type(dtype)))
    return arrays


def tensor_of(array: Any) -> Any:
    """A tensor of PyTorch on an array's memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def module_of(row: Operation, dtype: str, size: int) -> weft.IRModule:
    """A graph of the one operator."""
    info = TensorStructInfo((size,), dtype)
    inputs = [relax.Var(f"x{at}", info) for at in range(row.arity)]
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        with builder.dataflow():
            value = FUNCTIONS[row.name](*inputs, *[relax.PrimValue(n) for n in row.numbers(dtype)])
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def copy_of(arrays: list[Any], result: Any) -> Callable[[], object]:
    """A copy that moves as many bytes as the arrays and the result have together."""
    nbytes = sum(array.nbytes for array in arrays) + result.nbytes
    source, target = np.ones(nbytes // 2, np.uint8), np.empty(nbytes // 2, np.uint8)
    return lambda: np.copyto(target, source)


def torch_call(row: Operation, arrays: list[Any]) -> Callable[[], object] | None:
    """PyTorch's function of the arrays; None where it has none of this type."""
    tensors = [tensor_of(array) for array in arrays]
    try:
        row.torch(*tensors)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    return lambda: row.torch(*tensors)


def lowest(call: Callable[[], object]) -> float:
    """Processor seconds of the fastest call of those that ``SECONDS`` have room for."""
    fastest, end = float("inf"), time.perf_counter() + SECONDS
    while True:
        start = time.thread_time()
        call()
        fastest = min(fastest, time.thread_time() - start)
        if time.perf_counter() >= end:
            return fastest


def times_of(row: Operation, dtype: str, size: int, target: str) -> Times | None:
    """The three measured in turn; None where the operator is none of this type."""
    if row.name.startswith("logical_") != (dtype == "bool"):
        return None
    try:
        compiled = weft.compile(module_of(row, dtype, size), target=target)
    except TVMError:
        return None
    arrays = arguments(row, dtype, size)
    given = [weft.nd.array(array) for array in arrays]
    calls = [lambda: compiled(*given), copy_of(arrays, compiled(*given)), torch_call(row, arrays)]
    turns = [[lowest(call) for call in calls if call is not None] for _ in range(ROUNDS)]
    own, copy, *peer = [min(times) for times in zip(*turns, strict=True)]
    return Times(own, peer[0] if peer else None, copy)


def rows_of(only: str) -> list[Operation]:
    """The rows whose name has one of the texts in it."""
    return [row for text in only.split(",") for row in chosen(ROWS, text)]


def main() -> None:
    """Measure and print a line for each operator, and the least and mean ratio of each type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with one of these texts in their name")
    parser.add_argument("--dtypes", default=",".join(DTYPES), help="data types, with commas")
    parser.add_argument("--size", type=positive, default=1 << 20, help="elements of an array")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    options = parser.parse_args()
    set_num_threads(1)
    torch.set_num_threads(1)
    target, dtypes = f"{options.target} -num-cores=1", options.dtypes.split(",")
    ratios: dict[str, list[float]] = {dtype: [] for dtype in dtypes}
    print(f"{'':22}" + "".join(f"{dtype:>14}" for dtype in dtypes))
    for row in rows_of(options.only):
        print(f"{row.name:22}", end="", flush=True)
        for dtype in dtypes:
            times = times_of(row, dtype, options.size, target)
            ratio = times and times.ratio
            ratios[dtype] += [ratio] if ratio else []
            print(f"{times.cell if times else '':>14}", end="", flush=True)
        print()
    for text, of in (("geometric mean", statistics.geometric_mean), ("least", min)):
        cells = [f"{of(values):.2f}" if values else "" for values in ratios.values()]
        print(f"{text:22}" + "".join(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    raise SystemExit(status_of(main))
