"""ForceNarrowIndexToInt32: all int64 numbers of a function become int32, fitting or not.

NarrowDataType proves that values fit. This pass is for processors whose int64 is slow, where the
caller knows that they do: extents and scalar parameters are int32 afterwards, too. What is called
outside of the function (C, LLVM, registered functions) still gets and gives int64.

Before: ``for i in range(T.Cast("int64", n)): A[i + T.int64(1)] = T.float32(0)``.
After: ``for i in range(n): A[i + 1] = T.float32(0)``.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator
from weft.ir.node import Array, Map
from weft.support.dtype import DataType, make_dtype
from weft.support.errors import PassError
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Call, Cast, IterVar, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt
from weft.tir.transform.prim_func_pass import define_pass

_LARGEST: Final = (1 << 31) - 1
_OF_OPERANDS: Final = (
    "abs", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "if_then_else", "likely",
    "shift_left", "shift_right",
)  # fmt: skip
"""Intrinsics that compute in the type of their operands."""


def _narrow(dtype: DataType) -> DataType:
    if not dtype.is_int or dtype.bits <= 32:
        return dtype
    return make_dtype("int", 32, dtype.lanes, dtype.is_scalable)


class _Int32(Mutator):
    def __init__(self, name: str) -> None:
        self.name = name
        self.variables: dict[Var, Var] = {}

    def visit_Var(self, var: Var) -> Var:
        dtype = _narrow(var.dtype)
        if dtype is var.dtype:
            return var
        return self.variables.setdefault(var, type(var)(var.name, dtype))

    def visit_IntImm(self, number: IntImm) -> IntImm:
        dtype = _narrow(number.dtype)
        if dtype is number.dtype:
            return number
        if not -_LARGEST - 1 <= number.value <= _LARGEST:
            raise PassError(
                f"ForceNarrowIndexToInt32: {self.name}: expected numbers of 32 bits, got {number}"
            )
        return IntImm(dtype, number.value)

    def visit_Cast(self, cast: Cast) -> PrimExpr:
        value = self.visit(cast.value)
        dtype = _narrow(cast.dtype)
        same = value is cast.value and dtype is cast.dtype
        return cast if same else op.cast(dtype, value)

    def visit_Call(self, call: Call) -> PrimExpr:
        args = [self.visit(arg) for arg in call.args]
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return op.cast(_narrow(call.dtype), call)
        if any(is_call(call, name) for name in _OF_OPERANDS):
            return call.with_(args=Array(args), dtype=_narrow(call.dtype))
        wide = [
            op.cast(old.dtype, new) if isinstance(new, PrimExpr) else new
            for new, old in zip(args, call.args, strict=True)
        ]
        return op.cast(_narrow(call.dtype), call.with_(args=Array(wide)))

    def visit_AttrStmt(self, attr: AttrStmt) -> AttrStmt:
        node = self.visit(attr.node) if isinstance(attr.node, IterVar) else attr.node
        return self.visit_default(attr).with_(node=node)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        if _narrow(buffer.dtype) is not buffer.dtype:
            raise PassError(
                f"ForceNarrowIndexToInt32: {self.name}: expected buffers of other types than "
                f"int64, got {buffer.name} of {buffer.dtype}"
            )
        return self.visit_default(buffer)


def force_narrow_index(func: PrimFunc) -> PrimFunc:
    """The function with int32 in the place of int64; PassError where it has int64 buffers."""
    mutator = _Int32(str(func.attrs.get("global_symbol", "a private function")))
    buffers = {var: mutator.visit(buffer) for var, buffer in func.buffer_map.items()}
    same = all(new is func.buffer_map[var] for var, new in buffers.items())
    return func.with_(
        params=mutator.visit(func.params),
        buffer_map=func.buffer_map if same else Map(buffers),
        body=mutator.visit(func.body),
    )


ForceNarrowIndexToInt32 = define_pass("ForceNarrowIndexToInt32", force_narrow_index)
