"""Calls: intrinsics (through ``INTRINSICS``), functions of C, packed functions, PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.codegen.llvm import integer, memory, packed, parallel, whole_registers
from weft.codegen.llvm.builder import COLD
from weft.codegen.llvm.convert import convert, cut, mangled, rounded, rounds_to, zero
from weft.codegen.llvm.emitted import scope
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.types import int_constant, llvm_type, memory_type, with_lanes
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, StringImm
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.op import Op
from weft.runtime.call.abi import FaultKind
from weft.support.dtype import DataType
from weft.support.errors import CodegenError, UnsupportedError
from weft.tir import expr as e
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.exact_steps import exact_steps
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.building import like
from weft.tir.lowering.clipped import is_rounded
from weft.tir.lowering.mathematics.library import LIBRARY

Handler = Callable[[Emitter, e.Call], str]


def call(em: Emitter, expr: e.Call) -> str:
    """The operand of a call; ``0`` for one that has no value."""
    result = _call(em, expr)
    if effect_of(expr) >= CallEffectKind.UpdateState:
        em.moment += 1
    return result


def _call(em: Emitter, expr: e.Call) -> str:
    if isinstance(expr.op, GlobalVar):
        return packed.call_function(em, expr)
    name = expr.op.name.removeprefix("tir.") if isinstance(expr.op, Op) else str(expr.op)
    handler = INTRINSICS.get(name)
    if handler is None:
        raise UnsupportedError(
            f"{em.function.name}: the intrinsic {name} is not available on this target"
        )
    return handler(em, expr)


def _library(name: str) -> Handler:
    """A function of the C library on a scalar: ``exp`` calls ``exp`` or, of float32, ``expf``."""

    def emit(em: Emitter, expr: e.Call) -> str:
        dtype = expr.dtype
        if not dtype.is_float:
            raise UnsupportedError(
                f"{em.function.name}: {name} of {dtype} is not available; cast to a float (pow of "
                "integers takes a constant exponent that is not negative)"
            )
        if dtype.lanes != 1:
            raise em.internal(f"expected {name} of a scalar, got {dtype}")
        kind = llvm_type(dtype)
        args = [(kind, em.value(arg)) for arg in expr.args]
        return em.b.call(name + ("f" if dtype.bits == 32 else ""), kind, args)

    return emit


def _ldexp(em: Emitter, expr: e.Call) -> str:
    """``T.ldexp(x, n)`` = ``x * 2**n``; ``n`` may have any type and is converted to int32."""
    x, n = expr.args
    counts = like("int32", expr.dtype)
    count = convert(em.b, em.value(n), n.dtype, counts)
    name, kind = f"llvm.ldexp.{mangled(expr.dtype)}.{mangled(counts)}", llvm_type(expr.dtype)
    return em.b.call(name, kind, [(kind, em.value(x)), (llvm_type(counts), count)])


def _llvm(name: str, arity: int = 1) -> Handler:
    """An intrinsic of LLVM that takes every float type, of the first ``arity`` arguments."""

    def emit(em: Emitter, expr: e.Call) -> str:
        kind = llvm_type(expr.dtype)
        args = [(kind, em.value(arg)) for arg in expr.args[:arity]]
        return em.b.call(f"llvm.{name}.{mangled(expr.dtype)}", kind, args)

    return emit


def _fabs(em: Emitter, expr: e.Call) -> str:
    """``T.fabs`` of floats and integers; an unsigned integer is its own absolute value."""
    dtype = expr.dtype
    if dtype.is_float:
        return _llvm("fabs")(em, expr)
    if not dtype.is_int:
        return em.value(expr.args[0])
    kind = llvm_type(dtype)
    args = [(kind, em.value(expr.args[0])), ("i1", "false")]
    return em.b.call(f"llvm.abs.{mangled(dtype)}", kind, args)


def _bitwise(word: str) -> Handler:
    def emit(em: Emitter, expr: e.Call) -> str:
        a, b = em.value(expr.args[0]), em.value(expr.args[1])
        return em.b.op(f"{word} {llvm_type(expr.dtype)} {a}, {b}")

    return emit


def _bitwise_not(em: Emitter, expr: e.Call) -> str:
    dtype = expr.dtype
    text = "true" if dtype.is_bool else "-1"
    if dtype.lanes != 1:
        text = f"splat ({llvm_type(dtype.element)} {text})"
    return em.b.op(f"xor {llvm_type(dtype)} {em.value(expr.args[0])}, {text}")


def _classify(test: str) -> Handler:
    """isnan, isinf or isfinite, by LLVM's comparison ``test``.

    A NaN is unordered (``uno``) with itself; the others compare ``|x|`` with infinity.
    """

    def emit(em: Emitter, expr: e.Call) -> str:
        dtype, value = expr.args[0].dtype, em.value(expr.args[0])
        kind = llvm_type(dtype)
        if test == "uno":
            return em.b.op(f"fcmp uno {kind} {value}, {value}")
        size = em.b.call(f"llvm.fabs.{mangled(dtype)}", kind, [(kind, value)])
        infinity = "0x7FF0000000000000"
        if dtype.lanes != 1:
            infinity = f"splat ({llvm_type(dtype.element)} {infinity})"
        return em.b.op(f"fcmp {test} {kind} {size}, {infinity}")

    return emit


def _first(em: Emitter, expr: e.Call) -> str:
    return em.value(expr.args[0])


def _checked(em: Emitter, expr: e.Call) -> str:
    """``T.checked(value, condition, ...)``: test the condition, then give the value."""
    test(em, expr)
    return em.value(expr.args[0])


def test(em: Emitter, expr: e.Call) -> None:
    """Emit the test of a ``T.checked``: unless its condition holds in every lane, the function
    leaves with a fault.
    """
    _, condition, kind, message, *numbers = expr.args
    good, lanes = em.value(condition), condition.dtype.lanes
    whole = good if lanes == 1 else _in_all_lanes(em, condition.dtype, good)
    text = f"{em.function.name}: {expect(message, StringImm).value}"
    label, fault = em.b.label("ok"), em.b.label("fault")
    em.b.branch_if(whole, label, fault, COLD)
    em.b.start(fault)
    with scope(em):
        shown = [_shown(em, number, good, lanes) for number in numbers]
    em.b.raise_fault(FaultKind[expect(kind, StringImm).value.upper()], text, *shown)
    em.b.start(label)


def _in_all_lanes(em: Emitter, flags: DataType, condition: str) -> str:
    """The i1 that is true where every lane of a vector of conditions is."""
    name = f"llvm.vector.reduce.and.v{flags.lanes}i1"
    return em.b.call(name, "i1", [(llvm_type(flags), condition)])


def _uncontracted(em: Emitter, expr: e.Call) -> str:
    """``T.uncontracted(value)``: the value, in which LLVM may not fuse a product with a sum."""
    outer, em.contracts = em.contracts, False
    value = em.value(expr.args[0])
    em.contracts = outer
    return value


def _shown(em: Emitter, number: PrimExpr, good: str, lanes: int) -> str:
    """A number that a message shows, as i64.

    Of a vector that is the largest one, as unsigned numbers, among the lanes that ``good`` refuses.
    """
    if number.dtype.lanes == 1:
        return em.index(number)
    wide, flags = DataType("int64").with_lanes(lanes), with_lanes("i1", lanes)
    kind, value = llvm_type(wide), convert(em.b, em.value(number), number.dtype, wide)
    bad = em.b.op(f"select {flags} {good}, {kind} zeroinitializer, {kind} {value}")
    return em.b.call(f"llvm.vector.reduce.umax.v{lanes}i64", "i64", [(kind, bad)])


def _is_exact(em: Emitter, expr: e.Call) -> str:
    """``T.is_exact(value)``: whether no sum, difference or product in it wraps.

    LLVM computes each step together with a flag that tells an overflow; the flags are joined.
    """
    wraps = ""
    for step in exact_steps(expr.args[0]):
        kind, operands = llvm_type(step.dtype), [em.value(step.a), em.value(step.b)]
        name = f"llvm.{_OVERFLOW[type(step)]}.with.overflow.{mangled(step.dtype)}"
        pair = em.b.call(name, f"{{ {kind}, i1 }}", [(kind, operand) for operand in operands])
        flag = em.b.op(f"extractvalue {{ {kind}, i1 }} {pair}, 1")
        wraps = em.b.op(f"or i1 {wraps}, {flag}") if wraps else flag
    return em.b.op(f"xor i1 {wraps}, true") if wraps else "true"


_OVERFLOW: Final = {e.Add: "sadd", e.Sub: "ssub", e.Mul: "smul"}


def _unchecked_cast(em: Emitter, expr: e.Call) -> str:
    """``T.unchecked_cast``: a float, known to be within an integer type, as that type.

    A float that is rounded first takes one instruction where the processor has it.
    """
    value = expr.args[0]
    if is_rounded(value) and rounds_to(em.b.context, value.dtype, expr.dtype):
        return rounded(em.b, em.value(value.args[0]), value.dtype, expr.dtype)
    return cut(em.b, em.value(value), value.dtype, expr.dtype)


def _assume(em: Emitter, expr: e.Call) -> str:
    """``T.assume``: tell LLVM, but only what needs no load or call to be computed."""
    condition = expr.args[0]
    if condition.dtype.lanes == 1 and not collect(condition, (BufferLoad, e.Call)):
        em.b.call("llvm.assume", "void", [("i1", em.value(condition))])
    return "true"


def _reinterpret(em: Emitter, expr: e.Call) -> str:
    source, target = expr.args[0].dtype, expr.dtype
    if source.bits * source.lanes != target.bits * target.lanes:
        raise CodegenError(
            f"{em.function.name}: reinterpret: expected two types of the same width, got {source} "
            f"and {target}"
        )
    value = em.value(expr.args[0])
    if source.is_handle != target.is_handle:
        return convert(em.b, value, source, target)
    if llvm_type(source) == llvm_type(target):
        return value
    return em.b.op(f"bitcast {llvm_type(source)} {value} to {llvm_type(target)}")


def _shift(left: bool) -> Handler:
    return lambda em, expr: integer.shift(em, expr, left)


def _large_uint(em: Emitter, expr: e.Call) -> str:
    """``large_uint_imm(low, high)``: a constant from its lower and upper 32 bits."""
    low, high = (expect(arg, IntImm).value for arg in expr.args)
    return int_constant((high << 32) + low, expr.dtype)


def _multiply_shift(em: Emitter, expr: e.Call) -> str:
    """``q_multiply_shift(x, y, q, s)``: ``x * y * 2**(s - q)`` rounded to the nearest integer.

    Computed in 64 bits: ``x`` is shifted left by ``max(s, 0)`` and multiplied by ``y``; adding half
    a unit and shifting right by the rest of the power rounds it, a half upwards.
    """
    dtype = expr.dtype
    wide = DataType("int64") if dtype.lanes == 1 else DataType("int64").with_lanes(dtype.lanes)
    kind = llvm_type(wide)
    x, y, q, s = [convert(em.b, em.value(arg), arg.dtype, wide) for arg in expr.args]
    left = em.b.call(f"llvm.smax.{mangled(wide)}", kind, [(kind, s), (kind, zero(wide))])
    right = em.b.op(f"sub {kind} {q}, {s}")
    right = em.b.op(f"add {kind} {right}, {left}")
    unit = "1" if dtype.lanes == 1 else "splat (i64 1)"
    product = em.b.op(f"mul {kind} {em.b.op(f'shl {kind} {x}, {left}')}, {y}")
    half = em.b.op(f"shl {kind} {unit}, {em.b.op(f'sub {kind} {right}, {unit}')}")
    total = em.b.op(f"add {kind} {product}, {half}")
    return convert(em.b, em.b.op(f"ashr {kind} {total}, {right}"), wide, dtype)


def _extern(em: Emitter, expr: e.Call) -> str:
    """``call_extern(name, ...)``: a function of C, or of this module. A Buffer is its pointer."""
    name = expr.args[0]
    if not isinstance(name, StringImm):
        raise CodegenError(f"{em.function.name}: call_extern expects the function's name first")
    args = [_extern_argument(em, arg) for arg in expr.args[1:]]
    result = "void" if expr.dtype == "void" else llvm_type(expr.dtype)
    if name.value in em.context.signatures:
        return packed.call_by_name(em, expr, name.value, expr.args[1:])
    return em.b.call(name.value, result, args) or "0"


def _extern_argument(em: Emitter, arg: PrimExpr | Buffer) -> tuple[str, str]:
    """The LLVM type and the operand of an argument."""
    if isinstance(arg, Buffer):
        return "ptr", em.variable(arg.data)
    return llvm_type(arg.dtype), em.value(arg)


def _llvm_intrinsic(em: Emitter, expr: e.Call) -> str:
    """``call_llvm_intrin(dtype, name, ...)``: an intrinsic of LLVM by its name.

    Behind the name there may be a uint32, which TVM uses to count argument types; it is ignored.
    """
    name, args = expr.args[0], list(expr.args[1:])
    if not isinstance(name, StringImm):
        raise CodegenError(
            f"{em.function.name}: expected the name of an LLVM intrinsic as text, got an id; "
            "write call_llvm_intrin(dtype, 'llvm.name', ...)"
        )
    if args and isinstance(args[0], IntImm) and args[0].dtype == "uint32":
        args = args[1:]
    result = "void" if expr.dtype == "void" else llvm_type(expr.dtype)
    args = [_as_flag(arg) for arg in args]
    values = [_extern_argument(em, arg) for arg in args]
    full = f"{name.value}.{mangled(expr.dtype)}" if name.value in _OVERLOADED else name.value
    return em.b.call(full, result, values) or "0"


def _as_flag(arg: PrimExpr) -> PrimExpr:
    """A constant of one bit, which TVM writes as an int1, as a bool."""
    if isinstance(arg, IntImm) and arg.dtype == "int1":
        return IntImm(DataType("bool"), int(arg.value != 0))
    return arg


_OVERLOADED: Final = frozenset(
    "llvm." + name
    for name in "fabs sqrt floor ceil trunc rint round roundeven nearbyint fma fmuladd exp exp2 "
    "log log2 log10 sin cos pow copysign minnum maxnum minimum maximum ctpop bswap bitreverse "
    "abs smax smin umax umin canonicalize ctlz cttz fshl fshr sadd.sat uadd.sat ssub.sat "
    "usub.sat".split()
)


def _address_of(em: Emitter, expr: e.Call) -> str:
    """``T.address_of(A[i])``, or of a whole buffer: a pointer."""
    target = expr.args[0]
    if isinstance(target, BufferLoad):
        return memory.element_pointer(em, target)
    if isinstance(target, Buffer):
        return em.variable(target.data)
    raise UnsupportedError(f"{em.function.name}: address_of expects an element of a buffer")


def _access_ptr(em: Emitter, expr: e.Call) -> str:
    """``tvm_access_ptr(element type, data, offset, ...)``: the pointer ``data + offset``."""
    kind, data, offset = expr.args[0].dtype, expr.args[1], expr.args[2]
    base, at = em.value(data), em.index(offset)
    if at == "0":
        return base
    return em.b.op(f"getelementptr {memory_type(kind)}, ptr {base}, i64 {at}")


def _half(upper: bool) -> Handler:
    """``vectorlow`` and ``vectorhigh``: the first or the last half of a vector's lanes."""

    def emit(em: Emitter, expr: e.Call) -> str:
        source, lanes = expr.args[0].dtype, expr.dtype.lanes
        numbers = range(lanes, 2 * lanes) if upper else range(lanes)
        kind = llvm_type(source)
        mask = ", ".join([f"i32 {n}" for n in numbers])
        value = em.value(expr.args[0])
        return em.b.op(f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{mask}>")

    return emit


def _combine(em: Emitter, expr: e.Call) -> str:
    """``vectorcombine(a, b)``: the lanes of both vectors, one behind the other."""
    kind, lanes = llvm_type(expr.args[0].dtype), expr.dtype.lanes
    a, b = em.value(expr.args[0]), em.value(expr.args[1])
    mask = ", ".join([f"i32 {n}" for n in range(lanes)])
    return em.b.op(f"shufflevector {kind} {a}, {kind} {b}, <{lanes} x i32> <{mask}>")


def _vscale(em: Emitter, expr: e.Call) -> str:
    raise UnsupportedError(
        f"{em.function.name}: T.vscale() needs scalable vectors, which this target has not; use a "
        "constant number of lanes"
    )


def _prefetch(em: Emitter, expr: e.Call) -> str:
    """``prefetch(element, write, locality, is_data)``: memory is asked to bring an element closer.

    The element may be given as ``A[i]``, which is not loaded, or as its address.
    """
    target = expr.args[0]
    if isinstance(target, e.Call) and len(target.args) == 1:
        target = target.args[0]  # the address of an element
    options = [arg.value for arg in expr.args[1:] if isinstance(arg, IntImm)]
    if not isinstance(target, BufferLoad) or len(options) != 3:
        raise UnsupportedError(
            f"{em.function.name}: prefetch: expected an element of a buffer and three constants "
            f"(write, locality, data), got {expr}"
        )
    pointer = memory.element_pointer(em, target)
    args = [("ptr", pointer), *[("i32", str(value)) for value in options]]
    em.b.call("llvm.prefetch.p0", "void", args)
    return "0"


def _nothing(em: Emitter, expr: e.Call) -> str:
    return "0"


def _reduce_lanes(em: Emitter, expr: e.Call) -> str:
    """``T.reduce_lanes``: the sum of a vector's lanes; floats are added in order from the first."""
    dtype = expr.args[0].dtype
    kind, value = llvm_type(dtype), em.value(expr.args[0])
    element = llvm_type(dtype.element)
    if dtype.is_float:
        return _float_sum(em, dtype, value)
    return em.b.call(f"llvm.vector.reduce.add.{mangled(dtype)}", element, [(kind, value)])


def _float_sum(em: Emitter, dtype: DataType, value: str) -> str:
    element, kind = llvm_type(DataType(dtype.element)), llvm_type(dtype)
    args = [(element, "0x8000000000000000"), (kind, value)]  # start at -0.0: -0.0 + x is x
    return em.b.call(f"llvm.vector.reduce.fadd.{mangled(dtype)}", element, args)


def _active_lanes(em: Emitter, expr: e.Call) -> str:
    """``get_active_lane_mask(i, n)``: a mask whose lane ``k`` is true where ``i + k < n``."""
    lanes = expr.dtype.lanes
    flags = with_lanes("i1", lanes)
    args = [("i64", em.index(expr.args[0])), ("i64", em.index(expr.args[1]))]
    return em.b.call(f"llvm.get.active.lane.mask.v{lanes}i1.i64", flags, args)


def _table_get(em: Emitter, expr: e.Call) -> str:
    """``table_get(table, i)``: the pointer at place ``i`` of an array of pointers."""
    table, position = em.value(expr.args[0]), em.index(expr.args[1])
    slot = em.b.op(f"getelementptr ptr, ptr {table}, i64 {position}")
    return em.b.op(f"load ptr, ptr {slot}, align 8")


INTRINSICS: Final[dict[str, Handler]] = {
    **{name: _library(name) for name in sorted(LIBRARY)}, "ldexp": _ldexp,
    "uncontracted": _uncontracted,
    "all_lanes": lambda em, expr: _in_all_lanes(em, expr.args[0].dtype, em.value(expr.args[0])),
    "scaleb": whole_registers.scaleb, "lookup": whole_registers.lookup,
    "dot_four_bytes": whole_registers.dot_four_bytes,
    "table_get": _table_get, "checked": _checked, "unchecked_cast": _unchecked_cast,
    "is_exact": _is_exact, "launch": parallel.launch,
    "sqrt": _llvm("sqrt"), "floor": _llvm("floor"), "ceil": _llvm("ceil"),
    "trunc": _llvm("trunc"), "nearbyint": _llvm("roundeven"), "round": _llvm("roundeven"),
    "fma": _llvm("fma", 3), "copysign": _llvm("copysign", 2), "fabs": _fabs,
    "bitwise_and": _bitwise("and"), "bitwise_or": _bitwise("or"), "bitwise_xor": _bitwise("xor"),
    "bitwise_not": _bitwise_not, "shift_left": _shift(True), "shift_right": _shift(False),
    "popcount": integer.popcount, "clz": integer.leading_zeros, "isnan": _classify("uno"),
    "isinf": _classify("oeq"), "isfinite": _classify("olt"),
    "isnullptr": lambda em, expr: em.b.op(f"icmp eq ptr {em.value(expr.args[0])}, null"),
    "undef": lambda em, expr: "null" if expr.dtype.is_handle else zero(expr.dtype),
    "likely": _first, "assume": _assume, "reinterpret": _reinterpret,
    "large_uint_imm": _large_uint, "q_multiply_shift": _multiply_shift,
    "if_then_else": lambda em, expr: em.tables.if_then_else(em, expr),
    "call_extern": _extern, "call_pure_extern": _extern, "call_llvm_intrin": _llvm_intrinsic,
    "call_llvm_pure_intrin": _llvm_intrinsic, "address_of": _address_of,
    "tvm_access_ptr": _access_ptr, "vectorlow": _half(False), "vectorhigh": _half(True),
    "vectorcombine": _combine, "vscale": _vscale, "reduce_lanes": _reduce_lanes,
    "ret": packed.return_value,
    "call_packed": packed.call_packed, "tvm_call_packed": packed.call_packed,
    "call_cpacked": packed.call_packed, "tvm_call_cpacked": packed.call_packed,
    "tvm_call_trace_packed": packed.call_traced,
    "break_loop": packed.leave_loop, "continue_loop": packed.leave_loop,
    "tvm_storage_sync": _nothing, "prefetch": _prefetch,
    "get_active_lane_mask": _active_lanes, "ignore_loop_partition": _first,
    "start_profile_intrinsic": _nothing, "end_profile_intrinsic": _nothing,
}  # fmt: skip
