"""Operators element by element, comparisons and data types."""

from __future__ import annotations

from weft.relax import op as relax_op
from weft.relax.frontend.nn.tensor import Operand, Tensor, binary, cast, emit, expr_of


def add(a: Tensor, b: Operand, name: str = "add") -> Tensor:
    """The sum of two tensors of broadcasting shapes; one may be a number, as in all of these."""
    return binary("add", a, b, name)


def subtract(a: Tensor, b: Operand, name: str = "subtract") -> Tensor:
    """The difference."""
    return binary("subtract", a, b, name)


def multiply(a: Tensor, b: Operand, name: str = "mul") -> Tensor:
    """The product, element by element."""
    return binary("multiply", a, b, name)


def divide(a: Tensor, b: Operand, name: str = "divide") -> Tensor:
    """The quotient."""
    return binary("divide", a, b, name)


def maximum(x1: Tensor, x2: Operand, name: str = "maximum") -> Tensor:
    """The larger of two."""
    return binary("maximum", x1, x2, name)


def minimum(x1: Tensor, x2: Operand, name: str = "minimum") -> Tensor:
    """The smaller of two."""
    return binary("minimum", x1, x2, name)


def less(a: Tensor, b: Operand, name: str = "less") -> Tensor:
    """Where a < b (bool)."""
    return binary("less", a, b, name)


def less_equal(a: Tensor, b: Operand, name: str = "less_equal") -> Tensor:
    """Where a <= b (bool)."""
    return binary("less_equal", a, b, name)


def greater(a: Tensor, b: Operand, name: str = "greater") -> Tensor:
    """Where a > b (bool)."""
    return binary("greater", a, b, name)


def greater_equal(a: Tensor, b: Operand, name: str = "greater_equal") -> Tensor:
    """Where a >= b (bool)."""
    return binary("greater_equal", a, b, name)


def equal(a: Tensor, b: Operand, name: str = "equal") -> Tensor:
    """Where a == b (bool)."""
    return binary("equal", a, b, name)


def not_equal(a: Tensor, b: Operand, name: str = "not_equal") -> Tensor:
    """Where a != b (bool)."""
    return binary("not_equal", a, b, name)


def where(condition: Tensor, x1: Tensor, x2: Tensor, name: str = "where") -> Tensor:
    """x1 where the condition holds, else x2; a condition of numbers holds where it is not 0."""
    chosen = cast(condition, "bool", "astype")
    return emit(
        relax_op.where(expr_of(chosen, "where"), expr_of(x1, "where"), expr_of(x2, "where")), name
    )


def astype(x: Tensor, dtype: str, name: str = "astype") -> Tensor:
    """The same values in another data type; x itself where it has that type."""
    return cast(x, dtype, name)


def negative(x: Tensor, name: str = "neg") -> Tensor:
    """-x."""
    return emit(relax_op.negative(expr_of(x, "negative")), name)


def square(x: Tensor, name: str = "square") -> Tensor:
    """x * x."""
    return emit(relax_op.square(expr_of(x, "square")), name)


def sqrt(x: Tensor, name: str = "sqrt") -> Tensor:
    """The square root."""
    return emit(relax_op.sqrt(expr_of(x, "sqrt")), name)


def exp(x: Tensor, name: str = "exp") -> Tensor:
    """e to the power of x."""
    return emit(relax_op.exp(expr_of(x, "exp")), name)


def tanh(x: Tensor, name: str = "tanh") -> Tensor:
    """The hyperbolic tangent."""
    return emit(relax_op.tanh(expr_of(x, "tanh")), name)


def sigmoid(x: Tensor, name: str = "sigmoid") -> Tensor:
    """1 / (1 + exp(-x))."""
    return emit(relax_op.sigmoid(expr_of(x, "sigmoid")), name)
