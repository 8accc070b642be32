"""LowerAllocTensor: tensors that memory planning left over get storage of their own.

Before: ``a = R.builtin.alloc_tensor(R.shape([n, 4]), "float32", 0, "global")``. After::

    storage = R.memory.alloc_storage(R.shape([n * 16]), 0, "global", "uint8")
    a = R.memory.alloc_tensor(storage, 0, R.shape([n, 4]), "float32")
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import Call, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.shape_arith import product
from weft.relax.op import memory
from weft.relax.struct_info import ShapeStructInfo
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import IRTypeError
from weft.tir import op as tir_op

ALLOC_TENSOR = Op.get("relax.builtin.alloc_tensor")


class _AllocTensorLowerer(PyExprMutator):
    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or call.op is not ALLOC_TENSOR:
            return call
        arguments: list[Any] = list(call.args)
        shape, dtype, device, scope = arguments
        info = shape.struct_info
        if not isinstance(info, ShapeStructInfo) or info.values is None:
            raise IRTypeError(
                f"LowerAllocTensor: expected a shape of known extents, got {shape} of {info}"
            )
        size = tir_op.multiply(tir_op.const(dtype.value.itemsize, "int64"), product(info.values))
        allocation = memory.alloc_storage([size], device, scope, "uint8")
        storage = self.builder_.emit(allocation, "storage")
        return memory.alloc_tensor(storage, 0, shape, dtype)


def lower_alloc_tensor(func: Function) -> Function:
    """The function without ``builtin.alloc_tensor``."""
    return _AllocTensorLowerer().visit_expr(func)


LowerAllocTensor = define_function_pass("LowerAllocTensor", lower_alloc_tensor)
