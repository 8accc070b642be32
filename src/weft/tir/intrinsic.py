"""The intrinsics of TensorIR, registered with their effects, and the functions that call them.

Effects are TVM's call effect kinds; they say whether a pass may drop, reorder or merge a call. The
functions build ``Call`` nodes, mostly of the operand's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

import numpy as np

from weft.ir.expr import ExprLike, FloatImm, IntImm, PrimExpr, StringImm, as_prim_expr
from weft.ir.op import Op
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRKeyError, IRTypeError
from weft.support.intrinsic_names import name_of
from weft.support.span import Span
from weft.tir.expr import Call, Cast, Var


class CallEffectKind(IntEnum):
    """The side effects of a call; the numbers are TVM's."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = 3
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6


_NO_SHARE: Final = -800.0
"""Below this, gelu and silu are 0 in float64; clamping x to it avoids -inf * 0, which is NaN."""


def _sigmoid(x: float) -> float:
    return float(1.0 / (1.0 + np.exp(-x)))


def _gelu(x: float) -> float:
    x = max(x, _NO_SHARE)
    return x * 0.5 * math.erfc(-x * math.sqrt(0.5))


def _gelu_tanh(x: float) -> float:
    x = max(x, _NO_SHARE)
    return x * _sigmoid(math.sqrt(8 / math.pi) * x * (1.0 + 0.044715 * x * x))


def _silu(x: float) -> float:
    x = max(x, _NO_SHARE)
    return x * _sigmoid(x)


UNARY_FLOAT: Final[dict[str, Callable[[Any], float]]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "erf": math.erf,
    "tanh": np.tanh, "sigmoid": _sigmoid, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "tan": np.tan, "cos": np.cos, "cosh": np.cosh, "acos": np.arccos,
    "acosh": np.arccosh, "sin": np.sin, "sinh": np.sinh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "sqrt": np.sqrt, "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "nearbyint": np.rint,
    "expm1": np.expm1, "gelu": _gelu, "gelu_tanh": _gelu_tanh, "silu": _silu, "erfc": math.erfc,
}  # fmt: skip
"""Functions of one floating-point value -> their value in float64."""
BINARY_FLOAT: Final = "atan2 copysign fmod hypot ldexp nextafter".split()

_PURE: Final = (
    "fabs pow popcount clz if_then_else bitwise_and bitwise_or bitwise_xor bitwise_not shift_left "
    "shift_right isnan isinf isfinite reinterpret q_multiply_shift q_multiply_shift_per_axis "
    "large_uint_imm isnullptr call_pure_extern call_llvm_pure_intrin vectorhigh vectorlow "
    "vectorcombine address_of tvm_access_ptr tvm_tuple tvm_struct_get vscale "
    "get_active_lane_mask ignore_loop_partition dp4a tvm_stack_make_shape tvm_stack_make_array "
    "fma reduce_lanes table_get unchecked_cast is_exact uncontracted scaleb lookup all_lanes "
    "dot_four_bytes"
).split()
_READ: Final = "checked".split()
_ANNOTATION: Final = "likely".split()
_EMBED: Final = "type_annotation assume undef".split()
_OPAQUE: Final = (
    "call_extern call_packed tvm_call_packed call_cpacked tvm_call_cpacked call_llvm_intrin "
    "tvm_call_trace_packed tvm_storage_sync tvm_warp_shuffle tvm_warp_shuffle_up "
    "tvm_warp_shuffle_down tvm_warp_activemask tvm_global_barrier_kinit tvm_thread_allreduce "
    "tvm_thread_invariant tvm_thread_context tvm_stack_alloca tvm_struct_set tvm_throw_last_error "
    "tvm_check_return tvm_load_matrix_sync tvm_store_matrix_sync tvm_mma_sync tvm_bmma_sync "
    "tvm_fill_fragment prefetch start_profile_intrinsic end_profile_intrinsic atomic_add "
    "nd_mem_alloc_with_scope texture2d_store texture2d_load dma_copy dma_wait "
    "anylist_getitem anylist_resetitem anylist_setitem_call_packed anylist_setitem_call_cpacked "
    "TVMBackendAllocWorkspace TVMBackendFreeWorkspace lookup_param mem_copy "
    "ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_commit_group ptx_wait_group mma_store "
    "mma_fill ptx_init_barrier_thread_count ptx_arrive_barrier ptx_wait_barrier "
    "create_barriers launch"
).split()
_JUMP: Final = "ret thread_return continue_loop break_loop".split()

for _names, _effect in (
    ([*UNARY_FLOAT, *BINARY_FLOAT, *_PURE], CallEffectKind.Pure),
    (_READ, CallEffectKind.ReadState),
    (_ANNOTATION, CallEffectKind.ExprAnnotation),
    (_EMBED, CallEffectKind.EmbedInfo),
    (_OPAQUE, CallEffectKind.Opaque),
    (_JUMP, CallEffectKind.ControlJump),
):
    for _name in _names:
        Op.register(f"tir.{_name}", TCallEffectKind=_effect)


def effect_of(call: Call) -> CallEffectKind:
    """The effect of a call; calls of functions of the module are opaque."""
    if isinstance(call.op, Op):
        effect = call.op.get_attr("TCallEffectKind")
        return CallEffectKind.Opaque if effect is None else effect
    return CallEffectKind.Opaque


def intrinsic(dtype: str, name: str, *args: ExprLike, span: Span | None = None) -> Call:
    """The call ``tir.<name>(args)`` of type ``dtype``."""
    return Call(DataType(dtype), Op.get(f"tir.{name}"), args, span)


_ROUNDED: Final[dict[str, Callable[[float], float]]] = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "nearbyint": np.rint,
}  # fmt: skip
"""The functions that are folded for constants: they are exact, so folding changes no result."""


def _unary(name: str) -> Callable[..., PrimExpr]:
    def apply(x: ExprLike, span: Span | None = None) -> PrimExpr:
        expr = as_prim_expr(x)
        if expr.dtype.is_integral:
            if name in ("floor", "ceil", "trunc", "round", "nearbyint"):
                return expr
            expr = Cast(_float_of(expr.dtype), expr)
        if isinstance(expr, FloatImm) and name in _ROUNDED and math.isfinite(expr.value):
            return FloatImm(expr.dtype, float(_ROUNDED[name](expr.value)))
        return intrinsic(expr.dtype, name, expr, span=span)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"``{name}`` of a floating-point value; an integer is converted to float32."
    return apply


def _float_of(dtype: DataType) -> DataType:
    element = DataType("float64" if dtype.bits == 64 else "float32")
    return element if dtype.lanes == 1 else element.with_lanes(dtype.lanes, dtype.is_scalable)


def _binary(name: str) -> Callable[..., PrimExpr]:
    def apply(x1: ExprLike, x2: ExprLike, span: Span | None = None) -> PrimExpr:
        a, b = as_prim_expr(x1), as_prim_expr(x2)
        if name != "ldexp":
            a, b = slots.operators.get().match_types(a, b)
        if not a.dtype.is_float:
            raise IRTypeError(f"{name}: expected floating-point values, got {a.dtype}")
        return intrinsic(a.dtype, name, a, b, span=span)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"``{name}`` of two floating-point values, of their common type."
    return apply


_NAMES: Final = tuple(UNARY_FLOAT)
exp, exp2, exp10, erf, tanh, sigmoid = (_unary(n) for n in _NAMES[:6])
log, log2, log10, log1p = (_unary(n) for n in _NAMES[6:10])
tan, cos, cosh, acos, acosh, sin, sinh, asin, asinh = (_unary(n) for n in _NAMES[10:19])
atan, atanh, sqrt, rsqrt = (_unary(n) for n in _NAMES[19:23])
floor, ceil, trunc, round, nearbyint = (_unary(n) for n in _NAMES[23:28])  # noqa: A001 - TVM's
expm1, gelu, gelu_tanh, silu, erfc = (_unary(n) for n in _NAMES[28:])
atan2, copysign, fmod, hypot, ldexp, nextafter = (_binary(n) for n in BINARY_FLOAT)


def fma(x: ExprLike, y: ExprLike, z: ExprLike, span: Span | None = None) -> PrimExpr:
    """x * y + z, rounded once."""
    a = as_prim_expr(x)
    return intrinsic(a.dtype, "fma", a, y, z, span=span)


def uncontracted(value: ExprLike, span: Span | None = None) -> PrimExpr:
    """``value``, in which native code must not contract a product and a sum to an fma.

    Lowering wraps formulas in it whose accuracy depends on each product and sum being rounded.
    """
    expr = as_prim_expr(value)
    return intrinsic(expr.dtype, "uncontracted", expr, span=span)


def scaleb(x: ExprLike, power: ExprLike, where: ExprLike, span: Span | None = None) -> PrimExpr:
    """x * 2**power, rounded once, in the lanes for which ``where`` holds; 0 in the others.

    ``power`` has the (floating-point) type of ``x`` and an integral value.
    """
    expr = as_prim_expr(x)
    return intrinsic(expr.dtype, "scaleb", expr, power, where, span=span)


def lookup(table: ExprLike, places: ExprLike, span: Span | None = None) -> PrimExpr:
    """Elements of the vector ``table`` at unsigned indices, taken modulo its length.

    Lane ``i`` of the result is lane ``places[i] % n`` of a table of ``n`` lanes.
    """
    numbers, lanes = as_prim_expr(table), as_prim_expr(places)
    element, count = numbers.dtype.element, lanes.dtype.lanes
    dtype = element if count == 1 else element.with_lanes(count)
    return intrinsic(dtype, "lookup", numbers, lanes, span=span)


def dot_four_bytes(
    total: ExprLike, unsigned: ExprLike, signed: ExprLike, span: Span | None = None
) -> PrimExpr:
    """``total`` plus four products of bytes, in int32 (which wraps), in each lane.

    ``unsigned`` and ``signed`` are int32 that hold four uint8 and four int8.
    """
    expr = as_prim_expr(total)
    return intrinsic(expr.dtype, "dot_four_bytes", expr, unsigned, signed, span=span)


def all_lanes(condition: ExprLike, span: Span | None = None) -> PrimExpr:
    """Whether a condition holds in every lane."""
    expr = as_prim_expr(condition)
    return expr if expr.dtype.lanes == 1 else intrinsic("bool", "all_lanes", expr, span=span)


def popcount(x: ExprLike, span: Span | None = None) -> PrimExpr:
    """The number of one bits, in the operand's type."""
    expr = as_prim_expr(x)
    return intrinsic(expr.dtype, "popcount", expr, span=span)


def clz(x: ExprLike) -> PrimExpr:
    """The number of leading zero bits, int32; the width for 0."""
    return intrinsic("int32", "clz", as_prim_expr(x))


def _predicate(name: str) -> Callable[..., PrimExpr]:
    def apply(x: ExprLike, span: Span | None = None) -> PrimExpr:
        expr = as_prim_expr(x)
        kind = DataType("bool")
        source = expr.dtype
        if source.is_integral:
            return IntImm(kind, int(name == "isfinite"))
        scalar = source.lanes == 1 and not source.is_scalable
        dtype = kind if scalar else kind.with_lanes(source.lanes, source.is_scalable)
        return intrinsic(dtype, name, expr, span=span)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Whether a floating-point value {name[:2]} {name[2:]}; integers are finite."
    return apply


isnan, isinf, isfinite = _predicate("isnan"), _predicate("isinf"), _predicate("isfinite")
isnullptr = _predicate("isnullptr")


def likely(cond: ExprLike, span: Span | None = None) -> PrimExpr:
    """The condition, marked as mostly true."""
    expr = as_prim_expr(cond)
    return expr if isinstance(expr, IntImm) else intrinsic(expr.dtype, "likely", expr, span=span)


def reinterpret(dtype: str, value: ExprLike, span: Span | None = None) -> PrimExpr:
    """The same bits as another type of the same width."""
    expr, target = as_prim_expr(value), DataType(dtype)
    if expr.dtype.bits * expr.dtype.lanes != target.bits * target.lanes:
        raise IRTypeError(f"reinterpret: {expr.dtype} and {target} differ in width")
    return expr if expr.dtype is target else intrinsic(target, "reinterpret", expr, span=span)


def checked(
    value: ExprLike,
    condition: ExprLike,
    kind: str,
    message: str,
    *numbers: ExprLike,
    span: Span | None = None,
) -> PrimExpr:
    """``value`` if ``condition`` holds in every lane; otherwise an error with ``message``.

    The condition is evaluated before the value. ``{a}`` and ``{b}`` in the message are replaced by
    the two integers ``numbers``; if one is a vector, by its largest lane that violates the
    condition.

    ``kind`` is ``"division"``, ``"index"``, ``"allocation"`` or ``"assertion"``. Lowering writes it
    where an operand must be tested before it is used:
    ``a // T.checked(b, b != 0, "division", "division by zero")``.
    """
    expr = as_prim_expr(value)
    texts = StringImm(kind), StringImm(message)
    shown = [as_prim_expr(number) for number in numbers]
    return intrinsic(
        expr.dtype, "checked", expr, as_prim_expr(condition), *texts, *shown, span=span
    )


def unchecked_cast(dtype: str, value: ExprLike, span: Span | None = None) -> PrimExpr:
    """A float truncated to an integer type in whose range it is known to be."""
    return intrinsic(dtype, "unchecked_cast", as_prim_expr(value), span=span)


def is_exact(value: ExprLike, span: Span | None = None) -> PrimExpr:
    """Whether no step of an integer expression overflows.

    Steps are the sums, differences and products of signed integers in ``value``, also those inside
    of quotients, min, max and casts (``weft.tir.exact_steps``). Lowering tests the sizes of memory
    and of loops with it: ``T.checked(m * n, T.is_exact(m * n), "index", "...")``.
    """
    return intrinsic("bool", "is_exact", as_prim_expr(value), span=span)


def ret(val: ExprLike, span: Span | None = None) -> PrimExpr:
    """Return ``val`` from the function."""
    expr = as_prim_expr(val)
    return intrinsic(expr.dtype, "ret", expr, span=span)


def assume(cond: ExprLike = True) -> PrimExpr:
    """Promise that ``cond`` holds, so that bounds proofs and simplification may use it."""
    return intrinsic("bool", "assume", as_prim_expr(cond))


def undef() -> PrimExpr:
    """An arbitrary value; the program must not depend on it."""
    return intrinsic("int32", "undef")


def vscale() -> PrimExpr:
    """The factor by which scalable vectors are longer than their base length, known at run time."""
    return intrinsic("int32", "vscale")


def address_of(obj: Any, span: Span | None = None) -> PrimExpr:
    """The address of a buffer's element (a BufferLoad), or of its first element."""
    buffer = getattr(obj, "buffer", None)
    if buffer is None:
        if not hasattr(obj, "shape"):
            raise IRTypeError(f"address_of: expected a buffer or an element of one, got {obj!r}")
        obj = obj[tuple(IntImm(DataType("int32"), 0) for _ in obj.shape)]
        buffer = obj.buffer
    return intrinsic("handle", "address_of", obj, span=span)


def call_intrin(dtype: str, func_name: object, *args: ExprLike, span: Span | None = None) -> Call:
    """A call of the intrinsic of that name (with or without ``tir.``)."""
    return Call(DataType(dtype), func_name, args, span)


def call_extern(dtype: str, func_name: str, *args: ExprLike, span: Span | None = None) -> Call:
    """A call of the C function ``func_name``."""
    return intrinsic(dtype, "call_extern", StringImm(func_name), *args, span=span)


def call_pure_extern(dtype: str, func_name: str, *args: ExprLike, span: Span | None = None) -> Call:
    """A call of the C function ``func_name``, which has no side effect."""
    return intrinsic(dtype, "call_pure_extern", StringImm(func_name), *args, span=span)


def call_tir(global_var: object, *args: ExprLike) -> Call:
    """A call of another PrimFunc of the module; void if its result type is not known."""
    returned = getattr(getattr(global_var, "struct_info", None), "ret", None)
    return Call(getattr(returned, "dtype", None) or "void", global_var, args)


def _packed(name: str) -> Callable[..., PrimExpr]:
    def call(*args: ExprLike, span: Span | None = None) -> Call:
        return intrinsic("int32", name, *[_packed_argument(arg) for arg in args], span=span)

    call.__name__ = call.__qualname__ = name.removeprefix("tvm_")
    call.__doc__ = "A call of a registered function: its name, then arguments (buffers, scalars)."
    return call


def _packed_argument(arg: ExprLike) -> ExprLike:
    as_argument = getattr(arg, "as_packed_argument", None)
    if as_argument is None:
        return arg
    argument: ExprLike = as_argument()
    return argument


call_packed = _packed("tvm_call_packed")
call_cpacked = _packed("tvm_call_cpacked")


def call_llvm_intrin(dtype: str, name: object, *args: ExprLike, span: Span | None = None) -> Call:
    """A call of an LLVM intrinsic by name, such as ``llvm.fma.f32``."""
    return intrinsic(dtype, "call_llvm_intrin", _llvm_name(name), *args, span=span)


def call_llvm_pure_intrin(
    dtype: str, name: object, *args: ExprLike, span: Span | None = None
) -> Call:
    """A call of an LLVM intrinsic without side effects."""
    return intrinsic(dtype, "call_llvm_pure_intrin", _llvm_name(name), *args, span=span)


def _llvm_name(name: object) -> StringImm:
    if isinstance(name, StringImm):
        return name
    if isinstance(name, (int, IntImm)):  # the result of llvm_lookup_intrinsic_id
        return StringImm(name_of(int(name)))
    if not isinstance(name, str) or not name.startswith("llvm."):
        raise IRKeyError(f"expected the name of an LLVM intrinsic (llvm.<name>), got {name!r}")
    return StringImm(name)


def tvm_access_ptr(
    ptype: Any, data: Var, offset: ExprLike, extent: ExprLike, rw_mask: ExprLike
) -> Call:
    """A pointer ``offset`` elements into ``data``, with its extent and access mask."""
    kind = Call(DataType(ptype), "tir.type_annotation", ()) if isinstance(ptype, str) else ptype
    return intrinsic("handle", "tvm_access_ptr", kind, data, offset, extent, rw_mask)


def tvm_storage_sync(storage_scope: str) -> Call:
    """A barrier: the threads of a block (``shared``) or a warp (``warp``) wait for one another."""
    scope = storage_scope if isinstance(storage_scope, StringImm) else StringImm(storage_scope)
    return intrinsic("int32", "tvm_storage_sync", scope)


def tvm_thread_allreduce(*freduce_args: ExprLike) -> Call:
    """A reduction over threads: number of values, values, condition, results, thread variables."""
    return intrinsic("handle", "tvm_thread_allreduce", *freduce_args)


def type_annotation(dtype: str) -> Call:
    """A type as an argument of an intrinsic."""
    return intrinsic(dtype, "type_annotation")


def q_multiply_shift(x: ExprLike, y: ExprLike, q: ExprLike, s: ExprLike) -> Call:
    """round(x * y * 2**-q * 2**s) in fixed point."""
    return intrinsic("int32", "q_multiply_shift", x, y, q, s)


def vectorlow(dtype: str, vec: ExprLike) -> Call:
    """The lower half of a vector."""
    return intrinsic(dtype, "vectorlow", vec)


def vectorhigh(dtype: str, vec: ExprLike) -> Call:
    """The upper half of a vector."""
    return intrinsic(dtype, "vectorhigh", vec)


def vectorcombine(dtype: str, vec1: ExprLike, vec2: ExprLike) -> Call:
    """Two vectors, one after the other."""
    return intrinsic(dtype, "vectorcombine", vec1, vec2)
