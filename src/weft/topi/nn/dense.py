"""Fully connected layers and batched matrix products."""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Shape,
    broadcast_indices,
    broadcast_shape,
    compute_one,
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
    depth_a, rows = tensor_a.shape[-2:] if transpose_a else tensor_a.shape[-2:][::-1]
    depth_b, columns = tensor_b.shape[-2:][::-1] if transpose_b else tensor_b.shape[-2:]
    if not may_be_equal(depth_a, depth_b):
        raise IRValueError(
            f"nn.matmul: the shapes {shape_text(tensor_a.shape)} and {shape_text(tensor_b.shape)} "
            f"do not multiply: {depth_a} and {depth_b} differ"
        )
    dtype = DataType(out_dtype) if out_dtype else tensor_a.dtype
    batch = broadcast_shape(tensor_a.shape[:-2], tensor_b.shape[:-2], "nn.matmul")
    k = reduce_axis((0, depth_a), name="k")

    def element(*indices: PrimExpr) -> PrimExpr:
        *outer, i, j = indices
        left = (k.var, i) if transpose_a else (i, k.var)
        right = (j, k.var) if transpose_b else (k.var, j)
        lhs = tensor_a(*broadcast_indices(tensor_a.shape[:-2], batch, outer), *left)
        rhs = tensor_b(*broadcast_indices(tensor_b.shape[:-2], batch, outer), *right)
        return te_reduction.sum(op.cast(dtype, lhs) * op.cast(dtype, rhs), axis=k)

    letters = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    shape = [*batch, rows, columns]
    product = compute_one(
        shape, element, name=f"T_matmul_{letters}", tag="dense" if letters == "NT" else "matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )  # fmt: skip
    if bias is None:
        return product
    if bias.ndim != 1 or not may_be_equal(bias.shape[0], columns):
        raise IRValueError(
            f"nn.matmul: expected a bias of shape ({columns},), got {shape_text(bias.shape)}"
        )
    return compute_one(
        shape, lambda *i: product(*i) + op.cast(dtype, bias(i[-1])), tag=tag.BROADCAST
    )


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
    depth_a, rows = tensor_a.shape[1:] if transpose_a else tensor_a.shape[1:][::-1]
    depth_b, columns = tensor_b.shape[1:][::-1] if transpose_b else tensor_b.shape[1:]
    if not may_be_equal(depth_a, depth_b):
        raise IRValueError(
            f"batch_matmul: the shapes {shape_text(tensor_a.shape)} and "
            f"{shape_text(tensor_b.shape)} do not multiply: {depth_a} and {depth_b} differ"
        )
    dtype = DataType(out_dtype) if out_dtype else tensor_a.dtype
    batch = broadcast_shape(tensor_a.shape[:1], tensor_b.shape[:1], "batch_matmul")
    k = reduce_axis((0, depth_a), name="k")

    def element(b: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
        left = (k.var, i) if transpose_a else (i, k.var)
        right = (j, k.var) if transpose_b else (k.var, j)
        lhs = tensor_a(*broadcast_indices(tensor_a.shape[:1], batch, [b]), *left)
        rhs = tensor_b(*broadcast_indices(tensor_b.shape[:1], batch, [b]), *right)
        return te_reduction.sum(op.cast(dtype, lhs) * op.cast(dtype, rhs), axis=k)

    letters = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    shape = [*batch, rows, columns] if oshape is None else oshape
    return compute_one(
        shape,
        element,
        name=f"T_batch_matmul_{letters}",
        tag="batch_matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )
