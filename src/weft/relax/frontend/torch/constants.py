"""Tensors of torch as NDArrays, on the same memory where it is compact."""

from __future__ import annotations

import torch

from weft.runtime.ndarray import NDArray, from_dlpack
from weft.support.errors import UnsupportedError


def as_ndarray(tensor: torch.Tensor) -> NDArray:
    """The NDArray on a tensor's memory; what is not compact, dense or on the CPU is copied."""
    data = tensor.detach()
    if data.is_quantized:
        raise UnsupportedError(f"constants: expected a plain tensor, got one of {data.dtype}")
    if data.layout is not torch.strided:
        data = data.to_dense()
    if isinstance(data, torch.nn.Parameter) or type(data) is not torch.Tensor:
        data = data.as_subclass(torch.Tensor)
    compact = data.cpu().resolve_conj().resolve_neg().contiguous()
    if compact.dtype is torch.bool:  # older versions of DLPack have no bool
        return NDArray(compact.numpy())
    return from_dlpack(compact)
