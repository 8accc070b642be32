"""WidenShortFloats: arithmetic on float16 and bfloat16 becomes float32 arithmetic and roundings.

TensorIR defines each operation on them as one in float32 whose result is rounded. So it needs no
instruction that a processor may lack. A bfloat16 is the upper half of the bits of a float32::

    a + b                     T.Cast("float16", T.Cast("float32", a) + T.Cast("float32", b))
    T.Cast("float32", a)      T.reinterpret("float32", T.shift_left(T.Cast("uint32",
                                  T.reinterpret("uint16", a)), 16))         # of a bfloat16
    T.Cast("float16", x)      T.Cast("float16", y), of a float64 x; y is x in float32, rounded in
                              such a way that rounding it again gives the nearest float16 of x

After this pass the only operations on such types are conversions between float16 and float32, and
of float16 to float64; all else moves their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.expr import FloatImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.buffer import Buffer
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import BINARY_FLOAT, UNARY_FLOAT, intrinsic, reinterpret
from weft.tir.lowering.building import Names, like
from weft.tir.lowering.effects import effects_of, return_type
from weft.tir.op import const
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass

_ROUNDED_ONCE: Final = (e.Add, e.Sub, e.Mul, e.Div)
_ARITHMETIC: Final = (*_ROUNDED_ONCE, e.Mod, e.FloorDiv, e.FloorMod, e.Min, e.Max)
_FUNCTIONS: Final = frozenset(
    f"tir.{name}"
    for name in [*UNARY_FLOAT, *BINARY_FLOAT, *"fabs pow fma isnan isinf isfinite".split(),
                 "reduce_lanes"]
)  # fmt: skip
_PACKED: Final = "packed"
_ROUNDINGS: Final = frozenset(f"tir.{name}" for name in "floor ceil trunc round nearbyint".split())


def is_short(dtype: DataType) -> bool:
    """Whether the type is float16 or bfloat16, with any number of lanes."""
    return dtype.is_float and dtype.bits == 16


def widen(value: PrimExpr) -> PrimExpr:
    """A short float as float32, which holds each of them exactly."""
    wide = like("float32", value.dtype)
    number = value.value if isinstance(value, e.Broadcast) else value
    if isinstance(number, FloatImm):
        return const(number.value, wide)
    if value.dtype.kind != "bfloat":
        return e.Cast(wide, value)
    bits = e.Cast(like("uint32", wide), reinterpret(like("uint16", wide), value))
    return reinterpret(wide, _shift("left", bits, 16))


def narrow(value: PrimExpr, target: DataType) -> PrimExpr:
    """A float32 or float64 as the nearest short float; of two, the one whose last bit is 0.

    A bfloat16 is the upper half of the bits once ``_raised`` has rounded them. That would carry
    some NaN over to 0, so that NaN keep their upper half, with the bit that makes it a NaN set.
    """
    if value.dtype.bits == 64:
        value = _rounded_to_odd(value)
    if target.kind != "bfloat":
        return e.Cast(target, value)
    names = Names()
    x = names.of("x", value)
    bits = names.of("bits", reinterpret(like("uint32", target), x))
    quiet = intrinsic(bits.dtype, "bitwise_or", bits, const(64 << 16, bits.dtype))
    chosen = e.Select(e.NE(x, x), quiet, _raised(bits))  # x != x: NaN
    half = e.Cast(like("uint16", target), _shift("right", chosen, 16))
    return names.around(reinterpret(target, half))


def _raised(bits: PrimExpr) -> PrimExpr:
    """Bits of a float32 plus what makes their upper half the nearest bfloat16.

    ``0x7FFF`` is added, and 1 more where the last bit of the upper half is 1: what is more than
    half a step goes up by the carry, half a step goes to the even neighbour::

        0x3F80_8000    half a step above 0x3F80    0x3F80_FFFF → 0x3F80
        0x3F81_8000    half a step above 0x3F81    0x3F82_0000 → 0x3F82
    """
    odd = intrinsic(bits.dtype, "bitwise_and", _shift("right", bits, 16), const(1, bits.dtype))
    return e.Add(bits, e.Add(odd, const(32767, bits.dtype)))


def _rounded_to_odd(value: PrimExpr) -> PrimExpr:
    """float64 to float32: the number itself, or of its two neighbours the one whose last bit is 1.

    Rounded to the nearest, a number a little above half a step of float16 would become exactly half
    a step, and then be rounded down. Rounded to odd it stays above: the last bit tells that there
    was more.
    """
    names, wide = Names(), value.dtype
    x = names.of("x", value)
    near = names.of("near", e.Cast(like("float32", wide), x))
    back = names.of("back", e.Cast(wide, near))
    bits = reinterpret(like("uint32", wide), near)
    sizes = [intrinsic(wide, "fabs", number) for number in (back, x)]
    towards_zero = e.Sub(bits, e.Cast(bits.dtype, e.GT(*sizes)))
    odd = intrinsic(bits.dtype, "bitwise_or", towards_zero, const(1, bits.dtype))
    return names.around(e.Select(e.NE(back, x), reinterpret(near.dtype, odd), near))


def _shift(way: str, bits: PrimExpr, count: int) -> PrimExpr:
    return intrinsic(bits.dtype, f"shift_{way}", bits, const(count, bits.dtype))


# Arithmetic.


def arithmetic(expr: e.BinaryExpr) -> PrimExpr:
    """An operation on two short floats, by float32."""
    kind, dtype = type(expr), expr.dtype
    if isinstance(expr, (e.Min, e.Max)):
        return _extreme(expr)
    if isinstance(expr, _ROUNDED_ONCE) and dtype.kind == "bfloat" and dtype.lanes % 2 == 0:
        return _in_pairs(expr)
    if not isinstance(expr, (e.FloorDiv, e.FloorMod)):
        return narrow(kind(widen(expr.a), widen(expr.b)), dtype)
    names = Names()
    a, b = (widen(names.of(name, x)) for name, x in (("a", expr.a), ("b", expr.b)))
    quotient = narrow(e.Div(a, b), dtype)
    floor = narrow(intrinsic(a.dtype, "floor", widen(quotient)), dtype)
    if isinstance(expr, e.FloorDiv):
        return names.around(floor)
    product = narrow(e.Mul(widen(floor), b), dtype)
    return names.around(narrow(e.Sub(a, widen(product)), dtype))


def _in_pairs(expr: e.BinaryExpr) -> PrimExpr:
    """An operation on vectors of bfloat16 with an even number of lanes: even and odd lanes apart.

    Two lanes are seen as one number of 32 bits. A shift makes a float32 of the even lane, a mask
    one of the odd lane; a shift and a mask join the results. To widen the lanes in order, they
    would have to be moved between vectors::

        lanes 1 and 0 as one number      0x4000_3F80     (2.0 and 1.0)
        even lanes, as float32           0x3F80_0000     shifted left
        odd lanes, as float32            0x4000_0000     masked

    NaN need no care here: the lower half of the operands' bits is 0, so that of a NaN is 0, too,
    and ``_raised`` does not carry.
    """
    names, lanes = Names(), expr.dtype.lanes // 2
    words = DataType("uint32") if lanes == 1 else DataType("uint32").with_lanes(lanes)
    pairs = [
        names.of(name, reinterpret(words, value)) for name, value in (("a", expr.a), ("b", expr.b))
    ]
    upper = const(0xFFFF0000, words)
    halves: tuple[Callable[[PrimExpr], PrimExpr], ...] = (
        lambda pair: _shift("left", pair, 16),
        lambda pair: intrinsic(words, "bitwise_and", pair, upper),
    )
    raised = []
    for name, half in zip(("even", "odd"), halves, strict=True):
        a, b = (reinterpret(like("float32", words), half(pair)) for pair in pairs)
        raised.append(_raised(names.of(name, reinterpret(words, type(expr)(a, b)))))
    low = _shift("right", raised[0], 16)
    high = intrinsic(words, "bitwise_and", raised[1], upper)
    joined = intrinsic(words, "bitwise_or", low, high)
    return names.around(reinterpret(expr.dtype, joined))


_INFINITY: Final = {"float": 0x7C00, "bfloat": 0x7F80}
"""Kind of a short float -> the bits of its infinity; larger ones, without the sign, are NaN."""


def _extreme(expr: e.BinaryExpr) -> PrimExpr:
    """Min or Max by bits: NaN where either is NaN, -0.0 below 0.0, without any rounding.

    ``_flipped`` makes integers of the numbers in their order::

        -NaN ... -infinity ... -0.0, 0.0 ... infinity ... NaN

    As unsigned numbers that wrap, they are counted from another start. For Max they are counted
    from -infinity, so that both kinds of NaN come last; for Min from behind infinity, so that they
    come first.
    """
    dtype = expr.dtype
    words, signed = like("uint16", dtype), like("int16", dtype)
    beyond = _INFINITY[dtype.kind] + 1
    start = const(beyond if isinstance(expr, e.Max) else -beyond, signed)
    counted = [
        e.Cast(words, e.Add(_flipped(reinterpret(signed, value)), start))
        for value in (expr.a, expr.b)
    ]
    extreme = e.Cast(signed, type(expr)(*counted))
    return reinterpret(dtype, _flipped(e.Sub(extreme, start)))


def _flipped(value: PrimExpr) -> PrimExpr:
    """The bits of a short float as an integer of its order, and back: the same operation does both.

    Of a negative number all bits but the sign are flipped: ``0x8000`` (-0.0) → ``0xFFFF`` (-1).
    """
    names = Names()
    bits = names.of("bits", value)
    magnitude = const(0x7FFF, bits.dtype)
    rest = intrinsic(bits.dtype, "bitwise_and", _shift("right", bits, 15), magnitude)
    return names.around(intrinsic(bits.dtype, "bitwise_xor", bits, rest))


# Conversions and calls.


def converted(cast: e.Cast) -> PrimExpr:
    """A conversion from or to a short float."""
    value, target = cast.value, cast.dtype
    source = value.dtype
    if source is target:
        return value
    if is_short(source):
        if source.kind == "float" and target.is_float and target.bits >= 32:
            return cast
        value = widen(value)
        if target.is_bool:
            return e.NE(value, const(0, value.dtype))
    elif source.is_integral:
        middle = "float32" if source.bits <= 16 else "float64"
        value = e.Cast(like(middle, target), value)
    if not is_short(target):
        return value if value.dtype is target else e.Cast(target, value)
    if target.kind == "float" and value.dtype.bits == 32 and value is cast.value:
        return cast
    return narrow(value, target)


def called(call: e.Call) -> PrimExpr:
    """A call that takes or returns short floats, by float32; a packed function, by float64."""
    if call.op.name.endswith(_PACKED):  # packed functions take and return float64
        args = [e.Cast("float64", x) if _is_short_value(x) else x for x in call.args]
        if is_short(call.dtype):
            return narrow(call.with_(dtype=DataType("float64"), args=args), call.dtype)
        return call.with_(args=args)
    args = [widen(x) if _is_short_value(x) else x for x in call.args]
    if not is_short(call.dtype):
        return call.with_(args=args)
    if call.op.name in _ROUNDINGS:
        return _rounded(call, args[0])
    return narrow(call.with_(dtype=like("float32", call.dtype), args=args), call.dtype)


def _rounded(call: e.Call, wide: PrimExpr) -> PrimExpr:
    """The whole number near ``wide``, with the sign of that, which it has anyway.

    But for the sign LLVM would see a conversion of the rounded number, and round in float16, which
    most processors do by a call for each lane.
    """
    names = Names()
    x = names.of("x", wide)
    whole = call.with_(dtype=x.dtype, args=[x])
    return names.around(narrow(intrinsic(x.dtype, "copysign", whole, x), call.dtype))


def _is_short_value(value: object) -> bool:
    return isinstance(value, PrimExpr) and is_short(value.dtype)


class _Widen(StmtMutator):
    def __init__(self, returned: DataType | None) -> None:
        self.returned = returned

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def visit_BinaryExpr(self, expr: e.BinaryExpr) -> PrimExpr:
        rebuilt: PrimExpr = self.visit_default(expr)
        if isinstance(rebuilt, _ARITHMETIC) and is_short(rebuilt.dtype):
            return arithmetic(rebuilt)
        return rebuilt

    def visit_CompareExpr(self, expr: e.CompareExpr) -> PrimExpr:
        rebuilt: e.CompareExpr = self.visit_default(expr)
        if not is_short(rebuilt.a.dtype):
            return rebuilt
        return type(rebuilt)(widen(rebuilt.a), widen(rebuilt.b))

    def visit_Cast(self, cast: e.Cast) -> PrimExpr:
        rebuilt: e.Cast = self.visit_default(cast)
        is_ours = is_short(rebuilt.dtype) or is_short(rebuilt.value.dtype)
        return converted(rebuilt) if is_ours else rebuilt

    def visit_Call(self, call: e.Call) -> PrimExpr:
        rebuilt: e.Call = self.visit_default(call)
        if is_call(call, "ret") and self.returned is not None:
            value = e.Cast(self.returned, rebuilt.args[0])
            is_ours = is_short(self.returned) or _is_short_value(rebuilt.args[0])
            return call.with_(args=[converted(value)]) if is_ours else rebuilt
        if not isinstance(call.op, Op) or not any(map(_is_short_value, (call, *call.args))):
            return rebuilt
        is_ours = call.op.name in _FUNCTIONS or call.op.name.endswith(_PACKED)
        return called(rebuilt) if is_ours else rebuilt


def widen_short_floats(func: PrimFunc) -> PrimFunc:
    """The function with its arithmetic in float32 (see the module's docstring)."""
    kinds = (e.BinaryExpr, e.Cast, e.Call)
    if not any(_has_short(expr) for expr in collect(func.body, kinds)):
        return func
    returned = return_type(func, effects_of(func))
    return func.with_(body=_Widen(returned).visit(func.body))


def _has_short(expr: PrimExpr) -> bool:
    if is_short(expr.dtype):
        return True
    if isinstance(expr, e.CompareExpr):
        return is_short(expr.a.dtype)
    if isinstance(expr, e.Cast):
        return is_short(expr.value.dtype)
    return isinstance(expr, e.Call) and any(map(_is_short_value, expr.args))


WidenShortFloats = define_pass("WidenShortFloats", widen_short_floats)
