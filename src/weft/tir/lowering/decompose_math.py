"""DecomposeMath: mathematical functions become formulas of arithmetic.

Functions of float32 become polynomials, and so do those of float64 on a target with fma. Without
it, functions of float64 that the C library lacks become others that it has, and those of vectors a
call for each lane. Powers with small or integer exponents become products::

    T.exp(x)             T.Let(T.uncontracted(T.Let(..., where={n: ...})), where={v: x})
    T.sigmoid(d)         ... T.exp(...) ..., of a float64 d without fma
    T.tan(v)             T.Shuffle([T.tan(T.Shuffle([v], [0])), ...], [0, ...]), of a vector v of it
    T.pow(i, 5)          s * s * i with s = i * i, of an integer i

A formula fixes what is rounded and when, so that the interpreter and native code agree to the last
bit. ``T.uncontracted`` around it says that no product is fused with a sum; where that is wanted the
formula has ``T.fma``, if the target has an instruction for it (``supported``).

After the pass the only mathematical functions are those of the C library, of scalars, and square
roots, roundings and signs, for which every processor has instructions. There is no float16 and no
bfloat16 any more: ``WidenShortFloats`` runs before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.buffer import Buffer
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import intrinsic, uncontracted
from weft.tir.lowering.building import Names, like
from weft.tir.lowering.define_integers import Supported, supports_nothing
from weft.tir.lowering.mathematics import (
    activations,
    error_function64,
    exponentials,
    exponentials64,
    hyperbolic,
    inverse_trigonometric,
    library,
    logarithms,
    logarithms64,
    normal_law,
    remainders,
    trigonometric,
)
from weft.tir.lowering.mathematics.formula import Formula, Instructions
from weft.tir.op import const
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass

Writer = Callable[..., PrimExpr]
"""Writes a function as a formula: it takes a ``Formula`` and the arguments, which are variables."""

_CIRCULAR: Final[dict[str, Writer]] = {
    "sin": trigonometric.sin, "cos": trigonometric.cos, "tan": trigonometric.tan,
}  # fmt: skip
_FUSED: Final[dict[str, Writer]] = {
    "asin": inverse_trigonometric.asin, "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan, "atan2": inverse_trigonometric.atan2,
    "sinh": hyperbolic.sinh, "cosh": hyperbolic.cosh, "atanh": hyperbolic.atanh,
    "fmod": remainders.fmod,
}  # fmt: skip
"""Formulas for both types on a target with fma."""
_WIDE: Final[dict[str, Writer]] = {
    **_CIRCULAR, **_FUSED, "exp": exponentials64.exp, "exp2": exponentials64.exp2,
    "expm1": exponentials64.expm1, "tanh": exponentials64.tanh, "log": logarithms64.log,
    "log2": logarithms64.log2, "log10": logarithms64.log10, "log1p": logarithms64.log1p,
    "hypot": remainders.hypot_64, "erf": error_function64.erf,
    "asinh": logarithms64.asinh, "acosh": logarithms64.acosh,
}  # fmt: skip
"""Formulas of float64 on a target with fma; without it these functions are C's."""
FLOAT32: Final[dict[str, Writer]] = {
    "exp": exponentials.exp, "exp2": exponentials.exp2, "exp10": exponentials.exp10,
    "expm1": exponentials.expm1, "tanh": exponentials.tanh, "sigmoid": exponentials.sigmoid,
    "log": logarithms.log, "log2": logarithms64.log2_single, "log10": logarithms64.log10_single,
    "log1p": logarithms.log1p, "pow": logarithms.power, "erf": normal_law.erf,
    "erfc": normal_law.erfc,
    "asinh": hyperbolic.asinh, "acosh": hyperbolic.acosh,
    "hypot": remainders.hypot, "gelu": normal_law.x_times_phi, **_CIRCULAR,
    **{name: library.or_in_float64(writer) for name, writer in _FUSED.items()},
    "gelu_tanh": activations.gelu_tanh, "silu": activations.silu,
}  # fmt: skip
FLOAT64: Final[dict[str, Writer]] = {
    **_WIDE, "sigmoid": library.sigmoid, "gelu": library.x_times_phi,
    "gelu_tanh": library.gelu_tanh, "silu": library.silu,
}  # fmt: skip
_NAMES: Final = frozenset(
    [*FLOAT32, *library.LIBRARY, "rsqrt", "scaleb", "lookup", "dot_four_bytes"]
)


def instructions_of(supported: Supported, dtype: DataType) -> Instructions:
    """Which instructions a target has for values of a float type."""
    x = e.Var("x", dtype)
    places = e.Var("places", like("uint32", dtype))
    table = e.Var("table", "float32x16")
    return Instructions(
        fma=supported(intrinsic(dtype, "fma", x, x, x)),
        scaleb=supported(intrinsic(dtype, "scaleb", x, x, e.EQ(x, x))),
        lookup=dtype.bits == 32 and supported(intrinsic(dtype, "lookup", table, places)),
    )


class _Decompose(StmtMutator):
    def __init__(self, supported: Supported) -> None:
        self.supported = supported
        self._instructions: dict[DataType, Instructions] = {}
        self._buffers: dict[int, tuple[Buffer, Buffer]] = {}

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        """The buffer with formulas in its sizes: the same new buffer at each of its uses."""
        known = self._buffers.get(id(buffer))
        if known is None:
            sizes = (*buffer.shape, *buffer.strides, buffer.elem_offset)
            decomposed = self.visit_default(buffer) if _has_mathematics(sizes) else buffer
            known = self._buffers[id(buffer)] = buffer, decomposed
        return known[1]

    def visit_Call(self, call: e.Call) -> PrimExpr:
        rebuilt: e.Call = self.visit_default(call)
        name = _name_of(rebuilt)
        if name not in _NAMES or rebuilt.dtype.is_scalable:
            return rebuilt
        return self._decomposed(name, rebuilt)

    def _decomposed(self, name: str, call: e.Call) -> PrimExpr:
        dtype, args = call.dtype, call.args
        if name in _REPLACED:
            return call if self.supported(call) else _REPLACED[name](call)
        if not dtype.is_float:
            power = logarithms.integer_power(dtype, *args) if name == "pow" else None
            return call if power is None else power
        if name == "pow":
            power = logarithms.small_power(*args)
            if power is not None:
                return power
        instructions = self._instructions_of(dtype)
        writers = FLOAT32 if dtype.bits == 32 else FLOAT64
        if name not in writers or (dtype.bits == 64 and name in _WIDE and not instructions.fma):
            return call if dtype.lanes == 1 else _by_lanes(name, call)
        return self._formula(writers[name], Formula(dtype, instructions), args)

    def _instructions_of(self, dtype: DataType) -> Instructions:
        instructions = self._instructions.get(dtype)
        if instructions is None:
            instructions = instructions_of(self.supported, dtype)
            self._instructions[dtype] = instructions
        return instructions

    def _formula(self, writer: Writer, formula: Formula, args: Sequence[PrimExpr]) -> PrimExpr:
        names = Names()
        body = writer(formula, *[names.of("x", arg) for arg in args])
        return names.around(uncontracted(formula.around(body)))


def _name_of(call: e.Call) -> str:
    return call.op.name.removeprefix("tir.") if isinstance(call.op, Op) else ""


def _has_mathematics(nodes: object) -> bool:
    """Whether a function that this pass replaces is called."""
    return any(_name_of(call) in _NAMES for call in collect(nodes, e.Call))


def _by_lanes(name: str, call: e.Call) -> PrimExpr:
    """The vector of a call of the C library for each lane."""
    names = Names()
    args = [names.of("x", arg) for arg in call.args]
    return names.around(library.by_lanes(call.dtype, name, *args))


def _reciprocal_root(call: e.Call) -> PrimExpr:
    """``T.rsqrt(x)`` as ``1 / sqrt(x)``."""
    return e.Div(const(1.0, call.dtype), intrinsic(call.dtype, "sqrt", *call.args))


def _scaled(call: e.Call) -> PrimExpr:
    """``T.scaleb`` by ``ldexp`` of the C library, which takes an int32.

    The power is clamped to 5000 either way, beyond which the result is 0 or infinite anyway.
    """
    dtype = call.dtype
    x, power, where = call.args
    count = e.Max(e.Min(power, const(5000.0, dtype)), const(-5000.0, dtype))
    whole = intrinsic(like("int32", dtype), "unchecked_cast", count)
    return e.Select(where, intrinsic(dtype, "ldexp", x, whole), const(0.0, dtype))


def _chosen(call: e.Call) -> PrimExpr:
    """``T.lookup`` by a comparison and a Select for each number of the table."""
    names, dtype = Names(), call.dtype
    table, places = names.of("table", call.args[0]), call.args[1]
    count = table.dtype.lanes
    place = names.of("place", e.FloorMod(places, const(count, places.dtype)))
    lanes: list[PrimExpr] = [e.Shuffle([table], [const(lane, "int32")]) for lane in range(count)]
    if dtype.lanes > 1:
        lanes = [e.Broadcast(lane, const(dtype.lanes, "int32")) for lane in lanes]
    chosen = lanes[-1]
    for number, lane in enumerate(lanes[:-1]):
        chosen = e.Select(e.EQ(place, const(number, place.dtype)), lane, chosen)
    return names.around(chosen)


def _sum_of_products(call: e.Call) -> PrimExpr:
    """``T.dot_four_bytes`` by shifts, which LLVM knows to leave 16 bits to multiply."""
    names, dtype = Names(), call.dtype
    total, unsigned, signed = call.args
    a, b = names.of("unsigned", unsigned), names.of("signed", signed)
    for low in range(0, 32, 8):
        left = intrinsic(dtype, "shift_right", a, const(low, dtype))
        left = intrinsic(dtype, "bitwise_and", left, const(255, dtype))
        right = intrinsic(dtype, "shift_left", b, const(24 - low, dtype))
        right = intrinsic(dtype, "shift_right", right, const(24, dtype))
        total = e.Add(total, e.Mul(left, right))
    return names.around(total)


_REPLACED: Final[dict[str, Callable[[e.Call], PrimExpr]]] = {
    "rsqrt": _reciprocal_root, "scaleb": _scaled, "lookup": _chosen,
    "dot_four_bytes": _sum_of_products,
}  # fmt: skip
"""Intrinsic -> what stands for it on a target that has no instruction for it."""


def decompose_math(func: PrimFunc, supported: Supported = supports_nothing) -> PrimFunc:
    """The function with its mathematics as formulas (see the module's docstring)."""
    if not _has_mathematics(func.body):
        return func
    return func.with_(body=_Decompose(supported).visit(func.body))


DecomposeMath = define_pass("DecomposeMath", decompose_math)
