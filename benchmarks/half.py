"""Networks with weights of 16 bits: float32 beside bfloat16 and float16.

    python -m benchmarks.half [--only BERT] [--seconds 10] [--threads 1]

Each network is compiled by ``weft.compile`` as it is and with ``dtype="bfloat16"`` and
``"float16"``; the three take turns in one process. Printed for each: the bytes of its constants,
the shortest call, how many times as fast as float32 it is, and, of its result beside PyTorch's, the
cosine and the largest error as a share of the largest number. Weights are random.
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import weft
from benchmarks import networks
from benchmarks.options import chosen, positive, status_of
from weft.runtime.model.compiled_model import CompiledModel

_TYPES: Final = (None, "bfloat16", "float16")


@dataclass(frozen=True)
class Network:
    """A network, and the shape of its input (``below``: of token numbers below this)."""

    name: str
    create: Callable[[], Any]
    shape: tuple[int, ...]
    below: int = 0


def _mlp() -> Any:
    torch = networks._seeded()
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers)


def _bert() -> Any:
    library = networks._transformers()
    return networks._hidden(library.BertModel(library.BertConfig(num_hidden_layers=2)))


NETWORKS: Final = (
    Network("MLP 4 x 1024, batch 1", _mlp, (1, 1024)),
    Network("MLP 4 x 1024, batch 64", _mlp, (64, 1024)),
    Network("ResNet-18", networks.resnet18, (1, 3, 224, 224)),
    Network("BERT of 2 layers, 128 tokens", _bert, (1, 128), 30522),
)


def measure(network: Network, options: argparse.Namespace) -> None:
    """Measure one network and print its rows."""
    torch = importlib.import_module("torch")
    net, shape, below = network.create().eval(), network.shape, network.below
    data = torch.randint(0, below, shape) if below else torch.randn(shape)
    with torch.no_grad():
        wanted = net(data).numpy()
    models = [
        weft.compile(net, (data,), dtype=dtype, num_threads=options.threads) for dtype in _TYPES
    ]
    shortest = _take_turns(models, data, options.seconds)
    print(network.name, flush=True)
    for dtype, model, seconds in zip(_TYPES, models, shortest, strict=True):
        size = sum([array._array.nbytes for array in model.program.constants])
        cosine, error = _distance(model(data).numpy(), wanted)
        print(
            f"  {dtype or 'float32':<10}{size / 1e6:>8.1f} MB{seconds * 1e3:>9.3f} ms"
            f"{shortest[0] / seconds:>7.2f}{cosine:>12.7f}{error:>10.1e}",
            flush=True,
        )


def _take_turns(models: list[CompiledModel], data: Any, seconds: float) -> list[float]:
    """The shortest call of each model."""
    shortest = [math.inf] * len(models)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for place, model in enumerate(models):
            for _ in range(3):
                start = time.perf_counter()
                model(data)
                shortest[place] = min(shortest[place], time.perf_counter() - start)
    return shortest


def _distance(given: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """The cosine, and the largest error as a share of the largest number."""
    x, y = given.astype("float64").ravel(), wanted.astype("float64").ravel()
    cosine = float(x @ y / math.sqrt((x @ x) * (y @ y)))
    return cosine, float(np.abs(x - y).max() / np.abs(y).max())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="networks with this text in their name")
    parser.add_argument("--seconds", type=positive, default=10)
    parser.add_argument("--threads", type=positive, default=1)
    options = parser.parse_args()
    for network in chosen(NETWORKS, options.only):
        measure(network, options)


if __name__ == "__main__":
    raise SystemExit(status_of(main))
