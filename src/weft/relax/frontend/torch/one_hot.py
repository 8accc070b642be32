"""``one_hot`` while torch.export captures: of a number of classes that only the data tell."""

from __future__ import annotations

from typing import Final

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

_one_hot: Final = torch.nn.functional.one_hot


def one_hot(tensor: torch.Tensor, num_classes: int | torch.SymInt = -1) -> torch.Tensor:
    """PyTorch's function of this name, which takes a plain integer only."""
    if statically_known_true(num_classes == -1):
        num_classes = tensor.max().item() + 1
    elif not isinstance(num_classes, torch.SymInt) and not torch.compiler.is_dynamo_compiling():
        return _one_hot(tensor, num_classes)
    return (tensor[..., None] == torch.arange(num_classes)).to(torch.int64)
