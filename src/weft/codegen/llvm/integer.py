"""Integer division, shifts and counts of bits, as plain instructions.

LLVM leaves open what a division by 0 or a shift by 99 gives. ``weft.tir.lowering.define_integers``
has guarded those before: here the divisor of ``Div`` and ``Mod`` is not 0, that of ``FloorDiv`` and
``FloorMod`` is positive, and a shift is shorter than the type is wide.
"""

from __future__ import annotations

from weft.codegen.llvm.convert import mangled, splat_int, zero
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import llvm_type, with_lanes
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.lowering.building import constant_of


def divide(em: Emitter, expr: e.BinaryExpr, floor: bool, remainder: bool) -> str:
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


def _rounded_down(em: Emitter, dtype: DataType, operands: tuple[str, str], remainder: bool) -> str:
    """FloorDiv and FloorMod by a positive number, from the division that truncates.

    Where the remainder of that is negative, its quotient is one too large: -7 by 2 gives the
    quotient -3 and the remainder -1, which become -4 and 1.
    """
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


def shift(em: Emitter, expr: e.Call, left: bool) -> str:
    """``T.shift_left`` and ``T.shift_right``; of signed numbers the latter copies the sign."""
    dtype = expr.dtype
    value, count = em.value(expr.args[0]), em.value(expr.args[1])
    word = "shl" if left else "ashr" if dtype.is_int else "lshr"
    return em.b.op(f"{word} {llvm_type(dtype)} {value}, {count}")


def leading_zeros(em: Emitter, expr: e.Call) -> str:
    """``T.clz``: how many zero bits lead, as int32; of 0, as many as the type has."""
    operand = expr.args[0]
    dtype = operand.dtype
    name = f"llvm.ctlz.{mangled(dtype)}"
    kind = llvm_type(dtype)
    count = em.b.call(name, kind, [(kind, em.value(operand)), ("i1", "false")])
    target = expr.dtype
    if dtype.bits == target.bits:
        return count
    word = "trunc" if dtype.bits > target.bits else "zext"
    return em.b.op(f"{word} {kind} {count} to {llvm_type(target)}")


def popcount(em: Emitter, expr: e.Call) -> str:
    """``T.popcount``: how many bits are 1, in the operand's type."""
    kind = llvm_type(expr.dtype)
    return em.b.call(f"llvm.ctpop.{mangled(expr.dtype)}", kind, [(kind, em.value(expr.args[0]))])
