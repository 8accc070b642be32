"""Explicit memory: rules for ``relax.op.memory``, ``relax.op.builtin`` and ``relax.op.vm``.

A storage is a number of bytes; tensors are views of storages. Passes for the virtual machine emit
these operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import (
    Call,
    DataTypeImm,
    Expr,
    PrimValue,
    RelaxLike,
    ShapeExpr,
    StringImm,
    Tuple,
)
from weft.relax.ir.shape_arith import constant_value, product, simplified
from weft.relax.op.definition import FUNCTIONS, Infer, Shape, as_shape
from weft.relax.op.infer import VOID, dims_of, fail, result, shape_arg, show_dim, tensor, with_dtype
from weft.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError


def infer_object(call: Call) -> StructInfo:  # noqa: ARG001 - the signature of every rule
    """Storage is an object."""
    return ObjectStructInfo()


def infer_nothing(call: Call) -> StructInfo:  # noqa: ARG001 - the signature of every rule
    """The empty tuple: the operator is called for its side effect."""
    return TupleStructInfo([])


def _tensor_of(call: Call, shape_index: int, dtype_index: int) -> TensorStructInfo:
    shape, dtype = call.args[shape_index], expect(call.args[dtype_index], DataTypeImm).value
    if isinstance(shape, ShapeExpr):
        return TensorStructInfo(shape, dtype)
    info = shape_arg(call, shape_index)
    return result(info.values, dtype, info.ndim)


def infer_alloc_tensor(call: Call) -> StructInfo:
    """A tensor of the shape and dtype among the arguments (shape, dtype, ...)."""
    return _tensor_of(call, 0, 1)


def infer_tensor_in_storage(call: Call) -> StructInfo:
    """A tensor of the shape and dtype among the arguments (storage, offset, shape, dtype)."""
    return _tensor_of(call, 2, 3)


def as_index(value: RelaxLike) -> Expr:
    """A number as a PrimValue."""
    return value if isinstance(value, Expr) else PrimValue(value)


def as_dtype_imm(value: Expr | str) -> Expr:
    """A data type as an argument."""
    return value if isinstance(value, Expr) else DataTypeImm(value)


def as_text(value: Expr | str) -> Expr:
    """A string as an argument."""
    return value if isinstance(value, Expr) else StringImm(value)


def register(
    name: str,
    infer: Infer,
    function: Callable[..., Call],
    pure: bool,
    params: tuple[str, ...] = (),
    traits: Trait = Trait.NONE,
) -> None:
    """Register an operator that a plain function builds."""
    Op.register(
        name,
        infer_struct_info=infer,
        function=function,
        pure=pure,
        attrs=(),
        params=params,
        traits=traits,
    )
    FUNCTIONS[name.removeprefix("relax.")] = function


def alloc_storage(
    size: Shape, virtual_device_index: RelaxLike, storage_scope: Expr | str, dtype: Expr | str
) -> Call:
    """Storage of ``size`` bytes."""
    operands = [
        as_shape(size),
        as_index(virtual_device_index),
        as_text(storage_scope),
        as_dtype_imm(dtype),
    ]
    return Call(Op.get("relax.memory.alloc_storage"), operands)


def alloc_tensor(storage: Expr, offset: RelaxLike, shape: Shape, dtype: Expr | str) -> Call:
    """A tensor at a byte offset of a storage."""
    operands = [storage, as_index(offset), as_shape(shape), as_dtype_imm(dtype)]
    return Call(Op.get("relax.memory.alloc_tensor"), operands)


def kill_storage(storage: Expr) -> Call:
    """End the life of a storage."""
    return Call(Op.get("relax.memory.kill_storage"), [storage])


def kill_tensor(tensor: Expr) -> Call:
    """End the life of a tensor."""
    return Call(Op.get("relax.memory.kill_tensor"), [tensor])


def infer_ensure(call: Call) -> StructInfo:
    """As the argument."""
    info: StructInfo = call.args[0].struct_info
    return info


def ensure_zero_offset(data: Expr) -> Call:
    """The tensor, copied if its data does not start at offset 0."""
    return Call(Op.get("relax.memory.ensure_zero_offset"), [data])


def _given(call: Call, index: int) -> Expr | None:
    """An optional argument of a view; None if it is the empty tuple, which means absent."""
    arg = call.args[index]
    return None if isinstance(arg, Tuple) and not arg.fields else arg


def infer_view(call: Call) -> StructInfo:
    """The shape and dtype given, else those of the data."""
    info = tensor(call, 0)
    shape, dtype_arg, offset = (_given(call, index) for index in (1, 2, 3))
    dtype = info.dtype if dtype_arg is None else getattr(dtype_arg, "value", VOID)
    if offset is not None and not isinstance(offset.struct_info, PrimStructInfo):
        raise IRTypeError(
            f"{call.op.name}: relative_byte_offset: expected a number of bytes, got "
            f"{offset.struct_info}"
        )
    if shape is None:
        viewed = with_dtype(info, dtype)
        if VOID not in (info.dtype, dtype) and _bytes(dtype) > _bytes(info.dtype):
            fail(call, f"a view of {info.dtype} as {dtype} ends after the data; give the shape")
    else:
        given = shape_arg(call, 1)
        viewed = result(given.values, dtype, given.ndim, info.vdevice)
        if isinstance(shape, ShapeExpr):
            viewed = TensorStructInfo(shape, dtype, info.vdevice)
    _check_size(call, info, viewed, constant_value(getattr(offset, "value", None)) or 0)
    return viewed


def _bytes(dtype: Any) -> int:
    return DataType(dtype).itemsize


def _check_size(call: Call, info: TensorStructInfo, viewed: TensorStructInfo, offset: int) -> None:
    """Raise if the view is known to end after the data."""
    if viewed is info or viewed == info:
        if offset > 0:
            fail(call, f"a view of all of the data, {offset} bytes on, ends after the data")
        return
    if viewed.dtype != info.dtype and VOID in (info.dtype, viewed.dtype):
        return
    mine, its = dims_of(info), dims_of(viewed)
    if mine is None or its is None:
        return
    width = [1 if item.dtype == VOID else _bytes(item.dtype) for item in (info, viewed)]
    have = simplified(product(mine) * width[0])
    need = simplified(product(its) * width[1] + offset)
    if Analyzer().can_prove(need > have):
        unit = "elements" if VOID == info.dtype else "bytes"
        fail(call, f"the view needs {show_dim(need)} {unit}, the data has {show_dim(have)}")


def view(
    data: Expr,
    shape: Shape | None = None,
    dtype: Expr | str | None = None,
    relative_byte_offset: RelaxLike | None = None,
) -> Call:
    """A tensor that shares the memory of ``data``, with another shape, dtype or start."""
    absent = Tuple(())
    extents = absent if shape is None else as_shape(shape)
    kind = absent if dtype is None else as_dtype_imm(dtype)
    offset = absent if relative_byte_offset is None else as_index(relative_byte_offset)
    return Call(Op.get("relax.memory.view"), [data, extents, kind, offset])


register(
    "relax.memory.view", infer_view, view, pure=True,
    params=("data", "shape", "dtype", "relative_byte_offset"), traits=Trait.VIEW,
)  # fmt: skip
register(
    "relax.memory.alloc_storage", infer_object, alloc_storage, pure=True, traits=Trait.ALLOCATES
)
register(
    "relax.memory.alloc_tensor",
    infer_tensor_in_storage,
    alloc_tensor,
    pure=True,
    traits=Trait.ALLOCATES,
)
register("relax.memory.kill_storage", infer_nothing, kill_storage, pure=False, traits=Trait.KILLS)
register("relax.memory.kill_tensor", infer_nothing, kill_tensor, pure=False, traits=Trait.KILLS)
register(
    "relax.memory.ensure_zero_offset",
    infer_ensure,
    ensure_zero_offset,
    pure=True,
    traits=Trait.VIEW,
)
