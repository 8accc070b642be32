"""Single layers of any batch: weft's program for all batches beside its own for one, and PyTorch.

    python -m benchmarks.layers [--only conv] [--batch 3] [--rounds 10] [--images]

A network hides what one layer loses: of a layer that is scalar code for symbolic batches, and fast
for fixed ones, its whole table may show a tenth. So each row is one layer, or one function, of a
size as users have it. Printed are microseconds of a call, fixed / dynamic (1: a symbolic batch
costs nothing) and PyTorch / dynamic, from the lowest of all rounds, in turn and in one process;
how far results are from PyTorch's; at the end the geometric means and the rows that are least.
``--images`` takes the layers of images only, and leaves height and width open, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

import weft
from benchmarks.options import chosen, positive, status_of

_CALLS: Final = 6
"""Calls of each of the three in a round."""
_COLUMNS: Final = (10, 64, 100, 256, 1000)
_SHOWN: Final = 5
"""How many of the worst rows are named at the end."""


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, first: torch.Tensor, second: torch.Tensor | None = None) -> torch.Tensor:
        """The value of the function."""
        return self.function(first) if second is None else self.function(first, second)


class Recurrent(nn.Module):
    """A recurrent layer's sequence of outputs."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The outputs of all steps."""
        return self.layer(x)[0]


@dataclass(frozen=True)
class Layer:
    """A layer and the shapes of its inputs behind the batch; ``rows`` of them per batch."""

    name: str
    make: Callable[[], nn.Module]
    shapes: Sequence[tuple[int, ...]]
    rows: int = 1
    below: int = 0
    """Above 0: inputs are integers below this."""

    def inputs(self, batch: int) -> tuple[torch.Tensor, ...]:
        """Random inputs of a batch."""
        shapes = [(batch * self.rows, *shape) for shape in self.shapes]
        if self.below:
            return tuple([torch.randint(0, self.below, shape) for shape in shapes])
        return tuple([torch.randn(shape) for shape in shapes])

    @property
    def is_of_images(self) -> bool:
        """Whether each input is ``[channels, height, width]``, of which the last two may be any."""
        return all(len(shape) == 3 for shape in self.shapes)


def _linear(columns: int) -> Callable[[], nn.Module]:
    return lambda: nn.Linear(256, columns)


def _convolution(channels: int, filters: int, window: int, stride: int = 1) -> Layer:
    name = f"conv {channels}-{filters} {window}x{window}, stride {stride}"
    return Layer(
        name, lambda: nn.Conv2d(channels, filters, window, stride, window // 2),
        [(channels, 28, 28)],
    )  # fmt: skip


def _function(name: str, function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> Layer:
    return Layer(name, lambda: Function(function), shapes)


LAYERS: Final = (
    *[Layer(f"linear, {n} columns", _linear(n), [(256,)], 8) for n in _COLUMNS],
    *[Layer(f"linear of rows, {n} columns", _linear(n), [(20, 256)]) for n in _COLUMNS],
    _convolution(3, 16, 3, 2), _convolution(16, 32, 3), _convolution(24, 40, 3),
    _convolution(32, 32, 1), _convolution(20, 50, 5), _convolution(64, 64, 3, 2),
    Layer("depthwise conv 32", lambda: nn.Conv2d(32, 32, 3, 1, 1, groups=32), [(32, 28, 28)]),
    Layer("conv with holes", lambda: nn.Conv2d(64, 64, 3, padding=12, dilation=12), [(64, 33, 33)]),
    Layer("conv in groups", lambda: nn.Conv2d(32, 32, 3, 1, 1, groups=4), [(32, 28, 28)]),
    Layer("transposed conv", lambda: nn.ConvTranspose2d(16, 8, 4, 2, 1), [(16, 14, 14)]),
    Layer("conv of sequences", lambda: nn.Conv1d(40, 64, 5, padding=2), [(40, 100)]),
    Layer("conv of volumes", lambda: nn.Conv3d(4, 8, 3, padding=1), [(4, 8, 14, 14)]),
    Layer("batch norm, relu", lambda: nn.Sequential(nn.BatchNorm2d(32), nn.ReLU()), [(32, 28, 28)]),
    Layer("group norm", lambda: nn.GroupNorm(4, 32), [(32, 28, 28)]),
    Layer("layer norm", lambda: nn.LayerNorm(100), [(50, 100)]),
    Layer("max pool", lambda: nn.MaxPool2d(3, 2, 1), [(32, 28, 28)]),
    Layer("max pool, 2x2", lambda: nn.MaxPool2d(2), [(10, 55, 75)]),
    Layer("conv, max pool, conv", lambda: nn.Sequential(
        nn.Conv2d(3, 28, 3), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), nn.Conv2d(28, 48, 3),
    ), [(3, 24, 24)]),
    Layer("nearest resize", lambda: nn.Upsample(scale_factor=2), [(16, 20, 20)]),
    Layer("adaptive average pool", lambda: nn.AdaptiveAvgPool2d(7), [(32, 20, 20)]),
    Layer("bilinear resize", lambda: nn.Upsample(scale_factor=2, mode="bilinear"), [(16, 20, 20)]),
    Layer(
        "bilinear resize, corners aligned",
        lambda: nn.Upsample(scale_factor=3, mode="bilinear", align_corners=True), [(16, 33, 33)],
    ),
    Layer("bicubic resize", lambda: nn.Upsample(scale_factor=2, mode="bicubic"), [(16, 33, 33)]),
    Layer("softmax of 64", lambda: nn.Softmax(-1), [(8, 64, 64)]),
    Layer("softmax of channels", lambda: nn.Softmax(1), [(21, 40, 40)]),
    Layer(
        "encoder layer", lambda: nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        [(30, 64)],
    ),
    Layer("LSTM", lambda: Recurrent(nn.LSTM(40, 64, batch_first=True)), [(20, 40)]),
    Layer("GRU", lambda: Recurrent(nn.GRU(40, 50, batch_first=True)), [(20, 40)]),
    Layer("embedding", lambda: nn.Embedding(1000, 100), [(50,)], below=1000),
    Layer("gelu", nn.GELU, [(100, 99)]),
    Layer("glu", nn.GLU, [(50, 120)]),
    Layer("pixel shuffle", lambda: nn.PixelShuffle(2), [(16, 20, 20)]),
    _function("product of batches", torch.matmul, (50, 70), (70, 30)),
    _function("running sum", lambda x: x.cumsum(-1), (30, 100)),
    _function("argmax", lambda x: x.argmax(-1), (30, 100)),
    _function("largest five", lambda x: x.topk(5)[0], (30, 100)),
    _function("mean of pixels", lambda x: x.mean((2, 3)), (32, 28, 28)),
    _function("variance of channels", lambda x: x.var(1), (32, 400)),
    _function("channels last", lambda x: x.permute(0, 2, 3, 1).contiguous(), (30, 28, 28)),
    _function("heads apart", lambda x: x.transpose(1, 2).contiguous(), (6, 20, 50)),
    _function("concatenation", lambda x, y: torch.cat([x, y], 1), (10, 28, 28), (22, 28, 28)),
    _function("padding", lambda x: functional.pad(x, (1, 2, 3, 1)), (16, 28, 28)),
    _function("unit rows", lambda x: x / x.norm(dim=-1, keepdim=True), (40, 100)),
)  # fmt: skip
"""What ``python -m benchmarks.layers`` measures."""


def shortest(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest call of each, in seconds; they take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(_CALLS):
                start = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def measure(layer: Layer, batch: int, rounds: int, any_image: bool = False) -> tuple[float, float]:
    """Print the row of a layer; fixed / dynamic and PyTorch / dynamic."""
    torch.manual_seed(0)
    module, given = layer.make().eval(), layer.inputs(batch)
    axes: dict[int, Any] = {0: torch.export.Dim("rows", max=64 * layer.rows)}
    if any_image:
        axes |= {axis: torch.export.Dim(f"size_{axis}", min=8, max=512) for axis in (2, 3)}
    example = layer.inputs(2)
    shapes = tuple([axes for _ in example])
    dynamic = weft.compile(module, example, dynamic_shapes=shapes, hot_shapes=0)
    fixed = weft.compile(module, given)
    with torch.no_grad():
        wanted = module(*given)
        calls: dict[str, Callable[[], object]] = {
            "fixed": lambda: fixed(*given),
            "dynamic": lambda: dynamic(*given),
            "PyTorch": lambda: module(*given),
        }
        best = shortest(calls, rounds)
        apart = float((dynamic(*given) - wanted).abs().max())
    ratios = best["fixed"] / best["dynamic"], best["PyTorch"] / best["dynamic"]
    times = "".join([f"{best[name] * 1e6:>10.1f}" for name in calls])
    shown = "".join([f"{ratio:>10.2f}" for ratio in ratios])
    print(f"{layer.name:<32}{times}{shown}{apart:>10.1e}", flush=True)
    return ratios


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="layers with this text in their name")
    parser.add_argument("--batch", type=positive, default=3)
    parser.add_argument("--rounds", type=positive, default=10)
    parser.add_argument("--images", action="store_true", help="images of any height and width")
    options = parser.parse_args()
    heads = "fixed", "dynamic", "PyTorch", "fix/dyn", "torch/dyn", "apart"
    print(f"{'microseconds':<32}" + "".join([f"{head:>10}" for head in heads]))
    rows = chosen(LAYERS, options.only)
    if options.images:
        rows = [layer for layer in rows if layer.is_of_images]
    ratios = [measure(layer, options.batch, options.rounds, options.images) for layer in rows]
    for index, title in enumerate(("fixed / dynamic", "PyTorch / dynamic")):
        column = [pair[index] for pair in ratios]
        worst = sorted(zip(column, [row.name for row in rows], strict=True))[:_SHOWN]
        named = ", ".join([f"{name} {ratio:.2f}" for ratio, name in worst])
        print(f"{title}: geometric mean {statistics.geometric_mean(column):.2f}; least: {named}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
