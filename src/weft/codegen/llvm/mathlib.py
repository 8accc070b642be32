"""Mathematical intrinsics: vector polynomials for float32, the C library for float64.

What has no polynomial here calls libm lane by lane.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from weft.codegen.llvm import activations, normal_law, vectormath
from weft.codegen.llvm.convert import convert, mangled
from weft.codegen.llvm.emitter import Emitter
from weft.codegen.llvm.kernel import Kernel
from weft.codegen.llvm.types import llvm_type
from weft.ir.expr import FloatImm
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError
from weft.tir import expr as e
from weft.tir.lowering.building import constant_of

POLYNOMIALS: Final[dict[str, Callable[..., str]]] = {
    "exp": vectormath.exp, "exp2": vectormath.exp2, "exp10": vectormath.exp10,
    "log": vectormath.log, "log2": vectormath.log2, "log10": vectormath.log10,
    "log1p": vectormath.log1p, "tanh": vectormath.tanh, "sigmoid": vectormath.sigmoid,
    "erf": vectormath.erf, "sin": vectormath.sin, "cos": vectormath.cos,
    "rsqrt": vectormath.rsqrt, "pow": vectormath.power, "expm1": activations.expm1,
    "gelu": normal_law.x_times_phi, "gelu_tanh": activations.gelu_tanh, "silu": activations.silu,
}  # fmt: skip
"""Intrinsic -> its float32 kernel."""

_LIBRARY: Final = (
    "exp exp2 exp10 log log2 log10 log1p tanh erf sin cos pow tan cosh sinh acos acosh asin asinh "
    "atan atanh atan2 fmod hypot nextafter expm1"
).split()
"""Intrinsics that the C library has under their own name."""

FUNCTIONS: Final = frozenset([*POLYNOMIALS, *_LIBRARY, "ldexp"])


def call(em: Emitter, name: str, expr: Any) -> str:
    """The value of a mathematical intrinsic."""
    dtype: DataType = expr.dtype
    if not dtype.is_float:
        return _integer(em, name, expr)
    if name == "ldexp":
        return _ldexp(em, expr)
    args = [em.value(arg) for arg in expr.args]
    if name == "pow":
        simple = _small_power(em, expr, args[0])
        if simple is not None:
            return simple
    return _call(em, name, dtype, args)


def _call(em: Emitter, name: str, dtype: DataType, args: list[str]) -> str:
    kind = llvm_type(dtype)
    if dtype.bits == 64 and name in ("sigmoid", "rsqrt", "gelu", "gelu_tanh", "silu"):
        return _composed(em, name, dtype, args[0])
    if dtype.bits == 32 and name in POLYNOMIALS:
        operand = _kernel(em, name, dtype.lanes)
        return em.b.call_operand(operand, kind, [(kind, arg) for arg in args])
    k = Kernel(em.context, dtype.lanes, "float" if dtype.bits == 32 else "double")
    k.b = em.b
    return vectormath.library_lanes(k, name + ("f" if dtype.bits == 32 else ""), args)


def _kernel(em: Emitter, name: str, lanes: int) -> str:
    """The helper function of that name and width, written at first use."""
    operand = f"@weft.{name}.{lanes}"
    if operand not in em.context.helpers:
        k = Kernel(em.context, lanes)
        count = 2 if name == "pow" else 1
        em.context.helpers[operand] = ""
        result = POLYNOMIALS[name](k, *[f"%x{n}" for n in range(count)])
        em.context.helpers[operand] = k.finish(operand, count, result)
    return operand


def _composed(em: Emitter, name: str, dtype: DataType, x: str) -> str:
    """float64 functions that the C library has not."""
    k = Kernel(em.context, dtype.lanes, "double")
    k.b = em.b
    if name == "rsqrt":
        return k.div(1.0, k.call("sqrt", x))
    if name != "sigmoid":  # of which the share below is 0, and -inf times that is no number
        x = k.select(k.compare("olt", x, -800.0), -800.0, x)
    if name == "gelu":
        below = vectormath.library_lanes(k, "erfc", [k.mul(x, -math.sqrt(0.5))])
        return k.mul(k.mul(x, 0.5), below)
    given = x
    if name == "gelu_tanh":
        x = activations.inside_tanh(k, x)
    share = _logistic(k, x)
    return share if name == "sigmoid" else k.mul(given, share)


def _logistic(k: Kernel, x: str) -> str:
    """1 / (1 + e**-x) in float64, without overflow."""
    e_x = vectormath.library_lanes(k, "exp", [k.sub(-0.0, k.call("fabs", x))])
    return k.div(k.select(k.compare("oge", x, 0.0), 1.0, e_x), k.add(e_x, 1.0))


def _small_power(em: Emitter, expr: Any, x: str) -> str | None:
    """x**2 and x**3 as products."""
    exponent = expr.args[1]
    if isinstance(exponent, e.Broadcast):
        exponent = exponent.value
    dtype = expr.dtype
    if not isinstance(exponent, FloatImm) or exponent.value not in (2.0, 3.0):
        return None
    kind = llvm_type(dtype)
    result = em.b.op(f"fmul {kind} {x}, {x}")
    if exponent.value == 3.0:
        result = em.b.op(f"fmul {kind} {result}, {x}")
    return result


def _ldexp(em: Emitter, expr: Any) -> str:
    """x * 2**n; n may be of any type and is converted to int32."""
    dtype, count = expr.dtype, DataType("int32")
    counts = count if dtype.lanes == 1 else count.with_lanes(dtype.lanes)
    x = em.value(expr.args[0])
    n = convert(em.b, em.value(expr.args[1]), expr.args[1].dtype, counts)
    name = f"llvm.ldexp.{mangled(dtype)}.{mangled(counts)}"
    kind = llvm_type(dtype)
    return em.b.call(name, kind, [(kind, x), (llvm_type(counts), n)])


def _integer(em: Emitter, name: str, expr: Any) -> str:
    """pow of integers by squaring, wrapping; nothing else is defined on them."""
    dtype = expr.dtype
    exponent = constant_of(expr.args[1]) if name == "pow" and len(expr.args) == 2 else None
    if exponent is None or exponent < 0:
        raise UnsupportedError(
            f"{em.function.name}: {name} of {dtype} is not available; cast to a float (pow of "
            "integers takes a constant exponent that is not negative)"
        )
    kind, square = llvm_type(dtype), em.value(expr.args[0])
    result = ""
    while exponent:
        if exponent & 1:
            result = em.b.op(f"mul {kind} {result}, {square}") if result else square
        exponent >>= 1
        if exponent:
            square = em.b.op(f"mul {kind} {square}, {square}")
    return result or ("1" if dtype.lanes == 1 else f"splat ({llvm_type(dtype.element)} 1)")
