"""Integer division, shifts and bit counts, whose operands are ones that the processor defines.

``weft.tir.lowering.define_integers`` wrote the guards: the divisor of ``Div`` and ``Mod`` is not 0,
that of ``FloorDiv`` and ``FloorMod`` is positive, and a count is below the width.
"""

from __future__ import annotations

from typing import Any

from weft.codegen.llvm.convert import mangled, splat_int, zero
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import llvm_type, with_lanes
from weft.support.dtype import DataType
from weft.tir.lowering.building import constant_of


def divide(em: Emitter, expr: Any, floor: bool, remainder: bool) -> str:
    """Div, Mod (``floor`` False), FloorDiv, FloorMod of integers."""
    dtype = expr.dtype
    kind = llvm_type(dtype)
    a, divisor = em.value(expr.a), em.value(expr.b)
    is_natural = em.ranges.of(expr.a)[0] >= 0 and (floor or em.ranges.of(expr.b)[0] > 0)
    if not dtype.is_int or is_natural:
        return em.b.op(f"{'urem' if remainder else 'udiv'} {kind} {a}, {divisor}")
    if not floor:
        return em.b.op(f"{'srem' if remainder else 'sdiv'} {kind} {a}, {divisor}")
    constant = constant_of(expr.b)
    if constant is not None and constant.bit_count() == 1:
        if remainder:
            return em.b.op(f"and {kind} {a}, {splat_int(constant - 1, dtype.bits, dtype.lanes)}")
        shift = splat_int(constant.bit_length() - 1, dtype.bits, dtype.lanes)
        return em.b.op(f"ashr {kind} {a}, {shift}")
    return _rounded_down(em, dtype, (a, divisor), remainder)


def _rounded_down(
    em: Emitter, dtype: DataType, operands: tuple[str, str], remainder: bool
) -> str:
    """By a positive number: where the remainder is negative, one step down."""
    a, divisor = operands
    kind, flags = llvm_type(dtype), with_lanes("i1", dtype.lanes)
    rest = em.b.op(f"srem {kind} {a}, {divisor}")
    negative = em.b.op(f"icmp slt {kind} {rest}, {zero(dtype)}")
    if remainder:
        raised = em.b.op(f"add {kind} {rest}, {divisor}")
        return em.b.op(f"select {flags} {negative}, {kind} {raised}, {kind} {rest}")
    quotient = em.b.op(f"sdiv {kind} {a}, {divisor}")
    step = em.b.op(f"sext {flags} {negative} to {kind}")
    return em.b.op(f"add {kind} {quotient}, {step}")


def shift(em: Emitter, expr: Any, left: bool) -> str:
    """shift_left, shift_right."""
    dtype = expr.dtype
    value, count = em.value(expr.args[0]), em.value(expr.args[1])
    word = "shl" if left else "ashr" if dtype.is_int else "lshr"
    return em.b.op(f"{word} {llvm_type(dtype)} {value}, {count}")


def leading_zeros(em: Emitter, expr: Any) -> str:
    """clz: int32, the width for 0."""
    operand = expr.args[0]
    dtype = operand.dtype
    name = f"llvm.ctlz.{mangled(dtype)}"
    kind = llvm_type(dtype)
    count = em.b.call(name, kind, [(kind, em.value(operand)), ("i1", "false")])
    target: DataType = expr.dtype
    if dtype.bits == target.bits:
        return count
    word = "trunc" if dtype.bits > target.bits else "zext"
    return em.b.op(f"{word} {kind} {count} to {llvm_type(target)}")


def popcount(em: Emitter, expr: Any) -> str:
    """The number of one bits, in the operand's type."""
    kind = llvm_type(expr.dtype)
    return em.b.call(f"llvm.ctpop.{mangled(expr.dtype)}", kind, [(kind, em.value(expr.args[0]))])
