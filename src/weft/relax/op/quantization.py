"""Linear quantisation: q = round(x / scale) + zero point, clamped to the integer type."""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ
from weft.relax.op.definition import Dtype, operator
from weft.relax.op.infer import VOID, axis_of, dims_of, fail, tensor, with_dtype
from weft.relax.op.lowering import Builder, Rule, TensorExpression, dims, scalar_or_tensor
from weft.relax.op.reference import quantization as reference
from weft.relax.op.requirements import Required
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.topi.nn.quantization import dequantize as dequantize_te
from weft.topi.nn.quantization import quantize as quantize_te


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


def _lowered(te: TensorExpression, kernel: str) -> Rule:
    def rule(bb: Builder, call: Call) -> RelaxExpr:
        data, *parameters = call.args
        return bb.call_te(
            te,
            data,
            *[scalar_or_tensor(item) for item in parameters],
            call.attrs["axis"],
            str(call.attrs["out_dtype"]),
            primfunc_name_hint=kernel,
        )

    return rule


def _parameters(call: Call) -> Required:
    """Scale and zero point have one element, or one for each index of the axis."""
    vectors = [
        index
        for index in (1, 2)
        if len(dims(call.args[index])) and constant_value(dims(call.args[index])[0]) != 1
    ]
    if not vectors:
        return {}
    channels = dims(call.args[0])[call.attrs["axis"]]
    return {index: [channels] for index in vectors}


@operator(
    "relax.quantize",
    infer_quantize,
    legalize=_lowered(quantize_te, "quantize"),
    requires=_parameters,
    numpy=reference.quantize,
)
def quantize(
    data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: Dtype = "int8"
) -> None:
    """round(data / scale) + zero point, clamped to the integer type."""


@operator(
    "relax.dequantize",
    infer_dequantize,
    legalize=_lowered(dequantize_te, "dequantize"),
    requires=_parameters,
    numpy=reference.dequantize,
)
def dequantize(
    data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: Dtype = "float32"
) -> None:
    """scale * (data - zero point)."""
