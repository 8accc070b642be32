"""The struct info of a PrimFunc, seen as a function of tensors and scalars.

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
from weft.support import slots
from weft.tir.analysis.purity import is_pure_function
from weft.tir.expr import Var
from weft.tir.function import PrimFunc


def prim_func_info(func: PrimFunc) -> FuncStructInfo:
    """The struct info of a PrimFunc; it is pure if it writes only to its own memory."""
    ret = func.ret_type
    result: StructInfo = (
        PrimStructInfo(ret.dtype)
        if isinstance(ret, PrimType) and ret.dtype != "void"
        else TupleStructInfo([])
    )
    params = [_param_info(func, param) for param in func.params]
    return FuncStructInfo(params, result, is_pure_function(func))


def _param_info(func: PrimFunc, param: Var) -> StructInfo:
    buffer = func.buffer_map.get(param)
    if buffer is not None:
        return TensorStructInfo(buffer.shape, buffer.dtype)
    if param.dtype == "handle":
        return ObjectStructInfo()
    return PrimStructInfo(value=param) if param.dtype.is_integral else PrimStructInfo(param.dtype)


slots.prim_func_info.fill(prim_func_info)
