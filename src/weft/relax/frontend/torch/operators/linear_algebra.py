"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Sequence

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError


@converter(
    "aten.mm.default", "aten.bmm.default", "aten.matmul.default", "aten.mv.default",
    "aten.linalg_matmul.default", "aten.dot.default", "aten.vdot.default", "aten._int_mm.default",
)  # fmt: skip
def matmul(context: Context, self: Expr, other: Expr) -> Expr:
    """The product of matrices, batches of them, or vectors."""
    return op.matmul(self, other, out_dtype=context.dtype)


@converter("transformers.grouped_mm_fallback.default")
def grouped_rows(context: Context, input: Expr, weight: Expr, offs: Expr) -> Expr:
    """The experts' products of transformers: rows sorted by expert, a matrix each."""
    return op.grouped_matmul(input, weight, offs)


@converter("aten._grouped_mm.default")
def grouped_mm(
    context: Context,
    self: Expr,
    mat2: Expr,
    offs: Expr | None = None,
    bias: Expr | None = None,
    out_dtype: str | None = None,
) -> Expr:
    """Products of groups of rows, or of columns, that ``offs`` ends; of whole matrices without."""
    if bias is not None:
        raise UnsupportedError(
            "_grouped_mm: expected no bias, as torch has no kernel for it; add it to the product"
        )
    if offs is None:
        return op.matmul(self, mat2, out_dtype=context.dtype)
    ranks = context.rank(self), context.rank(mat2)
    if ranks == (2, 3):
        return context.cast(context.emit(op.grouped_matmul(self, mat2, offs)), context.dtype)
    if ranks == (3, 2):  # groups of columns: the transpose of groups of rows
        turned = [op.permute_dims(mat2), op.permute_dims(self, [0, 2, 1])]
        return op.permute_dims(context.emit(op.grouped_matmul(*map(context.emit, turned), offs)))
    raise UnsupportedError(
        "_grouped_mm: expected groups of rows (2 and 3 dimensions) or of columns (3 and 2), got "
        f"{ranks[0]} and {ranks[1]}; it gives gradients of weights, which PyTorch computes"
    )


@converter("aten.outer.default", "aten.ger.default")
def outer(context: Context, self: Expr, vec2: Expr) -> Expr:
    """The products of all pairs."""
    return op.outer(context.cast(self, context.dtype), context.cast(vec2, context.dtype))


@converter("aten.addmm.default", "aten.baddbmm.default", "aten.addmv.default")
def addmm(
    context: Context, self: Expr, first: Expr, second: Expr, *, beta: float = 1, alpha: float = 1
) -> Expr:
    """``beta * self + alpha * (first @ second)``."""
    kind = _kind(context, beta, alpha)
    is_given = context.rank(first) == 2 or kind != context.dtype
    product = op.matmul(first, second, out_dtype=kind if is_given else None)
    return plus_scaled(context, self, product, beta, alpha)


@converter("aten.addbmm.default")
def addbmm(
    context: Context, self: Expr, batch1: Expr, batch2: Expr, *, beta: float = 1, alpha: float = 1
) -> Expr:
    """``beta * self + alpha * sum(batch1 @ batch2)``."""
    product = op.sum(op.matmul(batch1, batch2, out_dtype=_kind(context, beta, alpha)), [0])
    return plus_scaled(context, self, product, beta, alpha)


@converter("aten.addr.default")
def addr(
    context: Context, self: Expr, vec1: Expr, vec2: Expr, *, beta: float = 1, alpha: float = 1
) -> Expr:
    """``beta * self + alpha * outer(vec1, vec2)``."""
    kind = _kind(context, beta, alpha)
    product = op.outer(*(context.cast(vector, kind) for vector in (vec1, vec2)))
    return plus_scaled(context, self, product, beta, alpha)


def _kind(context: Context, beta: float, alpha: float) -> str:
    """The type of the scaled sum: float32 for 16-bit floats, unless it is a plain sum."""
    kind = DataType(context.dtype)
    is_wide = kind.is_float and kind.bits < 32 and (alpha != 1 or beta not in (0, 1))
    return "float32" if is_wide else context.dtype


def plus_scaled(context: Context, start: Expr, product: Expr, beta: float, alpha: float) -> Expr:
    """``beta * start + alpha * product``; without the start for a beta of 0, as in torch."""
    kind = _kind(context, beta, alpha)
    product = context.cast(product, kind)
    if alpha != 1:
        product = context.emit(op.multiply(product, context.operand(alpha, kind)))
    if beta == 0:
        return op.broadcast_to(context.cast(product, context.dtype), context.shape)
    start = context.cast(start, kind)
    if beta != 1:
        start = op.multiply(start, context.operand(beta, kind))
    return context.cast(op.add(start, product), context.dtype)


@converter("aten.einsum.default")
def einsum(context: Context, equation: str, tensors: Sequence[Expr], **_: object) -> Expr:
    """Einstein's sum convention."""
    operands = [context.cast(tensor, context.dtype) for tensor in tensors]
    return op.einsum(operands, equation.replace(" ", ""))
