"""Reductions over axes: ``axis`` is an int, a tuple or None (all); -1 is the last axis.

Sums and products of 16-bit floats are taken in float32 and rounded once (design.md 3.14).
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.reduction import Reducer, comm_reducer
from weft.te.tensor import Tensor
from weft.tir import op
from weft.tir.reducer import breaks_ties
from weft.topi import tag
from weft.topi.extents import (
    Axes,
    Point,
    Shape,
    compute_ax,
    compute_pair,
    is_const,
    normalize_axes,
    ravel_index,
)
from weft.topi.moments import wide

_prod = comm_reducer(lambda x, y: x * y, lambda dtype: op.const(1, dtype), name="prod")
_all = comm_reducer(op.logical_and, lambda dtype: op.const(True, dtype), name="all")
_any = comm_reducer(op.logical_or, lambda dtype: op.const(False, dtype), name="any")


class ReductionPlan:
    """The reduced axes of a tensor, and how output indices map into it."""

    def __init__(self, data: Tensor, axis: Axes, keepdims: bool, name: str) -> None:
        if not isinstance(data, Tensor):
            raise wrong_type(f"{name}: expected a te.Tensor", data)
        self.data = data
        self.axes = normalize_axes(axis, data.ndim, name)
        self.keepdims = keepdims
        self.reduce_axes = [
            reduce_axis((0, data.shape[item]), name=f"k{item}") for item in self.axes
        ]

    @property
    def shape(self) -> list[PrimExpr]:
        """The shape of the result."""
        kept: list[PrimExpr] = []
        for position, extent in enumerate(self.data.shape):
            if position not in self.axes:
                kept.append(extent)
            elif self.keepdims:
                kept.append(op.const(1, extent.dtype))
        return kept

    def indices(self, outer: Point) -> list[PrimExpr]:
        """The indices into the data at an output element."""
        remaining = list(outer)
        point: list[PrimExpr] = []
        for position in range(self.data.ndim):
            if position in self.axes:
                point.append(self.reduce_axes[self.axes.index(position)].var)
                if self.keepdims:
                    remaining.pop(0)
            else:
                point.append(remaining.pop(0))
        return point


def comm_reduce(
    data: Tensor,
    axis: Axes,
    keepdims: bool,
    reducer: Reducer,
    name: str,
    accumulator: str | None = None,
) -> Tensor:
    """Reduce ``data``; a 0-d tensor, which has no axis to reduce, is copied.

    ``accumulator`` is the type to which terms are converted, and of the result (None: their own).
    """
    plan = ReductionPlan(data, axis, keepdims, name)
    kind = data.dtype if accumulator is None else DataType(accumulator)

    def element(*indices: PrimExpr) -> PrimExpr:
        value = op.cast(kind, data(*plan.indices(indices)))
        return reducer(value, axis=plan.reduce_axes) if plan.axes else value

    return compute_ax(plan.shape, element, f"{data.op.name}_red", tag=tag.COMM_REDUCE)


def sum(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - as TVM
    """The sum over ``axis``."""
    return _rounded(data, sum_in(data, axis, keepdims, _accumulator(data)))


def sum_in(data: Tensor, axis: Axes, keepdims: bool, accumulator: str | None) -> Tensor:
    """The sum over ``axis`` of terms converted to a type, which the result has."""
    return comm_reduce(data, axis, keepdims, te_reduction.sum, "sum", accumulator)


def prod(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The product over ``axis``."""
    product = comm_reduce(data, axis, keepdims, _prod, "prod", _accumulator(data))
    return _rounded(data, product)


def _accumulator(data: Tensor) -> DataType | None:
    """The type that sums and products are taken in; None if ``data`` is no tensor."""
    return wide(data.dtype) if isinstance(data, Tensor) else None


def _rounded(data: Tensor, whole: Tensor) -> Tensor:
    """A reduction converted to the type of its data, if it was taken in another."""
    if whole.dtype == data.dtype:
        return whole
    name = f"{data.op.name}_rounded"
    return compute_ax(whole.shape, lambda *i: op.cast(data.dtype, whole(*i)), name)


def max(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - as TVM
    """The largest element over ``axis``."""
    return comm_reduce(data, axis, keepdims, te_reduction.max, "max")


def min(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - as TVM
    """The smallest element over ``axis``."""
    return comm_reduce(data, axis, keepdims, te_reduction.min, "min")


def all(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - as TVM
    """Whether all elements over ``axis`` hold (bool)."""
    return comm_reduce(_boolean(data, "all"), axis, keepdims, _all, "all")


def any(data: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - as TVM
    """Whether any element over ``axis`` holds (bool)."""
    return comm_reduce(_boolean(data, "any"), axis, keepdims, _any, "any")


def _boolean(data: Tensor, name: str) -> Tensor:
    if not data.dtype.is_bool:
        raise IRTypeError(f"{name}: expected a bool tensor, got {data.dtype}")
    return data


def argmax(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The index of the largest element over ``axis`` (over all: of the flattened tensor).

    Of equal elements the first counts, or the last. The dtype is that of the extents.
    """
    return _arg_reduce(data, axis, keepdims, arg_reducer(True, select_last_index), "argmax")


def argmin(
    data: Tensor, axis: Axes = None, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The index of the smallest element over ``axis``; as argmax otherwise."""
    return _arg_reduce(data, axis, keepdims, arg_reducer(False, select_last_index), "argmin")


def arg_reducer(largest: bool, select_last: bool) -> Reducer:
    """The reducer of argmax or argmin; NaN is the best value, as in numpy.

    The index of the identity loses against any other, so that a row whose values all equal the
    identity still gives an index in the row.
    """
    better = op.greater if largest else op.less
    order = op.greater if select_last else op.less

    def combine(lhs: Point, rhs: Point) -> tuple[PrimExpr, ...]:
        return tuple(breaks_ties(better, order, nan=lhs[1].dtype.is_float)(lhs, rhs))

    def identity(index: DataType, value: DataType) -> tuple[PrimExpr, PrimExpr]:
        start = te_reduction.lowest(value) if largest else te_reduction.highest(value)
        return op.const(-1, index) if select_last else op.max_value(index), start

    return comm_reducer(combine, identity, name="argmax" if largest else "argmin")


def _arg_reduce(data: Tensor, axis: Axes, keepdims: bool, reducer: Reducer, name: str) -> Tensor:
    plan = ReductionPlan(data, axis, keepdims, name)
    reduced = [data.shape[item] for item in plan.axes]
    if [1 for extent in reduced if is_const(extent, 0)]:
        raise IRValueError(f"{name}: there is no element to choose along an axis of extent 0")
    if not plan.axes:
        return compute_ax([], lambda: op.const(0, "int32"), f"{data.op.name}_red")

    def pair(*indices: PrimExpr) -> tuple[PrimExpr, ...]:
        position = ravel_index([item.var for item in plan.reduce_axes], reduced)
        return reducer((position, data(*plan.indices(indices))), axis=plan.reduce_axes)

    base = data.op.name
    places, _ = compute_pair(plan.shape, pair, f"{base}_red_temp", tag=tag.COMM_REDUCE_IDX)
    return compute_ax(plan.shape, lambda *i: places(*i), f"{base}_red", tag=tag.COMM_REDUCE_IDX)


def collapse_sum(data: Tensor, target_shape: Shape, accumulator: str | None = None) -> Tensor:
    """The sum of ``data`` over the axes that broadcasting from ``target_shape`` adds or extends.

    ``accumulator`` is the type that sums are taken in (None: as ``sum``).
    """
    lead = data.ndim - len(target_shape)
    if lead < 0:
        raise IRValueError(
            f"collapse_sum: the target has {len(target_shape)} dimensions, the tensor {data.ndim}"
        )
    axes = list(range(lead)) + [
        lead + i
        for i, extent in enumerate(target_shape)
        if is_const(extent, 1) and not is_const(data.shape[lead + i], 1)
    ]
    if not axes:
        return compute_ax(data.shape, lambda *i: data(*i), f"{data.op.name}_red")
    plan = ReductionPlan(data, axes, False, "collapse_sum")
    kind = wide(data.dtype) if accumulator is None else DataType(accumulator)

    def element(*indices: PrimExpr) -> PrimExpr:
        kept = [index for i, index in enumerate(indices) if lead + i not in axes]
        value = op.cast(kind, data(*plan.indices(kept)))
        return te_reduction.sum(value, axis=plan.reduce_axes)

    total = compute_ax(target_shape, element, f"{data.op.name}_red", tag=tag.COMM_REDUCE)
    return _rounded(data, total)
