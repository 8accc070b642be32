"""Matrix products: MatMul, Gemm, Einsum."""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value
from weft.support.dtype import DataType


@converter("MatMul")
def matmul(context: Context, lhs: Value, rhs: Value) -> Expr:
    """numpy.matmul."""
    return context.emit(op.matmul(lhs.expr, rhs.expr))


@converter("Gemm", ignores=["broadcast"])
def gemm(
    context: Context,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,  # noqa: N803 - ONNX's names
) -> Expr:
    """alpha * A' * B' + beta * C, where ' transposes if asked for."""
    emit = context.emit
    lhs = emit(op.permute_dims(a.expr)) if transA else a.expr
    rhs = emit(op.permute_dims(b.expr)) if transB else b.expr
    product = _scaled(context, emit(op.matmul(lhs, rhs)), alpha)
    if c is None:
        return product
    return emit(op.add(product, _scaled(context, c.expr, beta)))


def _scaled(context: Context, x: Expr, factor: float) -> Expr:
    if factor == 1:
        return x
    kind = DataType(x.struct_info.dtype)
    if kind.is_float:
        return context.emit(op.multiply(x, context.constant(factor, str(kind)).expr))
    wide = context.emit(op.astype(x, "float64"))
    product = context.emit(op.multiply(wide, context.constant(factor, "float64").expr))
    return context.emit(op.astype(product, str(kind)))


@converter("Einsum", since=12)
def einsum(context: Context, *values: Value, equation: str) -> Expr:
    """numpy.einsum."""
    return context.emit(op.einsum([value.expr for value in values], equation))
