"""Parts of struct-info rules: reading arguments, axes, broadcasting, results.

A rule raises errors that name the operator, the argument and the numbers. If a dimension is not
known, its result has only what is known (the rank, the dtype): rules do not guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from weft.ir.expr import Extent, IntImm, PrimExpr
from weft.ir.global_info import VDevice
from weft.relax.expr import Call, ShapeExpr, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import broadcast, constant_value
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.dtype import DataType
from weft.support.errors import IRIndexError, IRTypeError, IRValueError

VOID = DataType("void")
_TYPED, _NUMBER = re.compile(r"T\.int64\((-?\d+)\)"), r"\1"
Dims = Sequence[Extent] | None
"""The dimensions of a tensor, or None where they are not known."""


def fail(call: Call, message: str) -> NoReturn:
    """Raise IRValueError with the operator's name; prints ``T.int64(4)`` as ``4``."""
    raise IRValueError(f"{call.op.name}: {without_types(message)}")


def without_types(message: str) -> str:
    """The text with ``4`` for ``T.int64(4)``."""
    return _TYPED.sub(_NUMBER, message)


def param_name(call: Call, index: int) -> str:
    """The name of argument ``index``."""
    names = call.op.get_attr("params") or ()
    return str(names[index]) if index < len(names) else f"argument {index}"


def misfit(call: Call, index: int, wanted: str, given: object) -> IRTypeError:
    """The error of an argument of another kind than its operator takes."""
    return IRTypeError(f"{call.op.name}: {param_name(call, index)}: expected {wanted}, got {given}")


def tensor(call: Call, index: int) -> TensorStructInfo:
    """The info of argument ``index``, which must be a tensor."""
    if index >= len(call.args):
        params = ", ".join(call.op.get_attr("params") or ())
        raise IRTypeError(
            f"{call.op.name}: expected the arguments ({params}), got {len(call.args)} of them"
        )
    info = call.args[index].struct_info
    if not isinstance(info, TensorStructInfo):
        raise misfit(call, index, "a tensor", info)
    return info


def tensors(call: Call, index: int = 0) -> list[TensorStructInfo]:
    """The infos of the fields of argument ``index``, which must be a tuple of tensors."""
    info = call.args[index].struct_info
    fields = info.fields if isinstance(info, TupleStructInfo) else [info]
    if not isinstance(info, TupleStructInfo) or not all(
        isinstance(field, TensorStructInfo) for field in fields
    ):
        raise misfit(call, index, "a tuple of tensors", info)
    return list(fields)


def integral(call: Call, index: int) -> TensorStructInfo:
    """The info of argument ``index``, which must be a tensor of integers (no booleans)."""
    info = tensor(call, index)
    kind = DataType(info.dtype)
    if kind != VOID and (not kind.is_integral or kind.is_bool):
        raise misfit(call, index, "integers", kind)
    return info


def scalar_info(call: Call, index: int) -> TensorStructInfo | PrimStructInfo:
    """The info of argument ``index``: a number or a tensor without dimensions."""
    info = call.args[index].struct_info
    if isinstance(info, PrimStructInfo):
        return info
    if not isinstance(info, TensorStructInfo) or info.ndim not in (-1, 0):
        raise misfit(call, index, "a scalar", info)
    return info


def prim_arg(call: Call, index: int) -> PrimExpr:
    """The expression of argument ``index``, which must be a scalar with a known expression."""
    info = call.args[index].struct_info
    if not isinstance(info, PrimStructInfo) or info.value is None:
        raise misfit(call, index, "a number", info)
    return info.value


def shape_arg(call: Call, index: int) -> ShapeStructInfo:
    """The info of argument ``index``, which must be a shape."""
    info = call.args[index].struct_info
    if not isinstance(info, ShapeStructInfo):
        raise misfit(call, index, "a shape", info)
    return info


def dims_of(info: TensorStructInfo) -> Dims:
    """The dimensions where they are known."""
    return tensor_dims(info)


def result(
    dims: Dims, dtype: str, ndim: int = -1, vdevice: VDevice | None = None
) -> TensorStructInfo:
    """A tensor of dimensions ``dims``; if they are None, of rank ``ndim``."""
    if dims is not None:
        return TensorStructInfo(ShapeExpr(list(dims)), dtype, vdevice)
    return TensorStructInfo(None, dtype, vdevice, ndim)


def shaped(call: Call, index: int, dtype: str, vdevice: VDevice | None = None) -> TensorStructInfo:
    """A tensor whose shape is argument ``index``; a variable of unknown dimensions is kept."""
    shape, info = call.args[index], shape_arg(call, index)
    if isinstance(shape, ShapeExpr) or (info.values is None and isinstance(shape, Var)):
        return TensorStructInfo(shape, dtype, vdevice)
    return result(info.values, dtype, info.ndim, vdevice)


def with_dtype(info: TensorStructInfo, dtype: str) -> TensorStructInfo:
    """The same shape with another dtype; the same object if nothing changes."""
    if info.dtype == dtype:
        return info
    return TensorStructInfo(info.shape, dtype, info.vdevice, info.ndim)


def axis_of(call: Call, axis: int, ndim: int, name: str = "axis") -> int:
    """``axis`` counted from 0; a negative one stays if the rank is unknown."""
    if ndim == -1:
        return axis
    if not -ndim <= axis < ndim:
        raise IRIndexError(
            f"{call.op.name}: {name} {axis} is out of range for a tensor of {ndim} dimensions, "
            f"expected {-ndim} <= {name} < {ndim}"
        )
    return axis % ndim if ndim else 0


def axes_of(call: Call, axes: Sequence[int], ndim: int, name: str = "axis") -> list[int]:
    """Distinct axes counted from 0."""
    counted = [axis_of(call, axis, ndim, name) for axis in axes]
    if len(set(counted)) != len(counted):
        raise IRValueError(f"{call.op.name}: {name} {list(axes)} names one axis twice")
    return counted


def check_rank(call: Call, index: int, expected: int) -> TensorStructInfo:
    """The tensor at ``index``, of ``expected`` dimensions or of unknown rank."""
    info = tensor(call, index)
    if info.ndim not in (-1, expected):
        fail(
            call,
            f"{param_name(call, index)}: expected {expected} dimensions, got {info.ndim}: {info}",
        )
    return info


def common_dtype(call: Call, infos: Sequence[TensorStructInfo | PrimStructInfo]) -> DataType:
    """The dtype that several tensors or scalars share; void if one of them is unknown."""
    dtypes = dict.fromkeys(DataType(info.dtype) for info in infos)
    known = [dtype for dtype in dtypes if dtype != VOID]
    if len(known) > 1:
        raise IRTypeError(
            f"{call.op.name}: the data types must be equal, got "
            f"{' and '.join(str(item) for item in known)}; use astype"
        )
    return VOID if VOID in dtypes else known[0]


def common_vdevice(infos: Sequence[StructInfo]) -> VDevice | None:
    """The first device that any of the tensors names."""
    for info in infos:
        if isinstance(info, TensorStructInfo) and info.vdevice is not None:
            device: VDevice = info.vdevice
            return device
    return None


def broadcast_infos(
    call: Call, infos: Sequence[TensorStructInfo | PrimStructInfo], dtype: str
) -> TensorStructInfo:
    """The broadcast of several tensors (scalars have no dimensions)."""
    vdevice = common_vdevice(infos)
    shapes = [[] if isinstance(info, PrimStructInfo) else dims_of(info) for info in infos]
    ndims = [0 if isinstance(info, PrimStructInfo) else info.ndim for info in infos]
    ndim = -1 if -1 in ndims else max(ndims)
    dims = shapes[0]
    for shape in shapes[1:]:
        if dims is None or shape is None:
            return _unknown_broadcast(infos, dtype, ndim, vdevice)
        joint = broadcast(dims, shape)
        if isinstance(joint, str):
            texts = " and ".join(show_dims(item) for item in shapes)
            fail(call, f"cannot broadcast the shapes {texts}: {joint}")
        if joint is None:
            return TensorStructInfo(None, dtype, vdevice, ndim)
        dims = joint
    return result(dims, dtype, ndim, vdevice)


def _unknown_broadcast(
    infos: Sequence[StructInfo], dtype: str, ndim: int, vdevice: VDevice | None
) -> TensorStructInfo:
    shapes = [info.shape if isinstance(info, TensorStructInfo) else None for info in infos]
    if shapes[0] is not None and all(shape is shapes[0] for shape in shapes):
        return TensorStructInfo(shapes[0], dtype, vdevice)
    return TensorStructInfo(None, dtype, vdevice, ndim)


def show_dims(dims: Dims) -> str:
    """A shape in a message: ``(2, n)``."""
    return "unknown" if dims is None else f"({', '.join(show_dim(dim) for dim in dims)})"


def show_dim(dim: Extent) -> str:
    """A dimension in a message: constants without their type."""
    value = constant_value(dim)
    return str(dim) if value is None else str(value)


def check_float(call: Call, info: TensorStructInfo | PrimStructInfo) -> None:
    """Raise unless the dtype is floating point (or unknown)."""
    if info.dtype != VOID and not DataType(info.dtype).is_float:
        raise IRTypeError(f"{call.op.name}: expected a floating-point type, got {info.dtype}")


def int64(value: int) -> PrimExpr:
    """An int64 constant."""
    return IntImm(DataType("int64"), value)


def constants(dims: Dims) -> list[int] | None:
    """All dimensions as ints, or None."""
    if dims is None:
        return None
    values = [constant_value(dim) for dim in dims]
    return None if any(value is None for value in values) else [int(v or 0) for v in values]


def same_as_input(call: Call) -> TensorStructInfo:
    """The info of the first argument."""
    return tensor(call, 0)


def same_along_axis(call: Call) -> TensorStructInfo:
    """The info of the first argument; raises unless the attribute ``axis`` is one of its axes."""
    info = tensor(call, 0)
    axis_of(call, call.attrs["axis"], info.ndim)
    return info


def same_as_float_input(call: Call) -> TensorStructInfo:
    """The info of the first argument, whose dtype must be floating point."""
    info = tensor(call, 0)
    check_float(call, info)
    return info
