"""Mean and variance of a tensor over some axes, for normalisations and statistics.

There are three passes: the mean of the distances from the first element gives a centre c; then come
the sums of e = x - c and of e * e; then the use of mean and variance. Mean = c + E[e] and
variance = E[e * e] - E[e] ** 2 hold for every c. As c is near the mean, nothing cancels, however
far the mean is from zero and the first element from the mean (Chan, Golub, LeVeque 1983, the
corrected two-pass form). Sums of 16-bit floats are taken in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import IntImm, PrimExpr, as_prim_expr
from weft.support.dtype import DataType
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.reduction import comm_reducer
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.expr import IterVar
from weft.topi import tag
from weft.topi.extents import Point, compute_ax, compute_pair, product

_two_sums = comm_reducer(
    lambda x, y: (x[0] + y[0], x[1] + y[1]),
    lambda a, b: (op.const(0, a), op.const(0, b)),
    name="two_sums",
)


def wide(dtype: DataType) -> DataType:
    """The type that sums are taken in: float32 for narrower floats."""
    return DataType("float32") if dtype.is_float and dtype.bits < 32 else dtype


class Moments:
    """Mean and variance of a tensor over some axes, at points of the others (``outer``)."""

    def __init__(self, data: Tensor, axes: Sequence[int], name: str) -> None:
        self.data = data
        self.axes = list(axes)
        self.dtype = wide(data.dtype)
        self.extents = [data.shape[axis] for axis in self.axes]
        self.count = op.cast(self.dtype, as_prim_expr(product(self.extents)))
        self.outer_shape = [e for i, e in enumerate(data.shape) if i not in self.axes]
        distance = compute_ax(self.outer_shape, self._distance, f"{name}_red", tag=tag.COMM_REDUCE)
        self.center = compute_ax(
            self.outer_shape,
            lambda *i: self._first(i) + op.div(distance(*i), self.count),
            "center",
            tag=tag.INJECTIVE,
        )
        self.total, self.squares = compute_pair(
            self.outer_shape, self._sums, f"{name}_red_temp", tag=tag.COMM_REDUCE
        )

    def _reduced(self, outer: Point) -> tuple[list[IterVar], list[PrimExpr]]:
        """New reduction axes, and the indices into the data made of them and the outer ones."""
        ks = [
            reduce_axis((0, extent), name=f"k{axis}")
            for axis, extent in zip(self.axes, self.extents, strict=True)
        ]
        return ks, self._point(outer, [k.var for k in ks])

    def _point(self, outer: Point, inner: Point) -> list[PrimExpr]:
        remaining, reduced = list(outer), dict(zip(self.axes, inner, strict=True))
        return [reduced[i] if i in reduced else remaining.pop(0) for i in range(self.data.ndim)]

    def _wide_at(self, point: Point) -> PrimExpr:
        return op.cast(self.dtype, self.data(*point))

    def _first(self, outer: Point) -> PrimExpr:
        """The first element of a row; 0 if the row is empty."""
        value = self._wide_at(
            self._point(outer, [op.const(0, extent.dtype) for extent in self.extents])
        )
        zero = op.const(0, self.dtype)
        for extent in self.extents:
            if not isinstance(extent, IntImm):
                value = op.if_then_else(op.greater(extent, 0), value, zero)
            elif extent.value == 0:
                return zero
        return value

    def _distance(self, *outer: PrimExpr) -> PrimExpr:
        ks, point = self._reduced(outer)
        value = self._wide_at(point)
        return te_reduction.sum(value - self._first(outer), axis=ks) if ks else value - value

    def _sums(self, *outer: PrimExpr) -> tuple[PrimExpr, ...]:
        ks, point = self._reduced(outer)
        value = self._wide_at(point) - self.center(*outer)
        pair = (value, value * value)
        return _two_sums(pair, axis=ks) if ks else pair

    def mean(self, outer: Point) -> PrimExpr:
        """The mean of the row."""
        return self.center(*outer) + op.div(self.total(*outer), self.count)

    def variance(self, outer: Point) -> PrimExpr:
        """The mean squared distance from the mean; never negative."""
        shift = op.div(self.total(*outer), self.count)
        value = op.div(self.squares(*outer), self.count) - shift * shift
        return op.maximum(value, op.const(0, self.dtype))

    def normalized(self, point: Point, epsilon: float) -> PrimExpr:
        """(x - mean) / sqrt(variance + epsilon) at a point of the data, in the wide type."""
        outer = [index for i, index in enumerate(point) if i not in self.axes]
        shift = op.div(self.total(*outer), self.count)
        value = self._wide_at(point) - self.center(*outer) - shift
        scale: PrimExpr = op.rsqrt(self.variance(outer) + op.const(epsilon, self.dtype))
        return value * scale
