"""Lowering of linear quantisation."""

from __future__ import annotations

from typing import Any

from weft import te
from weft.relax.shape_arith import constant_value
from weft.relax.transform.legalize.rule import table, with_attrs
from weft.tir.op import max_value, min_value
from weft.tir.op import round as tir_round


def _parameter(tensor: Any, index: Any, axis: int) -> Any:
    """Scale or zero point for an element: one for all, or one for each index of the axis."""
    if not len(tensor.shape):
        return tensor()
    return tensor(0 if constant_value(tensor.shape[0]) == 1 else index[axis])


def te_quantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    """round(data / scale) + zero point, limited to the type."""
    low, high = min_value(out_dtype), max_value(out_dtype)

    def element(*index: Any) -> Any:
        place = axis % len(data.shape)
        scaled = tir_round(data(*index) / _parameter(scale, index, place))
        value = scaled + _parameter(zero_point, index, place).astype(str(data.dtype))
        bounds = [limit.astype(str(data.dtype)) for limit in (low, high)]
        return te.max(te.min(value, bounds[1]), bounds[0]).astype(out_dtype)

    return te.compute(data.shape, element, name="quantized")


def te_dequantize(data: Any, scale: Any, zero_point: Any, axis: int, out_dtype: str) -> Any:
    """scale * (data - zero point)."""

    def element(*index: Any) -> Any:
        place = axis % len(data.shape)
        zero = _parameter(zero_point, index, place).astype("int32")
        distance = (data(*index).astype("int32") - zero).astype(out_dtype)
        return distance * _parameter(scale, index, place).astype(out_dtype)

    return te.compute(data.shape, element, name="dequantized")


TABLE = table(
    {
        "quantize": with_attrs(te_quantize, "axis", "out_dtype", hint="quantize"),
        "dequantize": with_attrs(te_dequantize, "axis", "out_dtype", hint="dequantize"),
    }
)
