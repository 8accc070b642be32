"""Functions of the C library on vectors, and functions of float64 that are made of them.

A call of one on a scalar stays as it is: code generation calls C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.expr import PrimExpr
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.intrinsic import intrinsic
from weft.tir.lowering.mathematics import error_function64, exponentials64
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.op import const

LIBRARY: Final = frozenset(
    "exp exp2 exp10 log log2 log10 log1p tanh erf erfc sin cos pow tan cosh sinh acos acosh asin "
    "asinh atan atanh atan2 fmod hypot nextafter expm1".split()
)
"""Intrinsics that the C library has under the same name; those of float32 end in ``f`` there."""


def by_lanes(dtype: DataType, name: str, *args: PrimExpr) -> PrimExpr:
    """The vector of the function of each lane of ``args``, which are names."""
    if dtype.lanes == 1:
        return intrinsic(dtype, name, *args)
    numbers = [const(lane, "int32") for lane in range(dtype.lanes)]
    lanes = [
        intrinsic(dtype.element, name, *[e.Shuffle([arg], [number]) for arg in args])
        for number in numbers
    ]
    return e.Shuffle(lanes, numbers)


def or_in_float64(write: Callable[..., PrimExpr]) -> Callable[..., PrimExpr]:
    """A formula of float32 for targets with fma; without it, it is computed in float64."""

    def written(k: Formula, *args: PrimExpr) -> PrimExpr:
        if k.instructions.fma:
            return write(k, *args)
        d = k.double()
        return d.narrow(write(d, *[d.let("wide", d.widen(arg)) for arg in args]))

    return written


def _logistic(k: Formula, x: PrimExpr) -> PrimExpr:
    """1 / (1 + e**-x) in float64, without overflow; ``x`` is a name."""
    if k.instructions.fma:
        return exponentials64.sigmoid(k, x)
    size = k.let("size", k.call("fabs", x))
    e_x = k.let("e_x", by_lanes(k.dtype, "exp", k.let("minus", k.minus(size))))
    return k.div(k.select(e.GE(x, k.number(0.0)), 1.0, e_x), k.add(e_x, 1.0))


def sigmoid(k: Formula, x: PrimExpr) -> PrimExpr:
    """1 / (1 + e**-x)."""
    return _logistic(k, x)


def _above(k: Formula, x: PrimExpr) -> PrimExpr:
    """``x``, but at least -800: there ``x`` times a share of 0 is 0, while -infinity times 0 would
    be NaN.
    """
    return k.let("x", k.at_least(x, -800.0))


def x_times_phi(k: Formula, x: PrimExpr) -> PrimExpr:
    """x * Phi(x), where Phi is the normal distribution."""
    if k.instructions.fma:
        return error_function64.x_times_phi(k, x)
    x = _above(k, x)
    below = by_lanes(k.dtype, "erfc", k.let("scaled", k.mul(x, -math.sqrt(0.5))))
    return k.mul(k.mul(x, 0.5), below)


def gelu_tanh(k: Formula, x: PrimExpr) -> PrimExpr:
    """``x / (1 + e**-u)``, where ``u`` is twice what ``gelu_tanh`` takes tanh of."""
    x = _above(k, x)
    scale = math.sqrt(8 / math.pi)
    inside = k.mul(x, k.fma(k.mul(x, x), 0.044715 * scale, scale))
    return k.mul(x, _logistic(k, k.let("inside", inside)))


def silu(k: Formula, x: PrimExpr) -> PrimExpr:
    """x / (1 + e**-x)."""
    x = _above(k, x)
    return k.mul(x, _logistic(k, x))
