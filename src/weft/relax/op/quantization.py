"""Linear quantisation: q = round(x / scale) + zero point, limited to the integer type."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ
from weft.relax.op.definition import Dtype, operator
from weft.relax.op.infer import VOID, axis_of, dims_of, fail, tensor, with_dtype
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError


def _check_parameters(call: Call) -> TensorStructInfo:
    """The data; scale and zero point are scalars or have one element for each index of the axis."""
    info = tensor(call, 0)
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    dims = dims_of(info)
    for index, name in ((1, "scale"), (2, "zero_point")):
        part = tensor(call, index)
        its = dims_of(part)
        if part.ndim not in (-1, 0, 1):
            fail(call, f"{name}: expected at most 1 dimension, got {part.ndim}")
        if dims is not None and its and differ(its[0], dims[axis]) and differ(its[0], 1):
            fail(call, f"{name}: expected {dims[axis]} elements (axis {axis}), got {its[0]}")
    return info


def infer_quantize(call: Call) -> TensorStructInfo:
    """Integers of the data's shape."""
    out = DataType(call.attrs["out_dtype"])
    if not out.is_integral and out != VOID and not out.kind.startswith("float8"):
        raise IRTypeError(f"{call.op.name}: out_dtype: expected an integer type, got {out}")
    return with_dtype(_check_parameters(call), out)


def infer_dequantize(call: Call) -> TensorStructInfo:
    """Floats of the data's shape."""
    return with_dtype(_check_parameters(call), call.attrs["out_dtype"])


@operator("relax.quantize", infer_quantize)
def quantize(
    data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: Dtype = "int8"
) -> Any:
    """The data as integers, by scale and zero point."""


@operator("relax.dequantize", infer_dequantize)
def dequantize(
    data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: Dtype = "float32"
) -> Any:
    """scale * (data - zero point)."""
