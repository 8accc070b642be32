"""Draws from distributions, given uniform random numbers."""

from __future__ import annotations

from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ
from weft.relax.op.definition import Dtype, operator
from weft.relax.op.infer import (
    check_float,
    check_rank,
    dims_of,
    fail,
    int64,
    integral,
    result,
    show_dims,
    tensor,
)
from weft.relax.op.reference import sampling as reference
from weft.relax.op.requirements import same_shape
from weft.relax.struct_info import TensorStructInfo
from weft.topi import sampling


def infer_multinomial(call: Call) -> TensorStructInfo:
    """(n, 1), one draw for each uniform number."""
    for index in (0, 1):
        check_float(call, tensor(call, index))
    integral(call, 2)
    prob, uniform, where = (check_rank(call, index, 2) for index in range(3))
    rows, chosen = dims_of(uniform), dims_of(where)
    if rows is not None and chosen is not None and differ(rows[0], chosen[0]):
        fail(call, f"{rows[0]} uniform samples, but {chosen[0]} sample indices")
    for name, dims in (("uniform_sample", rows), ("sample_indices", chosen)):
        if dims is not None and differ(dims[1], int64(1)):
            fail(call, f"{name}: expected the shape (n, 1), got {show_dims(dims)}")
    known = rows or chosen
    dims = None if known is None else [known[0], int64(1)]
    return result(dims, call.attrs["dtype"], 2, prob.vdevice)


@operator(
    "relax.multinomial_from_uniform",
    infer_multinomial,
    te=sampling.multinomial_from_uniform,
    requires=same_shape(1, 2),
    numpy=reference.multinomial_from_uniform,
)
def multinomial_from_uniform(
    prob: Expr, uniform_sample: Expr, sample_indices: Expr, dtype: Dtype = "int64"
) -> None:
    """Draw i is the first index at which the running sum of its row of prob exceeds its number.

    prob is (batch, vocabulary), each row a distribution; uniform_sample (n, 1) holds a number from
    [0, 1) for each draw, sample_indices (n, 1) its row of prob. If rounding errors keep the row's
    sum below the number, the draw is the last index.
    """
