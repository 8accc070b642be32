"""Products for graph operators: 16-bit floats are multiplied in float32, and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

from weft import te
from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.te.tensor import Tensor
from weft.topi.einsum import einsum as plain_einsum
from weft.topi.extents import broadcast_indices, broadcast_shape
from weft.topi.math import cast
from weft.topi.moments import wide
from weft.topi.nn.dense import dense as plain_dense


def matmul(a: Tensor, b: Tensor, out_dtype: str | None) -> Tensor:
    """numpy's matmul over broadcast batch dimensions; 16-bit floats are summed in float32."""
    a_shape, b_shape = list(a.shape), list(b.shape)
    rows, columns = len(a_shape) > 1, len(b_shape) > 1
    batch = broadcast_shape(a_shape[:-2], b_shape[:-2], "matmul")
    shape = [*batch, *a_shape[-2:-1], *([b_shape[-1]] if columns else [])]
    dtype = DataType(out_dtype or a.dtype)
    kind = str(wide(dtype))

    def element(*indices: PrimExpr) -> PrimExpr:
        k = te.reduce_axis((0, a_shape[-1]), name="k")
        outer, inner = indices[: len(batch)], list(indices[len(batch) :])
        a_row = [inner.pop(0)] if rows else []
        b_column = [inner.pop(0)] if columns else []
        lhs = a(*broadcast_indices(a_shape[:-2], batch, outer), *a_row, k)
        rhs = b(*broadcast_indices(b_shape[:-2], batch, outer), k, *b_column)
        return te.sum(lhs.astype(kind) * rhs.astype(kind), axis=k)

    return rounded(te.compute(shape, element, name="matmul"), dtype)


def block_scaled_matmul(data: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """Rows times a matrix of bytes, each block of whose rows has scales (as GPTQ and AWQ store it).

    (..., blocks * size), (blocks, size, columns) and (blocks, columns) give (..., columns).
    """
    blocks, size, columns = weight.shape
    kind = str(wide(data.dtype))

    def element(*indices: PrimExpr) -> PrimExpr:
        b, k = te.reduce_axis((0, blocks), name="b"), te.reduce_axis((0, size), name="k")
        scaled = weight(b, k, indices[-1]).astype(kind) * scales(b, indices[-1]).astype(kind)
        return te.sum(data(*indices[:-1], b * size + k).astype(kind) * scaled, axis=[b, k])

    product = te.compute([*data.shape[:-1], columns], element, name="block_scaled_matmul")
    return rounded(product, DataType(data.dtype))


def rounded(whole: Tensor, dtype: DataType) -> Tensor:
    """A product converted to its type, if it was summed in a wider one."""
    return whole if whole.dtype == dtype else cast(whole, str(dtype))


def dense(x: Tensor, weight: Tensor, out_dtype: str | None) -> Tensor:
    """topi's dense, also for leading dimensions."""
    dtype = DataType(out_dtype or x.dtype)
    kind = str(wide(dtype))
    if len(x.shape) == 2:
        return rounded(plain_dense(x, weight, None, kind), dtype)

    def element(*indices: PrimExpr) -> PrimExpr:
        k = te.reduce_axis((0, x.shape[-1]), name="k")
        lhs, rhs = x(*indices[:-1], k), weight(indices[-1], k)
        return te.sum(lhs.astype(kind) * rhs.astype(kind), axis=k)

    product = te.compute([*x.shape[:-1], weight.shape[0]], element, name="T_matmul_NT")
    return rounded(product, dtype)


def einsum(operands: Sequence[Tensor], subscripts: str) -> Tensor:
    """topi's einsum; sums of 16-bit floats are taken in float32."""
    kind = str(wide(operands[0].dtype))
    if kind == operands[0].dtype:
        return plain_einsum(subscripts, *operands)
    total = plain_einsum(subscripts, *[cast(operand, kind) for operand in operands])
    return cast(total, str(operands[0].dtype))


def outer(x: Tensor, y: Tensor) -> Tensor:
    """The outer product."""
    return te.compute([x.shape[0], y.shape[0]], lambda i, j: x[i] * y[j], name="outer")
