"""Tensors of torch as NDArrays, on the same memory where it is compact."""

from __future__ import annotations

from typing import Any

import torch

from weft.runtime.ndarray import NDArray, from_dlpack
from weft.support.errors import UnsupportedError


def as_ndarray(tensor: Any) -> NDArray:
    """The NDArray on a tensor's memory; what is not compact, dense or on the CPU is copied."""
    found = tensor.detach()
    if found.is_sparse or found.is_quantized:
        raise UnsupportedError(
            f"constants: expected a dense tensor, got {found.layout} of {found.dtype}"
        )
    if isinstance(found, torch.nn.Parameter) or type(found) is not torch.Tensor:
        found = found.as_subclass(torch.Tensor)
    found = found.cpu().resolve_conj().resolve_neg().contiguous()
    if found.dtype is torch.bool:  # the DLPack of older producers has no bool
        return NDArray(found.numpy())
    return from_dlpack(found)
