"""Element-wise operators of one input, and of several that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value, as_prim

UNARY: Final[dict[str, Callable[..., Expr]]] = {
    "Abs": op.abs, "Acos": op.acos, "Acosh": op.acosh, "Asin": op.asin, "Asinh": op.asinh,
    "Atan": op.atan, "Atanh": op.atanh, "Ceil": op.ceil, "Cos": op.cos, "Cosh": op.cosh,
    "Erf": op.erf, "Exp": op.exp, "Floor": op.floor, "IsNaN": op.isnan, "Log": op.log,
    "Neg": op.negative, "Not": op.logical_not, "Relu": op.nn.relu, "Round": op.round,
    "Sigmoid": op.sigmoid, "Sign": op.sign, "Sin": op.sin, "Sinh": op.sinh, "Sqrt": op.sqrt,
    "Tan": op.tan, "Tanh": op.tanh, "BitwiseNot": op.bitwise_not,
}  # fmt: skip
BINARY: Final[dict[str, Callable[..., Expr]]] = {
    "Add": op.add, "Sub": op.subtract, "Mul": op.multiply, "Div": op.divide,
    "And": op.logical_and, "Or": op.logical_or, "Xor": op.logical_xor,
    "Equal": op.equal, "Less": op.less, "Greater": op.greater,
}  # fmt: skip
"""Operators that had the attributes ``broadcast`` and ``axis`` until opset 6."""
NEUTRAL: Final = {"Add": (0, 2), "Sub": (0, 1), "Mul": (1, 2), "Div": (1, 1)}
"""Operator -> the number that changes nothing, and how many operands may be that, from the end."""
BINARY_7: Final[dict[str, Callable[..., Expr]]] = {
    **BINARY,
    "LessOrEqual": op.less_equal, "GreaterOrEqual": op.greater_equal,
    "BitwiseAnd": op.bitwise_and, "BitwiseOr": op.bitwise_or, "BitwiseXor": op.bitwise_xor,
}  # fmt: skip


def _enter_unary(name: str, function: Callable[..., Expr]) -> None:
    @converter(name, ignores=["consumed_inputs"])
    def convert(context: Context, x: Value) -> Expr:
        context.refuse_small(x)
        return context.emit(function(x.expr))

    convert.__name__ = name.lower()


def _enter_binary(name: str, function: Callable[..., Expr], since: int) -> None:
    @converter(name, since=since)
    def convert(context: Context, lhs: Value, rhs: Value) -> Expr:
        context.refuse_small(lhs, rhs)
        same = _unchanged(name, lhs, rhs)
        return context.emit(function(lhs.expr, rhs.expr)) if same is None else same.expr

    convert.__name__ = name.lower()


def _unchanged(name: str, lhs: Value, rhs: Value) -> Value | None:
    """The operand that is the result: of ``x + 0`` and ``x * 1``, which exporters write.

    (It stays -0 where ``x + 0`` is 0; ONNX Runtime removes such sums, too.)
    """
    number, count = NEUTRAL.get(name, (0, 0))
    for operand, other in ((lhs, rhs), (rhs, lhs))[:count]:
        constant = other.constant
        if constant is None or constant.size != 1 or operand.shape is None:
            continue
        if constant.ravel()[0] == number and constant.ndim <= len(operand.shape):
            return operand
    return None


def _enter_old_binary(name: str, function: Callable[..., Expr]) -> None:
    @converter(name, ignores=["consumed_inputs"])
    def convert(
        context: Context, lhs: Value, rhs: Value, *, broadcast: int = 0, axis: int | None = None
    ) -> Expr:
        return context.emit(function(lhs.expr, aligned(context, lhs, rhs, broadcast, axis)))

    convert.__name__ = name.lower()


def aligned(context: Context, lhs: Value, rhs: Value, broadcast: int, axis: int | None) -> Expr:
    """The second operand until opset 6: its axes meet those of the first from ``axis`` on."""
    if not broadcast or axis is None:
        return rhs.expr
    place = context.axis(lhs, axis)
    after = context.rank(lhs, "A") - place - context.rank(rhs, "B")
    if after <= 0:
        return rhs.expr
    dims = [*context.shape(rhs, "B"), *[1] * after]
    return context.emit(op.reshape(rhs.expr, [as_prim(dim) for dim in dims]))


for _name, _function in UNARY.items():
    _enter_unary(_name, _function)
for _name, _function in BINARY.items():
    _enter_old_binary(_name, _function)
for _name, _function in BINARY_7.items():
    _enter_binary(_name, _function, 7)


@converter("Reciprocal", ignores=["consumed_inputs"])
def reciprocal(context: Context, x: Value) -> Expr:
    """1 / x."""
    unit = context.constant(1, x.dtype)
    return context.emit(op.divide(unit.expr, x.expr))


@converter("Where", since=9)
def where(context: Context, condition: Value, x: Value, y: Value) -> Expr:
    """x where the condition holds, else y."""
    return context.emit(op.where(condition.expr, x.expr, y.expr))
