"""Random numbers of compiled graphs, from PyTorch's own generator: they follow torch.manual_seed.

The same functions as ``weft.runtime.random`` has, each with the call that PyTorch makes itself, so
that ``rand``, ``randn`` and their like give the numbers that they give without compilation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func

GENERATOR: Final = "weft.torch.random"
"""The room of these functions, among global functions."""
Draw = Callable[..., object]
"""Fills the tensor that it gets first, from the arguments of the call."""

_DRAWS: Final[dict[str, Draw]] = {
    "uniform": torch.Tensor.uniform_,
    "normal": torch.Tensor.normal_,
    "normal_of": lambda out, mean, deviation: out.copy_(torch.normal(mean, deviation)),
    "integers": lambda out, low, high: out.random_(int(low), int(high)),
    "permutation": lambda out: out.copy_(torch.randperm(len(out))),
    "bernoulli": lambda out, probability: out.copy_(torch.bernoulli(probability)),
    "exponential": torch.Tensor.exponential_,
    "geometric": torch.Tensor.geometric_,
    "multinomial": lambda out, weights, replacement: out.copy_(
        torch.multinomial(weights, out.shape[-1], bool(replacement))
    ),
}


def _register(name: str, draw: Draw) -> None:
    """The global function of a name: (number of the call, arguments ..., destination)."""

    def fill(_: int, *args: object) -> None:
        *given, out = [torch.from_dlpack(arg) if isinstance(arg, NDArray) else arg for arg in args]
        with torch.no_grad():
            draw(out, *given)

    register_func(f"{GENERATOR}.{name}", fill, override=True)


for _name, _draw in _DRAWS.items():
    _register(_name, _draw)
