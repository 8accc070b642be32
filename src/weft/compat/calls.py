"""Adapters of calls and attributes whose form changed; ``weft.compat.spellings`` names them.

An adapter of a call takes ``(args, kwargs)``. It returns new ones, with which the call is tried
once more, or the node itself, or None if the arguments have no old form either. An adapter of an
attribute takes the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compat.adapt import Adapted
from weft.compat.types import struct_info_of
from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.node import Array, Node, expect
from weft.ir.type import PrimType
from weft.relax.expr import Call, ExternFunc, Function, ShapeExpr, Tuple
from weft.relax.op.base import call_dps_packed
from weft.relax.struct_info import StructInfo, TensorStructInfo


def var(args: tuple[object, ...], kwargs: dict[str, object]) -> Adapted | None:
    """``relax.Var(name, shape, DynTensorType(ndim, dtype))`` to ``Var(name, struct_info)``."""
    name, shape, static = (*args, None, None)[:3]
    if isinstance(static, StructInfo) or (static is None and isinstance(shape, list | tuple)):
        return (name, struct_info_of(static, shape)), {}
    return None


def call_tir(args: tuple[object, ...], kwargs: dict[str, Any]) -> Adapted | Call | None:
    """``call_tir(f, args, shape, dtype)`` with one output or a list; ``f`` may be extern or a str.

    ``call_tir("env.f", ...)`` of a registered function is ``call_dps_packed`` since 2023.
    """
    named = dict(zip(("func", "args", "shape", "dtype", "tir_vars"), args, strict=False)) | kwargs
    callee = named.get("func", named.get("gvar"))
    shape = named.get("shape", named.get("out_sinfo"))
    infos = _output_infos(shape, named.get("dtype"))
    if infos is None or callee is None or "args" not in named:
        return None
    if isinstance(callee, str | ExternFunc):
        return call_dps_packed(callee, named["args"], infos)
    return (callee, named["args"], infos), {"tir_vars": named.get("tir_vars")}


def _output_infos(shape: object, dtype: object) -> object:
    """The struct info that a shape and a data type mean; lists of them for several outputs."""
    if isinstance(shape, StructInfo):
        return shape
    fields = list(shape.fields) if isinstance(shape, Tuple) else shape
    if not isinstance(fields, list | tuple | ShapeExpr) or not (dtype or fields):
        return None
    if not isinstance(fields, ShapeExpr) and fields:
        if all(isinstance(field, StructInfo) for field in fields):
            return list(fields)
        if all(isinstance(field, list | tuple | ShapeExpr) for field in fields):
            names = dtype if isinstance(dtype, list | tuple) else [dtype] * len(fields)
            pairs = zip(fields, names, strict=True)
            return [TensorStructInfo(field, name) for field, name in pairs]
    dims: object = fields
    return TensorStructInfo(dims, dtype) if dtype is not None else None


def shape_of(expr: RelaxExpr) -> RelaxExpr | None:
    """``x.shape_``: the shape of a tensor if it is known, else None."""
    info = expr.struct_info
    return info.shape if isinstance(info, TensorStructInfo) else None


def astext_of(item: Node) -> Callable[..., str]:
    """``node.astext(show_meta_data=True)``: the node's script, with its constants."""

    def astext(show_meta_data: bool = True, annotate: object = None) -> str:  # noqa: ARG001 - TVM's
        return str(item.script(show_meta=show_meta_data))

    return astext


def info_of(expr: RelaxExpr) -> StructInfo | None:
    """``x.checked_type``, ``x.ty``: the struct info."""
    return expr.struct_info and expect(expr.struct_info, StructInfo)


def info_args_of(call: Call) -> Array[StructInfo]:
    """``call.ty_args``: the struct info arguments."""
    return call.sinfo_args


def ret_info_of(function: Function) -> StructInfo | None:
    """``function.ret_ty``: the struct info of the result."""
    return function.ret_struct_info


def prim_type_of(expr: PrimExpr) -> PrimType:
    """``e.ty`` of a scalar expression."""
    return PrimType(expr.dtype)
