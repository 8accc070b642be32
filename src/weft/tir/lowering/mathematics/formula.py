"""Formula: short methods for writing mathematics as expressions of TensorIR, on scalars or vectors.

Each method builds a node from operands that are expressions or Python's numbers. A value that is
used at several places is given a variable (``let``), so that it is computed once. "``x`` is a name"
in a method's docstring says that it uses ``x`` several times, so that it should be a variable::

    k = Formula(DataType("float32x8"), instructions)
    square = k.let("square", k.mul(x, x))
    k.around(k.fma(square, -0.5, x))        # T.Let(T.fma(square, -0.5, x), where={square: x * x})
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.support.lazy_property import lazy_property
from weft.tir import expr as e
from weft.tir.intrinsic import intrinsic, reinterpret
from weft.tir.lowering.building import Names, like
from weft.tir.op import const

Number = PrimExpr | float
"""An operand: an expression, or a constant for every lane."""

_ROUNDING: Final = {32: (12582912.0, 0x4B400000), 64: (6755399441055744.0, 0x4338000000000000)}
"""Width of a float -> a number whose neighbours are 1 away, so that a sum with it is rounded to a
whole number (1.5 times a power of two, to stay so below as well); and its bits."""


@dataclass(frozen=True)
class Instructions:
    """Which intrinsics the target has instructions for, on values of the formula's type."""

    fma: bool = False
    scaleb: bool = False
    lookup: bool = False
    """In a table of sixteen numbers."""


class Formula:
    """Builds a formula on numbers of one float type."""

    def __init__(
        self, dtype: DataType, instructions: Instructions, names: Names | None = None
    ) -> None:
        self.dtype = dtype
        self.instructions = instructions
        self.names = Names() if names is None else names
        self._constants: dict[str, PrimExpr] = {}

    def double(self) -> Formula:
        """A builder of numbers in float64, with the same variables."""
        return Formula(like("float64", self.dtype), self.instructions, self.names)

    def branch(self) -> Formula:
        """A builder with variables of its own, for what is computed on a condition."""
        return Formula(self.dtype, self.instructions)

    def let(self, name: str, value: PrimExpr) -> PrimExpr:
        """A variable for a value that is used at several places."""
        return self.names.of(name, value)

    def around(self, body: PrimExpr) -> PrimExpr:
        """``body`` inside the definitions of all variables."""
        return self.names.around(body)

    @lazy_property
    def bits_type(self) -> DataType:
        """The type of a number's bits."""
        return like(f"uint{self.dtype.bits}", self.dtype)

    def number(self, value: Number) -> PrimExpr:
        """An operand as an expression."""
        if isinstance(value, PrimExpr):
            return value
        key = value.hex()  # tells -0.0 from 0.0
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = const(value, self.dtype)
        return known

    # Arithmetic.

    def add(self, a: Number, b: Number) -> PrimExpr:
        """a + b."""
        return e.Add(self.number(a), self.number(b))

    def sub(self, a: Number, b: Number) -> PrimExpr:
        """a - b."""
        return e.Sub(self.number(a), self.number(b))

    def mul(self, a: Number, b: Number) -> PrimExpr:
        """a * b."""
        return e.Mul(self.number(a), self.number(b))

    def div(self, a: Number, b: Number) -> PrimExpr:
        """a / b."""
        return e.Div(self.number(a), self.number(b))

    def minus(self, x: Number) -> PrimExpr:
        """-x; of 0.0 it is -0.0."""
        return self.sub(-0.0, x)

    def fma(self, a: Number, b: Number, c: Number) -> PrimExpr:
        """a * b + c: rounded once where the target has an instruction for that, else twice."""
        if not self.instructions.fma:
            return self.add(self.mul(a, b), c)
        return self.call("fma", a, b, c)

    def quotient(self, a: PrimExpr, a_rest: Number, b: PrimExpr, b_rest: Number) -> PrimExpr:
        """(a + a_rest) / (b + b_rest), nearly as if rounded once, on a target with fma; the rests
        are small, and ``a`` and ``b`` are names.
        """
        inverse = self.let("inverse", self.div(1.0, b))
        near = self.let("near", self.mul(a, inverse))
        lost = self.add(self.fma(self.minus(near), b, a), a_rest)
        return self.fma(self.fma(self.minus(near), b_rest, lost), inverse, near)

    def poly(self, x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
        """A polynomial by Horner's rule; its constant term is the first coefficient; ``x`` is a
        name.
        """
        result: Number = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return self.number(result)

    def call(self, name: str, *args: Number) -> PrimExpr:
        """A call of an intrinsic whose result has this type."""
        return intrinsic(self.dtype, name, *[self.number(arg) for arg in args])

    # Conditions.

    def less(self, a: Number, b: Number) -> PrimExpr:
        """a < b."""
        return e.LT(self.number(a), self.number(b))

    def more(self, a: Number, b: Number) -> PrimExpr:
        """a > b."""
        return e.GT(self.number(a), self.number(b))

    def equal(self, a: Number, b: Number) -> PrimExpr:
        """a == b; of NaN it is false."""
        return e.EQ(self.number(a), self.number(b))

    def select(self, flag: PrimExpr, a: Number, b: Number) -> PrimExpr:
        """a where flag, else b."""
        return e.Select(flag, self.number(a), self.number(b))

    def at_most(self, x: PrimExpr, high: float) -> PrimExpr:
        """The smaller one of ``x`` and ``high``; NaN stays NaN. ``x`` is a name."""
        return self.select(self.more(x, high), high, x)

    def at_least(self, x: PrimExpr, low: float) -> PrimExpr:
        """The larger one of ``x`` and ``low``; NaN stays NaN. ``x`` is a name."""
        return self.select(self.less(x, low), low, x)

    def clamp(self, x: PrimExpr, low: float, high: float) -> PrimExpr:
        """``x`` clamped to [low, high], as a name; NaN stays NaN."""
        raised = self.let("raised", self.at_least(self.let("x", x), low))
        return self.let("within", self.at_most(raised, high))

    # Bits and integers.

    def bits(self, x: PrimExpr) -> PrimExpr:
        """The bits of x as unsigned integers."""
        return reinterpret(self.bits_type, x)

    def from_bits(self, bits: PrimExpr) -> PrimExpr:
        """The number with these bits."""
        return reinterpret(self.dtype, bits)

    def integer(self, name: str, a: PrimExpr, b: PrimExpr | int) -> PrimExpr:
        """An operation on integers, by its intrinsic: ``bitwise_and``, ``shift_left``."""
        other = b if isinstance(b, PrimExpr) else const(b, a.dtype)
        return intrinsic(a.dtype, name, a, other)

    def plus(self, a: PrimExpr, b: int) -> PrimExpr:
        """a + b of integers; the constant ``b`` is not negative."""
        return e.Add(a, const(b, a.dtype))

    def less_by(self, a: PrimExpr, b: int) -> PrimExpr:
        """a - b of integers."""
        return e.Sub(a, const(b, a.dtype))

    def nearest(self, x: Number, factor: float = 1.0) -> tuple[PrimExpr, PrimExpr]:
        """The whole number nearest to ``x * factor``, as a float and as an integer of that width.

        It has to be below 2**21. The sum with a large number (``_ROUNDING``) is rounded to a whole
        number: in float32, 2.7 + 12582912 is 12582915. That minus 12582912 is 3.0, and its bits
        minus those of 12582912.0 are the integer 3.
        """
        magic, magic_bits = _ROUNDING[self.dtype.bits]
        total = self.add(x, magic) if factor == 1.0 else self.fma(x, factor, magic)
        shifted = self.let("shifted", total)
        return self.sub(shifted, magic), self.less_by(self.bits(shifted), magic_bits)

    # Conversions.

    def to_number(self, integers: PrimExpr) -> PrimExpr:
        """Integers as floats of this type."""
        return e.Cast(self.dtype, integers)

    def widen(self, x: PrimExpr) -> PrimExpr:
        """float32 as float64 (call it on the formula in float64)."""
        return e.Cast(self.dtype, x)

    def narrow(self, x: PrimExpr) -> PrimExpr:
        """float64 as float32 (call it on the formula in float64)."""
        return e.Cast(like("float32", self.dtype), x)
