"""Symbolic sizes: weft's one program for all sizes beside its own for one, and ONNX Runtime.

    python -m benchmarks.dynamic [--only BERT] [--rounds 6] [--threads 2] [--target "llvm ..."]

Each network is exported once to ONNX with the axes that vary as parameters. weft compiles that
file once for all sizes (dynamic), and again for each size that is measured (fixed). *hot* is the
program that calls of this size run once they have taken long (docs/design/0021), without the
microsecond that finding it takes. ONNX Runtime runs the file as it is. Each engine is a process of
its own; they take turns. Printed for each size: the shortest call of the four in milliseconds,
fixed / dynamic and fixed / hot (1: symbolic sizes cost nothing), ONNX Runtime / dynamic and ONNX
Runtime / hot (above 1: weft is faster), and how far the dynamic program's result is from ONNX
Runtime's.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft
from benchmarks.options import chosen, positive, status_of
from benchmarks.rows import Input
from benchmarks.turns import Contender, output_of, take_turns
from weft.runtime.model.compiled_model import CompiledModel


@dataclass(frozen=True)
class DynamicNetwork:
    """A network of ``benchmarks.networks``, the axes that vary, and inputs of each size."""

    name: str
    make: str
    axes: Mapping[int, str]
    sizes: Sequence[Input]

    def module(self) -> Any:
        """The network of PyTorch."""
        return getattr(importlib.import_module("benchmarks.networks"), self.make)().eval()


def images(*shapes: tuple[int, int, int]) -> Sequence[Input]:
    """Images in colour: (batch, height, width) each."""
    return [Input((batch, 3, height, width)) for batch, height, width in shapes]


_HOT_MIB: Final = 16 << 10
"""Room for the programs of all sizes of a network: a user's model keeps those of fewer."""

BATCHES: Final = images((1, 224, 224), (4, 224, 224))
TOKENS: Final = [Input(shape, below=30522) for shape in ((1, 128), (1, 17), (2, 256))]
DYNAMIC_NETWORKS: Final = (
    DynamicNetwork("MLP, batch", "mlp", {0: "n"}, [Input((n, 784)) for n in (1, 16, 250)]),
    DynamicNetwork("ResNet-18, batch", "resnet18", {0: "n"}, BATCHES),
    DynamicNetwork(
        "ResNet-18, height and width", "resnet18", {2: "h", 3: "w"},
        images((1, 224, 224), (1, 160, 250)),
    ),
    DynamicNetwork("MobileNetV2, batch", "mobilenet_v2", {0: "n"}, BATCHES),
    DynamicNetwork(
        "SqueezeNet, height and width", "squeezenet1_1", {2: "h", 3: "w"},
        images((1, 224, 224), (1, 160, 250)),
    ),
    DynamicNetwork(
        "LRASPP, height and width", "lraspp", {2: "h", 3: "w"}, images((1, 520, 520), (1, 260, 390))
    ),
    DynamicNetwork(
        "DeepLabV3, height and width", "deeplab", {2: "h", 3: "w"}, images((1, 520, 520))
    ),
    DynamicNetwork("BERT-base, batch and tokens", "bert", {0: "n", 1: "t"}, TOKENS),
)  # fmt: skip
"""What ``python -m benchmarks.dynamic`` measures."""


def onnx_file(network: DynamicNetwork, folder: Path) -> Path:
    """The network as ONNX, with its symbolic axes as parameters."""
    torch = importlib.import_module("torch")
    example = torch.from_numpy(network.sizes[-1].array(np.random.default_rng(0)))
    path = folder / "dynamic.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the newer exporter needs onnxscript
        torch.onnx.export(
            network.module(), (example,), str(path), input_names=["x"], dynamo=False,
            dynamic_axes={"x": dict(network.axes)},
        )  # fmt: skip
    return path


def weft_file(path: Path, name: str, model: CompiledModel) -> Path:
    """A file of the compiled model, beside that of the network."""
    stored = path.with_name(f"{name}.weft")
    model.save(stored)
    return stored


def hot_program(model: CompiledModel, size: Input) -> CompiledModel:
    """The program that calls of this size run once they are hot."""
    inputs = (size.array(np.random.default_rng(1)),)
    model.specialize(*inputs)
    assert model.hot_shapes is not None
    return model.hot_shapes.program_for(model, inputs, {})


Ratios = tuple[float, ...]
"""fixed / dynamic, fixed / hot, ONNX Runtime / dynamic, ONNX Runtime / hot."""


def measure(network: DynamicNetwork, options: argparse.Namespace) -> list[Ratios]:
    """Measure one network at all its sizes and print a row for each."""
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        path = onnx_file(network, Path(name))
        model = weft.compile(path, target=options.target)
        dynamic = weft_file(path, "dynamic", model)
        for index, size in enumerate(network.sizes):
            fixed = weft.compile(path, {"x": tuple(size.shape)}, target=options.target)
            contenders = [
                Contender("fixed", "weft", weft_file(path, f"fixed{index}", fixed)),
                Contender("hot", "weft", weft_file(path, f"hot{index}", hot_program(model, size))),
                Contender("dynamic", "weft", dynamic),
                Contender("ONNX Runtime", "ONNX Runtime", path),
            ]
            label = f"{network.name}, {'x'.join(map(str, size.shape))}"
            ratios.append(_row(label, contenders, size, Path(name), options))
    return ratios


def _row(
    label: str, contenders: Sequence[Contender], size: Input, folder: Path,
    options: argparse.Namespace,
) -> Ratios:  # fmt: skip
    inputs = [size.array(np.random.default_rng(1))]
    engines = take_turns(contenders, inputs, folder, options.threads, options.rounds)
    for contender, engine in zip(contenders, engines, strict=True):
        if engine.error:
            raise weft.TVMError(f"{label}, {contender.label}: {engine.error}")
    fixed, hot, dynamic, peer = [min(engine.seconds) for engine in engines]
    own, wanted = [output_of(engine, folder) for engine in engines[2:]]
    apart = float(np.abs(own - wanted).max() / np.abs(wanted).max())
    for engine in engines:
        engine.stop()
    times = "".join([f"{seconds * 1e3:>10.3f}" for seconds in (fixed, hot, dynamic, peer)])
    ratios = fixed / dynamic, fixed / hot, peer / dynamic, peer / hot
    shown = "".join([f"{ratio:>8.2f}" for ratio in ratios])
    print(f"{label:<42}{times}{shown}{apart:>9.1e}", flush=True)
    return ratios


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="networks with this text in their name")
    parser.add_argument("--rounds", type=positive, default=6)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--target", default=None, help='weft\'s target, like "llvm -mcpu=haswell"')
    options = parser.parse_args()
    networks = chosen(DYNAMIC_NETWORKS, options.only)
    os.environ["WEFT_HOT_SIZE"] = str(_HOT_MIB)
    heads = "".join([f"{head:>10}" for head in ("fixed", "hot", "dynamic", "ORT")])
    print(f"{'milliseconds':<42}{heads} fix/dyn fix/hot ORT/dyn ORT/hot    apart")
    ratios = [pair for network in networks for pair in measure(network, options)]
    titles = "fixed / dynamic", "fixed / hot", "ONNX Runtime / dynamic", "ONNX Runtime / hot"
    for index, title in enumerate(titles):
        column = [pair[index] for pair in ratios]
        mean = statistics.geometric_mean(column)
        print(f"{title}: geometric mean {mean:.2f}, least {min(column):.2f}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
