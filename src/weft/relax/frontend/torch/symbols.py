"""torch's symbolic sizes as expressions of TensorIR.

Each symbol becomes a variable, each function is a row of ``FUNCTIONS``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import sympy
import torch

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr
from weft.relax.expr import Expr
from weft.support.errors import UnsupportedError
from weft.tir import intrinsic
from weft.tir import op as tir_op
from weft.tir.expr import SizeVar, Var

Function = Callable[..., PrimExpr]
"""A function of expressions."""


def _true_div(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return _as_float(a) / _as_float(b)


def _as_float(value: PrimExpr) -> PrimExpr:
    return tir_op.cast("float64", value) if str(value.dtype).startswith("int") else value


def _as_int(rounding: Function) -> Function:
    return lambda value: (
        value if str(value.dtype).startswith("int") else tir_op.cast("int64", rounding(value))
    )


def _power(base: PrimExpr, exponent: PrimExpr) -> PrimExpr:
    if isinstance(exponent, IntImm) and exponent.value >= 0:
        result: PrimExpr = IntImm("int64", 1)
        for _ in range(int(exponent.value)):
            result = result * base
        return result
    return tir_op.power(_as_float(base), _as_float(exponent))


def _modular_indexing(a: PrimExpr, b: PrimExpr, m: PrimExpr) -> PrimExpr:
    return tir_op.floormod(tir_op.floordiv(a, b), m)


def _fold(function: Function) -> Function:
    def folded(first: PrimExpr, *others: PrimExpr) -> PrimExpr:
        for other in others:
            first = function(first, other)
        return first

    return folded


FUNCTIONS: Final[Mapping[str, Function]] = {
    "Add": _fold(lambda a, b: a + b),
    "Mul": _fold(lambda a, b: a * b),
    "Pow": _power,
    "FloorDiv": tir_op.floordiv,
    "CleanDiv": tir_op.floordiv,
    "CeilDiv": tir_op.ceildiv,
    "CeilToInt": _as_int(intrinsic.ceil),
    "FloorToInt": _as_int(intrinsic.floor),
    "TruncToInt": _as_int(intrinsic.trunc),
    "RoundToInt": _as_int(intrinsic.nearbyint),
    "ToFloat": _as_float,
    "IntTrueDiv": _true_div,
    "FloatTrueDiv": _true_div,
    "FloatPow": lambda a, b: tir_op.power(_as_float(a), _as_float(b)),
    "PowByNatural": _power,
    "OpaqueUnaryFn_sqrt": lambda a: intrinsic.sqrt(_as_float(a)),
    "Mod": tir_op.floormod,
    "PythonMod": tir_op.floormod,
    "ModularIndexing": _modular_indexing,
    "Max": _fold(tir_op.maximum),
    "Min": _fold(tir_op.minimum),
    "Abs": tir_op.abs,
    "Where": tir_op.if_then_else,
    "Equality": tir_op.equal,
    "Unequality": tir_op.not_equal,
    "StrictLessThan": tir_op.less,
    "LessThan": tir_op.less_equal,
    "StrictGreaterThan": tir_op.greater,
    "GreaterThan": tir_op.greater_equal,
    "And": _fold(tir_op.logical_and),
    "Or": _fold(tir_op.logical_or),
    "Not": tir_op.logical_not,
}
"""Functions of sympy, and of torch's own in ``torch.utils._sympy.functions``, by class name."""

QUOTIENTS: Final[Mapping[str, Function]] = {
    "CeilToInt": tir_op.ceildiv,
    "FloorToInt": tir_op.floordiv,
    "TruncToInt": tir_op.floordiv,
}
"""What a rounded quotient of integers becomes, by the class name of the rounding."""
ROUNDINGS: Final = ("CeilToInt", "FloorToInt", "TruncToInt", "RoundToInt")
"""The functions that make integers of floats."""
_LARGEST_FACTOR: Final = 1 << 10
"""Factors such as 0.75 are quotients of numbers up to this one: extents times it are exact."""


def rounded_quotient(value: sympy.Basic) -> tuple[Function, Sequence[sympy.Basic]] | None:
    """``ceil(n / 8)`` and ``int(n * 0.75)`` as functions of integers, and the integers.

    They are exact below 2**53, as extents are. None for another expression, and where the quotient
    may be negative and is truncated.
    """
    divide = QUOTIENTS.get(type(value).__name__)
    parts = None if divide is None else quotient_of(value.args[0])
    if divide is None or parts is None:
        return None
    is_positive = parts[0].is_nonnegative is True and parts[1].is_positive is True
    if type(value).__name__ == "TruncToInt" and not is_positive:
        return None
    return divide, parts


def quotient_of(value: sympy.Basic) -> Sequence[sympy.Basic] | None:
    """The integers that a float is the exact quotient of."""
    if type(value).__name__ == "IntTrueDiv":
        return list(value.args)
    if not value.is_Mul or len(value.args) != 2:
        return None
    factor, number = value.args
    if not factor.is_Float or type(number).__name__ != "ToFloat":
        return None
    dividend, divisor = float(factor).as_integer_ratio()
    if max(abs(dividend), divisor) > _LARGEST_FACTOR:
        return None
    return number.args[0] * dividend, sympy.Integer(divisor)


class SymbolTable:
    """The variables that stand for the symbols of one model.

    ``generator`` is the room of the functions that draw its random numbers.
    """

    def __init__(self, generator: str = "weft.random") -> None:
        self.generator = generator
        self._values: dict[str, PrimExpr] = {}
        self._extents: dict[sympy.Basic, PrimExpr] = {}
        self.floats: dict[sympy.Basic, Expr] = {}
        """The tensors that are the floats of the data (``data_numbers``)."""
        self.draws = itertools.count()
        """Numbers of the calls that draw random numbers, those of nested graphs among them."""

    def __contains__(self, symbol: sympy.Symbol) -> bool:
        return str(symbol) in self._values

    def define(self, symbol: sympy.Symbol, value: PrimExpr | None = None) -> PrimExpr:
        """Give a symbol its meaning: a new variable of its name, or ``value``.

        The variable of an extent is known not to be negative, as torch knows of its symbol.
        """
        kind = SizeVar if symbol.is_nonnegative else Var
        meaning = kind(str(symbol), "int64") if value is None else value
        self._values[str(symbol)] = meaning
        return meaning

    def alias(self, expression: sympy.Basic, value: PrimExpr) -> None:
        """Give a whole expression a variable of its own."""
        self._extents[expression] = value

    def number(self, expression: sympy.Basic) -> PrimExpr:
        """A new variable for an expression that the program computes from data."""
        variable = self._extents[expression] = Var(f"number{len(self._extents)}", "int64")
        return variable

    def roundings_of_floats(self, value: sympy.Basic) -> list[sympy.Basic]:
        """The roundings in an expression that only floats tell, ``int(n * 1.7)``, innermost first.

        Those that have a variable (``number``) and those that integers tell are left out.
        """
        if value in self._extents:
            return []
        quotient = rounded_quotient(value)
        parts = value.args if quotient is None else quotient[1]
        inner = [rounding for part in parts for rounding in self.roundings_of_floats(part)]
        is_one = quotient is None and type(value).__name__ in ROUNDINGS
        return list(dict.fromkeys([*inner, value] if is_one else inner))

    def piecewise(self, value: sympy.Piecewise) -> PrimExpr:
        """The first of several expressions whose condition holds; the last one has none."""
        *choices, (last, _) = value.args
        choice = self.expression(last)
        for chosen, condition in reversed(choices):
            choice = tir_op.if_then_else(
                self.expression(condition), self.expression(chosen), choice
            )
        return choice

    def extent(self, size: int | torch.SymInt) -> Extent:
        """The extent of a dimension: an int, or the expression of a ``torch.SymInt``."""
        if isinstance(size, int):
            return size
        expression = self.expression(size.node.expr)
        return int(expression.value) if isinstance(expression, IntImm) else expression

    def expression(self, value: sympy.Basic) -> PrimExpr:
        """The expression of a sympy expression; unknown functions are an UnsupportedError."""
        if value in self._extents:
            return self._extents[value]
        if isinstance(value, sympy.Symbol):
            known = self._values.get(str(value))
            return self.define(value) if known is None else known
        if value.is_Integer:
            return IntImm("int64", int(value))
        if value in (sympy.true, sympy.false):
            return IntImm("bool", int(bool(value)))
        if value.is_Rational:  # before Float: 1/2 as a factor of a product
            return FloatImm("float64", float(value))
        if value.is_number and value.is_real and not value.args:
            return FloatImm("float64", float(value) if value.is_finite else math.inf)
        if isinstance(value, sympy.Piecewise):  # torch's way to write a bool as a number
            return self.piecewise(value)
        quotient = rounded_quotient(value)
        if quotient is not None:
            divide, parts = quotient
            return divide(*(self.expression(part) for part in parts))
        function = FUNCTIONS.get(type(value).__name__)
        if function is None:
            raise UnsupportedError(
                f"symbolic sizes: {type(value).__name__} in {value} has no counterpart in weft"
            )
        return function(*(self.expression(item) for item in value.args))
