"""Reductions, scans, and sums over broadcast axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from weft import topi
from weft.ir.expr import RelaxExpr
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, ShapeExpr
from weft.relax.ir.shape_arith import constant_value, differ, product, quotient
from weft.relax.op.definition import Dtype, Ints, Shape, operator
from weft.relax.op.infer import (
    VOID,
    axes_of,
    axis_of,
    dims_of,
    fail,
    int64,
    result,
    same_as_float_input,
    shape_arg,
    shaped,
    show_dims,
    tensor,
    with_dtype,
)
from weft.relax.op.lowering import Builder, dims
from weft.relax.op.reference import statistical as reference
from weft.relax.op.reference.rule import in_float64
from weft.relax.op.requirements import Required
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.topi import scan, statistics


def reduced(call: Call, axes: Sequence[int] | None, keepdims: bool, dtype: str) -> TensorStructInfo:
    """The input without the reduced axes; None reduces all."""
    info = tensor(call, 0)
    if info.ndim == -1:
        everything = axes is None and not keepdims
        return result([] if everything else None, dtype, -1, info.vdevice)
    chosen = axes_of(call, range(info.ndim) if axes is None else axes, info.ndim)
    dims = [int64(1)] * info.ndim if axes is None else dims_of(info)
    if dims is None:
        ndim = info.ndim if keepdims else info.ndim - len(chosen)
        return result([] if ndim == 0 else None, dtype, ndim, info.vdevice)
    if keepdims:
        kept = [int64(1) if axis in chosen else dim for axis, dim in enumerate(dims)]
    else:
        kept = [dim for axis, dim in enumerate(dims) if axis not in chosen]
    return result(kept, dtype, vdevice=info.vdevice)


def infer_reduction(call: Call) -> TensorStructInfo:
    """The input without the reduced axes."""
    return reduced(call, call.attrs["axis"], call.attrs["keepdims"], tensor(call, 0).dtype)


def infer_float_reduction(call: Call) -> TensorStructInfo:
    """As ``infer_reduction``, for floating-point inputs."""
    same_as_float_input(call)
    return infer_reduction(call)


def infer_arg_reduction(call: Call) -> TensorStructInfo:
    """int64 indices along one axis, or in the flat tensor."""
    axis = call.attrs["axis"]
    return reduced(call, None if axis is None else [axis], call.attrs["keepdims"], "int64")


def infer_scan(call: Call) -> TensorStructInfo:
    """As the input, or flat if ``axis`` is None; in the attribute ``dtype`` if the call has one."""
    info = tensor(call, 0)
    asked = call.attrs.get("dtype", VOID)
    dtype = info.dtype if asked == VOID else asked
    if call.attrs["axis"] is not None:
        axis_of(call, call.attrs["axis"], info.ndim)
        return with_dtype(info, dtype)
    dims = dims_of(info)
    return result(None if dims is None else [product(dims)], dtype, 1, info.vdevice)


def infer_number_reduction(call: Call) -> TensorStructInfo:
    """As ``infer_reduction``, but not for booleans, whose sum would be modulo 2."""
    if DataType(tensor(call, 0).dtype).is_bool:
        raise IRTypeError(
            f"{call.op.name}: expected numbers, got bool; use astype to count, max for any, min "
            "for all"
        )
    return infer_reduction(call)


def infer_median(call: Call) -> StructInfo:
    """Over one axis: (values, int64 indices); over several or all axes: the values."""
    same_as_float_input(call)
    values = infer_reduction(call)
    axes = call.attrs["axis"]
    if axes is None or len(axes) != 1:
        return values
    return TupleStructInfo([values, with_dtype(values, "int64")])


@operator(
    "relax.sum",
    infer_number_reduction,
    te=statistics.sum_of,
    kernel="sum",
    numpy=reference.sum_of,
    traits=Trait.REDUCTION,
)
def sum(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:  # noqa: A001 - as TVM
    """The sum over axes (all if None)."""


@operator(
    "relax.max",
    infer_reduction,
    te=topi.max,
    numpy=reference.extreme(np.max, is_max=True),
    traits=Trait.REDUCTION,
)
def max(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:  # noqa: A001 - as TVM
    """The largest value over axes (all if None)."""


@operator(
    "relax.min",
    infer_reduction,
    te=topi.min,
    numpy=reference.extreme(np.min, is_max=False),
    traits=Trait.REDUCTION,
)
def min(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:  # noqa: A001 - as TVM
    """The smallest value over axes (all if None)."""


@operator(
    "relax.prod", infer_number_reduction, te=topi.prod, numpy=reference.prod, traits=Trait.REDUCTION
)
def prod(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:
    """The product over axes (all if None)."""


@operator(
    "relax.mean",
    infer_float_reduction,
    te=statistics.mean_of,
    kernel="mean",
    numpy=reference.mean,
    traits=Trait.REDUCTION,
)
def mean(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:
    """The mean over axes (all if None)."""


@operator(
    "relax.std",
    infer_float_reduction,
    te=statistics.std_of,
    kernel="std",
    numpy=lambda x, **attrs: np.sqrt(reference.variance(x, **attrs)),
    traits=Trait.REDUCTION,
)
def std(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:
    """The standard deviation (of the population) over axes."""


@operator(
    "relax.variance",
    infer_float_reduction,
    te=statistics.variance_of,
    kernel="variance",
    numpy=reference.variance,
    traits=Trait.REDUCTION,
)
def variance(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:
    """The variance (of the population) over axes."""


@operator(
    "relax.median", infer_median, te=statistics.median_of, kernel="median", numpy=reference.median
)
def median(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> None:
    """The median over axes (all if None): of an even number of values the lower one, as PyTorch.

    Over one axis the result is a tuple: the values, and the index of each along the axis.
    """


@operator(
    "relax.argmax",
    infer_arg_reduction,
    te=partial(statistics.first_place, topi.argmax),
    kernel="argmax",
    numpy=reference.arg(np.argmax),
)
def argmax(x: Expr, axis: int | None = None, keepdims: bool = False) -> None:
    """The index of the first largest value, int64."""


@operator(
    "relax.argmin",
    infer_arg_reduction,
    te=partial(statistics.first_place, topi.argmin),
    kernel="argmin",
    numpy=reference.arg(np.argmin),
)
def argmin(x: Expr, axis: int | None = None, keepdims: bool = False) -> None:
    """The index of the first smallest value, int64."""


@operator(
    "relax.cumsum",
    infer_scan,
    te=partial(statistics.scanned, topi.cumsum),
    kernel="cumsum",
    numpy=reference.scan(np.cumsum, 0),
    traits=Trait.ALONG_AXIS,
)
def cumsum(
    data: Expr, axis: int | None = None, dtype: Dtype | None = None, exclusive: bool = False
) -> None:
    """Running sums along an axis (flat if None)."""


@operator(
    "relax.cumprod",
    infer_scan,
    te=partial(statistics.scanned, topi.cumprod),
    kernel="cumprod",
    numpy=reference.scan(np.cumprod, 1),
    traits=Trait.ALONG_AXIS,
)
def cumprod(
    data: Expr, axis: int | None = None, dtype: Dtype | None = None, exclusive: bool = False
) -> None:
    """Running products along an axis (flat if None)."""


def infer_scan_along(call: Call) -> TensorStructInfo:
    """As ``infer_scan``, along an axis that must be given."""
    if call.attrs["axis"] is None:
        fail(call, "axis: expected an axis, got None")
    return infer_scan(call)


def infer_float_scan(call: Call) -> TensorStructInfo:
    """As ``infer_scan_along``, of floats."""
    same_as_float_input(call)
    return infer_scan_along(call)


def infer_running_extreme(call: Call) -> StructInfo:
    """(values, int64 indices)."""
    info = infer_scan_along(call)
    if DataType(info.dtype).is_bool:
        raise IRTypeError(f"{call.op.name}: expected numbers, got bool; use astype")
    return TupleStructInfo([info, with_dtype(info, "int64")])


@operator(
    "relax.logcumsumexp",
    infer_float_scan,
    te=scan.logcumsumexp,
    numpy=in_float64(reference.logcumsumexp),
    traits=Trait.ALONG_AXIS,
)
def logcumsumexp(data: Expr, axis: int = -1) -> None:
    """The logarithm of the running sum of exponentials along an axis, without overflow."""


@operator(
    "relax.cummax",
    infer_running_extreme,
    te=partial(scan.running_extreme, largest=True),
    kernel="cummax",
    numpy=partial(reference.running_extreme, largest=True),
)
def cummax(data: Expr, axis: int = -1) -> None:
    """The running maximum along an axis, and the last index (int64) at which each occurs.

    From a NaN on, the maximum is NaN.
    """


@operator(
    "relax.cummin",
    infer_running_extreme,
    te=partial(scan.running_extreme, largest=False),
    kernel="cummin",
    numpy=partial(reference.running_extreme, largest=False),
)
def cummin(data: Expr, axis: int = -1) -> None:
    """As ``cummax``, of the running minimum."""


def infer_collapse(call: Call) -> TensorStructInfo:
    """The target shape; each of its extents must be 1 or equal the tensor's."""
    info = tensor(call, 0)
    like = call.op.name == "relax.collapse_sum_like"
    target = tensor(call, 1) if like else None
    dims = dims_of(target) if target is not None else shape_arg(call, 1).values
    mine = dims_of(info)
    if dims is not None and mine is not None:
        pairs = zip(reversed(dims), reversed(mine), strict=False)
        if len(dims) > len(mine) or any(
            constant_value(kept) != 1 and differ(kept, whole) for kept, whole in pairs
        ):
            fail(call, f"cannot collapse {show_dims(mine)} to {show_dims(dims)}")
    if target is not None:
        return TensorStructInfo(target.shape, info.dtype, info.vdevice, target.ndim)
    return shaped(call, 1, info.dtype, info.vdevice)


def _collapsed(call: Call) -> Required:
    """Axes that are not summed must have the extents of the target."""
    shape, target = dims(call.args[0]), dims(call)
    lead = len(shape) - len(target)
    pairs = zip(shape[lead:], target, strict=True)
    kept = [whole if constant_value(part) == 1 else part for whole, part in pairs]
    return {0: [*shape[:lead], *kept]}


def _lower_collapse(bb: Builder, call: Call) -> RelaxExpr:
    x: Any = call.args[0]
    terms = quotient(dims(x), dims(call))
    kind = statistics.summing_type(x.struct_info.dtype, terms)
    shape = ShapeExpr(dims(call))
    return bb.call_te(topi.collapse_sum, x, shape, kind, primfunc_name_hint="collapse_sum")


@operator(
    "relax.collapse_sum_like",
    infer_collapse,
    legalize=_lower_collapse,
    requires=_collapsed,
    numpy=lambda data, target: reference.collapse(data, target.shape),
)
def collapse_sum_like(data: Expr, collapse_target: Expr) -> None:
    """The sum over broadcast axes, so that the result has the shape of another tensor."""


@operator(
    "relax.collapse_sum_to",
    infer_collapse,
    legalize=_lower_collapse,
    requires=_collapsed,
    numpy=reference.collapse,
)
def collapse_sum_to(data: Expr, shape: Shape) -> None:
    """The sum over broadcast axes, so that the result has the given shape."""
