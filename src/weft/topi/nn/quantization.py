"""Linear quantisation: scale and zero point are tensors, or constants in the PrimFunc.

The quotient is rounded in the data's own type. Distances from the zero point are int32 (float32 for
float data), products float32 at least; results are limited to the range of their type.
"""

from __future__ import annotations

from weft import te
from weft.ir.expr import PrimExpr, constant_value
from weft.support.dtype import DataType
from weft.te.tensor import Tensor
from weft.tir.op import max_value, min_value
from weft.tir.op import round as tir_round
from weft.topi.extents import Point


def _parameter(value: Tensor | PrimExpr, index: Point, axis: int) -> PrimExpr:
    """Scale or zero point of an element: one for all, or one for each index of the axis."""
    if isinstance(value, PrimExpr):
        return value
    if not len(value.shape):
        return value()
    return value(0 if constant_value(value.shape[0]) == 1 else index[axis])


def _limited(value: PrimExpr, dtype: str) -> PrimExpr:
    """A value in the range of a type, converted to it."""
    low, high = (limit.astype(value.dtype) for limit in (min_value(dtype), max_value(dtype)))
    return te.max(te.min(value, high), low).astype(dtype)


def quantize(
    data: Tensor, scale: Tensor | PrimExpr, zero_point: Tensor | PrimExpr, axis: int, out_dtype: str
) -> Tensor:
    """round(data / scale) + zero point, limited to the type; floats are not rounded."""
    place, is_whole = axis % max(len(data.shape), 1), DataType(out_dtype).is_integral

    def element(*index: PrimExpr) -> PrimExpr:
        scaled = data(*index) / _parameter(scale, index, place).astype(data.dtype)
        whole = tir_round(scaled) if is_whole else scaled
        value = whole + _parameter(zero_point, index, place).astype(data.dtype)
        return _limited(value, out_dtype)

    return te.compute(data.shape, element, name="quantized")


def dequantize(
    data: Tensor, scale: Tensor | PrimExpr, zero_point: Tensor | PrimExpr, axis: int, out_dtype: str
) -> Tensor:
    """scale * (data - zero point)."""
    place, kind = axis % max(len(data.shape), 1), DataType(out_dtype)
    middle = "float32" if data.dtype.is_float else "int32"
    wide = out_dtype if kind.is_float and kind.bits >= 32 else "float32"

    def element(*index: PrimExpr) -> PrimExpr:
        zero = _parameter(zero_point, index, place).astype(middle)
        distance = (data(*index).astype(middle) - zero).astype(wide)
        value = distance * _parameter(scale, index, place).astype(wide)
        return value if wide == out_dtype else _limited(value, out_dtype)

    return te.compute(data.shape, element, name="dequantized")
