"""DefineIntegers: guards around integer operations that processors leave undefined.

TensorIR says what each operation gives: a division by 0 is an error, the least number by -1 wraps,
a shift by the width or more shifts everything out, a conversion of a float that is too large gives
the largest integer. Processors trap or give something else. After this pass the program guards the
operands itself, and code generation prints plain instructions::

    a // b                 d: T.checked(b, b != 0, "division", "integer division by zero")
                           T.Div(a, d), with one step down where the remainder's sign is not d's
    T.shift_left(a, n)     T.Select(inside, T.shift_left(a, T.Select(inside, n, 0)), 0)
                           where inside is T.Cast("uint32", n) < 32
    T.int32(x)             T.unchecked_cast("int32", x within the range of int32)
    T.int32(T.max(T.min(x, 9.0), 0.0))     the same, with a guard against NaN only

Operations that are proved to be safe stay as they are. So after the pass

- the divisor of an integer ``Div`` or ``Mod`` is not 0, and not -1 where the dividend may be the
  least number;
- that of ``FloorDiv`` and ``FloorMod`` is positive;
- a shift is by less than the width.

Extents, strides and offsets of buffers are guarded without regard to where the buffer is used, so
that one Buffer serves all its uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, overload

import numpy as np

from weft.ir.expr import PrimExpr, integer_range
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import checked, unchecked_cast
from weft.tir.lowering.building import Names, constant_of, like
from weft.tir.lowering.clipped import as_integer, clipped
from weft.tir.lowering.facts import FactMutator, facts_of
from weft.tir.lowering.faults import DIVISIONS
from weft.tir.lowering.proofs import Bounds
from weft.tir.lowering.ranges import Ranges
from weft.tir.op import const
from weft.tir.transform.prim_func_pass import define_pass

_CANDIDATES: Final = (*DIVISIONS, e.Cast, e.Call)
_SHIFTS: Final = ("tir.shift_left", "tir.shift_right")

Supported = Callable[[PrimExpr], bool]
"""Whether the target has an instruction that means exactly what an expression means."""
V = TypeVar("V")


def supports_nothing(expr: PrimExpr) -> bool:
    """The answer of a target that has no such instruction."""
    return False


def may_be_undefined(expr: PrimExpr) -> bool:
    """Whether an operation could be undefined, given no more than the constants in it."""
    if isinstance(expr, DIVISIONS):
        divisor = constant_of(expr.b)
        return expr.dtype.is_integral and (divisor is None or divisor <= 0)
    if isinstance(expr, e.Cast):
        return expr.value.dtype.is_float and expr.dtype.is_integral and not expr.dtype.is_bool
    if not isinstance(expr, e.Call) or not isinstance(expr.op, Op):
        return False
    if expr.op.name in _SHIFTS:
        count = constant_of(expr.args[1])
        return count is None or not 0 <= count < expr.dtype.bits
    return expr.op.name == "tir.ldexp" and expr.args[1].dtype.is_float


class Definer:
    """Writes the guards of one operation."""

    def __init__(self, ranges: Ranges, bounds: Bounds, supported: Supported) -> None:
        self.ranges, self.bounds, self.supported = ranges, bounds, supported

    def defined(self, given: PrimExpr, expr: PrimExpr, wanted: PrimExpr | None = None) -> PrimExpr:
        """``expr`` with guards. It is the operation ``given`` whose operands have theirs already.

        Lanes of a vector that are not ``wanted`` do not fault.
        """
        if isinstance(expr, DIVISIONS) and isinstance(given, DIVISIONS):
            return self._division(given, expr, wanted)
        if isinstance(expr, e.Cast):
            return self._converted(expr)
        assert isinstance(expr, e.Call)
        assert isinstance(given, e.Call)
        if expr.op.name in _SHIFTS:
            return self._shift(given, expr)
        power = _saturated(expr.args[1], like("int32", expr.args[1].dtype))
        return expr.with_(args=(expr.args[0], power))

    def _converted(self, expr: e.Cast) -> PrimExpr:
        part = clipped(expr.value, expr.dtype)
        if part is not None:
            return as_integer(part, expr.dtype)
        return expr if self.supported(expr) else _saturated(expr.value, expr.dtype)

    # Division.

    def _division(
        self, given: e.BinaryExpr, expr: e.BinaryExpr, wanted: PrimExpr | None
    ) -> PrimExpr:
        if self._is_positive(given.b):
            return expr
        is_nonzero = self.ranges.nonzero(given.b)
        if not expr.dtype.is_int:
            return expr if is_nonzero else expr.with_(b=nonzero(expr.b, wanted))
        low, high = self.ranges.of(given.b)
        least = integer_range(expr.dtype.element)[0]
        wraps = low <= -1 <= high and self.ranges.of(given.a)[0] == least
        floors = isinstance(expr, (e.FloorDiv, e.FloorMod))
        if is_nonzero and not wraps and not floors:
            return expr

        names = Names()
        a, divisor = names.of("a", expr.a), names.of("b", expr.b)
        if not is_nonzero:
            divisor = names.of("divisor", nonzero(divisor, wanted))
        return names.around(_signed(type(expr), names, a, divisor, wraps))

    def _is_positive(self, divisor: PrimExpr) -> bool:
        if self.ranges.of(divisor)[0] > 0:
            return True
        is_number = divisor.dtype.is_int and divisor.dtype.lanes == 1
        return is_number and self.bounds.positive(divisor)

    # Shifts.

    def _shift(self, given: e.Call, expr: e.Call) -> PrimExpr:
        low, high = self.ranges.of(given.args[1])
        if 0 <= low and high < expr.dtype.bits:
            return expr
        names = Names()
        value, count = names.of("value", expr.args[0]), names.of("count", expr.args[1])
        return names.around(_shifted(expr, names, value, count))


def nonzero(divisor: PrimExpr, wanted: PrimExpr | None = None) -> PrimExpr:
    """The divisor, tested not to be 0; in lanes that are not wanted it is 1."""
    if wanted is not None:
        divisor = e.Select(wanted, divisor, const(1, divisor.dtype))
    condition = e.NE(divisor, const(0, divisor.dtype))
    return checked(divisor, condition, "division", "integer division by zero")


def _signed(kind: type, names: Names, a: PrimExpr, divisor: PrimExpr, wraps: bool) -> PrimExpr:
    """A division of signed integers by a number that is not 0.

    ``wraps``: the dividend may be the least number, which a processor cannot divide by -1. Where
    the divisor is -1 it divides by 1, and ``0 - a``, which wraps, is the quotient.

    A quotient that rounds down is one less than the one that truncates, and its remainder is larger
    by the divisor, where the remainder of that is not 0 and its sign is not the divisor's.
    """
    zero = const(0, a.dtype)
    is_minus_one = e.EQ(divisor, const(-1, a.dtype))
    if wraps:
        divisor = names.of("safe", e.Select(is_minus_one, const(1, a.dtype), divisor))
    rest: PrimExpr = e.Mod(a, divisor)
    if kind is e.Mod:
        return rest
    quotient: PrimExpr = e.Div(a, divisor)
    if kind is not e.Div:
        rest = names.of("rest", rest)
        opposite = e.LT(e.Call(a.dtype, "tir.bitwise_xor", [rest, divisor]), zero)
        one_less = e.Call(opposite.dtype, "tir.bitwise_and", [opposite, e.NE(rest, zero)])
        if kind is e.FloorMod:
            return e.Select(one_less, e.Add(rest, divisor), rest)
        quotient = e.Sub(quotient, e.Cast(a.dtype, one_less))
    return e.Select(is_minus_one, e.Sub(zero, a), quotient) if wraps else quotient


def _shifted(call: e.Call, names: Names, value: PrimExpr, count: PrimExpr) -> PrimExpr:
    """A shift by any count. A negative one is, as an unsigned number, beyond the width too."""
    dtype = call.dtype
    unsigned = like(f"uint{dtype.bits}", dtype)
    inside = names.of("inside", e.LT(e.Cast(unsigned, count), const(dtype.bits, unsigned)))
    if call.op.name == "tir.shift_right" and dtype.is_int:  # the sign is what is left
        count = e.Select(inside, count, const(dtype.bits - 1, count.dtype))
        return call.with_(args=(value, count))
    count = e.Select(inside, count, const(0, count.dtype))
    return e.Select(inside, call.with_(args=(value, count)), const(0, dtype))


def _saturated(value: PrimExpr, dtype: DataType) -> PrimExpr:
    """A float as an integer: what is out of range becomes the nearest end, NaN becomes 0.

    First ``x`` is raised to the lower end: ``x if x > low else low``. NaN, which is above nothing,
    becomes the lower end. Where that is not 0, NaN is set to 0 while the numbers are still floats:
    that is one instruction where comparisons give masks.

    Then it is lowered to the upper end. Where no float is exactly the largest integer (int32 in
    float32), it is the largest float below, and what is beyond is set at last.
    """
    names = Names()
    if value.dtype.bits == 16:
        value = e.Cast(like("float32", value.dtype), value)
    x = names.of("x", value)
    floats = x.dtype
    low, high = integer_range(dtype.element)
    largest = floats.element.numpy.type(high)
    is_exact = int(largest) == high
    top = float(largest if is_exact else np.nextafter(largest, floats.element.numpy.type(0)))
    raised: PrimExpr = e.Select(e.GT(x, const(low, floats)), x, const(low, floats))
    if low:
        raised = e.Select(e.EQ(x, x), raised, const(0, floats))
    raised = names.of("raised", raised)
    within = e.Select(e.LT(raised, const(top, floats)), raised, const(top, floats))
    if dtype.bits < 32:
        return names.around(e.Cast(dtype, unchecked_cast(like("int32", dtype), within)))
    number = unchecked_cast(dtype, within)
    if not is_exact:
        beyond = e.GE(x, const(float(largest), floats))
        number = e.Select(beyond, const(high, dtype), number)
    return names.around(number)


class _DefineIntegers(FactMutator):
    def __init__(self, ranges: Ranges, bounds: Bounds, supported: Supported) -> None:
        super().__init__(ranges, bounds)
        self.definer = Definer(ranges, bounds, supported)
        self.supported = supported
        self._touched: dict[int, tuple[PrimExpr, bool]] = {}
        self._buffers: dict[int, tuple[Buffer, Buffer]] = {}

    @overload
    def visit(self, node: PrimExpr) -> PrimExpr: ...
    @overload
    def visit(self, node: V) -> V: ...
    def visit(self, node: object) -> object:
        """The node with guards; an expression that needs none is not walked."""
        if isinstance(node, PrimExpr) and not (node.CHILDREN and self._is_touched(node)):
            return node
        return super().visit(node)

    def _is_touched(self, expr: PrimExpr) -> bool:
        """Whether an expression needs guards, or has a part or a buffer that does."""
        known = self._touched.get(id(expr))
        if known is not None:
            return known[1]
        is_touched = is_undefined(expr, self.supported)
        for part in expr._parts_() if not is_touched else ():
            if isinstance(part, PrimExpr) and self._is_touched(part):
                is_touched = True
                break
        if isinstance(expr, (BufferLoad, e.Call)) and not is_touched:
            operands: Sequence[object] = (
                [expr.buffer] if isinstance(expr, BufferLoad) else expr.args
            )
            is_touched = any(
                isinstance(operand, Buffer) and self.visit_Buffer(operand) is not operand
                for operand in operands
            )
        self._touched[id(expr)] = expr, is_touched
        return is_touched

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        """The buffer with guards in its sizes: the same new buffer at each of its uses."""
        known = self._buffers.get(id(buffer))
        if known is None:
            known = self._buffers[id(buffer)] = buffer, self._defined_buffer(buffer)
        return known[1]

    def _defined_buffer(self, buffer: Buffer) -> Buffer:
        sizes = (*buffer.shape, *buffer.strides, buffer.elem_offset)
        if not any(may_be_undefined(part) for part in collect(sizes, _CANDIDATES)):
            return buffer
        apart = _DefineIntegers(self.ranges, Bounds(self.ranges), supports_nothing)
        return buffer.with_(
            shape=[apart.visit(extent) for extent in buffer.shape],
            strides=[apart.visit(stride) for stride in buffer.strides],
            elem_offset=apart.visit(buffer.elem_offset),
        )

    def visit_For(self, loop: s.For) -> s.Stmt:
        """The bounds of a loop get guards as well."""
        rebuilt = super().visit_For(loop)
        return rebuilt.with_(min=self.visit(loop.min), extent=self.visit(loop.extent))

    def visit_Allocate(self, stmt: s.Allocate) -> s.Stmt:
        """Extents get guards as well."""
        return super().visit_Allocate(stmt).with_(extents=self.visit(stmt.extents))

    def _defined(self, given: PrimExpr, expr: PrimExpr) -> PrimExpr:
        if not may_be_undefined(given):
            return expr
        return self.definer.defined(given, expr, self.wanted(given.dtype.lanes))

    def visit_Div(self, expr: e.Div) -> PrimExpr:
        return self._defined(expr, self.visit_default(expr))

    visit_Mod = visit_FloorDiv = visit_FloorMod = visit_Cast = visit_Div

    def visit_Call(self, call: e.Call) -> PrimExpr:
        return self._defined(call, super().visit_Call(call))


def is_undefined(expr: PrimExpr, supported: Supported) -> bool:
    """Whether an operation may need guards on a target with these instructions."""
    if isinstance(expr, e.Cast) and supported(expr) and clipped(expr.value, expr.dtype) is None:
        return False
    return may_be_undefined(expr)


def define_integers(func: PrimFunc, supported: Supported = supports_nothing) -> PrimFunc:
    """The function with guards around its integer operations (see the module's docstring)."""
    if not any(is_undefined(expr, supported) for expr in collect(func.body, _CANDIDATES)):
        return func
    return func.with_(body=_DefineIntegers(*facts_of(func), supported).visit(func.body))


DefineIntegers = define_pass("DefineIntegers", define_integers)
