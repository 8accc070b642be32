"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter


@converter(
    "aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default",
    "aten.linalg_matmul.default", "aten.dot.default", "aten.vdot.default",
)  # fmt: skip
def matmul(context: Context, self: Expr, other: Expr) -> Expr:
    """The product of matrices, batches of them, or vectors."""
    return op.matmul(self, other, out_dtype=context.dtype)


@converter("aten.outer.default", "aten.ger.default")
def outer(context: Context, self: Expr, vec2: Expr) -> Expr:
    """The products of all pairs."""
    return op.outer(context.cast(self, context.dtype), context.cast(vec2, context.dtype))


@converter("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def addmm(
    context: Context, self: Expr, first: Expr, second: Expr, *, beta: float = 1, alpha: float = 1
) -> Expr:
    """``beta * self + alpha * (first @ second)``."""
    product = op.matmul(
        first, second, out_dtype=context.dtype if context.rank(first) == 2 else None
    )
    return plus_scaled(context, self, product, beta, alpha)


@converter("aten.addbmm.default")
def addbmm(
    context: Context, self: Expr, batch1: Expr, batch2: Expr, *, beta: float = 1, alpha: float = 1
) -> Expr:
    """``beta * self + alpha * sum(batch1 @ batch2)``."""
    product = op.sum(op.matmul(batch1, batch2, out_dtype=context.dtype), [0])
    return plus_scaled(context, self, product, beta, alpha)


@converter("aten.addr.default")
def addr(
    context: Context, self: Expr, vec1: Expr, vec2: Expr, *, beta: float = 1, alpha: float = 1
) -> Expr:
    """``beta * self + alpha * outer(vec1, vec2)``."""
    product = op.outer(*(context.cast(vector, context.dtype) for vector in (vec1, vec2)))
    return plus_scaled(context, context.cast(self, context.dtype), product, beta, alpha)


def plus_scaled(context: Context, start: Expr, product: Expr, beta: float, alpha: float) -> Expr:
    """``beta * start + alpha * product``; without the start for a beta of 0, as in torch."""
    product = context.emit(product)
    if alpha != 1:
        product = context.emit(op.multiply(product, context.operand(alpha, context.dtype)))
    if beta == 0:
        return op.broadcast_to(product, context.shape)
    if beta != 1:
        start = op.multiply(start, context.operand(beta, context.dtype))
    return op.add(start, product)


@converter("aten.einsum.default")
def einsum(
    context: Context, equation: str, tensors: Sequence[Expr], **_: Any
) -> Expr:
    """Einstein's sum convention."""
    operands = [context.cast(tensor, context.dtype) for tensor in tensors]
    return op.einsum(operands, equation.replace(" ", ""))
