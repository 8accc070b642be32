"""Conversions between scalar types, and arithmetic of the 16-bit floats.

float16 and bfloat16 are computed in float32 and rounded after each TensorIR operation (design.md
3.14). bfloat16 is rounded by integer arithmetic, since the processor's own instruction flushes
subnormals; float64 goes to 16 bits through a float32 rounded to odd, so that it is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.codegen.llvm.types import float_constant, llvm_type, with_lanes
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir.expr import Cast

if TYPE_CHECKING:
    from weft.codegen.llvm.builder import FunctionBuilder
    from weft.codegen.llvm.context import ModuleContext

_ELEMENT: Final = {"float16": "f16", "bfloat16": "i16", "float32": "f32", "float64": "f64"}


def is_short_float(dtype: DataType) -> bool:
    """Whether the type is float16 or bfloat16, of any lanes."""
    return dtype.is_float and dtype.bits == 16


def widened(dtype: DataType) -> DataType:
    """The type in which arithmetic on ``dtype`` is done."""
    if not is_short_float(dtype):
        return dtype
    return DataType("float32") if dtype.lanes == 1 else DataType("float32").with_lanes(dtype.lanes)


def mangled(dtype: DataType) -> str:
    """The suffix of an overloaded LLVM intrinsic: ``f32``, ``v16i32``."""
    element = _ELEMENT.get(dtype.element) or f"i{dtype.bits}"
    return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"


def splat_int(value: int, bits: int, lanes: int) -> str:
    """An integer constant of that width, repeated."""
    return str(value) if lanes == 1 else f"splat (i{bits} {value})"


def convert(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """``value`` of type ``source`` as ``target``."""
    if source is target:
        return value
    if source.is_handle or target.is_handle:
        return _convert_handle(b, value, source, target)
    if target.is_bool:
        return _to_bool(b, value, source)
    if source.is_integral:
        if target.is_integral:
            return _int_to_int(b, value, source, target)
        return _int_to_float(b, value, source, target)
    if target.is_integral:
        return _float_to_int(b, value, source, target)
    return _float_to_float(b, value, source, target)


def _convert_handle(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    if source.is_handle and target.is_integral:
        return b.op(f"ptrtoint ptr {value} to {llvm_type(target)}")
    if target.is_handle and source.is_integral:
        return b.op(f"inttoptr {llvm_type(source)} {value} to ptr")
    raise UnsupportedError(f"there is no conversion from {source} to {target}")


def _to_bool(b: FunctionBuilder, value: str, source: DataType) -> str:
    kind = llvm_type(source)
    if source.is_integral:
        return b.op(f"icmp ne {kind} {value}, {zero(source)}")
    if source.kind == "bfloat":
        value, source = _float_to_float(b, value, source, widened(source)), widened(source)
        kind = llvm_type(source)
    return b.op(f"fcmp une {kind} {value}, {zero(source)}")


def zero(dtype: DataType) -> str:
    """The zero of a type."""
    if dtype.lanes != 1:
        return "zeroinitializer"
    return "0.0" if dtype.is_float and dtype.kind != "bfloat" else "0"


def _int_to_int(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    if source.bits == target.bits:
        return value
    word = "trunc" if target.bits < source.bits else "sext" if source.is_int else "zext"
    return b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")


def _int_to_float(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    word = "sitofp" if source.is_int else "uitofp"
    if not is_short_float(target):
        return b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")
    middle = _of(target, "float32" if source.bits <= 16 else "float64")
    wide = b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(middle)}")
    return _float_to_float(b, wide, middle, target)


def _float_to_int(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    if is_short_float(source):
        wide = widened(source)
        value, source = _float_to_float(b, value, source, wide), wide
    if target.bits <= 16 and has_own_truncation(b.context, source):
        return _truncated(b, value, source, target)
    word = "fptosi" if target.is_int else "fptoui"
    name = f"llvm.{word}.sat.{mangled(target)}.{mangled(source)}"
    return b.call(name, llvm_type(target), [(llvm_type(source), value)])


def cut(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """A float that is in the range of an integer type, as that type."""
    word = "fptosi" if target.is_int else "fptoui"
    return b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")


def saturates(context: ModuleContext, expr: Any) -> bool:
    """Whether the processor has instructions for a conversion that ends where the type ends."""
    return (
        isinstance(expr, Cast) and expr.dtype.bits <= 16
        and has_own_truncation(context, widened(expr.value.dtype))
    )  # fmt: skip


_WHOLE: Final = 16
"""Lanes of float32 in a vector of AVX-512."""


def has_own_truncation(context: ModuleContext, source: DataType) -> bool:
    """Whether a vector is made of some that one instruction of AVX-512 truncates."""
    lanes = source.lanes
    return (
        context.any_bits and source.bits == 32 and lanes >= _WHOLE and lanes & (lanes - 1) == 0
    )  # fmt: skip


def _truncated(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """float32 to integers of at most 16 bits: between the ends, NaN as 0.

    The processor makes its least int32 of what is out of range: of all that is too small, which a
    maximum of integers raises to the lower end, and of NaN, which is masked where that end is not
    0.
    """
    lanes, floats = target.lanes, llvm_type(source)
    ints, flags = with_lanes("i32", lanes), with_lanes("i1", lanes)
    low = -(1 << (target.bits - 1)) if target.is_int else 0
    high = _splat_float(float(low + (1 << target.bits) - 1), source)
    above = b.op(f"fcmp ogt {floats} {value}, {high}")
    within = b.op(f"select {flags} {above}, {floats} {high}, {floats} {value}")
    number = _own_truncation(b, within, lanes)
    bounds = [(ints, number), (ints, splat_int(low, 32, lanes))]
    number = b.call(f"llvm.smax.v{lanes}i32", ints, bounds)
    if low:
        ordered = b.op(f"fcmp ord {floats} {value}, {zero(source)}")
        number = b.op(f"select {flags} {ordered}, {ints} {number}, {ints} {zero(source)}")
    return b.op(f"trunc {ints} {number} to {llvm_type(target)}")


def _own_truncation(b: FunctionBuilder, value: str, lanes: int) -> str:
    """A power of two of float32 as int32 by the processor's own instruction."""
    floats, ints = with_lanes("float", lanes), with_lanes("i32", lanes)
    if lanes == _WHOLE:
        rest = [(ints, "zeroinitializer"), ("i16", "-1"), ("i32", "4")]  # no mask, no rounding
        return b.call("llvm.x86.avx512.mask.cvttps2dq.512", ints, [(floats, value), *rest])
    half, parts = lanes // 2, []
    for places in (range(half), range(half, lanes)):
        part = _picked(b, floats, value, "poison", places)
        parts.append(_own_truncation(b, part, half))
    return _picked(b, with_lanes("i32", half), parts[0], parts[1], range(lanes))


def _picked(b: FunctionBuilder, kind: str, one: str, other: str, places: Sequence[int]) -> str:
    """Lanes of two vectors."""
    order = ", ".join([f"i32 {place}" for place in places])
    mask = f"<{len(places)} x i32> <{order}>"
    return b.op(f"shufflevector {kind} {one}, {kind} {other}, {mask}")


def _splat_float(value: float, dtype: DataType) -> str:
    """A constant of a float type, repeated."""
    element = llvm_type(dtype.element)
    number = float_constant(value, element)
    return number if dtype.lanes == 1 else f"splat ({element} {number})"


def _of(dtype: DataType, element: str) -> DataType:
    return DataType(element) if dtype.lanes == 1 else DataType(element).with_lanes(dtype.lanes)


def _float_to_float(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    if source.kind == "bfloat":
        value, source = _bfloat_to_float32(b, value, source), widened(source)
        if source is target:
            return value
    if source.bits < target.bits:
        return b.op(f"fpext {llvm_type(source)} {value} to {llvm_type(target)}")
    if not is_short_float(target):
        return b.op(f"fptrunc {llvm_type(source)} {value} to {llvm_type(target)}")
    if source.bits == 16:
        middle = widened(source)
        value, source = _float_to_float(b, value, source, middle), middle
    elif source.bits == 64:
        value, source = _round_to_odd(b, value, source), _of(source, "float32")
    if target.kind == "bfloat":
        return _round_to_bfloat(b, value, target)
    return b.op(f"fptrunc {llvm_type(source)} {value} to {llvm_type(target)}")


def _round_to_bfloat(b: FunctionBuilder, value: str, target: DataType) -> str:
    """float32 to bfloat16, to nearest even; a NaN keeps its upper bits and becomes quiet."""
    lanes = target.lanes
    floats, ints = with_lanes("float", lanes), with_lanes("i32", lanes)
    bits = b.op(f"bitcast {floats} {value} to {ints}")
    raised = _raised(b, bits, lanes)
    quiet = b.op(f"or {ints} {bits}, {splat_int(64 << 16, 32, lanes)}")
    nan = b.op(f"fcmp uno {floats} {value}, {value}")
    flags = with_lanes("i1", lanes)
    chosen = b.op(f"select {flags} {nan}, {ints} {quiet}, {ints} {raised}")
    return _upper_half(b, chosen, target)


def _raised(b: FunctionBuilder, bits: str, lanes: int) -> str:
    """Bits of float32 whose upper half is the nearest bfloat16, the even one of two."""
    ints = with_lanes("i32", lanes)
    const = [splat_int(n, 32, lanes) for n in (16, 1, 32767)]
    high = b.op(f"lshr {ints} {bits}, {const[0]}")
    odd = b.op(f"and {ints} {high}, {const[1]}")
    bias = b.op(f"add {ints} {odd}, {const[2]}")
    return b.op(f"add {ints} {bits}, {bias}")


def short_operation(b: FunctionBuilder, word: str, dtype: DataType, *operands: str) -> str:
    """An operation on 16-bit floats, rounded once."""
    if dtype.kind == "bfloat" and dtype.lanes % 2 == 0 and word != "frem":
        return _bfloat_operation(b, word, dtype, *operands)
    wide = widened(dtype)
    values = [convert(b, value, dtype, wide) for value in operands]
    return convert(b, b.op(f"{word} {llvm_type(wide)} {', '.join(values)}"), wide, dtype)


def _bfloat_operation(b: FunctionBuilder, word: str, dtype: DataType, *operands: str) -> str:
    """An operation on vectors of bfloat16, an even number: on every second lane, and on the others.

    Two lanes are a 32-bit number: a shift or a mask makes a float32 of either, and a mask and a
    shift join the results, where lanes in order would be moved between vectors. A NaN of operands
    whose lower halves are 0 has such a half too, so that rounding leaves it as it is.
    """
    lanes = dtype.lanes // 2
    floats, ints = with_lanes("float", lanes), with_lanes("i32", lanes)
    sixteen, mask = splat_int(16, 32, lanes), splat_int(-1 << 16, 32, lanes)
    pairs = [b.op(f"bitcast {llvm_type(dtype)} {value} to {ints}") for value in operands]
    raised = []
    for text in (f"shl {ints} {{}}, {sixteen}", f"and {ints} {{}}, {mask}"):
        bits = [b.op(text.format(pair)) for pair in pairs]
        values = [b.op(f"bitcast {ints} {one} to {floats}") for one in bits]
        result = b.op(f"{word} {floats} {', '.join(values)}")
        raised.append(_raised(b, b.op(f"bitcast {floats} {result} to {ints}"), lanes))
    lower = b.op(f"lshr {ints} {raised[0]}, {sixteen}")
    upper = b.op(f"and {ints} {raised[1]}, {mask}")
    joined = b.op(f"or {ints} {lower}, {upper}")
    return b.op(f"bitcast {ints} {joined} to {llvm_type(dtype)}")


_INFINITY: Final = {"float": 0x7C00, "bfloat": 0x7F80}
"""Kind of a 16-bit float -> the bits of its largest number, all above which are NaN."""


def short_extreme(b: FunctionBuilder, word: str, dtype: DataType, *operands: str) -> str:
    """Min or Max of 16-bit floats by their bits: NaN where one is, -0.0 below 0.0, all of it exact.

    Integers, where the magnitude of negative numbers is flipped, run from NaN to NaN by way of the
    zeros. Counted round from the lower infinity NaN are the largest, for Max; counted from behind
    the upper one they are the least, for Min.
    """
    lanes, kind = dtype.lanes, llvm_type(dtype)
    shorts = with_lanes("i16", lanes)
    beyond = _INFINITY[dtype.kind] + 1
    start = splat_int(beyond if word == "max" else -beyond, 16, lanes)
    counted = []
    for value in operands:
        ordered = _flipped(b, b.op(f"bitcast {kind} {value} to {shorts}"), lanes)
        counted.append(b.op(f"add {shorts} {ordered}, {start}"))
    name = f"llvm.u{word}.{'' if lanes == 1 else f'v{lanes}'}i16"
    found = b.call(name, shorts, [(shorts, one) for one in counted])
    bits = _flipped(b, b.op(f"sub {shorts} {found}, {start}"), lanes)
    return b.op(f"bitcast {shorts} {bits} to {kind}")


def _flipped(b: FunctionBuilder, bits: str, lanes: int) -> str:
    """Sign and magnitude as an integer of that order, and back."""
    shorts = with_lanes("i16", lanes)
    sign = b.op(f"ashr {shorts} {bits}, {splat_int(15, 16, lanes)}")
    rest = b.op(f"and {shorts} {sign}, {splat_int(0x7FFF, 16, lanes)}")
    return b.op(f"xor {shorts} {bits}, {rest}")


def _upper_half(b: FunctionBuilder, bits: str, target: DataType) -> str:
    """The upper 16 of 32 bits: where one instruction of AVX-512 takes words from two vectors, every
    second word; elsewhere packing is as fast, for which LLVM wants a shift and a truncation.
    """
    lanes, ints = target.lanes, with_lanes("i32", target.lanes)
    if b.context.vector_bits < 512 or lanes == 1:
        upper = b.op(f"lshr {ints} {bits}, {splat_int(16, 32, lanes)}")
        return b.op(f"trunc {ints} {upper} to {llvm_type(target)}")
    kind = with_lanes("i16", 2 * lanes)
    words = b.op(f"bitcast {ints} {bits} to {kind}")
    return _picked(b, kind, words, "poison", range(1, 2 * lanes, 2))


def _bfloat_to_float32(b: FunctionBuilder, value: str, source: DataType) -> str:
    """Exact: the bits of a bfloat16 are the upper half of those of a float32."""
    lanes = source.lanes
    ints = with_lanes("i32", lanes)
    bits = b.op(f"zext {llvm_type(source)} {value} to {ints}")
    high = b.op(f"shl {ints} {bits}, {splat_int(16, 32, lanes)}")
    return b.op(f"bitcast {ints} {high} to {with_lanes('float', lanes)}")


def _round_to_odd(b: FunctionBuilder, value: str, source: DataType) -> str:
    """float64 to float32: exact, or the neighbour whose last bit is 1."""
    lanes = source.lanes
    floats, ints, flags = (with_lanes(k, lanes) for k in ("float", "i32", "i1"))
    doubles = llvm_type(source)
    near = b.op(f"fptrunc {doubles} {value} to {floats}")
    back = b.op(f"fpext {floats} {near} to {doubles}")
    inexact = b.op(f"fcmp one {doubles} {back}, {value}")
    name = f"llvm.fabs.{mangled(source)}"
    size, back_size = (b.call(name, doubles, [(doubles, v)]) for v in (value, back))
    over = b.op(f"fcmp ogt {doubles} {back_size}, {size}")
    bits = b.op(f"bitcast {floats} {near} to {ints}")
    step = b.op(f"zext {flags} {over} to {ints}")
    towards_zero = b.op(f"sub {ints} {bits}, {step}")
    odd = b.op(f"or {ints} {towards_zero}, {splat_int(1, 32, lanes)}")
    chosen = b.op(f"select {flags} {inexact}, {ints} {odd}, {ints} {bits}")
    return b.op(f"bitcast {ints} {chosen} to {floats}")
