"""Sine and cosine of float32; those of angles beyond 2**15 are left to the C library.

Errors are at most 2 ulp. The coefficients are minimax fits of our own.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir import expr as e
from weft.tir import op
from weft.tir.intrinsic import all_lanes, likely
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.lowering.mathematics.library import by_lanes
from weft.tir.op import const

# sin(r) = r + r**3 * P(r**2), cos(r) = 1 - r**2 / 2 + r**4 * Q(r**2) for |r| <= pi / 4
_SIN: Final = (-0.16666666641425976, 0.00833332936223468, -0.00019839327125058896,
               2.718237186750362e-06)  # fmt: skip
_COS: Final = (0.04166666662247578, -0.0013888883722533813, 2.4799511743907427e-05,
               -2.7209546321340224e-07)  # fmt: skip
_LARGE_ANGLE: Final = 32768.0
_PIO2_HIGH, _PIO2_LOW = 1.5707963267341256, 6.0771005065061922e-11


def _quadrant(k: Formula, x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """``x = n * pi/2 + r`` with ``|r| <= pi/4``: n as an integer, and r, a name.

    It is computed in float64, with pi/2 as a sum of two numbers of which n times the first is
    exact.
    """
    d = k.double()
    wide = d.let("wide", d.widen(x))
    n = d.let("n", d.nearest(d.mul(wide, 2.0 / math.pi))[0])
    rest = d.sub(d.sub(wide, d.mul(n, _PIO2_HIGH)), d.mul(n, _PIO2_LOW))
    r = k.let("r", d.narrow(rest))
    return k.nearest(d.narrow(n))[1], r


def _sine(k: Formula, x: PrimExpr, shift: int) -> PrimExpr:
    """``sin(x + shift * pi/2)`` for ``|x| <= 2**15``.

    In the quadrants 0 to 3 that is sin(r), cos(r), -sin(r), -cos(r).
    """
    n, r = _quadrant(k, x)
    n = k.let("quadrant", k.plus(n, shift) if shift else n)
    square = k.let("square", k.mul(r, r))
    sine = k.fma(k.mul(square, r), k.poly(square, _SIN), r)
    cosine = k.fma(k.mul(square, square), k.poly(square, _COS), k.fma(square, -0.5, 1.0))
    odd = k.integer("bitwise_and", n, 1)
    value = k.select(e.NE(odd, const(0, odd.dtype)), cosine, sine)
    sign = k.integer("shift_left", k.integer("bitwise_and", n, 2), 30)
    return k.from_bits(k.integer("bitwise_xor", k.bits(value), sign))


def sin(k: Formula, x: PrimExpr) -> PrimExpr:
    """The sine."""
    return _near_or_far(k, x, "sin", 0)


def cos(k: Formula, x: PrimExpr) -> PrimExpr:
    """The cosine."""
    return _near_or_far(k, x, "cos", 1)


def _near_or_far(k: Formula, x: PrimExpr, name: str, shift: int) -> PrimExpr:
    """The polynomial if all lanes are within 2**15, else the C library's function of float64."""
    is_near = e.LE(k.call("fabs", x), k.number(_LARGE_ANGLE))
    near, d = k.branch(), k.branch().double()
    wide = d.let("wide", d.widen(x))
    far = d.narrow(by_lanes(d.dtype, name, wide))
    return op.if_then_else(
        likely(all_lanes(is_near)), near.around(_sine(near, x, shift)), d.around(far)
    )
