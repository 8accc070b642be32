"""What ``weft.tune`` makes of six models, beside what they are without it.

    python -m benchmarks.tuned_models [--minutes M] [--only TEXT] [--rounds N] [--report]

For each model: milliseconds of a call of the default and of the tuned model, their ratio (above 1:
tuning helped), trials, and the seconds that the search took. Each search begins with an empty
database. Both models are then called in turn; the shortest call of each counts. ``--report`` also
prints the kernels and what was chosen for them.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import weft
from benchmarks import networks
from benchmarks.options import chosen, positive, status_of
from benchmarks.rows import Input
from tests.lib.trained_files import file_of, normal

_SECONDS: Final = 0.5
"""Of the calls of one model in one round."""


@dataclass(frozen=True)
class Tuned:
    """A model to tune: its name, what it is, and the arrays that it is called with."""

    name: str
    model: Callable[[], Any]
    arrays: Callable[[], Sequence[np.ndarray]]


def shufflenet() -> Any:
    """torchvision's ShuffleNet V2."""
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    zoo = importlib.import_module("tests.lib.zoo")
    zoo.import_torchvision()
    model = importlib.import_module("torchvision.models").get_model("shufflenet_v2_x1_0")
    return zoo.settle(zoo.stir(model).eval(), torch.randn(networks.IMAGE[0].shape))


def _recogniser() -> Any:
    return file_of("rapidocr_onnxruntime", "models", "ch_PP-OCRv4_rec_infer.onnx")


def _arrays(*inputs: Input) -> Callable[[], Sequence[np.ndarray]]:
    return lambda: [item.array(np.random.default_rng(0)) for item in inputs]


MODELS: Final = (
    Tuned("MobileNetV2", networks.mobilenet_v2, _arrays(*networks.IMAGE)),
    Tuned("EfficientNet-B0", networks.efficientnet_b0, _arrays(*networks.IMAGE)),
    Tuned("CNN batch 4", networks.cnn, _arrays(Input((4, 1, 28, 28)))),
    Tuned("Llama-like 32 tokens", networks.llama, _arrays(Input((1, 32), below=32000))),
    Tuned("words of any width", _recogniser, lambda: [normal(1, 3, 48, 320)]),
    Tuned("ShuffleNet V2", shufflenet, _arrays(*networks.IMAGE)),
)


def examples_of(model: Any, arrays: Sequence[np.ndarray]) -> Any:
    """What ``weft.compile`` needs beside the model: tensors for a PyTorch module."""
    torch = importlib.import_module("torch")
    if not isinstance(model, torch.nn.Module):
        return None
    return tuple([torch.from_numpy(array) for array in arrays])


def least_in_turn(
    models: Sequence[Any], arrays: Sequence[np.ndarray], rounds: int
) -> Sequence[float]:
    """Seconds of the shortest call of each model, called in turn for some rounds."""
    inputs = [weft.nd.array(array) for array in arrays]
    least = [float("inf")] * len(models)
    for number in range(rounds):
        for place in range(len(models))[:: 1 if number % 2 == 0 else -1]:
            end = time.perf_counter() + _SECONDS
            while (begin := time.perf_counter()) < end:
                models[place](*inputs)
                least[place] = min(least[place], time.perf_counter() - begin)
    return least


def main() -> None:
    """Tune, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of each search (default: 5)")
    parser.add_argument("--only", default="", help="models with this text in their name")
    parser.add_argument("--rounds", type=positive, default=10)
    parser.add_argument("--report", action="store_true", help="print the kernels too")
    options = parser.parse_args()
    print(f"{'model':<22}{'default ms':>12}{'tuned ms':>10}{'ratio':>7}{'trials':>8}{'s':>6}")
    ratios = []
    for row in chosen(MODELS, options.only):
        model, arrays = row.model(), row.arrays()
        examples = examples_of(model, arrays)
        default = weft.compile(model, examples)
        tuned = weft.tune(model, examples, minutes=options.minutes, database=None)
        first, second = least_in_turn([default, tuned], arrays, options.rounds)
        ratios.append(first / second)
        report = tuned.tuning
        print(
            f"{row.name:<22}{first * 1e3:12.3f}{second * 1e3:10.3f}{ratios[-1]:7.3f}"
            f"{report.trials:8}{report.seconds:6.0f}",
            flush=True,
        )
        if options.report:
            print(report, flush=True)
    print(f"{'geometric mean':<44}{statistics.geometric_mean(ratios):7.3f}")


if __name__ == "__main__":
    sys.exit(status_of(main))
