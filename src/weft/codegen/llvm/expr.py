"""Expressions: one function per node class, found through ``EXPRESSIONS``.

``index`` gives integer expressions as i64: arithmetic that provably does not wrap in its own type
is done in 64 bits, so that addresses need no widening inside loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard

from weft.codegen.llvm import memory, padded_runs
from weft.codegen.llvm.calls import call, test
from weft.codegen.llvm.convert import convert, mangled, upper_half
from weft.codegen.llvm.emitted import scope
from weft.codegen.llvm.emitter import Binding, Emitter
from weft.codegen.llvm.integer import divide
from weft.codegen.llvm.types import (
    bfloat_constant,
    float_constant,
    int_constant,
    llvm_type,
    with_lanes,
)
from weft.ir.expr import FloatImm, IntImm, PrimExpr, StringImm
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.lowering.building import constant_of
from weft.tir.lowering.facts import is_call

_I64: Final = DataType("int64")


def _int_imm(em: Emitter, expr: Any) -> str:
    return int_constant(expr.value, expr.dtype)


def _float_imm(em: Emitter, expr: Any) -> str:
    if expr.dtype.kind == "bfloat":
        return bfloat_constant(expr.value)
    return float_constant(expr.value, llvm_type(expr.dtype))


def _string_imm(em: Emitter, expr: Any) -> str:
    return em.context.string(expr.value)


def _var(em: Emitter, expr: Any) -> str:
    return em.variable(expr)


def _arithmetic(int_op: str, float_op: str) -> Callable[[Emitter, Any], str]:
    def emit(em: Emitter, expr: Any) -> str:
        dtype = expr.dtype
        a, b = em.value(expr.a), em.value(expr.b)
        if dtype.is_float:
            return float_operation(em, float_op, dtype, a, b)
        if dtype.is_bool:
            return em.b.op(f"{_BOOLEAN[int_op]} {llvm_type(dtype)} {a}, {b}")
        flags = ""
        if dtype.is_int and dtype.bits >= 32 and em.ranges.exact(expr) is not None:
            flags = "nsw "
        return em.b.op(f"{int_op} {flags}{llvm_type(dtype)} {a}, {b}")

    return emit


_BOOLEAN: Final = {"add": "or", "sub": "xor", "mul": "and"}  # true + true is true


def float_operation(em: Emitter, op: str, dtype: DataType, a: str, b: str) -> str:
    """One floating-point operation: sums and products are contractible."""
    contracts = em.contracts and op in ("fadd", "fsub", "fmul")
    flags = "contract " if contracts else ""
    return em.b.op(f"{op} {flags}{llvm_type(dtype)} {a}, {b}")


def _division(floor: bool, remainder: bool) -> Callable[[Emitter, Any], str]:
    def emit(em: Emitter, expr: Any) -> str:
        if not expr.dtype.is_float:
            return divide(em, expr, floor, remainder)
        a, b = em.value(expr.a), em.value(expr.b)
        if not floor:
            return float_operation(em, "frem" if remainder else "fdiv", expr.dtype, a, b)
        return _float_floor(em, expr.dtype, a, b, remainder)

    return emit


def _float_floor(em: Emitter, dtype: DataType, a: str, b: str, remainder: bool) -> str:
    """floor(a / b), or a - floor(a / b) * b, each step rounded to the type."""
    kind = llvm_type(dtype)
    floor = _float_call(em, "floor", dtype, em.b.op(f"fdiv {kind} {a}, {b}"))
    if not remainder:
        return floor
    product = em.b.op(f"fmul {kind} {floor}, {b}")
    return em.b.op(f"fsub {kind} {a}, {product}")


def _float_call(em: Emitter, name: str, dtype: DataType, *args: str) -> str:
    kind = llvm_type(dtype)
    return em.b.call(f"llvm.{name}.{mangled(dtype)}", kind, [(kind, arg) for arg in args])


def _extreme(word: str, keep: str) -> Callable[[Emitter, Any], str]:
    """Min and Max; of floats they return a NaN operand."""

    def emit(em: Emitter, expr: Any) -> str:
        dtype = expr.dtype
        a, b, kind = em.value(expr.a), em.value(expr.b), llvm_type(dtype)
        if not dtype.is_float:
            sign = "s" if dtype.is_int else "u"
            return em.b.call(f"llvm.{sign}{word}.{mangled(dtype)}", kind, [(kind, a), (kind, b)])
        for value, other, constant in ((a, b, expr.b), (b, a, expr.a)):
            if _is_plain_constant(constant):
                flag = em.b.op(f"fcmp {keep} {kind} {value}, {other}")
                flags = with_lanes("i1", dtype.lanes)
                return em.b.op(f"select {flags} {flag}, {kind} {other}, {kind} {value}")
        if em.context.has_maximum or dtype.lanes == 1:
            return _float_call(em, f"{word}imum", dtype, a, b)
        return _extreme_of(em, word, dtype, a, b)

    return emit


def _extreme_of(em: Emitter, word: str, dtype: DataType, a: str, b: str) -> str:
    """Min or Max of vectors from two of the processor's own, which give the second of two zeros
    and where there is a NaN.

    Both orders agree on all else. Their bits joined are NaN where one is, and -0.0 of two zeros; of
    the sign Max takes what is common: that is the majority of both and of a mask of all other bits.
    """
    kind, ints = llvm_type(dtype), with_lanes(f"i{dtype.bits}", dtype.lanes)
    orders = [_one_order(em, word, dtype, *pair) for pair in ((a, b), (b, a))]
    bits = [em.b.op(f"bitcast {kind} {chosen} to {ints}") for chosen in orders]
    if word == "max":
        rest = f"splat (i{dtype.bits} {(1 << (dtype.bits - 1)) - 1})"
        found = _majority(em, dtype, bits[0], bits[1], rest)
    else:
        found = em.b.op(f"or {ints} {bits[0]}, {bits[1]}")
    return em.b.op(f"bitcast {ints} {found} to {kind}")


def _one_order(em: Emitter, word: str, dtype: DataType, a: str, b: str) -> str:
    """The processor's own Min or Max: ``b`` where both are zeros or one is a NaN."""
    kind = llvm_type(dtype)
    own = em.context.intrinsics.get(f"{word} f{dtype.bits}x{dtype.lanes}")
    if own is not None and em.context.any_bits:
        # LLVM may make a comparison and a choice, as of integers, of what follows
        return em.b.call(own.name, kind, [(kind, a), (kind, b), *own.rest])
    test = "ogt" if word == "max" else "olt"
    flag = em.b.op(f"fcmp {test} {kind} {a}, {b}")
    flags = with_lanes("i1", dtype.lanes)
    return em.b.op(f"select {flags} {flag}, {kind} {a}, {kind} {b}")


def _majority(em: Emitter, dtype: DataType, a: str, b: str, rest: str) -> str:
    """The bits that two of three have; LLVM finds no single instruction for it by itself."""
    ints = with_lanes(f"i{dtype.bits}", dtype.lanes)
    own = em.context.intrinsics.get(f"majority i{dtype.bits}x{dtype.lanes}")
    if own is not None and em.context.any_bits:
        return em.b.call(own.name, ints, [(ints, a), (ints, b), (ints, rest), *own.rest])
    common = em.b.op(f"and {ints} {a}, {b}")
    either = em.b.op(f"or {ints} {a}, {b}")
    third = em.b.op(f"or {ints} {common}, {rest}")
    return em.b.op(f"and {ints} {either}, {third}")


def _is_plain_constant(expr: PrimExpr) -> bool:
    expr = expr.value if isinstance(expr, e.Broadcast) else expr
    return isinstance(expr, FloatImm) and expr.value == expr.value


_ORDER: Final = {
    e.EQ: ("eq", "eq", "oeq"), e.NE: ("ne", "ne", "une"), e.LT: ("slt", "ult", "olt"),
    e.LE: ("sle", "ule", "ole"), e.GT: ("sgt", "ugt", "ogt"), e.GE: ("sge", "uge", "oge"),
}  # fmt: skip


def _compare(em: Emitter, expr: Any, is_unsigned: bool = False) -> str:
    dtype = expr.a.dtype
    signed, unsigned, floating = _ORDER[type(expr)]
    if is_unsigned or not dtype.is_int:
        signed = unsigned
    if dtype.is_float:
        a, b = em.value(expr.a), em.value(expr.b)
        return em.b.op(f"fcmp {floating} {llvm_type(dtype)} {a}, {b}")
    if dtype.is_int and dtype.lanes == 1 and _is_index(em, expr.a) and _is_index(em, expr.b):
        return em.b.op(f"icmp {signed} i64 {em.index(expr.a)}, {em.index(expr.b)}")
    a, b = em.value(expr.a), em.value(expr.b)
    return em.b.op(f"icmp {signed} {llvm_type(dtype)} {a}, {b}")


def _is_index(em: Emitter, expr: PrimExpr) -> bool:
    """Whether the expression is over loop variables and constants, and best done in 64 bits."""
    if isinstance(expr, e.Var):
        return em.binding(expr).wide is not None
    if isinstance(expr, e.Cast) and expr.dtype is _I64 and expr.value.dtype.is_int:
        return _is_index(em, expr.value)
    if not isinstance(expr, e.Add | e.Sub | e.Mul):
        return isinstance(expr, IntImm)
    known = em.emitted.index_like.get(id(expr))
    if known is None:
        is_index = (_is_index(em, expr.a) and _is_index(em, expr.b)
                    and em.ranges.exact(expr) is not None)  # fmt: skip
        known = em.emitted.index_like[id(expr)] = expr, is_index
    return known[1]


def _logical(word: str) -> Callable[[Emitter, Any], str]:
    """And, Or: both sides."""

    def emit(em: Emitter, expr: Any) -> str:
        a, b = em.value(expr.a), em.value(expr.b)
        return em.b.op(f"{word} {llvm_type(expr.dtype)} {a}, {b}")

    return emit


def _any_call(em: Emitter, expr: Any) -> str:
    """Calls; the test of an index is one comparison."""
    if is_call(expr, "bitwise_and") and _is_inside(em, *expr.args):
        return _compare(em, expr.args[1], is_unsigned=True)
    return call(em, expr)


def _is_inside(em: Emitter, low: Any, high: Any) -> bool:
    """Whether it is ``0 <= x`` and ``x < n`` with an ``n`` that is not negative."""
    return (
        isinstance(low, e.LE) and isinstance(high, e.LT) and low.b is high.a
        and constant_of(low.a) == 0 and high.a.dtype.is_int and em.ranges.of(high.b)[0] >= 0
    )  # fmt: skip


def _not(em: Emitter, expr: e.Not) -> str:
    ones = "true" if expr.dtype.lanes == 1 else "splat (i1 true)"
    return em.b.op(f"xor {llvm_type(expr.dtype)} {em.value(expr.a)}, {ones}")


def _select(em: Emitter, expr: e.Select) -> str:
    """Both sides evaluated, one chosen, lane by lane."""
    lanes, kind = expr.condition.dtype.lanes, llvm_type(expr.dtype)
    flag = em.value(expr.condition)
    yes, no = em.value(expr.true_value), em.value(expr.false_value)
    return em.b.op(f"select {with_lanes('i1', lanes)} {flag}, {kind} {yes}, {kind} {no}")


def if_then_else(em: Emitter, expr: Any) -> str:
    """``tir.if_then_else``: only the chosen side is evaluated."""
    condition, *arms = expr.args
    found = padded_runs.value(em, condition, *arms)
    return _choose(em, expr, condition, arms) if found is None else found


def _choose(em: Emitter, expr: Any, condition: Any, arms: Sequence[Any]) -> str:
    b = em.b
    labels = (b.label("then"), b.label("else"), b.label("merge"))
    branch_on(em, condition, labels[0], labels[1])
    incoming = []
    for label, arm in ((labels[0], arms[0]), (labels[1], arms[1])):
        b.start(label)
        with scope(em):
            value = em.value(arm)
        incoming.append((value, b.block))
        b.branch(labels[2])
    b.start(labels[2])
    return b.phi(llvm_type(expr.dtype), incoming)


def branch_on(em: Emitter, condition: Any, then: str, other: str, weights: str = "") -> None:
    """End the block with a jump; Not and a choice become control flow."""
    if is_call(condition, "likely"):
        branch_on(em, condition.args[0], then, other, "!0")
    elif isinstance(condition, e.Not):
        branch_on(em, condition.a, other, then)
    elif is_call(condition, "if_then_else"):
        _branch_on_choice(em, condition, then, other)
    else:
        em.b.branch_if(em.value(condition), then, other, weights)


def _branch_on_choice(em: Emitter, choice: e.Call, then: str, other: str) -> None:
    """``if_then_else(c, x, y)`` as a condition: a jump to the test of ``x`` or to that of ``y``."""
    condition, *arms = choice.args
    constants = [constant_of(arm) for arm in arms]
    labels = [
        em.b.label("also") if value is None else then if value else other for value in constants
    ]
    branch_on(em, condition, labels[0], labels[1])
    for arm, label, value in zip(arms, labels, constants, strict=True):
        if value is not None:
            continue
        em.b.start(label)
        with scope(em):
            branch_on(em, arm, then, other)


def _cast(em: Emitter, expr: e.Cast) -> str:
    value = expr.value
    if is_upper_half(value, expr.dtype):
        return upper_half(em.b, em.value(value.args[0]), expr.dtype)
    if isinstance(value, e.Add | e.Sub | e.Mul) and _is_of_halves(value, expr.dtype):
        operands = f"{em.value(value.a)}, {em.value(value.b)}"
        operand = em.b.op(f"{_OF_FLOATS[type(value)]} {llvm_type(value.dtype)} {operands}")
    else:
        operand = em.value(value)
    return convert(em.b, operand, value.dtype, expr.dtype)


_OF_FLOATS: Final = {e.Add: "fadd", e.Sub: "fsub", e.Mul: "fmul"}


def _is_of_halves(expr: e.BinaryExpr, target: DataType) -> bool:
    """Whether a sum or product of float16, done in float32, is rounded to float16.

    LLVM does it in float16 where the processor can, and would then contract two of them to one
    that is rounded once.
    """
    return target.element == "float16" and all(
        isinstance(part, e.Cast) and part.value.dtype.element == "float16"
        for part in (expr.a, expr.b)
    )


def is_upper_half(value: PrimExpr, target: DataType) -> TypeGuard[e.Call]:
    """Whether it is cast to the upper 16 of 32 bits: ``T.shift_right(bits, 16)``, to uint16."""
    return (
        is_call(value, "shift_right") and target.element == "uint16"
        and value.dtype.element == "uint32" and constant_of(value.args[1]) == 16
    )  # fmt: skip


def _ramp(em: Emitter, expr: Any) -> str:
    dtype = expr.dtype
    kind, element = llvm_type(dtype), llvm_type(dtype.element)
    base = memory.broadcast(em, em.value(expr.base), dtype)
    stride = constant_of(expr.stride)
    numbers = range(dtype.lanes)
    if stride is not None:
        steps = ", ".join([f"{element} {int_constant(n * stride, dtype.element)}" for n in numbers])
        return em.b.op(f"add {kind} {base}, <{steps}>")
    lanes = ", ".join([f"{element} {n}" for n in numbers])
    step = memory.broadcast(em, em.value(expr.stride), dtype)
    scaled = em.b.op(f"mul {kind} {step}, <{lanes}>")
    return em.b.op(f"add {kind} {base}, {scaled}")


def _broadcast(em: Emitter, expr: Any) -> str:
    value = em.value(expr.value)
    if expr.dtype.lanes == 1:
        return value
    if isinstance(expr.value, IntImm | FloatImm):
        return f"splat ({llvm_type(expr.value.dtype)} {value})"
    return memory.broadcast(em, value, expr.dtype)


def _shuffle(em: Emitter, expr: e.Shuffle) -> str:
    """Whole vectors that are put together or picked from as such, else lane by lane."""
    if all(isinstance(vector, IntImm | FloatImm) for vector in expr.vectors):
        return _constant_vector(em, expr)
    kinds = {vector.dtype for vector in expr.vectors}
    number = len(expr.vectors)
    if len(kinds) == 1 and len(expr.indices) > 1 and expr.vectors[0].dtype.lanes > 1:
        lanes = expr.vectors[0].dtype.lanes
        order = [_constant_lane(em, index, number * lanes) for index in expr.indices]
        values = [em.value(vector) for vector in expr.vectors]
        if number <= 2:
            return _picked(em, values, expr.vectors[0].dtype, order)
        if order == [*range(number * lanes)] and number.bit_count() == 1:
            return _joined(em, values, expr.vectors[0].dtype)
    return _lane_by_lane(em, expr)


def _constant_vector(em: Emitter, expr: e.Shuffle) -> str:
    """Numbers side by side."""
    order = [_constant_lane(em, index, len(expr.vectors)) for index in expr.indices]
    values = [em.value(expr.vectors[at]) for at in order]
    element = llvm_type(expr.dtype.element)
    return values[0] if len(values) == 1 else f"<{', '.join([f'{element} {v}' for v in values])}>"


def _picked(em: Emitter, values: Sequence[str], dtype: DataType, order: Sequence[int]) -> str:
    """Lanes of one or two vectors."""
    kind, other = llvm_type(dtype), values[1] if len(values) > 1 else "poison"
    mask = ", ".join([f"i32 {lane}" for lane in order])
    return em.b.op(
        f"shufflevector {kind} {values[0]}, {kind} {other}, <{len(order)} x i32> <{mask}>"
    )


def _joined(em: Emitter, values: Sequence[str], dtype: DataType) -> str:
    """Vectors, as many as a power of two, one after the other."""
    while len(values) > 1:
        order = [*range(2 * dtype.lanes)]
        values = [
            _picked(em, values[at : at + 2], dtype, order) for at in range(0, len(values), 2)
        ]
        dtype = dtype.element.with_lanes(2 * dtype.lanes)
    return values[0]


def _lane_by_lane(em: Emitter, expr: e.Shuffle) -> str:
    count = sum(vector.dtype.lanes for vector in expr.vectors)
    order = [_constant_lane(em, index, count) for index in expr.indices]
    lanes: list[tuple[str, str, int]] = []
    operands = [em.value(vector) for vector in expr.vectors]
    for vector, operand in zip(expr.vectors, operands, strict=True):
        kind = llvm_type(vector.dtype)
        lanes += [(operand, kind, lane) for lane in range(vector.dtype.lanes)]
    picked = [lanes[at] for at in order]
    element = llvm_type(expr.dtype.element)
    scalars = [
        operand if kind == element else em.b.op(f"extractelement {kind} {operand}, i64 {lane}")
        for operand, kind, lane in picked
    ]
    if len(scalars) == 1:
        return scalars[0]
    kind, result = llvm_type(expr.dtype), "poison"
    for lane, scalar in enumerate(scalars):
        result = em.b.op(f"insertelement {kind} {result}, {element} {scalar}, i64 {lane}")
    return result


def _constant_lane(em: Emitter, index: Any, count: int) -> int:
    value = constant_of(index)
    if value is None or not 0 <= value < count:
        raise em.internal(f"expected constant shuffle indices below {count}")
    return value


def _let(em: Emitter, expr: e.Let) -> str:
    is_again = id(expr.var) in em.env
    define(em, expr.var, expr.value)
    if not is_again:
        return em.value(expr.body)
    with scope(em, is_apart=True):
        return em.value(expr.body)


def define(em: Emitter, var: e.Var, value: PrimExpr) -> None:
    """Bind a variable to a value for what follows."""
    if var.dtype.is_int and var.dtype.lanes == 1 and _is_index(em, value):
        em.bind(var, Binding(None, em.index(value)))
    else:
        em.bind(var, Binding(em.value(value)))
    if var.dtype.is_integral and var.dtype.lanes == 1:
        em.ranges.define(var, value)


EXPRESSIONS: Final[dict[type, Callable[[Emitter, Any], str]]] = {
    IntImm: _int_imm, FloatImm: _float_imm, StringImm: _string_imm, e.Var: _var, e.SizeVar: _var,
    e.Add: _arithmetic("add", "fadd"), e.Sub: _arithmetic("sub", "fsub"),
    e.Mul: _arithmetic("mul", "fmul"), e.Div: _division(False, False),
    e.Mod: _division(False, True), e.FloorDiv: _division(True, False),
    e.FloorMod: _division(True, True), e.Min: _extreme("min", "ogt"),
    e.Max: _extreme("max", "olt"), e.EQ: _compare, e.NE: _compare, e.LT: _compare,
    e.LE: _compare, e.GT: _compare, e.GE: _compare, e.And: _logical("and"), e.Or: _logical("or"),
    e.Not: _not, e.Select: _select, e.Cast: _cast, e.Ramp: _ramp, e.Broadcast: _broadcast,
    e.Shuffle: _shuffle, e.Let: _let, e.Call: _any_call, BufferLoad: memory.load,
}  # fmt: skip


def index(em: Emitter, expr: PrimExpr) -> str:
    """An integer expression as i64 (module docstring)."""
    if isinstance(expr, IntImm):
        return str(expr.value)
    if isinstance(expr, e.Var):
        wide = em.binding(expr).wide
        if wide is not None:
            return wide
    elif isinstance(expr, e.Add | e.Sub | e.Mul):
        if expr.dtype.is_int and em.ranges.exact(expr) is not None:
            return _index_arithmetic(em, expr)
    elif isinstance(expr, e.FloorDiv | e.FloorMod | e.Div | e.Mod):
        divisor = constant_of(expr.b)
        if divisor is not None and divisor > 0 and em.ranges.of(expr.a)[0] >= 0:
            word = "udiv" if isinstance(expr, e.FloorDiv | e.Div) else "urem"
            return em.b.op(f"{word} i64 {em.index(expr.a)}, {divisor}")
    elif isinstance(expr, e.Min | e.Max) and expr.dtype.is_int:
        name = "llvm.smin.i64" if isinstance(expr, e.Min) else "llvm.smax.i64"
        return em.b.call(name, "i64", [("i64", em.index(expr.a)), ("i64", em.index(expr.b))])
    elif isinstance(expr, e.Cast) and expr.value.dtype.is_integral:
        if em.ranges.of(expr.value) == em.ranges.of(expr):
            return em.index(expr.value)
    elif is_call(expr, "likely"):
        return em.index(expr.args[0])
    elif is_call(expr, "checked"):
        test(em, expr)
        return em.index(expr.args[0])
    return convert(em.b, em.value(expr), expr.dtype, _I64)


def _index_arithmetic(em: Emitter, expr: Any) -> str:
    a, b = em.index(expr.a), em.index(expr.b)
    if isinstance(expr, e.Add):
        return memory.plus(em, a, b)
    if isinstance(expr, e.Mul):
        return memory.times(em, a, b)
    if a[0] != "%" and b[0] != "%":
        return str(int(a) - int(b))
    return em.b.op(f"sub nsw i64 {a}, {b}")
