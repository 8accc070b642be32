"""A module of PyTorch for each operator of ``benchmarks/operators.py``, by its name there.

``find_model("benchmarks.operator_modules:NAME")`` (weft.cli.models) makes it; the weights are
random, and the same in every process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn import functional

from benchmarks.operators import OPERATORS, Operator

ACTIVATIONS: Final[dict[str, Callable[[], torch.nn.Module]]] = {
    "relu": torch.nn.ReLU,
    "relu6": torch.nn.ReLU6,
    "silu": torch.nn.SiLU,
    "gelu": torch.nn.GELU,
    "gelu tanh": functools.partial(torch.nn.GELU, approximate="tanh"),
    "": torch.nn.Identity,
}


class Function(torch.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """What the function says."""
        return self.function(*inputs)


class AddLayerNorm(torch.nn.Module):
    """The end of a layer of BERT."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(size)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The norm of a sum."""
        return self.norm(x + y)


class RMSNorm(torch.nn.Module):
    """Zhang and Sennrich (2019), written out as Llama has it: torch.onnx lacks the operator."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The rows, each over its root mean square."""
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6))


class SqueezeExcite(torch.nn.Module):
    """Hu et al., "Squeeze-and-Excitation Networks" (2017), as EfficientNet has it."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.gate = torch.nn.Sequential(
            torch.nn.AdaptiveAvgPool2d(1), torch.nn.Conv2d(channels, inner, 1), torch.nn.SiLU(),
            torch.nn.Conv2d(inner, channels, 1), torch.nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The channels, each by its weight."""
        return x * self.gate(x)


class Recurrent(torch.nn.Module):
    """A recurrent layer of torch.nn, whose result is the outputs of all steps."""

    def __init__(self, kind: str, inputs: int, hidden: int) -> None:
        super().__init__()
        self.layer = getattr(torch.nn, kind)(inputs, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(steps, batch, inputs) to (steps, batch, hidden)."""
        outputs: torch.Tensor = self.layer(x)[0]
        return outputs


def convolution(
    channels: int, filters: int, window: int, stride: int, groups: int, activation: str
) -> torch.nn.Module:
    """A convolution with its activation; patches, whose stride is the window, have no padding."""
    padding = 0 if stride == window else window // 2
    layer = torch.nn.Conv2d(channels, filters, window, stride, padding, groups=groups)
    return torch.nn.Sequential(layer, ACTIVATIONS[activation]())


def dense(inputs: int, outputs: int, activation: str) -> torch.nn.Module:
    """A dense layer with its activation."""
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), ACTIVATIONS[activation]())


def split_heads(heads: int, x: torch.Tensor) -> torch.Tensor:
    """(batch, tokens, hidden) to (batch, heads, tokens, hidden / heads), in memory."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2).contiguous()


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Su et al., "RoFormer" (2021): the halves of each head turned by the position."""
    left, right = x.chunk(2, -1)
    return x * cosine + torch.cat((-right, left), -1) * sine


def grouped_attention(
    groups: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """Causal attention in which ``groups`` heads of queries share a head of keys and values."""
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _function(function: Callable[..., torch.Tensor]) -> Callable[..., torch.nn.Module]:
    return lambda *sizes: Function(functools.partial(function, *sizes))


BUILDERS: Final[dict[str, Callable[..., torch.nn.Module]]] = {
    **ACTIVATIONS,
    "conv": convolution,
    "dense": dense,
    "sequence_conv": torch.nn.Conv1d,
    "recurrent": Recurrent,
    "max_pool": torch.nn.MaxPool2d,
    "mean_pool": lambda: torch.nn.AdaptiveAvgPool2d(1),
    "squeeze_excite": SqueezeExcite,
    "layer_norm": torch.nn.LayerNorm,
    "rms_norm": RMSNorm,
    "add_layer_norm": AddLayerNorm,
    "softmax": lambda: torch.nn.Softmax(-1),
    "embedding": torch.nn.Embedding,
    "add": _function(torch.add),
    "add_relu": _function(lambda x, y: torch.relu(x + y)),
    "silu_product": _function(lambda gate, up: functional.silu(gate) * up),
    "split_heads": _function(split_heads),
    "join_heads": _function(lambda x: x.transpose(1, 2).flatten(2)),
    "patches_to_rows": _function(lambda x: x.flatten(2).transpose(1, 2).contiguous()),
    "scores": _function(lambda q, k: torch.bmm(q, k.transpose(1, 2))),
    "rotary": _function(rotate),
    "attention": _function(functional.scaled_dot_product_attention),
    "causal_attention": _function(
        functools.partial(functional.scaled_dot_product_attention, is_causal=True)
    ),
    "grouped_attention": _function(grouped_attention),
}
"""Kind -> what makes its module of the sizes in the table."""


def make(operator: Operator) -> torch.nn.Module:
    """The module of a row, its weights random and the same every time."""
    torch.manual_seed(0)
    return BUILDERS[operator.kind](*operator.sizes)


_FACTORIES: Final = {item.slug: functools.partial(make, item) for item in OPERATORS}


def __getattr__(name: str) -> Any:
    """What makes the operator of that name (PEP 562)."""
    if name in _FACTORIES:
        return _FACTORIES[name]
    raise AttributeError(f"there is no operator {name}; benchmarks/operators.py lists them")
