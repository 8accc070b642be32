"""Lowering of reductions."""

from __future__ import annotations

from typing import Any

from weft import topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, ShapeExpr
from weft.relax.ir.shape_arith import constant_value, product, quotient
from weft.relax.transform.legalize.rule import dims, table, with_attrs
from weft.support.dtype import DataType
from weft.tir.op import const as tir_const
from weft.tir.op import floordiv, if_then_else, isnan, logical_not
from weft.tir.op import sqrt as tir_sqrt
from weft.topi.extents import compute_ax
from weft.topi.moments import Moments
from weft.topi.reduction import sum_in


def _axes(x: Any, axis: Any) -> list[int]:
    if axis is None:
        return list(range(len(x.shape)))
    return [item % len(x.shape) for item in (axis if isinstance(axis, list) else [axis])]


FEW_TERMS = 128
"""So many float32 terms are added in float32: n terms of one sign err by n * eps / 2 at most."""


def accumulator(x: Any, axis: Any) -> str:
    """The type that the sum over axes is taken in."""
    return summing_type(x.dtype, product([x.shape[item] for item in _axes(x, axis)]))


def summing_type(dtype: DataType, count: Any) -> str:
    """The type that a sum of ``count`` terms is taken in.

    float32 for 16-bit floats; float64 for float32 terms whose number is large or not known, so that
    100,000 terms far from zero lose no digits.
    """
    if not dtype.is_float or dtype.bits > 32:
        return str(dtype)
    if dtype.bits < 32:
        return "float32"
    terms = constant_value(count)
    return "float32" if terms is not None and terms <= FEW_TERMS else "float64"


def te_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum, rounded once to the type of its terms."""
    made = sum_in(x, axis, keepdims, accumulator(x, axis))
    return made if made.dtype == x.dtype else topi.cast(made, str(x.dtype))


def te_collapse(x: Any, shape: Any) -> Any:
    """The sum down to a shape, rounded once."""
    return topi.collapse_sum(x, shape, summing_type(x.dtype, quotient(x.shape, shape)))


def _collapse(bb: BlockBuilder, call: Call) -> Any:
    shape = ShapeExpr(dims(call))
    return bb.call_te(te_collapse, call.args[0], shape, primfunc_name_hint="collapse_sum")


def te_mean(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum divided by the number of elements."""
    count: Any = tir_const(1, "int32")
    for item in _axes(x, axis):
        count = count * x.shape[item]
    whole = sum_in(x, axis, keepdims, accumulator(x, axis))
    made = topi.divide(whole, count)
    return made if made.dtype == x.dtype else topi.cast(made, str(x.dtype))


def te_variance(x: Any, axis: Any, keepdims: bool) -> Any:
    """The mean of squared distances from the mean."""
    if not x.dtype.is_float:
        distance = topi.subtract(x, te_mean(x, axis, True))
        return te_mean(topi.multiply(distance, distance), axis, keepdims)
    return _spread(x, axis, keepdims, lambda variance: variance)


def te_std(x: Any, axis: Any, keepdims: bool) -> Any:
    """The root of the variance."""
    if not x.dtype.is_float:
        return topi.sqrt(te_variance(x, axis, keepdims))
    return _spread(x, axis, keepdims, tir_sqrt)


def _spread(x: Any, axis: Any, keepdims: bool, function: Any) -> Any:
    """A function of the variance, which is taken in float32 at least."""
    axes = sorted(_axes(x, axis))
    moments = Moments(x, axes, x.op.name)
    shape = [
        tir_const(1, extent.dtype) if i in axes else extent
        for i, extent in enumerate(x.shape)
        if keepdims or i not in axes
    ]

    def element(*point: Any) -> Any:
        outer = [p for i, p in enumerate(point) if i not in axes] if keepdims else point
        return function(moments.variance(outer)).astype(x.dtype)

    return compute_ax(shape, element, "variance")


def _is_number(x: Any) -> Any:
    return compute_ax(x.shape, lambda *point: logical_not(isnan(x(*point))), "is_number")


def te_median(x: Any, axis: Any, keepdims: bool) -> Any:
    """The lower median, with indices over one axis; the first NaN of a row is its median."""
    axes = _axes(x, axis)
    kept = [item for item in range(len(x.shape)) if item not in axes]
    rows = topi.transpose(x, [*kept, *axes]) if kept + axes != list(range(len(x.shape))) else x
    count = product([x.shape[item] for item in axes])
    rows = topi.reshape(rows, [*[x.shape[item] for item in kept], count])
    order = topi.argsort(rows, axis=-1, dtype="int64")
    numbers = sum_in(_is_number(rows), [len(kept)], False, "int64")
    shape = [
        tir_const(1, "int64") if item in axes else x.shape[item]
        for item in range(len(x.shape))
        if keepdims or item not in axes
    ]

    def place(point: Any) -> tuple[Any, Any]:
        outer = [p for item, p in enumerate(point) if item not in axes] if keepdims else point
        sorted_first = numbers(*outer)  # NaNs come last, in their order
        rank = if_then_else(sorted_first < count, sorted_first, floordiv(count - 1, 2))
        return outer, order(*outer, rank)

    def value(*point: Any) -> Any:
        outer, where = place(point)
        return rows(*outer, where)

    values = compute_ax(shape, value, "median")
    if axis is None or len(axes) != 1:
        return values
    return values, compute_ax(shape, lambda *point: place(point)[1], "median_index")


def te_scan(x: Any, scan: Any, axis: Any, exclusive: bool, dtype: str) -> Any:
    """Running sums or products in O(n), of the dtype that the operator's rule gives."""
    made = scan(x, axis, None if dtype == "bool" else dtype, exclusive)
    return made if made.dtype == dtype else topi.cast(made, dtype)


def _scan(te_func: Any) -> Any:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        dtype = str(call.struct_info.dtype)
        return bb.call_te(
            te_scan, call.args[0], te_func, attrs["axis"], attrs["exclusive"], dtype,
            primfunc_name_hint=te_func.__name__,
        )  # fmt: skip

    return rule


def _arg(te_func: Any) -> Any:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        return bb.call_te(te_arg, te_func, call.args[0], call.attrs["axis"],
                          call.attrs["keepdims"], primfunc_name_hint=te_func.__name__)  # fmt: skip

    return rule


def te_arg(te_func: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Indices as int64."""
    made = te_func(x, axis, keepdims)
    return made if made.dtype == "int64" else topi.cast(made, "int64")


TABLE = table(
    {
        "sum": with_attrs(te_sum, "axis", "keepdims", hint="sum"),
        "max": with_attrs(topi.max, "axis", "keepdims"),
        "min": with_attrs(topi.min, "axis", "keepdims"),
        "prod": with_attrs(topi.prod, "axis", "keepdims"),
        "collapse_sum_to": _collapse,
        "collapse_sum_like": _collapse,
        "mean": with_attrs(te_mean, "axis", "keepdims", hint="mean"),
        "variance": with_attrs(te_variance, "axis", "keepdims", hint="variance"),
        "std": with_attrs(te_std, "axis", "keepdims", hint="std"),
        "median": with_attrs(te_median, "axis", "keepdims", hint="median"),
        "argmax": _arg(topi.argmax),
        "argmin": _arg(topi.argmin),
        "cumsum": _scan(topi.cumsum),
        "cumprod": _scan(topi.cumprod),
    }
)
