"""DefineIntegers: integer operations that could trap or be undefined become explicit ones.

What TensorIR says of integers (no division by 0, the smallest number over -1 wraps, a count beyond
the width shifts everything out, a conversion saturates) no processor does in one instruction. After
this pass the operands say it, and code generation prints plain instructions::

    a // b                 d: T.checked(b, b != 0, "division", "integer division by zero")
                           T.Div(a, d), with one step down where the remainder's sign is not d's
    T.shift_left(a, n)     T.Select(inside, T.shift_left(a, T.Select(inside, n, 0)), 0)
                           where inside is T.Cast("uint32", n) < 32
    T.int32(x)             T.unchecked_cast("int32", x within the range of int32)

What is proved stays as it is. So after the pass the divisor of an integer ``Div`` or ``Mod`` is
neither 0 nor -1 under the smallest number, that of ``FloorDiv`` and ``FloorMod`` is positive, and
the count of a shift is below the width.

An extent, a stride or an offset of a buffer has guards that hold wherever the buffer is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.ir.expr import PrimExpr, integer_range
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.ir.sharing import parts_of
from weft.ir.transform import Pass
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import checked, unchecked_cast
from weft.tir.lowering.building import Names, constant_of, like
from weft.tir.lowering.facts import FactMutator, facts_of
from weft.tir.lowering.faults import DIVISIONS
from weft.tir.lowering.proofs import Bounds
from weft.tir.lowering.ranges import Ranges
from weft.tir.op import const
from weft.tir.transform.prim_func_pass import make_pass

_CANDIDATES: Final = (*DIVISIONS, e.Cast, e.Call)
_SHIFTS: Final = ("tir.shift_left", "tir.shift_right")

Supported = Callable[[PrimExpr], bool]
"""Whether the target has an instruction with the very meaning of an expression."""


def supports_nothing(expr: PrimExpr) -> bool:
    """A target that has no such instruction."""
    return False


def may_be_undefined(expr: Any) -> bool:
    """Whether an operation could trap or be undefined, by itself, as far as constants tell."""
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
    """Writes one operation, whose operands are defined, with the guards that it needs."""

    def __init__(self, ranges: Ranges, bounds: Bounds, supported: Supported) -> None:
        self.ranges, self.bounds, self.supported = ranges, bounds, supported

    def defined(
        self, given: PrimExpr, expr: PrimExpr, wanted: PrimExpr | None = None
    ) -> PrimExpr:
        """``expr``, which was ``given`` before its operands were defined, without a hidden fault.

        Lanes that are not ``wanted`` do not fault.
        """
        if isinstance(expr, DIVISIONS) and isinstance(given, DIVISIONS):
            return self._division(given, expr, wanted)
        if isinstance(expr, e.Cast):
            return expr if self.supported(expr) else _saturated(expr.value, expr.dtype)
        assert isinstance(expr, e.Call)
        assert isinstance(given, e.Call)
        if expr.op.name in _SHIFTS:
            return self._shift(given, expr)
        power = _saturated(expr.args[1], like("int32", expr.args[1].dtype))
        return expr.with_(args=(expr.args[0], power))

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
        floors = isinstance(expr, e.FloorDiv | e.FloorMod)
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
    """The divisor, which is tested; 1 in lanes that are not wanted."""
    if wanted is not None:
        divisor = e.Select(wanted, divisor, const(1, divisor.dtype))
    condition = e.NE(divisor, const(0, divisor.dtype))
    return checked(divisor, condition, "division", "integer division by zero")


def _signed(
    kind: type, names: Names, a: PrimExpr, divisor: PrimExpr, wraps: bool
) -> PrimExpr:
    """A division by a number that is not 0; by -1 it divides by 1 and negates what wraps."""
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
    dtype = call.dtype
    unsigned = like(f"uint{dtype.bits}", dtype)
    inside = names.of("inside", e.LT(e.Cast(unsigned, count), const(dtype.bits, unsigned)))
    if call.op.name == "tir.shift_right" and dtype.is_int:  # the sign is what is left
        count = e.Select(inside, count, const(dtype.bits - 1, count.dtype))
        return call.with_(args=(value, count))
    count = e.Select(inside, count, const(0, count.dtype))
    return e.Select(inside, call.with_(args=(value, count)), const(0, dtype))


def _saturated(value: PrimExpr, dtype: DataType) -> PrimExpr:
    """A float as an integer: between the ends of the type, and 0 for NaN.

    NaN is not above the lower end. So it is tested only where that end is not 0, while there are
    floats: processors that mask by comparisons do this in one instruction. Where the largest
    integer is no float, the largest float below it stands for it, and what is beyond is set last.
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

    def visit(self, node: Any) -> Any:
        """Expressions in which everything is defined stay as they are."""
        if isinstance(node, PrimExpr) and not (node.CHILDREN and self._is_touched(node)):
            return node
        return super().visit(node)

    def _is_touched(self, expr: Any) -> bool:
        known = self._touched.get(id(expr))
        if known is not None:
            return known[1]
        is_touched = is_undefined(expr, self.supported)
        for part in parts_of(expr) if not is_touched else ():
            if isinstance(part, PrimExpr) and self._is_touched(part):
                is_touched = True
                break
        if isinstance(expr, BufferLoad | e.Call) and not is_touched:
            buffers = [expr.buffer] if isinstance(expr, BufferLoad) else expr.args
            is_touched = any(
                isinstance(buffer, Buffer) and self.visit_Buffer(buffer) is not buffer
                for buffer in buffers
            )
        self._touched[id(expr)] = expr, is_touched
        return is_touched

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        """The buffer with guards in its sizes, the same one at each of its uses."""
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
        """Bounds are defined as well."""
        rebuilt = super().visit_For(loop)
        return rebuilt.with_(min=self.visit(loop.min), extent=self.visit(loop.extent))

    def visit_Allocate(self, stmt: s.Allocate) -> s.Stmt:
        """Extents are defined as well."""
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


def is_undefined(expr: Any, supported: Supported) -> bool:
    """Whether the pass has to look at an expression."""
    return may_be_undefined(expr) and not (isinstance(expr, e.Cast) and supported(expr))


def define_integers(func: PrimFunc, supported: Supported = supports_nothing) -> PrimFunc:
    """The function with explicit guards around integer operations (module docstring)."""
    if not any(is_undefined(expr, supported) for expr in collect(func.body, _CANDIDATES)):
        return func
    return func.with_(body=_DefineIntegers(*facts_of(func), supported).visit(func.body))


def DefineIntegers(supported: Supported = supports_nothing) -> Pass:
    """The pass; ``supported`` says which conversions the target saturates by itself."""
    return make_pass("DefineIntegers", lambda func: define_integers(func, supported))
