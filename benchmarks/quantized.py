"""Networks in 8-bit integers: weft.quantize beside ONNX Runtime's quantiser, and float32.

    python -m benchmarks.quantized [--only ResNet-50] [--rounds 6] [--samples 8] [--threads 2]

Each network is quantised on the same samples by ``weft.quantize`` (static; transformers dynamic,
too) and by ``onnxruntime.quantization`` (QDQ, a scale for each channel, uint8 activations);
OpenVINO runs the latter's file. Each engine is a process of its own; they take turns. Printed for
each: the shortest call in milliseconds, how many times as fast as weft's float32 it is, and the
cosine of its result with that of PyTorch in float32. Weights are random, so cosines say what
rounding costs, and nothing of the accuracy of a trained network.
"""

from __future__ import annotations

import argparse
import importlib
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft
from benchmarks.networks import NETWORKS
from benchmarks.options import chosen, positive, status_of
from benchmarks.rows import Row
from benchmarks.turns import Contender, output_of, take_turns
from weft.cli.engine_process import Engine
from weft.cli.engines import result_arrays

NAMES: Final = ("ResNet-50", "MobileNetV2", "ViT-B/16", "BERT-base 128 tokens")


class Network:
    """A network of PyTorch, its samples, and the files that are made of it."""

    def __init__(self, row: Row, folder: Path, samples: int) -> None:
        self.torch = importlib.import_module("torch")
        module, _, function = row.model.partition(":")
        self.row, self.folder = row, folder
        self.net = getattr(importlib.import_module(module), function)().eval()
        generators = [np.random.default_rng(seed) for seed in range(samples)]
        self.samples = [[item.array(rng) for item in row.inputs] for rng in generators]

    def tensors(self, arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
        """Arrays as arguments of a call of the network."""
        return tuple([self.torch.from_numpy(array) for array in arrays])

    def answer(self) -> np.ndarray:
        """What PyTorch gives."""
        with self.torch.no_grad():
            result = self.net(*self.tensors(list(self.row.arrays().values())))
        return np.asarray(result_arrays(result)[0])

    def weft_file(self, name: str, method: str | None) -> Path:
        """The network compiled by weft: quantised, or as it is."""
        given = [self.tensors(sample) for sample in self.samples]
        model: Any = self.net
        if method is not None:
            model = weft.quantize(self.net, given, method=method)
            print(f"  {model}", flush=True)
        compiled = weft.compile(model, given[0] if method is None else None)
        compiled.save(self.folder / f"{name}.weft")
        return self.folder / f"{name}.weft"

    def onnx_file(self) -> Path:
        """The network as ONNX, prepared for the quantiser."""
        shape_inference = importlib.import_module("onnxruntime.quantization.shape_inference")
        raw, path = self.folder / "raw.onnx", self.folder / "model.onnx"
        inputs = self.tensors(self.samples[0])
        self.torch.onnx.export(self.net, inputs, str(raw), dynamo=False)
        shape_inference.quant_pre_process(str(raw), str(path), skip_symbolic_shape=True)
        return path

    def quantized_onnx_file(self, path: Path, method: str) -> Path:
        """What ONNX Runtime's quantiser makes of a file."""
        quantization = importlib.import_module("onnxruntime.quantization")
        made = path.with_name(f"{method}.onnx")
        if method == "dynamic":
            quantization.quantize_dynamic(str(path), str(made), per_channel=True)
            return made
        names = [item.name for item in importlib.import_module("onnx").load(path).graph.input]
        feeds = iter([dict(zip(names, sample, strict=True)) for sample in self.samples])

        class Reader(quantization.CalibrationDataReader):  # type: ignore[name-defined, misc]
            def get_next(self) -> Any:
                return next(feeds, None)

        quantization.quantize_static(
            str(path), str(made), Reader(), per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )  # fmt: skip
        return made

    def contenders(self) -> Iterator[Contender]:
        """All that is timed; the first one is weft's float32."""
        methods = ["static"] + ["dynamic"] * bool(self.row.inputs[0].below)
        plain = self.onnx_file()
        yield Contender("weft float32", "weft", self.weft_file("float32", None))
        yield Contender("ONNX Runtime float32", "ONNX Runtime", plain)
        yield Contender("OpenVINO float32", "OpenVINO", plain)
        for method in methods:
            yield Contender(f"weft {method}", "weft", self.weft_file(method, method))
            file = self.quantized_onnx_file(plain, method)
            yield Contender(f"ONNX Runtime {method}", "ONNX Runtime", file)
            if method == "static":
                yield Contender("OpenVINO, the same file", "OpenVINO", file)


def measure(row: Row, options: argparse.Namespace) -> None:
    """Measure one network and print its rows."""
    with tempfile.TemporaryDirectory() as name:
        print(row.name, flush=True)
        network = Network(row, Path(name), options.samples)
        contenders, inputs = list(network.contenders()), list(row.arrays().values())
        engines = take_turns(contenders, inputs, network.folder, options.threads, options.rounds)
        for contender, engine in zip(contenders, engines, strict=True):
            print(_line(contender, engine, engines[0], network), flush=True)
        for engine in engines:
            engine.stop()


def _line(contender: Contender, engine: Engine, first: Engine, network: Network) -> str:
    if engine.error:
        return f"  {contender.label:<26} {engine.error[:80]}"
    given = output_of(engine, network.folder).astype("float64").ravel()
    wanted = network.answer().astype("float64").ravel()
    cosine = given @ wanted / math.sqrt((given @ given) * (wanted @ wanted))
    shortest = min(engine.seconds)
    gain = min(first.seconds) / shortest
    return f"  {contender.label:<26}{shortest * 1e3:>9.2f} ms{gain:>7.2f}{cosine:>10.5f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="networks with this text in their name")
    parser.add_argument("--rounds", type=positive, default=6)
    parser.add_argument("--samples", type=positive, default=8)
    parser.add_argument("--threads", type=positive, default=2)
    options = parser.parse_args()
    for row in chosen([row for row in NETWORKS if row.name in NAMES], options.only):
        measure(row, options)


if __name__ == "__main__":
    raise SystemExit(status_of(main))
