"""``torch.take_along_dim`` while torch.export captures: torch makes constants of its sizes."""

from __future__ import annotations

from typing import Final

import torch

_take_along_dim: Final = torch.take_along_dim


def take_along_dim(
    input: torch.Tensor, indices: torch.Tensor, dim: int | None = None
) -> torch.Tensor:
    """PyTorch's function of this name; sizes but that of ``dim`` are broadcast."""
    if dim is None or input.ndim != indices.ndim or input.ndim == 0:
        return _take_along_dim(input, indices, dim)
    axis = dim % input.ndim
    lengths = (input.shape[axis], indices.shape[axis])
    others = [
        [1 if i == axis else size for i, size in enumerate(tensor.shape)]
        for tensor in (input, indices)
    ]
    sizes = list(torch.broadcast_shapes(*others))
    whole, places = (
        tensor.expand(*sizes[:axis], length, *sizes[axis + 1 :])
        for tensor, length in zip((input, indices), lengths, strict=True)
    )
    return whole.gather(axis, places)
