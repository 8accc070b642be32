"""The products of a mixture of experts: each run of rows with the matrix of its own group."""

from __future__ import annotations

from weft import te
from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi.moments import wide
from weft.topi.wide_products import rounded


def grouped_matmul(data: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    """Row s times ``weight[g]``, where group g is the first that ends behind row s.

    ``ends`` counts the rows of all groups up to each one. Rows behind the last group are 0.
    16-bit floats are summed in float32.
    """
    rows, depth = data.shape
    groups, columns = weight.shape[0], weight.shape[2]
    dtype = DataType(data.dtype)
    kind = str(wide(dtype))

    def groups_before(row: PrimExpr) -> PrimExpr:
        g = te.reduce_axis((0, groups), name="g")
        is_before = op.less_equal(ends[g], op.cast(ends.dtype, row))
        return te.sum(op.cast("int64", is_before), axis=g)

    group = te.compute((rows,), groups_before, name="group")

    def element(row: PrimExpr, column: PrimExpr) -> PrimExpr:
        k = te.reduce_axis((0, depth), name="k")
        product = data[row, k].astype(kind) * weight[group[row], k, column].astype(kind)
        zero = op.const(0, kind)
        return te.sum(op.if_then_else(op.less(group[row], groups), product, zero), axis=k)

    return rounded(te.compute((rows, columns), element, name="grouped_matmul"), dtype)
