"""Lowering of reductions."""

from __future__ import annotations

from typing import Any

from weft import te, topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call
from weft.relax.transform.legalize.rule import table, with_attrs
from weft.tir.op import const as tir_const
from weft.tir.op import if_then_else


def _axes(x: Any, axis: Any) -> list[int]:
    if axis is None:
        return list(range(len(x.shape)))
    return [item % len(x.shape) for item in (axis if isinstance(axis, list) else [axis])]


def te_mean(x: Any, axis: Any, keepdims: bool) -> Any:
    """The sum divided by the number of elements."""
    count: Any = tir_const(1, "int32")
    for item in _axes(x, axis):
        count = count * x.shape[item]
    return topi.divide(topi.sum(x, axis, keepdims), count)


def te_variance(x: Any, axis: Any, keepdims: bool) -> Any:
    """The mean of squared distances from the mean."""
    distance = topi.subtract(x, te_mean(x, axis, True))
    return te_mean(topi.multiply(distance, distance), axis, keepdims)


def te_std(x: Any, axis: Any, keepdims: bool) -> Any:
    """The root of the variance."""
    return topi.sqrt(te_variance(x, axis, keepdims))


def te_cumulative(x: Any, axis: Any, exclusive: bool, dtype: Any, multiply: bool) -> Any:
    """Running sums or products; each output reduces its own prefix."""
    if axis is None:
        x = topi.reshape(x, [_size(x)])
        axis = 0
    axis %= len(x.shape)
    element = x.dtype if dtype in (None, "void") else dtype
    extent = x.shape[axis]

    def value(*indices: Any) -> Any:
        k = te.reduce_axis((0, extent), name="k")
        source = x(*indices[:axis], k, *indices[axis + 1 :]).astype(str(element))
        before = k < indices[axis] if exclusive else k <= indices[axis]
        neutral = tir_const(1 if multiply else 0, str(element))
        masked = if_then_else(before, source, neutral)
        return (_PRODUCT if multiply else te.sum)(masked, axis=[k])

    return te.compute(x.shape, value, name="cumulative")


def _size(x: Any) -> Any:
    total: Any = tir_const(1, "int64")
    for dim in x.shape:
        total = total * dim
    return total


def _scan(multiply: bool) -> Any:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        attrs = call.attrs
        return bb.call_te(
            te_cumulative, call.args[0], attrs["axis"], attrs["exclusive"], str(attrs["dtype"]),
            multiply, primfunc_name_hint="cumprod" if multiply else "cumsum",
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


_PRODUCT = te.comm_reducer(
    lambda x, y: x * y, lambda dtype: tir_const(1, dtype), name="cumulative_product"
)

TABLE = table(
    {
        "sum": with_attrs(topi.sum, "axis", "keepdims"),
        "max": with_attrs(topi.max, "axis", "keepdims"),
        "min": with_attrs(topi.min, "axis", "keepdims"),
        "prod": with_attrs(topi.prod, "axis", "keepdims"),
        "mean": with_attrs(te_mean, "axis", "keepdims", hint="mean"),
        "variance": with_attrs(te_variance, "axis", "keepdims", hint="variance"),
        "std": with_attrs(te_std, "axis", "keepdims", hint="std"),
        "argmax": _arg(topi.argmax),
        "argmin": _arg(topi.argmin),
        "cumsum": _scan(multiply=False),
        "cumprod": _scan(multiply=True),
    }
)
