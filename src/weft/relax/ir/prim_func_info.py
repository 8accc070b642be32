"""The struct info of a PrimFunc, seen as a function of tensors and scalars that returns nothing.

A buffer is a tensor of its shape and dtype. A scalar parameter is a PrimStructInfo whose value is
the parameter itself, so that a buffer's extents may use it. ``call_tir`` (destination-passing
style) does not need this info: the call states its results itself.
"""

from __future__ import annotations

from weft.ir.type import PrimType
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.tir.analysis.purity import is_pure_function
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


def prim_func_info(func: PrimFunc) -> FuncStructInfo:
    """The struct info of a PrimFunc; it is pure if it only computes from scalars."""
    ret = func.ret_type
    result: StructInfo = (
        PrimStructInfo(ret.dtype)
        if isinstance(ret, PrimType) and ret.dtype != "void"
        else TupleStructInfo([])
    )
    pure = not func.buffer_map and is_pure_function(func)
    return FuncStructInfo([_param_info(func, param) for param in func.params], result, pure)


def _param_info(func: PrimFunc, param: Var) -> StructInfo:
    buffer = func.buffer_map.get(param)
    if buffer is not None:
        return TensorStructInfo(buffer.shape, buffer.dtype)
    if param.dtype == "handle":
        return ObjectStructInfo()
    return PrimStructInfo(value=param) if param.dtype.is_integral else PrimStructInfo(param.dtype)
