"""Element-wise operators: unary by table, binary with torch's promotion of data types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import CONVERTERS, converter

FLOAT_UNARY: Final[dict[str, Callable[..., Any]]] = {
    "acos": op.acos, "acosh": op.acosh, "asin": op.asin, "asinh": op.asinh, "atan": op.atan,
    "atanh": op.atanh, "cos": op.cos, "cosh": op.cosh, "erf": op.erf, "exp": op.exp, "log": op.log,
    "rsqrt": op.rsqrt, "sigmoid": op.sigmoid, "sin": op.sin, "sinh": op.sinh, "sqrt": op.sqrt,
    "tan": op.tan, "tanh": op.tanh,
}  # fmt: skip
"""Functions of real numbers: integers are cast to the result's type first."""
UNARY: Final[dict[str, Callable[..., Any]]] = {
    "abs": op.abs, "neg": op.negative, "relu": op.nn.relu,
}  # fmt: skip
"""Functions that keep the data type."""
ARITHMETIC: Final[dict[str, Callable[..., Any]]] = {
    "mul": op.multiply, "maximum": op.maximum, "minimum": op.minimum,
}  # fmt: skip


def _register_tables() -> None:
    for name, function in FLOAT_UNARY.items():
        CONVERTERS[f"aten.{name}.default"] = _float_unary(function)
    for name, function in UNARY.items():
        CONVERTERS[f"aten.{name}.default"] = _unary(function)
    for name, function in ARITHMETIC.items():
        for overload in ("Tensor", "default", "Scalar"):
            CONVERTERS.setdefault(f"aten.{name}.{overload}", _binary(function))


def _float_unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, self: function(context.cast(self, context.dtype))


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, self: function(self)


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda context, self, other: function(*context.promoted(self, other))


_register_tables()


@converter("aten.add.Tensor", "aten.add.Scalar")
def add(context: Context, self: Expr, other: Any, alpha: float = 1) -> Expr:
    """``self + alpha * other``."""
    left, right = context.promoted(self, other)
    return op.add(left, scaled(context, right, alpha))


@converter("aten.sub.Tensor", "aten.sub.Scalar")
def sub(context: Context, self: Expr, other: Any, alpha: float = 1) -> Expr:
    """``self - alpha * other``."""
    left, right = context.promoted(self, other)
    return op.subtract(left, scaled(context, right, alpha))


def scaled(context: Context, tensor: Expr, factor: float) -> Expr:
    """The tensor times a number; itself for 1."""
    if factor == 1:
        return tensor
    return context.emit(op.multiply(tensor, context.operand(factor, context.dtype_of(tensor))))
