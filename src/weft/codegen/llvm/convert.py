"""Conversions between types that take an instruction or two.

``weft.tir.lowering`` has written the others as TensorIR: conversions of bfloat16, roundings to 16
bits, and floats to integers that end where the type ends, unless the processor has those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.llvm import half_bits
from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.context import ModuleContext
from weft.codegen.llvm.types import float_constant, llvm_type, with_lanes
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir.expr import Cast

_ELEMENT: Final = {"float16": "f16", "bfloat16": "i16", "float32": "f32", "float64": "f64"}


def mangled(dtype: DataType) -> str:
    """A type as it stands in the name of an overloaded LLVM intrinsic: ``f32``, ``v16i32``."""
    element = _ELEMENT.get(dtype.element) or f"i{dtype.bits}"
    return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"


def splat_int(value: int, bits: int, lanes: int) -> str:
    """An integer constant in each of ``lanes`` lanes."""
    return str(value) if lanes == 1 else f"splat (i{bits} {value})"


def convert(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """The operand ``value`` of type ``source``, converted to type ``target``."""
    if source is target:
        return value
    if source.is_handle or target.is_handle:
        return _convert_handle(b, value, source, target)
    if "bfloat" in (source.kind, target.kind):
        raise UnsupportedError(
            f"there is no conversion from {source} to {target} here; write it as T.Cast"
        )
    if target.is_bool:
        return _to_bool(b, value, source)
    if source.is_integral:
        if target.is_integral:
            return _int_to_int(b, value, source, target)
        return _int_to_float(b, value, source, target)
    if target.is_integral:
        if source.bits == 16 and not b.context.converts_half:
            value = half_bits.extended(b, value, source.lanes)
            source = DataType("float32").with_lanes(source.lanes)
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
    return b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")


def _float_to_int(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """Cut off the fraction; what is out of range becomes the nearest end, NaN becomes 0."""
    if target.bits <= 16 and has_own_truncation(b.context, source):
        return _truncated(b, value, source, target)
    word = "fptosi" if target.is_int else "fptoui"
    name = f"llvm.{word}.sat.{mangled(target)}.{mangled(source)}"
    return b.call(name, llvm_type(target), [(llvm_type(source), value)])


def cut(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """Cut off the fraction of a float that is known to be within an integer type."""
    word = "fptosi" if target.is_int else "fptoui"
    return b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")


def rounds_to(context: ModuleContext, source: DataType, target: DataType) -> bool:
    """Whether one instruction rounds floats to the nearest integers: float32 to int32."""
    return context.rounds and (source.bits, target.bits, target.is_int) == (32, 32, True)


def rounded(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """The nearest integer, the even one of two, of a float that is known to be within a type."""
    name = f"llvm.lrint.{mangled(target)}.{mangled(source)}"
    return b.call(name, llvm_type(target), [(llvm_type(source), value)])


def saturates(context: ModuleContext, expr: object) -> bool:
    """Whether ``expr`` is a Cast of floats to integers that ``_truncated`` does in a few
    instructions: to at most 16 bits, what is out of range becoming the nearest end.
    """
    return (
        isinstance(expr, Cast)
        and expr.dtype.bits <= 16
        and has_own_truncation(context, expr.value.dtype)
    )


_WHOLE: Final = 16
"""How many float32 a vector register of AVX-512 holds."""


def has_own_truncation(context: ModuleContext, source: DataType) -> bool:
    """Whether a vector of float32 fills 1, 2, 4 ... registers that AVX-512 truncates by itself."""
    lanes = source.lanes
    return context.any_bits and source.bits == 32 and lanes >= _WHOLE and lanes & (lanes - 1) == 0


def _truncated(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    """float32 to integers of at most 16 bits: out of range the nearest end, NaN becomes 0.

    The processor's truncation to int32 gives the least int32, -2147483648, for what int32 cannot
    hold. So to int8::

        300.0    the upper end is taken first, as a float      127.0 → 127
        -1e10    -2147483648, raised to the lower end          -128
        NaN      -2147483648, raised as well                   -128, then replaced by 0

    Where the lower end is 0 (unsigned types) NaN needs no replacing.
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
    """float32 to int32 by the processor's own instruction, register by register.

    ``lanes`` is 16 times a power of two: longer vectors are halved until each half is a register.
    """
    floats, ints = with_lanes("float", lanes), with_lanes("i32", lanes)
    if lanes == _WHOLE:
        rest = [(ints, "zeroinitializer"), ("i16", "-1"), ("i32", "4")]  # no mask, no rounding
        return b.call("llvm.x86.avx512.mask.cvttps2dq.512", ints, [(floats, value), *rest])
    half, parts = lanes // 2, []
    for places in (range(half), range(half, lanes)):
        part = _picked(b, floats, value, "poison", places)
        parts.append(_own_truncation(b, part, half))
    return _picked(b, with_lanes("i32", half), parts[0], parts[1], range(lanes))


def _picked(b: FunctionBuilder, kind: str, low: str, high: str, places: Sequence[int]) -> str:
    """The lanes ``places`` of two vectors laid side by side."""
    order = ", ".join([f"i32 {place}" for place in places])
    mask = f"<{len(places)} x i32> <{order}>"
    return b.op(f"shufflevector {kind} {low}, {kind} {high}, {mask}")


def _splat_float(value: float, dtype: DataType) -> str:
    """A float constant in every lane of ``dtype``."""
    element = llvm_type(dtype.element)
    number = float_constant(value, element)
    return number if dtype.lanes == 1 else f"splat ({element} {number})"


def _float_to_float(b: FunctionBuilder, value: str, source: DataType, target: DataType) -> str:
    single = DataType("float32").with_lanes(source.lanes)
    if source.bits == 16 and not b.context.converts_half:
        return convert(b, half_bits.extended(b, value, source.lanes), single, target)
    if target.bits == 16 and not b.context.converts_half:
        return half_bits.shortened(b, convert(b, value, source, single), source.lanes)
    word = "fpext" if source.bits < target.bits else "fptrunc"
    return b.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")


def upper_half(b: FunctionBuilder, bits: str, target: DataType) -> str:
    """The upper 16 of the 32 bits of each lane: ``0x3F80ABCD`` → ``0x3F80``.

    With AVX-512 the vector is seen as twice as many words of 16 bits, of which the second, fourth
    ... are picked: LLVM has one instruction for that. Elsewhere it is a shift and a truncation,
    which LLVM makes a pack of two vectors.
    """
    lanes, ints = target.lanes, with_lanes("i32", target.lanes)
    if b.context.vector_bits < 512 or lanes == 1:
        upper = b.op(f"lshr {ints} {bits}, {splat_int(16, 32, lanes)}")
        return b.op(f"trunc {ints} {upper} to {llvm_type(target)}")
    kind = with_lanes("i16", 2 * lanes)
    words = b.op(f"bitcast {ints} {bits} to {kind}")
    return _picked(b, kind, words, "poison", range(1, 2 * lanes, 2))
