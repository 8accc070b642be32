"""What a row of the zoo is: how to make a model, with weights that hide nothing, and its inputs.

Weights are random everywhere: what a library fills with one number (a head of zeros, a layer's
scale of 1e-6) would hide what comes before it. torchvision, timm and transformers are asked for at
first use.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

Inputs = Callable[[], Mapping[str, torch.Tensor] | tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Architecture:
    """One model: the library that it comes from, how to make it, what it is called with."""

    name: str
    library: str
    make: Callable[[], torch.nn.Module] = field(compare=False)
    inputs: Inputs = field(compare=False)

    def model(self) -> torch.nn.Module:
        """The model with random weights that are the same every time, ready for inference."""
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = stir(self.make()).eval()
            args, kwargs = self.example()
            return settle(model, *args, **kwargs)

    def example(self, seed: int = 1) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
        """Positional and keyword arguments of a call, the same every time for a seed."""
        torch.manual_seed(seed)
        found = self.inputs()
        return ((), dict(found)) if isinstance(found, Mapping) else (tuple(found), {})


def stir(model: torch.nn.Module) -> torch.nn.Module:
    """Random numbers in parameters and statistics that are one number all over; the same model.

    Around 0 with a deviation of 0.1, and within a fifth of what is 0.1 or larger. Tensors of one
    element stay, as do other buffers, which may be masks.
    """
    statistics = [
        buffer
        for name, buffer in model.named_buffers()
        if name.rpartition(".")[2] in _STATISTICS and buffer.is_floating_point()
    ]
    with torch.no_grad():
        for tensor in [*model.parameters(), *statistics]:
            if tensor.numel() < 2 or not bool((tensor == tensor.flatten()[0]).all()):
                continue
            start = float(tensor.flatten()[0])
            if abs(start) < _SMALL_START:
                tensor.normal_(start, _SMALL_START)
            else:
                tensor.mul_(torch.empty_like(tensor).uniform_(0.8, 1.2))
    return model


_STATISTICS: Final = ("weight", "bias", "running_mean", "running_var")
_SMALL_START: Final = 0.1


def settle(model: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    """Statistics of batch norms near those of this call, layer by layer; the same model.

    With the statistics that they start with, the activations of a deep network vanish or grow, and
    its output no longer depends on its input. Only a tenth of the mean is taken away: with half of
    it DenseNet's output in float32 is 3e-3 off that in float64, with a tenth 3e-6. Half of the
    variance is that of the whole layer, since a channel may have a single value in this call.
    """
    kind = torch.nn.modules.batchnorm._BatchNorm
    norms = [norm for norm in model.modules() if isinstance(norm, kind)]
    hooks = [norm.register_forward_pre_hook(_take_statistics) for norm in norms]
    with torch.no_grad():
        if hooks:
            model(*args, **kwargs)
    for hook in hooks:
        hook.remove()
    return model


def _take_statistics(norm: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    (data,) = inputs
    axes = [axis for axis in range(data.ndim) if axis != 1]
    mean = data.mean(axes) / 10
    around = data - mean.reshape(1, -1, *[1] * (data.ndim - 2))
    variance = around.square().mean(axes)
    variance = (variance + variance.mean()) / 2
    for place, value in ((norm.running_mean, mean), (norm.running_var, variance)):
        if isinstance(place, torch.Tensor):
            place.copy_(value)


def import_torchvision() -> Any:
    """torchvision, also where its operators' C++ part does not fit the torch that is installed.

    Two operators of detection are then only declared, which is enough for everything else.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        _declare_detection()
        return importlib.import_module("torchvision")


@functools.cache
def _declare_detection() -> Any:
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def image(size: int = 64, batch: int = 1, channels: int = 3) -> Inputs:
    """Random images."""
    return lambda: (torch.randn(batch, channels, size, size),)


def video(frames: int = 8, size: int = 32) -> Inputs:
    """A random video."""
    return lambda: (torch.randn(1, 3, frames, size, size),)


def tokens(length: int = 12, batch: int = 1, vocabulary: int = 96) -> Inputs:
    """Random token numbers as ``input_ids``."""
    return lambda: {"input_ids": torch.randint(0, vocabulary, (batch, length))}


def of_torchvision(name: str, inputs: Inputs, **options: Any) -> Architecture:
    """A row for a model of torchvision, by its name there."""

    def make() -> torch.nn.Module:
        import_torchvision()
        models = importlib.import_module("torchvision.models")
        found: torch.nn.Module = models.get_model(name, weights=None, **options)
        return found

    return Architecture(name, "torchvision", make, inputs)


def of_timm(name: str, inputs: Inputs, **options: Any) -> Architecture:
    """A row for a model of timm, by its name there."""

    def make() -> torch.nn.Module:
        import_torchvision()
        timm = importlib.import_module("timm")
        found: torch.nn.Module = timm.create_model(name, pretrained=False, **options)
        return found

    return Architecture(f"timm-{name}", "timm", make, inputs)


def of_transformers(
    name: str, model: str, config: str, inputs: Inputs, **options: Any
) -> Architecture:
    """A row for a model class of transformers and its configuration."""

    def make() -> torch.nn.Module:
        import_torchvision()
        library = importlib.import_module("transformers")
        configuration = getattr(library, config)(**options)
        found: torch.nn.Module = getattr(library, model)(configuration)
        return found

    return Architecture(name, "transformers", make, inputs)
