"""Products with a matrix of weights: brings their rows into a shape that kernels compute well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, product, same_dim
from weft.relax.transform.graph.movement.scope import (
    MOVEMENTS,
    RESHAPE,
    Scope,
    dims_of,
    is_unit,
    moves_units_only,
    producer,
    reshaped,
    without_units,
)

FEW: Final = 16
"""A register tile is full with so many rows. If the last axis of rows has fewer and another one has
more, the axes of rows are joined."""


@MOVEMENTS.of("matmul")
def matmul(scope: Scope, call: Call) -> Expr | None:
    """``matmul(reshape(x), w)`` becomes ``reshape(matmul(x, w))`` if only axes of 1 change.

    If the last axis of rows is short, all rows become one axis: (197, 1, 768) -> (197, 768).
    """
    data, weight = call.args
    dims, right, out = dims_of(data), dims_of(weight), dims_of(call)
    if dims is None or right is None or out is None or len(right) != 2 or len(dims) < 2:
        return None
    inner = producer(scope, data, RESHAPE)
    if inner is not None:
        before = dims_of(inner.args[0])
        if before is not None and len(before) > 1 and _is_same_matrix(before, dims):
            return _reshaped(scope, inner.args[0], call)
    if _has_few_rows(dims):
        return _reshaped(scope, reshaped(scope, data, [product(dims[:-1]), dims[-1]]), call)
    return None


def _reshaped(scope: Scope, data: Expr, call: Call) -> Expr | None:
    product_call = Call(call.op, [data, call.args[1]], call.attrs, call.sinfo_args)
    return op.reshape(scope.emit(product_call), dims_of(call))


def _is_same_matrix(before: Sequence[PrimExpr], dims: Sequence[PrimExpr]) -> bool:
    """Whether a reshape keeps the columns and the last axis of rows, and only changes axes of 1."""
    return (
        same_dim(before[-1], dims[-1])
        and moves_units_only(before[:-1], dims[:-1])
        and (not is_unit(before[-2]) or not without_units(dims[:-1]))
    )


def _has_few_rows(dims: Sequence[PrimExpr]) -> bool:
    """Whether the last axis of rows is short, and another axis has rows as well."""
    sizes = [constant_value(dim) for dim in dims[:-1]]
    if len(dims) < 3 or None in sizes or 0 in sizes:
        return False
    last = sizes[-1] or 0
    return last < FEW and any(size != 1 for size in sizes[:-1])
