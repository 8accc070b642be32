"""Static types of other releases, all of them struct infos: ``DynTensorType``, ``TensorType`` ...

Until 2023 a graph variable had a static type (rank and dtype) beside its shape; in 0.20 what is
left of that is ``relax.ty``; since v0.26 the struct infos themselves have those names. weft has
struct infos alone. Each class below builds one, from the arguments of any release, and
``isinstance`` of the class is true for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.ir import type as ir_type
from weft.ir.expr import PrimExpr
from weft.ir.global_info import VDevice
from weft.ir.node import Array
from weft.relax.expr import ShapeExpr, Var
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRTypeError

Dims = Sequence[PrimExpr | int] | ShapeExpr | Var
"""The shape of a tensor."""


class _StaticMeta(type):
    """Makes a class a spelling of the struct infos of its ``instances``."""

    instances: tuple[type, ...]
    make: Callable[..., object]

    def __call__(cls, *args: object, **kwargs: object) -> object:
        """Build the struct info."""
        return cls.make(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.instances)


class DynTensorType(metaclass=_StaticMeta):
    """``DynTensorType(ndim=-1, dtype="float32")`` of 2022, ``TensorType`` of 0.20 and of v0.26."""

    instances = (TensorStructInfo,)

    @staticmethod
    def make(
        shape: Dims | int | None = None,
        dtype: str = "float32",
        vdevice: VDevice | str | None = None,
        ndim: int = -1,
    ) -> TensorStructInfo:
        """An int in the first place is a rank (until v0.25), a sequence a shape (v0.26)."""
        if isinstance(shape, int):
            return TensorStructInfo(None, dtype, vdevice, shape)
        return TensorStructInfo(shape, dtype, vdevice, ndim)


TensorType = DynTensorType


class ShapeType(metaclass=_StaticMeta):
    """The type of shapes: ``ShapeType(ndim=-1)``, since v0.26 ``ShapeType(values)``."""

    instances = (ShapeStructInfo,)

    @staticmethod
    def make(values: Dims | int | None = None, ndim: int = -1) -> ShapeStructInfo:
        """An int in the first place is a rank, a sequence the dimensions."""
        if isinstance(values, int):
            return ShapeStructInfo(None, values)
        return ShapeStructInfo(values, ndim)


class ObjectType(metaclass=_StaticMeta):
    """The type of anything."""

    instances = (ObjectStructInfo,)

    @staticmethod
    def make() -> ObjectStructInfo:
        """An ObjectStructInfo."""
        return ObjectStructInfo()


class PackedFuncType(metaclass=_StaticMeta):
    """The type of functions registered at run time."""

    instances = (FuncStructInfo,)

    @staticmethod
    def make() -> FuncStructInfo:
        """A function of unknown parameters."""
        return FuncStructInfo.opaque_func()


class TupleType(metaclass=_StaticMeta):
    """The type of tuples: a TupleStructInfo of struct infos, else ``ir.TupleType``."""

    instances = (TupleStructInfo, ir_type.TupleType)

    @staticmethod
    def make(
        fields: Sequence[StructInfo] | Sequence[ir_type.Type],
    ) -> TupleStructInfo | ir_type.TupleType:
        """The kind follows from the fields."""
        if any(isinstance(field, StructInfo) for field in fields):
            return TupleStructInfo(_infos(fields))
        return ir_type.TupleType(fields)


class FuncType(metaclass=_StaticMeta):
    """The type of functions: a FuncStructInfo of struct infos, else ``ir.FuncType``."""

    instances = (FuncStructInfo, ir_type.FuncType)

    @staticmethod
    def make(
        arg_types: Sequence[object], ret_type: object, purity: bool = True
    ) -> FuncStructInfo | ir_type.FuncType:
        """The kind follows from the parts."""
        if any(isinstance(part, StructInfo) for part in (*arg_types, ret_type)):
            return FuncStructInfo(_infos(arg_types), struct_info_of(ret_type), purity)
        return ir_type.FuncType(arg_types, ret_type)


def _infos(values: Iterable[object]) -> Array[StructInfo]:
    return Array([struct_info_of(value) for value in values])


def struct_info_of(value: object, shape: object = None) -> StructInfo:
    """The struct info that a type, and a shape beside it, mean."""
    if shape is not None:
        if value is not None and not isinstance(value, TensorStructInfo):
            raise IRTypeError(
                f"a variable with a shape is a tensor: expected DynTensorType(ndim, dtype), got "
                f"{value!r}"
            )
        dims: object = shape.values if isinstance(shape, ShapeExpr) else shape
        return TensorStructInfo(dims, value.dtype if value is not None else "void")
    if isinstance(value, StructInfo):
        return value
    if isinstance(value, ir_type.PrimType):
        return PrimStructInfo(value.dtype)
    if isinstance(value, ir_type.TupleType):
        return TupleStructInfo(_infos(value.fields))
    if isinstance(value, ir_type.FuncType):
        return FuncStructInfo(_infos(value.arg_types), struct_info_of(value.ret_type))
    raise IRTypeError(
        f"expected struct info such as relax.TensorStructInfo((2, 3), 'float32'), got "
        f"{type(value).__name__}: {value!r}"
    )
