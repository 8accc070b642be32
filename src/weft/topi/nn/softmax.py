"""Softmax and log-softmax along one axis, shifted by the largest element.

Powers and their sums of 16-bit floats are float32.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr
from weft.te import reduction as te_reduction
from weft.te.operation import compute, reduce_axis
from weft.te.reduction import Reducer
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi.extents import Point, normalize_axis
from weft.topi.moments import wide


class _Rows:
    """A tensor as a set of rows along one axis."""

    def __init__(self, x: Tensor, axis: int, name: str) -> None:
        self.x = x
        self.axis = normalize_axis(axis, x.ndim, name)
        self.kind = wide(x.dtype)
        self.outer = [extent for i, extent in enumerate(x.shape) if i != self.axis]

    def reduce(
        self, reducer: Reducer, value: Callable[[Point, Point], PrimExpr], name: str
    ) -> Tensor:
        """``reducer`` of ``value(row, full indices)`` over every row."""
        k = reduce_axis((0, self.x.shape[self.axis]), name="k")

        def element(*row: PrimExpr) -> PrimExpr:
            full = (*row[: self.axis], k.var, *row[self.axis :])
            return reducer(value(row, full), axis=k)

        return compute(self.outer, element, name=name)

    def shifted(self, top: Tensor, row: Point, full: Point) -> PrimExpr:
        """An element minus the largest of its row, in the wide type."""
        return op.cast(self.kind, self.x(*full)) - op.cast(self.kind, top(*row))

    def row(self, indices: Point) -> tuple[PrimExpr, ...]:
        """The indices without the axis."""
        return (*indices[: self.axis], *indices[self.axis + 1 :])

    def largest(self) -> Tensor:
        """The largest element of every row."""
        return self.reduce(te_reduction.max, lambda row, full: self.x(*full), "T_softmax_maxelem")


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along ``axis``."""
    rows = _Rows(x, axis, "softmax")
    top = rows.largest()
    powers = compute(
        x.shape, lambda *i: op.exp(rows.shifted(top, rows.row(i), i)), name="T_softmax_exp"
    )
    total = rows.reduce(te_reduction.sum, lambda row, full: powers(*full), "T_softmax_expsum")
    return compute(
        x.shape,
        lambda *i: op.cast(x.dtype, op.div(powers(*i), total(*rows.row(i)))),
        name="T_softmax_norm",
        attrs={"axis": rows.axis},
    )


def fast_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """softmax; weft's exp is already fast."""
    return softmax(x, axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - log(sum(exp(x))) along ``axis``."""
    rows = _Rows(x, axis, "log_softmax")
    top = rows.largest()
    total = rows.reduce(
        te_reduction.sum, lambda row, full: op.exp(rows.shifted(top, row, full)), "compute"
    )

    def element(*indices: PrimExpr) -> PrimExpr:
        row = rows.row(indices)
        return op.cast(x.dtype, rows.shifted(top, row, indices) - op.log(total(*row)))

    return compute(x.shape, element, attrs={"axis": rows.axis})
