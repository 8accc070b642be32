"""``relax.op.vm``: operators that the virtual machine executes."""

from __future__ import annotations

from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, RelaxLike
from weft.relax.op.base import inline_tuple
from weft.relax.op.definition import Shape, as_shape
from weft.relax.op.memory import (
    as_dtype_imm,
    as_index,
    as_text,
    infer_nothing,
    infer_object,
    infer_tensor_in_storage,
    register,
)


def alloc_storage(
    shape: Shape,
    runtime_device_index: RelaxLike,
    dtype: Expr | str,
    storage_scope: Expr | str = "global",
) -> Call:
    """Storage of ``shape`` bytes."""
    operands = [
        as_shape(shape),
        as_index(runtime_device_index),
        as_dtype_imm(dtype),
        as_text(storage_scope),
    ]
    return Call(Op.get("relax.vm.alloc_storage"), operands)


def alloc_tensor(storage: Expr, offset: RelaxLike, shape: Shape, dtype: Expr | str) -> Call:
    """A tensor at a byte offset of a storage."""
    operands = [storage, as_index(offset), as_shape(shape), as_dtype_imm(dtype)]
    return Call(Op.get("relax.vm.alloc_tensor"), operands)


def kill_object(obj: Expr) -> Call:
    """Release an object."""
    return Call(Op.get("relax.vm.kill_object"), [obj])


def call_tir_dyn(func: Expr, args: RelaxLike) -> Call:
    """A call of a PrimFunc whose scalar arguments are in a shape, the last argument."""
    return Call(Op.get("relax.vm.call_tir_dyn"), [func, inline_tuple(args)])


register("relax.vm.alloc_storage", infer_object, alloc_storage, pure=True, traits=Trait.ALLOCATES)
register(
    "relax.vm.alloc_tensor",
    infer_tensor_in_storage,
    alloc_tensor,
    pure=True,
    traits=Trait.ALLOCATES,
)
register("relax.vm.kill_object", infer_nothing, kill_object, pure=False, traits=Trait.KILLS)
register("relax.vm.call_tir_dyn", infer_nothing, call_tir_dyn, pure=False)
