"""Products of float activations with weights of few bits, beside ONNX Runtime and weft's float32.

    python -m benchmarks.byte_weights [--only TEXT] [--target "llvm -mcpu=haswell"] [--symbolic]

One thread, weft and ONNX Runtime in turn; processor time, of which the lowest counts. The forms are
``float32``; ``int8`` (DequantizeLinear with a scale for each column, MatMul); and ``int4`` and
``int8`` of MatMulNBits, with a scale for each 32 or 128 weights of a column. A cell is weft's
microseconds and how many times as long ONNX Runtime takes. ``--symbolic`` leaves the number of rows
open.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnxruntime

import weft
from benchmarks.kernels import lowest
from benchmarks.options import chosen, status_of
from tests.lib.onnx_models import info, model, node
from weft.runtime.threads.parallel import set_num_threads

TURNS: Final = 3


@dataclass(frozen=True)
class Case:
    """``rows`` x ``depth`` activations times ``depth`` x ``columns`` weights."""

    rows: int
    depth: int
    columns: int

    @property
    def name(self) -> str:
        """The sizes."""
        return f"{self.rows} x {self.depth} x {self.columns}"


@dataclass(frozen=True)
class Form:
    """How weights are kept: their bits, and how many of a column share a scale (0: all)."""

    name: str
    bits: int
    block: int = 0


SIZES: Final = ((768, 3072), (2048, 2048), (4096, 4096))
CASES: Final = tuple([Case(rows, *size) for size in SIZES for rows in (1, 8, 64, 256)])
FORMS: Final = (
    Form("float32", 32), Form("int8", 8), Form("int4 by 32", 4, 32), Form("int4 by 128", 4, 128),
    Form("int8 by 32", 8, 32),
)  # fmt: skip


def model_of(case: Case, form: Form, rows: int | str) -> Any:
    """A model of ONNX with these weights, random."""
    rng = np.random.default_rng(0)
    depth, columns = case.depth, case.columns
    if form.bits == 32:
        constants: dict[str, Any] = {"w": rng.standard_normal((depth, columns)).astype("float32")}
        nodes = [node("MatMul", "x w", "y")]
    elif not form.block:
        weights = rng.integers(-127, 128, (depth, columns)).astype("int8")
        constants = {"w": weights, "s": rng.random(columns, "float32") / 127}
        nodes = [node("DequantizeLinear", "w s", "v", axis=1), node("MatMul", "x v", "y")]
    else:
        blocks = depth // form.block
        shape = (columns, blocks, form.block * form.bits // 8)
        constants = {
            "w": rng.integers(0, 256, shape).astype("uint8"),
            "s": rng.random(columns * blocks, "float32") / 127,
        }
        sizes = {"K": depth, "N": columns, "bits": form.bits, "block_size": form.block}
        nodes = [node("MatMulNBits", "x w s", "y", domain="com.microsoft", **sizes)]
    return model(nodes, [info("x", "float32", (rows, depth))], ["y"], 21, constants)


def calls_of(case: Case, form: Form, target: str, *, is_symbolic: bool) -> list[Callable[[], Any]]:
    """A call by weft, and one by ONNX Runtime."""
    proto = model_of(case, form, "rows" if is_symbolic else case.rows)
    data = np.random.default_rng(1).standard_normal((case.rows, case.depth)).astype("float32")
    compiled, given = weft.compile(proto, target=target, hot_shapes=0), weft.nd.array(data)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [lambda: compiled(given), lambda: session.run(None, {"x": data})]


def main() -> None:
    """Measure and print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    parser.add_argument("--symbolic", action="store_true", help="programs for any number of rows")
    options = parser.parse_args()
    set_num_threads(1)
    target = f"{options.target} -num-cores=1"
    print(f"{'':18}" + "".join(f"{form.name:>16}" for form in FORMS))
    for case in chosen(CASES, options.only):
        cells = []
        for form in FORMS:
            calls = calls_of(case, form, target, is_symbolic=options.symbolic)
            turns = [[lowest(call) for call in calls] for _ in range(TURNS)]
            own, peer = (min(times) for times in zip(*turns, strict=True))
            cells.append(f"{own * 1e6:7.0f} us {peer / own:4.2f}x")
        print(f"{case.name:18}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    raise SystemExit(status_of(main))
