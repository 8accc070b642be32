"""Sparse tensors, as the dense ones that they mean.

weft has no sparse tensors, so a product with one takes as long as a dense product. What asks for
the entries themselves (``values``, ``indices``, softmax over the entries) has no converter.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.linear_algebra import addmm
from weft.relax.frontend.torch.operators.reduction import sum_
from weft.relax.frontend.torch.operators.scattering import index_put
from weft.relax.frontend.torch.registry import converter
from weft.relax.frontend.torch.values import Value


@converter(
    "aten._to_sparse.default", "aten._to_sparse.sparse_dim", "aten._to_sparse_csr.default",
    "aten._to_sparse_csc.default", "aten._coalesce.default", "aten._to_dense.default",
)  # fmt: skip
def same(context: Context, self: Expr, *_: Value, **__: Value) -> Expr:
    """The same values in another layout."""
    return context.cast(self, context.dtype)


@converter("aten._sparse_coo_tensor_with_dims_and_tensors.default")
def from_entries(
    context: Context,
    sparse_dim: int,
    dense_dim: int,
    size: Sequence[Extent],
    indices: Expr,
    values: Expr,
    **_: Value,
) -> Expr:
    """The tensor of these entries; those at one place add up."""
    start = context.emit(op.zeros(list(size), context.dtype))
    rows = [context.emit(op.take(indices, const(axis), 0)) for axis in range(sparse_dim)]
    return index_put(context, start, rows, values, accumulate=True)


converter("aten._sparse_addmm.default")(addmm)
converter("aten._sparse_sum.default", "aten._sparse_sum.dim")(sum_)
