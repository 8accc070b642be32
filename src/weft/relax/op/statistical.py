"""Reductions and scans."""

from __future__ import annotations

from typing import Any

from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import product
from weft.relax.op.definition import Dtype, Ints, operator
from weft.relax.op.infer import (
    VOID,
    axes_of,
    axis_of,
    dims_of,
    int64,
    result,
    same_as_float_input,
    tensor,
    with_dtype,
)
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError


def reduced(call: Call, axes: Any, keepdims: bool, dtype: Any) -> TensorStructInfo:
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
    """As the input, or flat if there is no axis."""
    info = tensor(call, 0)
    dtype = info.dtype if call.attrs["dtype"] == VOID else call.attrs["dtype"]
    if call.attrs["axis"] is not None:
        axis_of(call, call.attrs["axis"], info.ndim)
        return with_dtype(info, dtype)
    dims = dims_of(info)
    return result(None if dims is None else [product(dims)], dtype, 1, info.vdevice)


def infer_number_reduction(call: Call) -> TensorStructInfo:
    """As ``infer_reduction``, for numbers: a sum of booleans would be one modulo 2."""
    if DataType(tensor(call, 0).dtype).is_bool:
        raise IRTypeError(
            f"{call.op.name}: expected numbers, got bool; use astype to count, max for any, min "
            "for all"
        )
    return infer_reduction(call)


def infer_median(call: Call) -> StructInfo:
    """One axis: the values and where they stand, int64; several or all: the values."""
    same_as_float_input(call)
    values = infer_reduction(call)
    axes = call.attrs["axis"]
    if axes is None or len(axes) != 1:
        return values
    return TupleStructInfo([values, with_dtype(values, "int64")])


@operator("relax.sum", infer_number_reduction, traits=Trait.REDUCTION)
def sum(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:  # noqa: A001 - as TVM
    """The sum over axes (all if None)."""


@operator("relax.max", infer_reduction, traits=Trait.REDUCTION)
def max(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:  # noqa: A001 - as TVM
    """The largest value over axes (all if None)."""


@operator("relax.min", infer_reduction, traits=Trait.REDUCTION)
def min(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:  # noqa: A001 - as TVM
    """The smallest value over axes (all if None)."""


@operator("relax.prod", infer_number_reduction, traits=Trait.REDUCTION)
def prod(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:
    """The product over axes (all if None)."""


@operator("relax.mean", infer_float_reduction, traits=Trait.REDUCTION)
def mean(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:
    """The mean over axes (all if None)."""


@operator("relax.std", infer_float_reduction, traits=Trait.REDUCTION)
def std(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:
    """The standard deviation (of the population) over axes."""


@operator("relax.variance", infer_float_reduction, traits=Trait.REDUCTION)
def variance(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:
    """The variance (of the population) over axes."""


@operator("relax.median", infer_median)
def median(x: Expr, axis: Ints | None = None, keepdims: bool = False) -> Any:
    """The median over axes (all if None): of an even number of values the lower one, as PyTorch.

    Over one axis the result is a tuple: the values, and the index of each along the axis.
    """


@operator("relax.argmax", infer_arg_reduction)
def argmax(x: Expr, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the first largest value, int64."""


@operator("relax.argmin", infer_arg_reduction)
def argmin(x: Expr, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the first smallest value, int64."""


@operator("relax.cumsum", infer_scan, traits=Trait.ALONG_AXIS)
def cumsum(
    data: Expr, axis: int | None = None, dtype: Dtype | None = None, exclusive: bool = False
) -> Any:
    """Running sums along an axis (flat if None)."""


@operator("relax.cumprod", infer_scan, traits=Trait.ALONG_AXIS)
def cumprod(
    data: Expr, axis: int | None = None, dtype: Dtype | None = None, exclusive: bool = False
) -> Any:
    """Running products along an axis (flat if None)."""
