"""Constructors that fold constants, by which the simplifier builds integer expressions.

Both operands must have the same integer type; nothing is promoted. Sums, differences and products
of constants wrap as the type does. The sum of an expression and a constant has only one form:
``x + 2`` or ``x - 2``, never ``x + (-2)`` or ``2 + x``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from weft.ir.expr import IntImm, PrimExpr, integer_range
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.tir.arithmetic import truncated_quotient, truncated_remainder
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Select,
    Sub,
)


class ConstantOverflow(IRValueError, ArithmeticError):
    """A constant of a rewritten expression does not fit its type: the rule does not apply."""


Build = Callable[[PrimExpr, PrimExpr], PrimExpr]

_CONSTANTS: Final[dict[tuple[DataType, int], IntImm]] = {}
BOOL: Final = DataType("bool")
TRUE: Final = IntImm(BOOL, 1)
FALSE: Final = IntImm(BOOL, 0)


def const(dtype: DataType, value: int) -> PrimExpr:
    """The constant; raises ConstantOverflow where it does not fit. Vectors get a Broadcast."""
    known = _CONSTANTS.get((dtype, value))
    if known is not None:
        return known
    if dtype.lanes != 1:
        return Broadcast(const(dtype.element, value), IntImm(DataType("int32"), dtype.lanes))
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise ConstantOverflow(f"{value} does not fit {dtype}")
    constant = IntImm(dtype, value)
    if -4096 <= value <= 65536:
        _CONSTANTS[dtype, value] = constant
    return constant


def wrapped(dtype: DataType, value: int) -> PrimExpr:
    """The constant modulo the width of its type."""
    known = _CONSTANTS.get((dtype, value))
    if known is not None:
        return known
    low, high = integer_range(dtype)
    if not low <= value <= high:
        value = (value - low) % (1 << dtype.bits) + low if not dtype.is_bool else int(value != 0)
    return const(dtype, value)


def truth(value: bool) -> IntImm:
    """A boolean constant."""
    return TRUE if value else FALSE


def add(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a + b."""
    if type(b) is IntImm:
        if type(a) is IntImm:
            return wrapped(a.dtype, a.value + b.value)
        if b.value == 0:
            return a
        if b.value < 0 and b.dtype.is_int and -b.value <= integer_range(b.dtype)[1]:
            return Sub(a, const(b.dtype, -b.value))
    elif type(a) is IntImm:
        return add(b, a)
    return Add(a, b)


def sub(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a - b."""
    if type(b) is IntImm:
        if type(a) is IntImm:
            return wrapped(a.dtype, a.value - b.value)
        if b.value == 0:
            return a
        if b.value < 0 and -b.value <= integer_range(b.dtype)[1]:
            return Add(a, const(b.dtype, -b.value))
    return Sub(a, b)


def mul(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a * b."""
    if type(b) is IntImm:
        if type(a) is IntImm:
            return wrapped(a.dtype, a.value * b.value)
        if b.value == 1:
            return a
        if b.value == 0:
            return b
    elif type(a) is IntImm:
        return mul(b, a)
    return Mul(a, b)


def exact(build: Build, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """``build(a, b)``; raises ConstantOverflow where a sum or product of constants would wrap."""
    if type(a) is IntImm and type(b) is IntImm and build in _EXACT:
        return const(a.dtype, _EXACT[build](a.value, b.value))
    return build(a, b)


_EXACT: Final[dict[Build, Callable[[int, int], int]]] = {
    add: operator.add, sub: operator.sub, mul: operator.mul
}  # fmt: skip


def floordiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a // b; a constant divisor of 0 stays."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return wrapped(a.dtype, a.value // b.value)
        if b.value == 1:
            return a
    return FloorDiv(a, b)


def floormod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a % b; a constant divisor of 0 stays."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return wrapped(a.dtype, a.value % b.value)
        if b.value == 1:
            return const(a.dtype, 0)
    return FloorMod(a, b)


def truncdiv(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a / b rounded towards zero."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return wrapped(a.dtype, truncated_quotient(a.value, b.value))
        if b.value == 1:
            return a
    return Div(a, b)


def truncmod(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The remainder of truncated division."""
    if type(b) is IntImm and b.value != 0:
        if type(a) is IntImm:
            return wrapped(a.dtype, truncated_remainder(a.value, b.value))
        if b.value == 1:
            return const(a.dtype, 0)
    return Mod(a, b)


def min_(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The smaller."""
    if type(a) is IntImm and type(b) is IntImm:
        return a if a.value <= b.value else b
    return a if a is b else Min(a, b)


def max_(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The larger."""
    if type(a) is IntImm and type(b) is IntImm:
        return a if a.value >= b.value else b
    return a if a is b else Max(a, b)


def _compare(kind: type[PrimExpr], a: PrimExpr, b: PrimExpr, holds: bool) -> PrimExpr:
    if type(a) is IntImm and type(b) is IntImm:
        return truth(holds)
    return kind(a, b)


def _value(a: PrimExpr) -> int:
    return a.value if type(a) is IntImm else 0


def eq(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a == b."""
    return _compare(EQ, a, b, _value(a) == _value(b))


def ne(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a != b."""
    return _compare(NE, a, b, _value(a) != _value(b))


def lt(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a < b."""
    return _compare(LT, a, b, _value(a) < _value(b))


def le(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a <= b."""
    return _compare(LE, a, b, _value(a) <= _value(b))


def gt(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a > b."""
    return _compare(GT, a, b, _value(a) > _value(b))


def ge(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a >= b."""
    return _compare(GE, a, b, _value(a) >= _value(b))


def and_(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a and b."""
    if type(a) is IntImm:
        return b if a.value else a
    if type(b) is IntImm:
        return a if b.value else b
    return And(a, b)


def or_(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a or b."""
    if type(a) is IntImm:
        return a if a.value else b
    if type(b) is IntImm:
        return b if b.value else a
    return Or(a, b)


def not_(a: PrimExpr) -> PrimExpr:
    """not a."""
    return truth(not a.value) if type(a) is IntImm else Not(a)


def select(condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a where condition, else b."""
    if type(condition) is IntImm:
        return a if condition.value else b
    return Select(condition, a, b)


BUILDERS: Final[dict[type[PrimExpr], Build]] = {
    Add: add, Sub: sub, Mul: mul, FloorDiv: floordiv, FloorMod: floormod, Div: truncdiv,
    Mod: truncmod, Min: min_, Max: max_, EQ: eq, NE: ne, LT: lt, LE: le, GT: gt, GE: ge,
    And: and_, Or: or_,
}  # fmt: skip
"""Node class -> folding constructor."""


def same_type(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr] | None:
    """Both with one type that has all their values; None where there is none."""
    for constant, other in ((a, b), (b, a)):
        if type(constant) is IntImm:
            low, high = integer_range(other.dtype) if other.dtype.is_integral else (0, -1)
            if not low <= constant.value <= high:
                return None
            same = IntImm(other.dtype, constant.value)
            return (same, other) if constant is a else (other, same)
    if a.dtype.is_uint is not b.dtype.is_uint:
        return None
    return (a.astype(b.dtype), b) if a.dtype.bits < b.dtype.bits else (a, b.astype(a.dtype))
