"""Kernels of one function of elements, for what has no operator of the graph's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.expr import PrimExpr
from weft.relax.expr import Expr, PrimValue
from weft.relax.frontend.torch.context import Context
from weft.support.dtype import DataType
from weft.te.tensor import Tensor
from weft.tir import op as tir_op
from weft.topi.extents import broadcast_indices, broadcast_shape, compute_ax
from weft.topi.tag import BROADCAST

Scalar = Callable[..., Any]


def pointwise(
    context: Context, name: str, function: Scalar, *operands: Any, dtype: str | None = None
) -> Any:
    """``function`` of the elements of operands that broadcast, converted to ``dtype``.

    Operands are tensors, numbers and symbolic numbers; ``function`` gets one expression each.
    """
    values = [item.value if isinstance(item, PrimValue) else item for item in operands]

    def kernel(*args: Any) -> Any:
        return broadcast_compute(name, function, args, dtype)

    return context.emit(context.builder.call_te(kernel, *values, primfunc_name_hint=name))


def broadcast_compute(name: str, function: Scalar, args: Any, dtype: str | None = None) -> Any:
    """The tensor expression of ``pointwise``."""
    shape: list[Any] = []
    for item in args:
        if isinstance(item, Tensor):
            shape = broadcast_shape(shape, item.shape, name)

    def element(*point: Any) -> Any:
        values = [
            item(*broadcast_indices(item.shape, shape, point)) if isinstance(item, Tensor) else item
            for item in args
        ]
        made = function(*values)
        return made if dtype is None else tir_op.cast(dtype, made)

    return compute_ax(shape, element, f"T_{name}", tag=BROADCAST)


def number(value: Any, dtype: Any) -> PrimExpr:
    """A number, or a symbolic one, as an expression of a type."""
    if isinstance(value, PrimValue):
        value = value.value
    if isinstance(value, PrimExpr):
        return tir_op.cast(str(dtype), value)
    return tir_op.const(value, str(DataType(str(dtype))))


def as_bool(context: Context, tensor: Expr) -> Expr:
    """Whether elements are not 0."""
    return context.cast(tensor, "bool")
