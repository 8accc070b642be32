"""``relax.op.builtin``: allocation before memory is planned, and marks for passes."""

from __future__ import annotations

from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, RelaxLike
from weft.relax.op.definition import Shape, as_shape
from weft.relax.op.memory import (
    as_dtype_imm,
    as_index,
    as_text,
    infer_alloc_tensor,
    infer_ensure,
    register,
)


def alloc_tensor(
    shape: Shape,
    dtype: Expr | str,
    runtime_device_index: RelaxLike,
    storage_scope: Expr | str = "global",
) -> Call:
    """A new tensor."""
    operands = [
        as_shape(shape),
        as_dtype_imm(dtype),
        as_index(runtime_device_index),
        as_text(storage_scope),
    ]
    return Call(Op.get("relax.builtin.alloc_tensor"), operands)


def stop_lift_params(x: Expr) -> Call:
    """The argument; parameter lifting does not go past it."""
    return Call(Op.get("relax.builtin.stop_lift_params"), [x])


register(
    "relax.builtin.alloc_tensor",
    infer_alloc_tensor,
    alloc_tensor,
    pure=True,
    traits=Trait.ALLOCATES,
)
register(
    "relax.builtin.stop_lift_params",
    infer_ensure,
    stop_lift_params,
    pure=True,
    traits=Trait.SAME_VALUE,
)
