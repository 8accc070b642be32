"""Eight operators tuned by weft and by TVM's MetaSchedule, for the same time.

    python -m benchmarks.tuned_beside_tvm [--minutes M] [--tvm PYTHON] [--only TEXT] [--rounds N]

``PYTHON`` is an interpreter that has TVM (0.25 tunes; default: this one). All arguments of the
operators are given at each call, so weights are packed by neither. For each operator: milliseconds
by weft's default, by ``weft.tune`` and by MetaSchedule, all called in turn; the last over the
second; and how many forms TVM has measured. The results must agree.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft
from benchmarks.options import chosen, positive, status_of
from weft import relax
from weft.ir.module import IRModule

_CHILD: Final = str(Path(__file__).with_name("tvm_operators.py"))
_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Operator:
    """An operator: what ``tvm_operators`` calls it, its sizes there, the shapes of its inputs."""

    name: str
    kind: str
    sizes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]


def product(batch: int, rows: int, depth: int, columns: int) -> Operator:
    """A product of matrices, for each of a batch."""
    name = f"product {batch} x {rows} x {depth} x {columns}"
    shapes = ((batch, rows, depth), (batch, depth, columns))
    return Operator(name, "product", (batch, rows, depth, columns), shapes)


def convolution(channels: int, filters: int, size: int, window: int) -> Operator:
    """A convolution of an image, padded so that the result is as large."""
    name = f"conv {window}x{window} {channels} to {filters}, {size}"
    shapes = ((1, channels, size, size), (filters, channels, window, window))
    return Operator(name, "convolution", (channels, filters, size, window), shapes)


def depthwise(channels: int, size: int, window: int) -> Operator:
    """A depthwise convolution."""
    shapes = ((1, channels, size, size), (channels, 1, window, window))
    name = f"depthwise {window}x{window} {channels}, {size}"
    return Operator(name, "depthwise", (channels, size, window), shapes)


OPERATORS: Final = (
    product(1, 128, 768, 768), product(1, 128, 768, 3072), product(12, 128, 64, 128),
    convolution(64, 64, 56, 3), convolution(256, 64, 56, 1), depthwise(144, 56, 3),
    Operator("largest of 3x3, 64, 112 by 2", "largest", (1, 64, 112, 112), ((1, 64, 112, 112),)),
    Operator("softmax 1536 x 128", "softmax", (1536, 128), ((1536, 128),)),
)  # fmt: skip


def module_of(operator: Operator) -> IRModule:
    """The operator for weft."""
    parameters = [
        relax.Var(name, relax.TensorStructInfo(shape, "float32"))
        for name, shape in zip("xw", operator.shapes, strict=False)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", parameters):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(call_of(operator, parameters)))
        builder.emit_func_output(result)
    module: IRModule = builder.finalize()
    return module


def call_of(operator: Operator, parameters: Sequence[relax.Var]) -> relax.Expr:
    """The call of the operator."""
    nn = relax.op.nn
    window = operator.sizes[-1] // 2
    if operator.kind == "product":
        return relax.op.matmul(*parameters)
    if operator.kind == "convolution":
        return nn.conv2d(*parameters, padding=window)
    if operator.kind == "depthwise":
        return nn.conv2d(*parameters, padding=window, groups=operator.sizes[0])
    if operator.kind == "largest":
        return nn.max_pool2d(parameters[0], (3, 3), (2, 2), (1, 1))
    return nn.softmax(parameters[0], -1)


class Tvm:
    """TVM's process, which has tuned an operator for some time."""

    def __init__(self, python: str, operator: Operator, folder: Path, minutes: float) -> None:
        self._arguments = [operator.kind, "x".join(map(str, operator.sizes)), str(folder)]
        self._python = python
        log = folder.joinpath("log").open("w")
        search = subprocess.Popen(
            [python, _CHILD, "tune", *self._arguments],
            stdout=log, stderr=log, start_new_session=True, env=_environment(),
        )  # fmt: skip
        time.sleep(60 * minutes)
        os.killpg(search.pid, signal.SIGKILL)
        search.wait()
        records = folder / "database_tuning_record.json"
        self.trials = len(records.read_text().splitlines()) if records.is_file() else 0
        self._process = subprocess.Popen(
            [python, _CHILD, "time", *self._arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env=_environment(),
        )  # fmt: skip
        self._line()

    def least(self) -> float:
        """Seconds of the shortest call of some."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{_SECONDS}\n")
        self._process.stdin.flush()
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"TVM's process ended; see its log ({' '.join(self._arguments)})")
        return line

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _environment() -> Mapping[str, str]:
    """Without weft's sources, which another Python need not be able to import."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def least(model: Any, inputs: Sequence[Any]) -> float:
    """Seconds of the shortest call of some."""
    end, shortest = time.perf_counter() + _SECONDS, float("inf")
    while (begin := time.perf_counter()) < end:
        model(*inputs)
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest


def measure(operator: Operator, options: argparse.Namespace) -> tuple[float, float, float, int]:
    """Seconds of the default, of the tuned and of TVM's, and TVM's trials."""
    module = module_of(operator)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in operator.shapes]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "inputs.npz", *arrays)
        tvm = Tvm(options.tvm, operator, folder, options.minutes)
        default = weft.compile(module)
        tuned = weft.tune(module, minutes=options.minutes, database=None)
        inputs = [weft.nd.array(array) for array in arrays]
        expected = np.load(folder / "result.npy")
        for model in (default, tuned):
            error = np.abs(np.asarray(model(*inputs)) - expected).max()
            if error > 1e-3 * np.abs(expected).max():
                raise SystemExit(f"{operator.name}: the results differ by {error}")
        turns = [
            (least(default, inputs), least(tuned, inputs), tvm.least())
            for _ in range(options.rounds)
        ]
        tvm.close()
    first, second, third = (min(column) for column in zip(*turns, strict=True))
    return first, second, third, tvm.trials


def main() -> None:
    """Tune, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of each search (default: 5)")
    parser.add_argument("--tvm", default=sys.executable, help="a Python that has TVM")
    parser.add_argument("--only", default="", help="operators with this text in their name")
    parser.add_argument("--rounds", type=positive, default=5)
    options = parser.parse_args()
    print(f"{'ms':<32}{'default':>9}{'tuned':>9}{'TVM':>9}{'ratio':>7}{'TVM trials':>12}")
    ratios = []
    for operator in chosen(OPERATORS, options.only):
        default, tuned, other, trials = measure(operator, options)
        ratios.append(other / tuned)
        times = "".join([f"{seconds * 1e3:9.3f}" for seconds in (default, tuned, other)])
        print(f"{operator.name:<32}{times}{ratios[-1]:7.2f}{trials:12}", flush=True)
    print(f"{'geometric mean':<59}{statistics.geometric_mean(ratios):7.2f}")


if __name__ == "__main__":
    sys.exit(status_of(main))
