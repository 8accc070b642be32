"""Rewrite rules of calls: fold bit operations and roundings, drop masks that change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.arith import fold
from weft.arith.data import has_data
from weft.arith.rule import Simplifier
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.tir import op
from weft.tir.expr import Call, is_call

Compute = Callable[[PrimExpr, PrimExpr], PrimExpr]
CallRule = Callable[[Call, Simplifier], PrimExpr | None]


def call_rule(call: Call, name: str, simplifier: Simplifier) -> PrimExpr | None:
    """The simplified form of a call whose arguments are simplified; None if no rule applies."""
    rule = _RULES.get(name)
    return None if rule is None or call.dtype.lanes != 1 else rule(call, simplifier)


def _likely(call: Call, simplifier: Simplifier) -> PrimExpr | None:
    if not call.args[0].dtype.is_bool:  # an integer may stand for a condition
        return None
    known = simplifier.literal(call.args[0])
    return known if type(known) is IntImm else None


def _bits(compute: Compute) -> CallRule:
    def rule(call: Call, simplifier: Simplifier) -> PrimExpr | None:
        a, b = call.args
        if type(a) is IntImm and type(b) is IntImm and a.dtype is b.dtype:
            constant = compute(a, b)
            return constant if type(constant) is IntImm else None
        return None

    return rule


def _shift(compute: Compute) -> CallRule:
    """The rule for shifts: folds constants, drops shifts by 0, right shifts to 0 become 0."""
    constants = _bits(compute)

    def rule(call: Call, simplifier: Simplifier) -> PrimExpr | None:
        a, b = call.args
        if type(b) is not IntImm or not 0 <= b.value < a.dtype.bits:
            return None
        if b.value == 0 and a.dtype is call.dtype:
            return a
        if compute is op.shift_right and not has_data(a):
            low, high = simplifier.range_of(a)
            if low >= 0 and high < 1 << b.value:
                return fold.const(call.dtype, 0)
        return constants(call, simplifier)

    return rule


def _and(call: Call, simplifier: Simplifier) -> PrimExpr | None:
    """``x & (2**k - 1)`` of a number in [0, 2**k) is that number."""
    for value, mask in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
        if type(mask) is not IntImm or value.dtype is not call.dtype:
            continue
        if mask.value == 0:
            return mask
        if mask.value > 0 and mask.value & (mask.value + 1) == 0 and not has_data(value):
            low, high = simplifier.range_of(value)
            if low >= 0 and high <= mask.value:
                return value
    return _bits(op.bitwise_and)(call, simplifier)


def _or(compute: Compute) -> CallRule:
    """``x | 0`` and ``x ^ 0`` are x."""

    def rule(call: Call, simplifier: Simplifier) -> PrimExpr | None:
        for value, zero in ((call.args[0], call.args[1]), (call.args[1], call.args[0])):
            if type(zero) is IntImm and zero.value == 0 and value.dtype is call.dtype:
                return value
        return _bits(compute)(call, simplifier)

    return rule


def _leading_zeros(call: Call, simplifier: Simplifier) -> PrimExpr | None:
    value = call.args[0]
    if type(value) is not IntImm:
        return None
    bits = value.dtype.bits
    return fold.const(call.dtype, bits - (value.value % (1 << bits)).bit_length())


def _ones(call: Call, simplifier: Simplifier) -> PrimExpr | None:
    value = call.args[0]
    if type(value) is not IntImm:
        return None
    return fold.const(call.dtype, (value.value % (1 << value.dtype.bits)).bit_count())


def _abs(call: Call, simplifier: Simplifier) -> PrimExpr | None:
    """Fold ``abs`` of a constant; of an integer that is not negative it is the integer itself."""
    value = call.args[0]
    if type(value) is IntImm:
        return op.abs(value)
    if not value.dtype.is_int or value.dtype.lanes != 1 or has_data(value):
        return None
    return value if simplifier.range_of(value)[0] >= 0 else None


def _ceil(call: Call, simplifier: Simplifier) -> PrimExpr | None:
    """Fold ``ceil(log2(c))``, which heuristics for launch sizes compute."""
    inner = call.args[0]
    if is_call(inner, "log2"):
        value = inner.args[0]
        if isinstance(value, FloatImm) and value.value > 0 and math.isfinite(value.value):
            mantissa, exponent = math.frexp(value.value)
            return FloatImm(call.dtype, float(exponent - 1 if mantissa == 0.5 else exponent))
    return op.ceil(inner) if isinstance(inner, FloatImm) else None


_RULES: Final[dict[str, CallRule]] = {
    "tir.likely": _likely,
    "tir.shift_left": _shift(op.shift_left),
    "tir.shift_right": _shift(op.shift_right),
    "tir.bitwise_and": _and,
    "tir.bitwise_or": _or(op.bitwise_or),
    "tir.bitwise_xor": _or(op.bitwise_xor),
    "tir.clz": _leading_zeros,
    "tir.popcount": _ones,
    "tir.ceil": _ceil,
    "tir.fabs": _abs,
}
