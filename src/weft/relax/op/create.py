"""Operators that make tensors: full, zeros, ones, arange, eye, triangles."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from weft import topi
from weft.ir.expr import Extent, FloatImm, IntImm, RelaxExpr
from weft.ir.node import expect
from weft.relax.expr import Call, Expr, PrimValue, ShapeExpr, const
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.definition import Dtype, Prim, Replacements, Shape, operator
from weft.relax.op.infer import VOID, check_rank, fail, prim_arg, result, shaped, tensor, with_dtype
from weft.relax.op.lowering import Builder, Rule, dims, scalar_or_tensor
from weft.relax.op.reference import create as reference
from weft.relax.struct_info import PrimStructInfo, ShapeStructInfo, TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.te.tensor import Tensor
from weft.tir.op import ceil, ceildiv
from weft.topi.rearrangement import full as full_of


def fill_info(call: Call) -> TensorStructInfo:
    """The info of the fill value, which must be a tensor without dimensions."""
    value = call.args[1].struct_info
    if not isinstance(value, TensorStructInfo) or value.ndim not in (-1, 0):
        raise IRTypeError(f"{call.op.name}: fill_value: expected a scalar tensor, got {value}")
    return value


def infer_full(call: Call) -> TensorStructInfo:
    """The shape; the value's dtype unless one is given."""
    value, given = fill_info(call), call.attrs["dtype"]
    return shaped(call, 0, value.dtype if given == VOID else given, value.vdevice)


def infer_full_like(call: Call) -> TensorStructInfo:
    """As the input; another dtype if one is given."""
    fill_info(call)
    return infer_like(call)


def infer_shaped(call: Call) -> TensorStructInfo:
    """The shape and the dtype given."""
    if call.attrs["dtype"] == VOID:
        fail(call, "dtype: expected a data type, got void")
    return shaped(call, 0, call.attrs["dtype"])


def infer_like(call: Call) -> TensorStructInfo:
    """As the input; another dtype if one is given."""
    info, given = tensor(call, 0), call.attrs["dtype"]
    return info if given == VOID else with_dtype(info, given)


def known_shape(arg: RelaxExpr) -> ShapeExpr | None:
    """A shape argument whose dimensions are known, or None."""
    if isinstance(arg, ShapeExpr):
        return arg
    info = arg.struct_info
    known = isinstance(info, ShapeStructInfo) and info.values is not None
    return ShapeExpr(info.values) if known else None


def filled(hint: str, shape_index: int | None, value: Any) -> Rule:
    """The rule for a tensor of one value.

    Args:
        hint: the name of the PrimFunc.
        shape_index: the argument that is the shape; None: the shape of the first argument.
        value: the value; None: argument 1.
    """

    def rule(bb: Builder, call: Call) -> RelaxExpr:
        if shape_index is None:
            shape: Any = ShapeExpr(dims(call.args[0]))
        else:
            shape = known_shape(call.args[shape_index])
        if shape is None:
            return call
        fill = scalar_or_tensor(call.args[1]) if value is None else value
        dtype = str(call.struct_info.dtype)
        return bb.call_te(full_of, shape, dtype, fill, primfunc_name_hint=hint)

    return rule


def _scalar(value: Any, dtype: Any) -> Any:
    if isinstance(value, Expr):
        return value
    if dtype not in (None, "", "void"):
        return const(value, str(dtype))
    return const(value)


@operator("relax.full", infer_full, legalize=filled("full", 0, None), numpy=reference.full)
def full(shape: Shape, fill_value: Expr, dtype: Dtype | None = None) -> Replacements:
    """A tensor of one value."""
    return {"fill_value": _scalar(fill_value, dtype)}


@operator(
    "relax.full_like",
    infer_full_like,
    legalize=filled("full", None, None),
    numpy=reference.full_like,
)
def full_like(x: Expr, fill_value: Expr, dtype: Dtype | None = None) -> Replacements:
    """A tensor of one value, of the shape of another."""
    given = dtype or getattr(getattr(x, "struct_info", None), "dtype", None)
    return {"fill_value": _scalar(fill_value, given)}


@operator("relax.ones", infer_shaped, legalize=filled("ones", 0, 1), numpy=reference.constant(1))
def ones(shape: Shape, dtype: Dtype) -> None:
    """A tensor of ones."""


@operator(
    "relax.ones_like",
    infer_like,
    legalize=filled("ones", None, 1),
    numpy=reference.constant_like(1),
)
def ones_like(x: Expr, dtype: Dtype | None = None) -> None:
    """Ones of the shape of another tensor."""


@operator("relax.zeros", infer_shaped, legalize=filled("zeros", 0, 0), numpy=reference.constant(0))
def zeros(shape: Shape, dtype: Dtype) -> None:
    """A tensor of zeros."""


@operator(
    "relax.zeros_like",
    infer_like,
    legalize=filled("zeros", None, 0),
    numpy=reference.constant_like(0),
)
def zeros_like(x: Expr, dtype: Dtype | None = None) -> None:
    """Zeros of the shape of another tensor."""


def infer_eye(call: Call) -> TensorStructInfo:
    """(n, m)."""
    rows, columns = [expect(size, PrimValue).value for size in call.args[:2]]
    return result([rows, columns], call.attrs["dtype"])


@operator("relax.eye", infer_eye, te=topi.eye, numpy=reference.eye)
def eye(n: Prim, m: Prim | None = None, k: Prim = 0, dtype: Dtype = "float32") -> Replacements:
    """Ones on the diagonal number k, zeros elsewhere."""
    return {"m": n if m is None else m}


def _eye_like(bb: Builder, call: Call) -> RelaxExpr:
    rows, columns = dims(call.args[0])
    k: Any = getattr(call.args[1], "value", None)
    dtype = str(call.struct_info.dtype)
    return bb.call_te(topi.eye, rows, columns, k, dtype, primfunc_name_hint="eye_like")


def infer_eye_like(call: Call) -> TensorStructInfo:
    """The input's struct info, which must be that of a matrix."""
    check_rank(call, 0, 2)
    return infer_like(call)


@operator("relax.eye_like", infer_eye_like, legalize=_eye_like, numpy=reference.eye_like)
def eye_like(x: Expr, k: Prim = 0, dtype: Dtype | None = None) -> None:
    """An identity of the shape of a matrix."""


_LONGEST_STORED: Final = 1 << 22
"""Numbers of a range that become a constant of the model; more are computed when it runs."""


def _arange(bb: Builder, call: Call) -> RelaxExpr:
    operands: list[Any] = [getattr(arg, "value", None) for arg in call.args]
    values: list[Any] = [getattr(operand, "value", None) for operand in operands]
    dtype = str(call.attrs["dtype"])
    if all(value is not None for value in values) and len_of_range(*values) <= _LONGEST_STORED:
        return const(np.arange(*values, dtype=dtype), dtype)
    return bb.call_te(topi.arange, *operands, dtype, primfunc_name_hint="arange")


def infer_arange(call: Call) -> TensorStructInfo:
    """ceil((end - start) / step) elements."""
    infos = [arg.struct_info for arg in call.args]
    if not all(isinstance(info, PrimStructInfo) and info.value is not None for info in infos):
        return result(None, call.attrs["dtype"], 1)
    start, end, step = (info.value for info in infos)
    numbers = [v.value for v in (start, end, step) if isinstance(v, IntImm | FloatImm)]
    if len(numbers) == 3:
        if numbers[2] == 0:
            fail(call, "step must not be 0")
        return result([max(len_of_range(*numbers), 0)], call.attrs["dtype"])
    if any(value.dtype.is_float for value in (start, end, step)):
        return result([simplified(ceil((end - start) / step).astype("int64"))], call.attrs["dtype"])
    if constant_value(step) is not None and (constant_value(step) or 0) < 0:
        return result([simplified(ceildiv(start - end, -step))], call.attrs["dtype"])
    return result([simplified(ceildiv(end - start, step))], call.attrs["dtype"])


def len_of_range(start: float, end: float, step: float) -> int:
    """The number of values of numpy.arange; it may be negative."""
    return int(np.ceil((end - start) / step))


@operator("relax.arange", infer_arange, legalize=_arange, numpy=reference.arange)
def arange(
    start: Prim, end: Prim | None = None, step: Prim = 1, dtype: Dtype | None = None
) -> Replacements:
    """start, start + step, ... below end."""
    if end is None:
        start, end = PrimValue(0), start
    values = [
        expect(item, PrimValue) if isinstance(item, Expr) else PrimValue(item)
        for item in (start, end, step)
    ]
    if any(value.value.dtype.is_float for value in values):
        values = [
            value if value.value.dtype.is_float else PrimValue(value.value.astype("float32"))
            for value in values
        ]
        kind = "float32"
    else:
        kind = "int64"
    return {**dict(zip(("start", "end", "step"), values, strict=True)), "dtype": dtype or kind}


def infer_linspace(call: Call) -> TensorStructInfo:
    """(steps,)."""
    steps = simplified(prim_arg(call, 2).astype("int64"))
    if (constant_value(steps) or 0) < 0:
        fail(call, f"steps: expected 0 or more, got {steps}")
    return result([steps], call.attrs["dtype"])


@operator("relax.linspace", infer_linspace, te=topi.linspace, numpy=reference.linspace)
def linspace(start: Prim, end: Prim, steps: Prim, dtype: Dtype = "float32") -> Replacements:
    """``steps`` numbers at equal distances from start to end, both included.

    Each is counted from the nearer end in float64, as PyTorch does, and converted once.
    """
    return {
        name: PrimValue(FloatImm("float64", float(bound)))
        for name, bound in (("start", start), ("end", end))
        if isinstance(bound, int | float)
    }


def infer_hamming_window(call: Call) -> TensorStructInfo:
    """(window_size,) of floats."""
    dtype = DataType(call.attrs["dtype"])
    if not dtype.is_float:
        raise IRTypeError(f"relax.hamming_window: dtype: expected a float type, got {dtype}")
    size = simplified(prim_arg(call, 0))
    known = constant_value(size)
    if known is not None and known < 1:
        fail(call, f"window_size: expected 1 or more, got {size}")
    return result([size], dtype)


@operator(
    "relax.hamming_window",
    infer_hamming_window,
    te=topi.hamming_window,
    numpy=reference.hamming_window,
)
def hamming_window(
    window_size: Prim, periodic: Prim, alpha: Prim, beta: Prim, dtype: Dtype
) -> None:
    """alpha - beta * cos(2 pi i / n); n is window_size if periodic, else window_size - 1."""


def _triangle(x: Tensor, k: Extent, upper: bool) -> Tensor:
    number = constant_value(k)
    return topi.trilu(x, k if number is None else number, upper)


def infer_triangle(call: Call) -> TensorStructInfo:
    """As the input, which has at least two dimensions."""
    info = tensor(call, 0)
    if info.ndim in (0, 1):
        fail(call, f"expected at least 2 dimensions, got {info.ndim}")
    return info


@operator(
    "relax.tril",
    infer_triangle,
    te=partial(_triangle, upper=False),
    kernel="tril",
    numpy=lambda x, k: np.tril(x, k),
)
def tril(x: Expr, k: Prim = 0) -> None:
    """The lower triangle up to diagonal k; zeros above."""


@operator(
    "relax.triu",
    infer_triangle,
    te=partial(_triangle, upper=True),
    kernel="triu",
    numpy=lambda x, k: np.triu(x, k),
)
def triu(x: Expr, k: Prim = 0) -> None:
    """The upper triangle from diagonal k; zeros below."""
