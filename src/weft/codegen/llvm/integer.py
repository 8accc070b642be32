"""Integer division and shifts with defined results: no trap, no poison (design.md 3.13, 3.14).

A divisor that may be 0 is tested and raises. The smallest integer over -1 wraps. A shift by the
width or more gives 0, or the sign; so does a negative count, as in numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.codegen.llvm import lane_masks
from weft.codegen.llvm.convert import mangled, splat_int, zero
from weft.codegen.llvm.types import llvm_type, with_lanes
from weft.ir.expr import IntImm, integer_range
from weft.runtime.call.abi import FaultKind
from weft.support.dtype import DataType
from weft.tir import expr as e

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter


def constant_of(expr: Any) -> int | None:
    """The value of an integer constant or of a broadcast one."""
    if isinstance(expr, e.Broadcast):
        expr = expr.value
    return expr.value if isinstance(expr, IntImm) else None


def divide(em: Emitter, expr: Any, floor: bool, remainder: bool) -> str:
    """Div, Mod (``floor`` False), FloorDiv, FloorMod of integers."""
    dtype = expr.dtype
    a = em.value(expr.a)
    constant = constant_of(expr.b)
    if constant is not None and constant > 0:
        return _by_constant(em, expr, a, constant, floor, remainder)
    divisor = tested_divisor(em, expr, em.value(expr.b))
    kind = llvm_type(dtype)
    if not dtype.is_int:
        return em.b.op(f"{'urem' if remainder else 'udiv'} {kind} {a}, {divisor}")
    return _signed(em, expr, (a, divisor), floor, remainder)


def tested_divisor(em: Emitter, expr: Any, divisor: str) -> str:
    """The divisor; raise at run time where it is 0, unless it is proved not to be.

    In lanes whose quotient nobody wants, it is 1.
    """
    if em.ranges.nonzero(expr.b) or (
        expr.b.dtype.lanes == 1 and expr.b.dtype.is_int and em.bounds.positive(expr.b)
    ):
        return divisor
    dtype = expr.dtype
    wanted = lane_masks.wanted(em, dtype.lanes)
    if wanted is not None:
        one, kind = splat_int(1, dtype.bits, dtype.lanes), llvm_type(dtype)
        flags = with_lanes("i1", dtype.lanes)
        divisor = em.b.op(f"select {flags} {wanted}, {kind} {divisor}, {kind} {one}")
    good = em.b.op(f"icmp ne {llvm_type(dtype)} {divisor}, {zero(dtype)}")
    if dtype.lanes != 1:
        name = f"llvm.vector.reduce.and.v{dtype.lanes}i1"
        good = em.b.call(name, "i1", [(with_lanes("i1", dtype.lanes), good)])
    text = f"{em.function.name}: integer division by zero"
    em.b.raise_unless(good, FaultKind.DIVISION, text)
    return divisor


def _by_constant(em: Emitter, expr: Any, a: str, divisor: int, floor: bool, remainder: bool) -> str:
    dtype = expr.dtype
    kind = llvm_type(dtype)
    c = splat_int(divisor, dtype.bits, dtype.lanes)
    if not dtype.is_int or em.ranges.of(expr.a)[0] >= 0:
        return em.b.op(f"{'urem' if remainder else 'udiv'} {kind} {a}, {c}")
    if floor and divisor & (divisor - 1) == 0:
        if remainder:
            mask = splat_int(divisor - 1, dtype.bits, dtype.lanes)
            return em.b.op(f"and {kind} {a}, {mask}")
        shift = splat_int(divisor.bit_length() - 1, dtype.bits, dtype.lanes)
        return em.b.op(f"ashr {kind} {a}, {shift}")
    if not floor:
        return em.b.op(f"{'srem' if remainder else 'sdiv'} {kind} {a}, {c}")
    rest = em.b.op(f"srem {kind} {a}, {c}")
    flags = with_lanes("i1", dtype.lanes)
    negative = em.b.op(f"icmp slt {kind} {rest}, {zero(dtype)}")
    if remainder:
        raised = em.b.op(f"add {kind} {rest}, {c}")
        return em.b.op(f"select {flags} {negative}, {kind} {raised}, {kind} {rest}")
    quotient = em.b.op(f"sdiv {kind} {a}, {c}")
    step = em.b.op(f"sext {flags} {negative} to {kind}")
    return em.b.op(f"add {kind} {quotient}, {step}")


def _signed(em: Emitter, expr: Any, operands: tuple[str, str], floor: bool, remainder: bool) -> str:
    """By a divisor that is not 0 but may be negative; -1 is divided by as 1, then negated."""
    b, dtype = em.b, expr.dtype
    a, divisor = operands
    kind, flags = llvm_type(dtype), with_lanes("i1", dtype.lanes)
    low_a, (low, high) = em.ranges.of(expr.a)[0], em.ranges.of(expr.b)
    minus_one = ""
    if low <= -1 <= high and low_a == integer_range(dtype)[0]:
        ones = splat_int(-1, dtype.bits, dtype.lanes)
        minus_one = b.op(f"icmp eq {kind} {divisor}, {ones}")
        one = splat_int(1, dtype.bits, dtype.lanes)
        divisor = b.op(f"select {flags} {minus_one}, {kind} {one}, {kind} {divisor}")
    rest = b.op(f"srem {kind} {a}, {divisor}") if floor or remainder else ""
    if remainder and not floor:
        return rest
    if floor:
        differs = b.op(f"xor {kind} {rest}, {divisor}")
        opposite = b.op(f"icmp slt {kind} {differs}, {zero(dtype)}")
        some = b.op(f"icmp ne {kind} {rest}, {zero(dtype)}")
        adjust = b.op(f"and {flags} {opposite}, {some}")
        if remainder:
            raised = b.op(f"add {kind} {rest}, {divisor}")
            return b.op(f"select {flags} {adjust}, {kind} {raised}, {kind} {rest}")
        step = b.op(f"sext {flags} {adjust} to {kind}")
        quotient = b.op(f"sdiv {kind} {a}, {divisor}")
        quotient = b.op(f"add {kind} {quotient}, {step}")
    else:
        quotient = b.op(f"sdiv {kind} {a}, {divisor}")
    if not minus_one:
        return quotient
    negated = b.op(f"sub {kind} {zero(dtype)}, {a}")
    return b.op(f"select {flags} {minus_one}, {kind} {negated}, {kind} {quotient}")


def shift(em: Emitter, expr: Any, left: bool) -> str:
    """shift_left, shift_right; a count outside of the width shifts everything out."""
    b, dtype = em.b, expr.dtype
    value, count = em.value(expr.args[0]), em.value(expr.args[1])
    kind, flags = llvm_type(dtype), with_lanes("i1", dtype.lanes)
    word = "shl" if left else "ashr" if dtype.is_int else "lshr"
    low, high = em.ranges.of(expr.args[1])
    if 0 <= low and high < dtype.bits:
        return b.op(f"{word} {kind} {value}, {count}")
    width = splat_int(dtype.bits, dtype.bits, dtype.lanes)
    inside = b.op(f"icmp ult {kind} {count}, {width}")
    if word == "ashr":
        most = splat_int(dtype.bits - 1, dtype.bits, dtype.lanes)
        count = b.op(f"select {flags} {inside}, {kind} {count}, {kind} {most}")
        return b.op(f"ashr {kind} {value}, {count}")
    safe = b.op(f"select {flags} {inside}, {kind} {count}, {kind} {zero(dtype)}")
    shifted = b.op(f"{word} {kind} {value}, {safe}")
    return b.op(f"select {flags} {inside}, {kind} {shifted}, {kind} {zero(dtype)}")


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
