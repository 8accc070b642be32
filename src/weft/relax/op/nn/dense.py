"""``relax.nn.dense``: TVM had it in 2022 and has it no longer; programs that match on it exist."""

from __future__ import annotations

from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ
from weft.relax.op.definition import Dtype, operator
from weft.relax.op.infer import VOID, check_rank, common_dtype, dims_of, fail, result, tensor
from weft.relax.op.reference.nn import dense as reference
from weft.relax.struct_info import TensorStructInfo
from weft.topi import wide_products


def infer_dense(call: Call) -> TensorStructInfo:
    """(..., k) and (n, k) give (..., n)."""
    data, weight = tensor(call, 0), check_rank(call, 1, 2)
    if data.ndim == 0:
        fail(call, "x: expected at least 1 dimension, got 0")
    dtype = call.attrs.get("out_dtype", VOID)
    if dtype == VOID:
        dtype = common_dtype(call, [data, weight])
    x, w = dims_of(data), dims_of(weight)
    if x is not None and w is not None and differ(x[-1], w[1]):
        fail(
            call,
            f"the last dimension of x is {x[-1]}, that of weight {w[1]}; they must be equal "
            f"(x: {data}, weight: {weight})",
        )
    if x is None or w is None:
        return result(None, dtype, data.ndim, data.vdevice)
    return result([*x[:-1], w[0]], dtype, vdevice=data.vdevice)


@operator(
    "relax.nn.dense",
    infer_dense,
    te=wide_products.dense,
    numpy=reference.dense,
    traits=Trait.NARROW,
)
def dense(x: Expr, weight: Expr, out_dtype: Dtype | None = None) -> None:
    """x times the transpose of weight: (..., k), (n, k) -> (..., n)."""
