"""Products and convolutions of 8-bit integers beside ONNX Runtime's and weft's own float32.

    python -m benchmarks.integer_products [--only TEXT] [--target "llvm -mcpu=haswell"]
                                          [--largest 127]

One thread, each form of a row in turn by weft and by ONNX Runtime; processor time, of which the
lowest counts. The forms are ``integer`` (MatMulInteger, ConvInteger: sums in int32), ``linear``
(QLinearMatMul, QLinearConv: quantized again), ``QDQ`` (DequantizeLinear, the operator in float32,
QuantizeLinear) and ``float32`` (it alone). A cell is weft's microseconds and how many times
as long ONNX Runtime takes. ``gain`` is how many times as fast as its float32 weft's linear form is;
then comes the share of the peak of the processor's dot products of small integers, measured in
registers, that the integer form reaches, with all that stands around its kernel. Weights are int8
without a zero point; with ``--largest 64`` int16 holds their products with bytes in pairs.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnxruntime

import weft
from benchmarks.kernels import lowest
from benchmarks.options import chosen, status_of
from tests.lib.onnx_models import info, model, node
from weft import tir
from weft.backends.cpu.schedules.dot_intrinsics import DOTS, INTRINSICS, Dot, dot_product_sum
from weft.relax.frontend.onnx import from_onnx
from weft.runtime.threads.parallel import set_num_threads
from weft.script import tir as T
from weft.target.machine import machine_of

ROUNDS: Final = 20_000
TURNS: Final = 3
FORMS: Final = ("integer", "linear", "QDQ", "float32")
CALLS: Final = {"integer": "{}Integer", "linear": "QLinear{}", "QDQ": "{}", "float32": "{}"}


@dataclass(frozen=True)
class Case:
    """A product or a convolution: its operator, the sizes of data and weights, multiply-adds."""

    operator: str
    data: tuple[int, ...]
    weights: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Sizes as the rows of other benchmarks have them."""
        if self.operator == "MatMul":
            return f"product {self.data[0]} x {self.data[1]} x {self.weights[1]}"
        filters, channels, window, _ = self.weights
        return f"conv {window}x{window} {channels}->{filters} {self.data[2]}"

    @property
    def products(self) -> int:
        """Multiply-adds; the windows of all rows fit."""
        if self.operator == "MatMul":
            return int(np.prod(self.data)) * self.weights[1]
        return int(np.prod(self.weights)) * self.data[2] * self.data[3]


CASES: Final = (
    Case("MatMul", (128, 768), (768, 768)), Case("MatMul", (128, 768), (768, 3072)),
    Case("MatMul", (1, 2048), (2048, 1000)),
    Case("Conv", (1, 64, 56, 56), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    Case("Conv", (1, 256, 56, 56), (64, 256, 1, 1)),
    Case("Conv", (1, 64, 56, 56), (24, 64, 1, 1)),
    Case("Conv", (1, 256, 14, 14), (256, 256, 3, 3), {"pads": [1, 1, 1, 1]}),
    Case("Conv", (1, 1024, 14, 14), (256, 1024, 1, 1)),
    Case("Conv", (1, 2048, 7, 7), (512, 2048, 1, 1)),
    Case("Conv", (1, 512, 7, 7), (2048, 512, 1, 1)),
)  # fmt: skip
"""What is measured."""


def arrays_of(case: Case, dtype: str, largest: int) -> tuple[Any, Any]:
    """Data of a type and weights of int8."""
    rng = np.random.default_rng(0)
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    data = rng.integers(low, high, case.data).astype(dtype)
    return data, rng.integers(-largest, largest + 1, case.weights).astype("int8")


def model_of(case: Case, form: str, dtype: str, largest: int = 127) -> tuple[Any, Any]:
    """A model of ONNX and its input."""
    data, weights = arrays_of(case, dtype, largest)
    name, kind, result = CALLS[form].format(case.operator), dtype, dtype
    constants: dict[str, Any] = {
        "w": weights, "z": np.array(5, dtype), "wz": np.array(0, "int8"),
        "s": np.float32(0.02), "ws": np.float32(0.01), "ys": np.float32(9),
    }  # fmt: skip
    if form == "float32":
        data, kind, result = data.astype("float32"), "float32", "float32"
        constants = {"w": weights.astype("float32")}
        nodes = [node(name, "x w", "y", **case.attributes)]
    elif form == "QDQ":
        nodes = [
            node("DequantizeLinear", "x s z", "a"), node("DequantizeLinear", "w ws wz", "b"),
            node(name, "a b", "c", **case.attributes), node("QuantizeLinear", "c ys z", "y"),
        ]  # fmt: skip
    else:
        names = "x w z" if form == "integer" else "x s z w ws wz ys z"
        result = "int32" if form == "integer" else dtype
        nodes = [node(name, names, "y", **case.attributes)]
    used = {name for one in nodes for name in one.input}
    present = {name: array for name, array in constants.items() if name in used}
    proto = model(nodes, [info("x", kind, case.data)], ["y"], 17, present)
    proto.graph.output[0].CopyFrom(info("y", result))
    return proto, data


def calls_of(
    case: Case, form: str, dtype: str, target: str, largest: int
) -> list[Callable[[], object]]:
    """A call by weft, and one by ONNX Runtime."""
    proto, data = model_of(case, form, dtype, largest)
    compiled, given = weft.compile(from_onnx(proto), target=target), weft.nd.array(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [lambda: compiled(given), lambda: session.run(None, {"x": data})]


def dot_peak_program(lanes: int, dot: Dot, chains: int) -> tir.PrimFunc:
    """Independent chains of dot products of their own sums, which stay in registers."""
    number, name = lanes * dot.steps, INTRINSICS[dot.instruction, lanes]

    @T.prim_func
    def peak(X: T.Buffer((chains, lanes), "int32"), B: T.Buffer((number,), dot.right)):
        T.func_attr({"global_symbol": "peak", "tir.noalias": True})
        sums = T.alloc_buffer((chains, lanes), "int32")
        for m in T.unroll(chains):
            sums[m, T.ramp(0, 1, lanes)] = X[m, T.ramp(0, 1, lanes)]
        for _ in range(ROUNDS):
            for m in T.unroll(chains):
                sums[m, T.ramp(0, 1, lanes)] = dot_product_sum(
                    lanes, dot, name, sums[m, T.ramp(0, 1, lanes)],
                    sums[m, T.ramp(0, 1, lanes)], B[T.ramp(0, 1, number)],
                )  # fmt: skip
        for m in T.unroll(chains):
            X[m, T.ramp(0, 1, lanes)] = sums[m, T.ramp(0, 1, lanes)]

    return peak


def peak_of(target: str) -> float:
    """Multiply-adds of small integers in a second of one core."""
    machine = machine_of(target)
    dot, lanes = DOTS[machine.dot_products[0]], machine.lanes()
    chains = machine.vector_registers * 7 // 8
    kernel = weft.build(dot_peak_program(lanes, dot, chains), target=target)["peak"]
    sums = weft.nd.array(np.zeros((chains, lanes), "int32"))
    numbers = weft.nd.array(np.ones(lanes * dot.steps, dot.right))
    seconds = min(lowest(lambda: kernel(sums, numbers)) for _ in range(TURNS))
    return chains * lanes * dot.steps * ROUNDS / seconds


def times_of(case: Case, dtype: str, target: str, largest: int = 127) -> dict[str, list[float]]:
    """Seconds of weft and of ONNX Runtime for each form."""
    calls = {form: calls_of(case, form, dtype, target, largest) for form in FORMS}
    turns = [{form: [lowest(call) for call in calls[form]] for form in FORMS} for _ in range(TURNS)]
    return {
        form: [min(times) for times in zip(*[turn[form] for turn in turns], strict=True)]
        for form in FORMS
    }  # fmt: skip


def main() -> None:
    """Measure and print one line for each row and type."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    parser.add_argument(
        "--largest", type=int, default=127, help="the largest weight (default: 127)"
    )
    options = parser.parse_args()
    set_num_threads(1)
    target = f"{options.target} -num-cores=1"
    top, gains = peak_of(target), []
    print(f"{top / 1e9:.0f} G multiply-adds/s by {machine_of(target).dot_products[0]}")
    print(f"{'':28}" + "".join(f"{form:>16}" for form in FORMS) + "    gain  of peak")
    for case in chosen(CASES, options.only):
        for dtype in ("uint8", "int8"):
            times = times_of(case, dtype, target, options.largest)
            cells = [f"{own * 1e6:7.0f} us {peer / own:4.1f}x" for own, peer in times.values()]
            gains.append(times["float32"][0] / times["linear"][0])
            share = case.products / times["integer"][0] / top
            line = "".join(f"{cell:>16}" for cell in cells)
            print(f"{case.name + ', ' + dtype:28}{line} {gains[-1]:6.2f}x {share:7.0%}", flush=True)
    print(f"geometric mean of the gain {statistics.geometric_mean(gains):.2f}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
