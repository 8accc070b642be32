"""Fully connected layers and batched matrix products."""

from __future__ import annotations

from weft.ir.expr import Extent, PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import Element, compute, reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Shape,
    broadcast_indices,
    broadcast_shape,
    may_be_equal,
    shape_text,
)


def matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> Tensor:
    """``a @ b + bias``, a (.., n, k) and b (.., k, m); each may have its last two axes transposed.

    ``tensor_b`` is marked as a tensor whose layout may be changed. The last two arguments are part
    of TVM's signature and must be empty.
    """
    del auto_scheduler_rewritten_layout, meta_schedule_original_shape
    if tensor_a.ndim < 2 or tensor_b.ndim < 2:
        raise IRValueError(
            f"nn.matmul: expected at least 2 dimensions, got {tensor_a.ndim} and {tensor_b.ndim}"
        )
    shape, element, letters = _product(tensor_a, tensor_b, out_dtype, (transpose_a, transpose_b))
    product = compute(
        shape, element, name=f"T_matmul_{letters}", tag="dense" if letters == "NT" else "matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )  # fmt: skip
    if bias is None:
        return product
    if bias.ndim != 1 or not may_be_equal(bias.shape[0], shape[-1]):
        raise IRValueError(
            f"nn.matmul: expected a bias of shape ({shape[-1]},), got {shape_text(bias.shape)}"
        )
    return compute(
        shape, lambda *i: product(*i) + op.cast(product.dtype, bias(i[-1])), tag=tag.BROADCAST
    )


def _product(
    a: Tensor,
    b: Tensor,
    out_dtype: str | None,
    transposed: tuple[bool, bool],
    what: str = "nn.matmul",
) -> tuple[list[Extent], Element, str]:
    """The shape of a product over the last two axes, its elements, and TVM's name of its form."""
    depth_a, rows = a.shape[-2:] if transposed[0] else a.shape[-2:][::-1]
    depth_b, columns = b.shape[-2:][::-1] if transposed[1] else b.shape[-2:]
    if not may_be_equal(depth_a, depth_b):
        raise IRValueError(
            f"{what}: the shapes {shape_text(a.shape)} and {shape_text(b.shape)} do not multiply: "
            f"{depth_a} and {depth_b} differ"
        )
    dtype = DataType(out_dtype) if out_dtype else a.dtype
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2], what)
    k = reduce_axis((0, depth_a), name="k")

    def element(*indices: PrimExpr) -> PrimExpr:
        *outer, i, j = indices
        left = (k.var, i) if transposed[0] else (i, k.var)
        right = (j, k.var) if transposed[1] else (k.var, j)
        lhs = a(*broadcast_indices(a.shape[:-2], batch, outer), *left)
        rhs = b(*broadcast_indices(b.shape[:-2], batch, outer), *right)
        return te_reduction.sum(op.cast(dtype, lhs) * op.cast(dtype, rhs), axis=k)

    letters = "".join(["T" if is_transposed else "N" for is_transposed in transposed])
    return [*batch, rows, columns], element, letters


def dense(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> Tensor:
    """``data @ weight.T + bias``: data (.., n, k), weight (m, k), bias (m,)."""
    return matmul(
        data,
        weight,
        bias,
        out_dtype,
        False,
        True,
        auto_scheduler_rewritten_layout,
        meta_schedule_original_shape,
    )


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Shape | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> Tensor:
    """``a[i] @ b[i].T`` for every i: a (b, n, k), b (b, m, k); a batch of 1 is broadcast."""
    del auto_scheduler_rewritten_layout, meta_schedule_original_shape
    if tensor_a.ndim != 3 or tensor_b.ndim != 3:
        raise IRValueError(
            f"batch_matmul: expected 3 dimensions, got {tensor_a.ndim} and {tensor_b.ndim}"
        )
    transposed = (transpose_a, transpose_b)
    shape, element, letters = _product(tensor_a, tensor_b, out_dtype, transposed, "batch_matmul")
    return compute(
        shape if oshape is None else oshape,
        lambda b, i, j: element(b, i, j),
        name=f"T_batch_matmul_{letters}",
        tag="batch_matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )
