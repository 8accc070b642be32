"""``tvm.contrib.cblas``: matrix products of a library, here numpy's, called from TE programs."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir.op import call_packed


@register_func("tvm.contrib.cblas.matmul", override=True)
def _matmul(lhs: NDArray, rhs: NDArray, out: NDArray, transa: bool, transb: bool) -> None:
    left, right = lhs.numpy(), rhs.numpy()
    left = left.swapaxes(-1, -2) if transa else left
    right = right.swapaxes(-1, -2) if transb else right
    out.copyfrom(np.matmul(left, right).astype(out.dtype))


register_func("tvm.contrib.cblas.batch_matmul", _matmul, override=True)


def _extern(
    name: str, lhs: Tensor, rhs: Tensor, transa: bool, transb: bool, kwargs: dict[str, Any]
) -> Tensor | list[Tensor]:
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]
    return extern(
        (*lhs.shape[:-2], rows, columns),
        [lhs, rhs],
        lambda ins, outs: call_packed(name, ins[0], ins[1], outs[0], transa, transb),
        dtype=lhs.dtype,
        name="C",
        **kwargs,
    )


def matmul(
    lhs: Tensor, rhs: Tensor, transa: bool = False, transb: bool = False, **kwargs: Any
) -> Tensor | list[Tensor]:
    """The product of two matrices, each transposed on demand."""
    return _extern("tvm.contrib.cblas.matmul", lhs, rhs, transa, transb, kwargs)


def batch_matmul(
    lhs: Tensor,
    rhs: Tensor,
    transa: bool = False,
    transb: bool = False,
    iterative: bool = False,
    **kwargs: Any,
) -> Tensor | list[Tensor]:
    """The products of matrices along the first dimension."""
    return _extern("tvm.contrib.cblas.batch_matmul", lhs, rhs, transa, transb, kwargs)
