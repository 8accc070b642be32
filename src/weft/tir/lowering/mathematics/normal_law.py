"""The error function, and GELU of float32, ``x * Phi(x)``; Phi is the normal distribution.

GELU is computed as ``max(x, 0) - |x| * Phi(-|x|)``, and Phi(-t) as ``exp(-t**2 / 2) / 2 * Y(t)``.
Y(t) = erfcx(t / sqrt 2) is a slow curve, from 1 at 0 to 0.06 at 13: so nothing cancels, and nothing
underflows before Phi itself does.

Where the target looks numbers up in a table, Y is a polynomial in each of sixteen pieces (Tang,
*Table-lookup algorithms for elementary functions and their error analysis*, 1991). Elsewhere it is
a quotient of polynomials in float64 (Cody, *Rational Chebyshev approximations for the error
function*, 1969).

The coefficients are fits of our own: Lawson's iteration (least squares on 300 Chebyshev nodes,
weighted by the last error) for the smallest relative error; those of float32 were rounded from the
constant term on, each time fitting the rest anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from weft.ir.expr import FloatImm, PrimExpr
from weft.tir.expr import Shuffle
from weft.tir.intrinsic import lookup
from weft.tir.lowering.mathematics.exponentials import EXP, LN2_HIGH, LN2_LOW, exp2_64, power_of_two
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.op import const

# erf(x) = 1 - exp(-x - x * P(x)) for 0 <= x <= 3.92, fit for the relative error of erf
_ERF: Final = (0.12837918102741241, 0.636618971824646, 0.10278289765119553,
               -0.019177136942744255, -0.00010650144395185634, 0.0016039618058130145,
               -0.0005933744832873344, 0.00010519959323573858,
               -7.7110626079957e-06)  # fmt: skip
_FAR: Final = 13.24
"""``t`` from which on ``t * Phi(-t)`` is below the normal numbers of float32, and counts as 0."""
_FARTHEST: Final = 15.0
"""``t`` from which on ``t * Phi(-t)`` is 0 in float32; float64, with which it is computed, has
smaller numbers."""
_PIECE_BITS: Final = 21
"""The bits of ``1 + t`` from this one on are the number of its piece: two of the exponent, two of
the mantissa."""
_CENTER: Final = (
    1.25510776,
    1.74713492,
    2.2405715,
    2.74341798,
    3.51005554,
    4.52341461,
    5.47762156,
    6.49847412,
    8.01423645,
    10.0312376,
    12.0443974,
    13.1144571,
    0.125418797,
    0.375543147,
    0.624769986,
    0.876781702,
)
"""A number near the middle of each piece, chosen so that Y of it is a float32 but for 2**-34."""
_PIECES: Final = (
    (0.460394323, 0.370892316, 0.308310568, 0.261969745, 0.212153941, 0.168799102, 0.141227067,
      0.120058335, 0.0980756283, 0.0787720084, 0.0657977685, 0.0604923293, 0.907299876,
      0.758930206, 0.646802902, 0.558992326),
    (-0.220040083, -0.14988564, -0.107092693, -0.0791920498, -0.0532124527, -0.0343362354,
      -0.0242961384, -0.0176885761, -0.0118832886, -0.00770382816, -0.0053900918, -0.00456050131,
      -0.684092104, -0.51287353, -0.393781513, -0.307770312),
    (0.0921101794, 0.0545109324, 0.0341808684, 0.0223564208, 0.0126876654, 0.00674104225,
      0.00407101028, 0.00255479291, 0.0014200859, 0.000746541366, 0.000438682589, 0.000341913896,
      0.410750926, 0.283162028, 0.200390011, 0.144572467),
    (-0.0348094143, -0.0182158109, -0.0101689212, -0.00595312566, -0.00289237848, -0.00128119276,
      -0.000665526546, -0.000362091145, -0.000167438498, -7.16952927e-05, -3.54733565e-05,
      -2.55395098e-05, -0.210857406, -0.135508895, -0.0895297751, -0.060338635),
    (0.0121034449, 0.00567160267, 0.00284894183, 0.00150635093, 0.000633375312, 0.000236294363,
      0.000106335814, 5.04113996e-05, 1.9490777e-05, 6.82449763e-06, 2.85034184e-06,
      2.00519389e-06, 0.0960778445, 0.0580686368, 0.0361147933, 0.0229181089),
    (-0.00396196079, -0.00167083985, -0.000765781384, -0.000364004954, -0.000136217539,
      -4.29066095e-05, -1.68350471e-05, -6.98348958e-06, -2.29292186e-06, -6.538001e-07,
      -2.30842872e-07, 2.28188242e-06, -0.039920684, -0.0229139086, -0.0133251129, -0.00799290184),
    (0.00122026424, 0.000459667353, 0.000193961474, 8.24433009e-05, 2.81295852e-05,
      7.71300802e-06, 2.55527266e-06, 9.39270308e-07, 2.63172694e-07, 6.24685796e-08,
      1.85518552e-08, -9.73394253e-06, 0.0151397763, 0.00825180579, 0.00457798643, 0.00263909902),
)  # fmt: skip
"""Y(t) as polynomials in ``t - center``, to 2**-27.6: for each power, its factor in each piece."""
_SHARE: Final = tuple([c * (-0.5) ** power for power, c in enumerate(EXP, 2)])
"""exp(-r / 2) = 1 - r / 2 + r**2 * P(r)."""
ABOVE: Final = (
    1.0000000049475692,
    0.8712331939736517,
    0.3625107437597715,
    0.07993383015603932,
    0.008035288248944637,
)
BELOW: Final = (1.0, 1.6691181114396594, 1.1942701954033872, 0.4642447110312192,
                 0.10018960674658611, 0.010070596473377068)  # fmt: skip
"""Y(t) = above(t) / below(t) for 0 <= t <= 13.27, to 2**-27.6."""


def erf(k: Formula, x: PrimExpr) -> PrimExpr:
    """The error function as ``1 - exp(-u)`` with ``u = |x| + |x| * P(|x|)``, and the sign of x."""
    size = k.let("size", k.at_most(k.let("size", k.call("fabs", x)), 3.92))
    u = k.let("u", k.fma(size, k.poly(size, _ERF), size))
    return k.call("copysign", _below_one(k, u), x)


def _below_one(k: Formula, u: PrimExpr) -> PrimExpr:
    """1 - exp(-u) for 0 <= u < 80.

    With u = n * log(2) - r that is (1 - 2**-n) - 2**-n * (exp(r) - 1): nothing cancels, not even
    for u near 0, where n is 0.
    """
    n, scale = power_of_two(k, u, -1.0 / math.log(2))
    r = k.let("r", k.fma(n, -math.log(2), k.minus(u)))
    p = k.fma(k.mul(r, r), k.poly(r, EXP), r)
    return k.fma(k.minus(scale), p, k.sub(1.0, scale))


def x_times_phi(k: Formula, x: PrimExpr) -> PrimExpr:
    """x * Phi(x)."""
    size = k.let("size", k.call("fabs", x))
    above = k.let("above", k.select(k.more(x, 0.0), x, 0.0))
    in_pieces = k.instructions.lookup and k.instructions.fma
    return _by_pieces(k, size, above) if in_pieces else _in_float64(k, size, above)


def _by_pieces(k: Formula, size: PrimExpr, above: PrimExpr) -> PrimExpr:
    """``above - t * Phi(-t)`` by the table.

    ``exp(-t**2 / 2) / 2`` is ``p * e**r`` with a power of two p, and Y(t) is ``y + v``, where ``y``
    is Y at the center of the piece. So ``t * Phi(-t)`` is ``s * (y + (v + Y * (e**r - 1)))`` with
    ``s = t * p``, which is exact. ``s * y`` is large and is rounded only in the sum; the rest is
    small, and so are its roundings.
    """
    t = k.let("t", k.at_most(size, _FAR))
    scale, growth = _exp_of_square(k, t)
    piece = k.let("piece", k.integer("shift_right", k.bits(k.add(t, 1.0)), _PIECE_BITS))
    away = k.let("away", k.sub(t, _looked_up(_CENTER, piece)))
    at_center = k.let("at_center", _looked_up(_PIECES[0], piece))
    slope = _looked_up(_PIECES[-1], piece)
    for factors in reversed(_PIECES[1:-1]):
        slope = k.fma(slope, away, _looked_up(factors, piece))
    change = k.let("change", k.mul(away, slope))
    rest = k.fma(k.add(change, at_center), growth, change)
    minus = k.let("minus", k.minus(k.mul(t, scale)))
    return k.fma(minus, at_center, k.fma(minus, rest, above))


def _looked_up(table: Sequence[float], piece: PrimExpr) -> PrimExpr:
    """The numbers of a table for the piece of each lane."""
    places = [const(place, "int32") for place in range(len(table))]
    return lookup(Shuffle([FloatImm("float32", number) for number in table], places), piece)


def _exp_of_square(k: Formula, t: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """``exp(-t**2 / 2) / 2`` as ``p * e**r``: the power of two ``p``, and ``e**r - 1``.

    With ``p = 2**n / 2``, ``-2 * r`` is ``t**2 + 2 * n * log(2)``. The leading part of the second
    term is exact, so that the sum is rounded once.
    """
    n, power = power_of_two(k, k.mul(t, t), -0.5 / math.log(2), -1)
    r = k.let("r", k.fma(n, 2 * LN2_LOW, k.fma(t, t, k.mul(n, 2 * LN2_HIGH))))
    return power, k.let("growth", k.mul(r, k.poly(r, (-0.5, *_SHARE))))


def erfc(k: Formula, x: PrimExpr) -> PrimExpr:
    """1 - erf(x) of float32, in float64: ``2 * Phi(-t)`` with t = sqrt(2) * x."""
    size = k.let("size", k.call("fabs", x))
    d = k.double()
    wide = d.let("wide", d.widen(k.at_most(size, _FARTHEST)))
    power = exp2_64(d, d.mul(d.mul(wide, wide), -1.0 / math.log(2)))
    t = d.let("t", d.mul(wide, math.sqrt(2)))
    tail = d.let("tail", d.div(d.mul(power, d.poly(t, ABOVE)), d.poly(t, BELOW)))
    is_below = d.less(d.let("given", d.widen(x)), 0.0)
    return d.narrow(d.select(is_below, d.sub(2.0, tail), tail))


def _in_float64(k: Formula, size: PrimExpr, above: PrimExpr) -> PrimExpr:
    """``above - t * Phi(-t)`` without tables: in float64, so that only the last rounding counts."""
    d = k.double()
    wide = d.let("wide", d.widen(k.at_most(size, _FARTHEST)))
    power = exp2_64(d, d.mul(d.mul(wide, wide), -0.5 / math.log(2)))
    tail = d.div(d.mul(power, d.poly(wide, ABOVE)), d.poly(wide, BELOW))
    return d.narrow(d.fma(d.mul(wide, -0.5), tail, d.widen(above)))
