"""Functions of complex numbers: roots, sines, norms, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.complex_numbers import (
    ComplexOperand,
    absolute,
    complex_converter,
    divide,
    paired,
    part,
)
from weft.relax.frontend.torch.registry import CONVERTERS
from weft.relax.frontend.torch.values import ComplexTensor, Value

_FAR: Final = 20.0
"""From here on tanh is 1 in float64, and beyond it neither sinh nor cosh overflows."""


@complex_converter("aten.sqrt.default")
def sqrt(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The root with a positive real part: of the part that does not cancel, and the quotient."""
    emit = context.emit
    x, y = self.real, self.imaginary
    half = context.operand(0.5, context.dtype)
    both = emit(op.add(emit(absolute(context, self)), emit(op.abs(x))))
    large = emit(op.sqrt(emit(op.multiply(both, half))))
    zero = context.operand(0.0, context.dtype)
    quotient = emit(op.divide(emit(op.multiply(emit(op.abs(y)), half)), large))
    small = emit(op.where(emit(op.equal(large, zero)), zero, quotient))
    is_right = emit(op.greater_equal(x, zero))
    real = emit(op.where(is_right, large, small))
    size = emit(op.where(is_right, small, large))
    return paired(context, real, emit(op.copysign(size, y)))


def _products(context: Context, *factors: Expr) -> ComplexTensor:
    """a * b + i c * d."""
    a, b, c, d = (context.emit(factor) for factor in factors)
    return paired(context, op.multiply(a, b), op.multiply(c, d))


@complex_converter("aten.sinh.default")
def sinh(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The hyperbolic sine."""
    x, y = self.real, self.imaginary
    return _products(context, op.sinh(x), op.cos(y), op.cosh(x), op.sin(y))


@complex_converter("aten.cosh.default")
def cosh(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The hyperbolic cosine."""
    x, y = self.real, self.imaginary
    return _products(context, op.cosh(x), op.cos(y), op.sinh(x), op.sin(y))


@complex_converter("aten.tanh.default")
def tanh(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The hyperbolic tangent, in which large real parts do not overflow."""
    dtype = context.dtype
    low, high = (context.operand(end, dtype) for end in (-_FAR, _FAR))
    near = context.emit(op.minimum(context.emit(op.maximum(self.real, low)), high))
    limited = ComplexTensor(near, self.imaginary)
    return divide(context, sinh(context, limited), cosh(context, limited))


def _of_turned(
    function: Callable[[Context, ComplexTensor], ComplexTensor],
) -> Callable[[Context, ComplexTensor], ComplexTensor]:
    """-i f(i z): the sine and the tangent by their hyperbolic forms."""

    def convert(context: Context, self: ComplexTensor) -> ComplexTensor:
        turned = paired(context, op.negative(self.imaginary), self.real)
        result = function(context, turned)
        return paired(context, result.imaginary, op.negative(result.real))

    return convert


complex_converter("aten.sin.default")(_of_turned(sinh))
complex_converter("aten.tan.default")(_of_turned(tanh))


@complex_converter("aten.cos.default")
def cos(context: Context, self: ComplexTensor) -> ComplexTensor:
    """The cosine: the hyperbolic one of i z."""
    return cosh(context, paired(context, op.negative(self.imaginary), self.real))


@complex_converter("aten.linalg_vector_norm.default")
def vector_norm(context: Context, self: ComplexTensor, *args: Value, **keywords: Value) -> Value:
    """The norm of the distances from 0."""
    lengths = context.emit(absolute(context, self))
    return CONVERTERS["aten.linalg_vector_norm.default"](context, lengths, *args, **keywords)


def _side(context: Context, value: ComplexOperand, imaginary: bool) -> Value:
    """The real or the imaginary part, as an operand of real operators."""
    side = part(value, imaginary)
    return context.emit(side) if isinstance(side, Expr) else side


@complex_converter("aten.eq.Tensor", "aten.eq.Scalar")
def equal(context: Context, self: ComplexOperand, other: ComplexOperand) -> Expr:
    """Whether both parts are equal."""
    compare = CONVERTERS["aten.eq.Tensor"]
    real, imaginary = (
        compare(context, _side(context, self, side), _side(context, other, side))
        for side in (False, True)
    )
    both = (context.emit(expect(item, Expr)) for item in (real, imaginary))
    return op.logical_and(*both)


@complex_converter("aten.ne.Tensor", "aten.ne.Scalar")
def not_equal(context: Context, self: ComplexOperand, other: ComplexOperand) -> Expr:
    """Whether a part differs."""
    return op.logical_not(context.emit(equal(context, self, other)))
