"""Expressions: one function for each class of node, found through ``EXPRESSIONS``.

``index`` gives an integer expression as i64, in which addresses are computed. Sums and products
that are known not to wrap in their own type are computed in 64 bits from the start, so that no
instruction inside a loop has to widen them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeGuard

from weft.codegen.llvm import memory, padded_runs, vectors
from weft.codegen.llvm.calls import call, test
from weft.codegen.llvm.convert import convert, mangled, upper_half
from weft.codegen.llvm.emitted import scope
from weft.codegen.llvm.emitter import Binding, Emitter, ExpressionHandler
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
from weft.tir.expr import is_call
from weft.tir.lowering.building import constant_of

_I64: Final = DataType("int64")


def _float_imm(em: Emitter, expr: FloatImm) -> str:
    if expr.dtype.kind == "bfloat":
        return bfloat_constant(expr.value)
    return float_constant(expr.value, llvm_type(expr.dtype))


def _var(em: Emitter, expr: e.Var) -> str:
    return em.variable(expr)


def _arithmetic(int_op: str, float_op: str) -> Callable[[Emitter, e.BinaryExpr], str]:
    def emit(em: Emitter, expr: e.BinaryExpr) -> str:
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
    """One operation on floats; LLVM may fuse products and sums unless ``em.contracts`` is off."""
    contracts = em.contracts and op in ("fadd", "fsub", "fmul")
    flags = "contract " if contracts else ""
    return em.b.op(f"{op} {flags}{llvm_type(dtype)} {a}, {b}")


def _division(floor: bool, remainder: bool) -> Callable[[Emitter, e.BinaryExpr], str]:
    def emit(em: Emitter, expr: e.BinaryExpr) -> str:
        if not expr.dtype.is_float:
            return divide(em, expr, floor, remainder)
        a, b = em.value(expr.a), em.value(expr.b)
        if not floor:
            return float_operation(em, "frem" if remainder else "fdiv", expr.dtype, a, b)
        return _float_floor(em, expr.dtype, a, b, remainder)

    return emit


def _float_floor(em: Emitter, dtype: DataType, a: str, b: str, remainder: bool) -> str:
    """``floor(a / b)`` of floats; ``remainder``: ``a - floor(a / b) * b``. Each step is rounded."""
    kind = llvm_type(dtype)
    floor = _float_call(em, "floor", dtype, em.b.op(f"fdiv {kind} {a}, {b}"))
    if not remainder:
        return floor
    product = em.b.op(f"fmul {kind} {floor}, {b}")
    return em.b.op(f"fsub {kind} {a}, {product}")


def _float_call(em: Emitter, name: str, dtype: DataType, *args: str) -> str:
    kind = llvm_type(dtype)
    return em.b.call(f"llvm.{name}.{mangled(dtype)}", kind, [(kind, arg) for arg in args])


def _extreme(word: str, keep: str) -> Callable[[Emitter, e.BinaryExpr], str]:
    """The function that emits Min or Max: NaN where an operand is NaN.

    ``word`` is ``min`` or ``max``; ``keep`` is the comparison of a float with a constant that is no
    NaN, under which the constant is the result.
    """

    def emit(em: Emitter, expr: e.BinaryExpr) -> str:
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
    """Min or Max of float vectors for a processor whose own instruction has other rules.

    That gives its second operand for two zeros, and where either operand is NaN. So it runs in both
    orders, which differ in these two cases only, and their bits are joined::

        a    b      orders        Min: or       Max: or, but "and" for the sign
        1.0  2.0    equal         as they are
        NaN  2.0    2.0, NaN      a NaN         a NaN
        0.0  -0.0   -0.0, 0.0     -0.0          0.0

    "or, but 'and' for the sign" is, bit by bit, the majority of both orders and of a mask that has
    ones in all places but the sign.
    """
    kind, ints = llvm_type(dtype), with_lanes(f"i{dtype.bits}", dtype.lanes)
    orders = [_one_order(em, word, dtype, *pair) for pair in ((a, b), (b, a))]
    bits = [em.b.op(f"bitcast {kind} {chosen} to {ints}") for chosen in orders]
    if word == "max":
        rest = f"splat (i{dtype.bits} {(1 << (dtype.bits - 1)) - 1})"
        joined = _majority(em, dtype, bits[0], bits[1], rest)
    else:
        joined = em.b.op(f"or {ints} {bits[0]}, {bits[1]}")
    return em.b.op(f"bitcast {ints} {joined} to {kind}")


def _one_order(em: Emitter, word: str, dtype: DataType, a: str, b: str) -> str:
    """The processor's own Min or Max: ``b`` where both are zeros or either is NaN."""
    kind = llvm_type(dtype)
    own = em.context.intrinsics.get(f"{word} f{dtype.bits}x{dtype.lanes}")
    if own is not None and em.context.any_bits:
        # by name: of a comparison and a choice LLVM may make one of integers, for the bits are
        # what is used of the result
        return em.b.call(own.name, kind, [(kind, a), (kind, b), *own.rest])
    test = "ogt" if word == "max" else "olt"
    flag = em.b.op(f"fcmp {test} {kind} {a}, {b}")
    flags = with_lanes("i1", dtype.lanes)
    return em.b.op(f"select {flags} {flag}, {kind} {a}, {kind} {b}")


def _majority(em: Emitter, dtype: DataType, a: str, b: str, rest: str) -> str:
    """Each bit is 1 where it is in at least two of three operands.

    It is asked for by name where it is one instruction, which LLVM does not find by itself.
    """
    ints = with_lanes(f"i{dtype.bits}", dtype.lanes)
    own = em.context.intrinsics.get(f"majority i{dtype.bits}x{dtype.lanes}")
    if own is not None and em.context.any_bits:
        return em.b.call(own.name, ints, [(ints, a), (ints, b), (ints, rest), *own.rest])
    common = em.b.op(f"and {ints} {a}, {b}")
    either = em.b.op(f"or {ints} {a}, {b}")
    third = em.b.op(f"or {ints} {common}, {rest}")
    return em.b.op(f"and {ints} {either}, {third}")


def _is_plain_constant(expr: PrimExpr) -> bool:
    """Whether it is a float constant, in every lane, and no NaN."""
    expr = expr.value if isinstance(expr, e.Broadcast) else expr
    return isinstance(expr, FloatImm) and expr.value == expr.value


_ORDER: Final = {
    e.EQ: ("eq", "eq", "oeq"), e.NE: ("ne", "ne", "une"), e.LT: ("slt", "ult", "olt"),
    e.LE: ("sle", "ule", "ole"), e.GT: ("sgt", "ugt", "ogt"), e.GE: ("sge", "uge", "oge"),
}  # fmt: skip
"""LLVM's comparison of signed integers, of unsigned ones, and of floats (false where one is NaN,
but for ``!=``)."""


def _compare(em: Emitter, expr: e.CompareExpr, is_unsigned: bool = False) -> str:
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
    """Whether an integer expression is best computed in 64 bits.

    It is where it adds and multiplies nothing but constants and variables that are known as i64, as
    those of loops are, and does not wrap in its own type.
    """
    if isinstance(expr, e.Var):
        return em.binding(expr).wide is not None
    if isinstance(expr, e.Cast) and expr.dtype is _I64 and expr.value.dtype.is_int:
        return _is_index(em, expr.value)
    if not isinstance(expr, (e.Add, e.Sub, e.Mul)):
        return isinstance(expr, IntImm)
    known = em.emitted.index_like.get(id(expr))
    if known is None:
        is_index = (
            _is_index(em, expr.a) and _is_index(em, expr.b) and em.ranges.exact(expr) is not None
        )
        known = em.emitted.index_like[id(expr)] = expr, is_index
    return known[1]


def _logical(word: str) -> Callable[[Emitter, e.BinaryExpr], str]:
    """The function that emits And or Or; both sides are computed, as lowering has it."""

    def emit(em: Emitter, expr: e.BinaryExpr) -> str:
        a, b = em.value(expr.a), em.value(expr.b)
        return em.b.op(f"{word} {llvm_type(expr.dtype)} {a}, {b}")

    return emit


def _any_call(em: Emitter, expr: e.Call) -> str:
    """Any call. ``0 <= x`` and ``x < n``, the test of an index, is one comparison.

    As an unsigned number a negative ``x`` is larger than every ``n`` that is not negative.
    """
    if is_call(expr, "bitwise_and"):
        low, high = expr.args
        if _ends_interval(high, low, em):
            return _compare(em, high, is_unsigned=True)
    return call(em, expr)


def _ends_interval(high: PrimExpr, low: PrimExpr, em: Emitter) -> TypeGuard[e.LT]:
    """Whether ``high`` is ``x < n`` and ``low`` is ``0 <= x``, and ``n`` is not negative."""
    return (
        isinstance(low, e.LE)
        and isinstance(high, e.LT)
        and low.b is high.a
        and constant_of(low.a) == 0
        and high.a.dtype.is_int
        and em.ranges.of(high.b)[0] >= 0
    )


def _not(em: Emitter, expr: e.Not) -> str:
    ones = "true" if expr.dtype.lanes == 1 else "splat (i1 true)"
    return em.b.op(f"xor {llvm_type(expr.dtype)} {em.value(expr.a)}, {ones}")


def _select(em: Emitter, expr: e.Select) -> str:
    """Both values are computed; each lane takes one of them."""
    lanes, kind = expr.condition.dtype.lanes, llvm_type(expr.dtype)
    flag = em.value(expr.condition)
    yes, no = em.value(expr.true_value), em.value(expr.false_value)
    return em.b.op(f"select {with_lanes('i1', lanes)} {flag}, {kind} {yes}, {kind} {no}")


def if_then_else(em: Emitter, expr: e.Call) -> str:
    """``T.if_then_else``: only the chosen value is computed."""
    condition, yes, no = expr.args
    run = padded_runs.value(em, condition, yes, no)
    return _choose(em, expr) if run is None else run


def _choose(em: Emitter, choice: e.Call) -> str:
    """An ``if_then_else`` as jumps to the code of one value or of the other."""
    b = em.b
    condition, *arms = choice.args
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
    return b.phi(llvm_type(choice.dtype), incoming)


def branch_on(em: Emitter, condition: PrimExpr, then: str, other: str, weights: str = "") -> None:
    """End the block with a jump to ``then`` where the condition holds, else to ``other``.

    ``not c`` and ``if_then_else(c, x, y)`` are not computed as values but become jumps.
    """
    if is_call(condition, "likely"):
        branch_on(em, condition.args[0], then, other, "!0")
    elif isinstance(condition, e.Not):
        branch_on(em, condition.a, other, then)
    elif is_call(condition, "if_then_else"):
        _branch_on_choice(em, condition, then, other)
    else:
        em.b.branch_if(em.value(condition), then, other, weights)


def _branch_on_choice(em: Emitter, choice: e.Call, then: str, other: str) -> None:
    """``if_then_else(c, x, y)`` as a condition: a jump to the test of ``x`` or to that of ``y``.

    An arm that is a constant needs no test: the jump goes to ``then`` or ``other`` at once.
    """
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
    if isinstance(value, (e.Add, e.Sub, e.Mul)) and _is_of_halves(value, expr.dtype):
        operands = f"{em.value(value.a)}, {em.value(value.b)}"
        operand = em.b.op(f"{_OF_FLOATS[type(value)]} {llvm_type(value.dtype)} {operands}")
    else:
        operand = em.value(value)
    return convert(em.b, operand, value.dtype, expr.dtype)


_OF_FLOATS: Final = {e.Add: "fadd", e.Sub: "fsub", e.Mul: "fmul"}


def _is_of_halves(expr: e.BinaryExpr, target: DataType) -> bool:
    """Whether it is a sum or product of two float16 in float32, which is then rounded to float16.

    LLVM turns that into one operation of float16 where the processor has those. It is emitted
    without ``contract``: two of them fused would be rounded once, and the result would differ.
    """
    return target.element == "float16" and all(
        isinstance(part, e.Cast) and part.value.dtype.element == "float16"
        for part in (expr.a, expr.b)
    )


def is_upper_half(value: PrimExpr, target: DataType) -> TypeGuard[e.Call]:
    """Whether a cast of ``value`` takes the upper 16 of its 32 bits: ``T.shift_right(x, 16)``, of
    a uint32, is cast to uint16.
    """
    return (
        is_call(value, "shift_right")
        and target.element == "uint16"
        and value.dtype.element == "uint32"
        and constant_of(value.args[1]) == 16
    )


def _let(em: Emitter, expr: e.Let) -> str:
    """A Let. Where its variable had a value before, operands that are known may have that in them,
    and what is computed here has the new one: neither may be taken for the other.
    """
    is_again = id(expr.var) in em.env
    define(em, expr.var, expr.value)
    if not is_again:
        return em.value(expr.body)
    with scope(em, is_apart=True):
        return em.value(expr.body)


def define(em: Emitter, var: e.Var, value: PrimExpr) -> None:
    """Compute a value and bind a variable to it for the code that follows."""
    if var.dtype.is_int and var.dtype.lanes == 1 and _is_index(em, value):
        em.bind(var, Binding(None, em.index(value)))
    else:
        em.bind(var, Binding(em.value(value)))
    if var.dtype.is_integral and var.dtype.lanes == 1:
        em.ranges.define(var, value)


def _load(em: Emitter, expr: BufferLoad) -> str:
    value = memory.load(em, expr)
    if id(expr) not in em.decisive:
        return value
    return em.b.op(f"freeze {llvm_type(expr.dtype)} {value}")


EXPRESSIONS: Final[dict[type, ExpressionHandler]] = {
    IntImm: lambda em, expr: int_constant(expr.value, expr.dtype), FloatImm: _float_imm,
    StringImm: lambda em, expr: em.context.string(expr.value), e.Var: _var, e.SizeVar: _var,
    e.Add: _arithmetic("add", "fadd"), e.Sub: _arithmetic("sub", "fsub"),
    e.Mul: _arithmetic("mul", "fmul"), e.Div: _division(False, False),
    e.Mod: _division(False, True), e.FloorDiv: _division(True, False),
    e.FloorMod: _division(True, True), e.Min: _extreme("min", "ogt"),
    e.Max: _extreme("max", "olt"), e.EQ: _compare, e.NE: _compare, e.LT: _compare,
    e.LE: _compare, e.GT: _compare, e.GE: _compare, e.And: _logical("and"), e.Or: _logical("or"),
    e.Not: _not, e.Select: _select, e.Cast: _cast, e.Ramp: vectors.ramp,
    e.Broadcast: vectors.broadcast, e.Shuffle: vectors.shuffle, e.Let: _let, e.Call: _any_call,
    BufferLoad: _load,
}  # fmt: skip


def index(em: Emitter, expr: PrimExpr) -> str:
    """The operand of a scalar integer expression as i64 (see the module's docstring)."""
    if isinstance(expr, IntImm):
        return str(expr.value)
    if isinstance(expr, e.Var):
        wide = em.binding(expr).wide
        if wide is not None:
            return wide
    elif isinstance(expr, (e.Add, e.Sub, e.Mul)):
        if expr.dtype.is_int and em.ranges.exact(expr) is not None:
            return _index_arithmetic(em, expr)
    elif isinstance(expr, (e.FloorDiv, e.FloorMod, e.Div, e.Mod)):
        divisor = constant_of(expr.b)
        if divisor is not None and divisor > 0 and em.ranges.of(expr.a)[0] >= 0:
            word = "udiv" if isinstance(expr, (e.FloorDiv, e.Div)) else "urem"
            return em.b.op(f"{word} i64 {em.index(expr.a)}, {divisor}")
    elif isinstance(expr, (e.Min, e.Max)) and expr.dtype.is_int:
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


def _index_arithmetic(em: Emitter, expr: e.BinaryExpr) -> str:
    """Add, Sub or Mul in i64; of constants it is a constant."""
    a, b = em.index(expr.a), em.index(expr.b)
    if isinstance(expr, e.Add):
        return memory.plus(em, a, b)
    if isinstance(expr, e.Mul):
        return memory.times(em, a, b)
    if a[0] != "%" and b[0] != "%":
        return str(int(a) - int(b))
    return em.b.op(f"sub nsw i64 {a}, {b}")
