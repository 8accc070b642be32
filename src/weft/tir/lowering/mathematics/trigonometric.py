"""Sine, cosine and tangent; those of large angles are left to the C library.

An angle is ``n * pi/2 + r`` with ``|r| <= pi/4``, where pi/2 is a sum of three floats (Cody and
Waite). The product of n with the first of them is not rounded in a fused operation, and x less it
is a float, since both are multiples of the last bit of the first. Without fma an angle of float32
is reduced in float64, and float64 is left to C. Errors are at most 2 ulp. The coefficients are
minimax fits of our own (``exponentials64`` says how).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir import expr as e
from weft.tir import op
from weft.tir.intrinsic import all_lanes, likely
from weft.tir.lowering.mathematics.formula import Formula
from weft.tir.lowering.mathematics.library import by_lanes
from weft.tir.op import const


@dataclass(frozen=True)
class _Circle:
    """What the formulas need to know of a float type."""

    sine: tuple[float, ...]
    """sin(r) = r + r**3 * P(r**2) for |r| <= pi / 4."""
    cosine: tuple[float, ...]
    """cos(r) = 1 - r**2 / 2 + r**4 * Q(r**2)."""
    parts: tuple[float, float, float]
    """Their sum is pi / 2."""
    largest: float
    """Angles beyond it are left to C."""


_SINGLE: Final = _Circle(
    (-0.16666666641425976, 0.00833332936223468, -0.00019839327125058896, 2.718237186750362e-06),
    (0.04166666662247578, -0.0013888883722533813, 2.4799511743907427e-05, -2.7209546321340224e-07),
    (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    2.0**15,
)
_DOUBLE: Final = _Circle(
    (-0.16666666666666632, 0.008333333333322458, -0.00019841269829817088, 2.7557313688943016e-06,
     -2.5050756930866354e-08, 1.5896694202404045e-10),
    (0.0416666666666666, -0.0013888888888874444, 2.480158728963827e-05, -2.755731438811118e-07,
     2.087572715017086e-09, -1.1359807233346019e-11),
    (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    2.0**20,
)  # fmt: skip
_CIRCLES: Final = {32: _SINGLE, 64: _DOUBLE}
_PIO2_HIGH, _PIO2_LOW = 1.5707963267341256, 6.0771005065061922e-11
"""pi / 2; whole numbers up to 2**18 times the first part are exact in float64."""


# tan(r) = r + r**3 * P(r**2) for |r| <= pi / 4, in float32
_TANGENT: Final = (0.3333335220813751, 0.13332587480545044, 0.05406774580478668,
                   0.02124480903148651, 0.01092647947371006, -1.9066239474341273e-05,
                   0.004427287261933088)  # fmt: skip
_Sum = tuple[PrimExpr, PrimExpr]
"""A float and a small number that is to be added."""


@dataclass(frozen=True)
class _Angle:
    """``r + rest``, where rest is small, and the number of quarters before it, an integer."""

    quadrant: PrimExpr
    r: PrimExpr
    rest: PrimExpr | None = None


def _angle(k: Formula, x: PrimExpr, shift: int, *, with_rest: bool) -> _Angle:
    """``x + shift * pi/2``, on a target with fma."""
    first, second, third = _CIRCLES[k.dtype.bits].parts
    whole, quadrant = k.nearest(x, 2.0 / math.pi)
    n = k.let("n", whole)
    near = k.let("near", k.fma(n, -first, x))
    quadrant = k.let("quadrant", k.plus(quadrant, shift) if shift else quadrant)
    if not with_rest:
        return _Angle(quadrant, k.let("r", k.fma(n, -third, k.fma(n, -second, near))))
    product = k.let("product", k.mul(n, second))
    lost = k.fma(n, third, k.fma(n, second, k.minus(product)))
    r = k.let("r", k.sub(near, product))
    return _Angle(quadrant, r, k.let("rest", k.sub(k.sub(k.sub(near, r), product), lost)))


def _angle_in_float64(d: Formula, k: Formula, x: PrimExpr, shift: int) -> _Angle:
    """``x + shift * pi/2`` of a float32 in float64, on a target without fma."""
    wide = d.let("wide", d.widen(x))
    n = d.let("n", d.nearest(d.mul(wide, 2.0 / math.pi))[0])
    r = d.let("r", d.sub(d.sub(wide, d.mul(n, _PIO2_HIGH)), d.mul(n, _PIO2_LOW)))
    quadrant = k.nearest(d.narrow(n))[1]
    return _Angle(k.let("quadrant", k.plus(quadrant, shift) if shift else quadrant), r)


def _sine_and_cosine(k: Formula, angle: _Angle) -> tuple[_Sum, _Sum]:
    """Those of ``r + rest``, as sums."""
    circle, r = _CIRCLES[k.dtype.bits], angle.r
    square = k.let("square", k.mul(r, r))
    cubic, fourth = k.mul(square, r), k.mul(square, square)
    near = k.fma(square, -0.5, 1.0)
    if angle.rest is None:
        return (r, k.mul(cubic, k.poly(square, circle.sine))), (
            near, k.mul(fourth, k.poly(square, circle.cosine)))  # fmt: skip
    near = k.let("near", near)
    lost = k.fma(k.minus(r), angle.rest, k.fma(square, -0.5, k.sub(1.0, near)))
    return (r, k.fma(cubic, k.poly(square, circle.sine), angle.rest)), (
        near, k.fma(fourth, k.poly(square, circle.cosine), lost))  # fmt: skip


def _is_odd(k: Formula, quadrant: PrimExpr) -> PrimExpr:
    return e.NE(k.integer("bitwise_and", quadrant, 1), const(0, quadrant.dtype))


def _signed(k: Formula, value: PrimExpr, quadrant: PrimExpr, bit: int) -> PrimExpr:
    """The value, or minus it where the bit of the quadrant is set."""
    flag = k.integer("bitwise_and", quadrant, 1 << bit)
    sign = k.integer("shift_left", flag, k.dtype.bits - 1 - bit)
    return k.from_bits(k.integer("bitwise_xor", k.bits(value), sign))


def _sine(k: Formula, x: PrimExpr, shift: int) -> PrimExpr:
    """``sin(x + shift * pi/2)``; in the quadrants 0 to 3 sin(r), cos(r), -sin(r), -cos(r)."""
    if k.instructions.fma:
        angle = _angle(k, x, shift, with_rest=k.dtype.bits == 64)
    else:
        d = k.double()
        wide = _angle_in_float64(d, k, x, shift)
        angle = _Angle(wide.quadrant, k.let("r", d.narrow(wide.r)))
    sine, cosine = _sine_and_cosine(k, angle)
    value = k.select(_is_odd(k, angle.quadrant), k.add(*cosine), k.add(*sine))
    return _signed(k, value, angle.quadrant, 1)


def _tangent(k: Formula, x: PrimExpr, _: int) -> PrimExpr:
    """``tan(x)``: tan(r), and -1 / tan(r) in odd quadrants."""
    if not k.instructions.fma:
        d = k.double()
        angle = _angle_in_float64(d, k, x, 0)
        return _signed(k, d.narrow(_ratio(d, angle)), angle.quadrant, 0)
    angle = _angle(k, x, 0, with_rest=True)
    value = _ratio(k, angle) if k.dtype.bits == 64 else _by_polynomial(k, angle)
    return _signed(k, value, angle.quadrant, 0)


def _by_polynomial(k: Formula, angle: _Angle) -> PrimExpr:
    """The tangent of float32, or its reciprocal."""
    r, rest = angle.r, angle.rest
    assert rest is not None
    square = k.let("square", k.mul(r, r))
    rest = k.fma(rest, square, rest)
    t = k.let("t", k.add(r, k.fma(k.mul(square, r), k.poly(square, _TANGENT), rest)))
    return k.select(_is_odd(k, angle.quadrant), k.div(1.0, t), t)


def _ratio(k: Formula, angle: _Angle) -> PrimExpr:
    """The sine over the cosine, or the reciprocal of that."""
    sine, cosine = ([k.let("part", part) for part in parts] for parts in _sine_and_cosine(k, angle))
    is_odd = k.let("is_odd", _is_odd(k, angle.quadrant))
    above = [k.let("above", k.select(is_odd, b, a)) for a, b in zip(sine, cosine, strict=True)]
    below = [k.let("below", k.select(is_odd, a, b)) for a, b in zip(sine, cosine, strict=True)]
    a, b = k.let("a", k.add(*above)), k.let("b", k.add(*below))
    if not k.instructions.fma:
        return k.div(a, b)
    lost = [k.add(k.sub(pair[0], whole), pair[1]) for pair, whole in ((above, a), (below, b))]
    return k.quotient(a, lost[0], b, lost[1])


def sin(k: Formula, x: PrimExpr) -> PrimExpr:
    """The sine."""
    return _near_or_far(k, x, "sin", 0)


def cos(k: Formula, x: PrimExpr) -> PrimExpr:
    """The cosine."""
    return _near_or_far(k, x, "cos", 1)


def tan(k: Formula, x: PrimExpr) -> PrimExpr:
    """The tangent."""
    return _near_or_far(k, x, "tan", 0)


def _near_or_far(k: Formula, x: PrimExpr, name: str, shift: int) -> PrimExpr:
    """The formula if all lanes are near 0, else the C library's function of float64."""
    largest = _CIRCLES[k.dtype.bits].largest
    is_near = e.LE(k.call("fabs", x), k.number(largest))
    near, far = k.branch(), k.branch()
    formula = (_tangent if name == "tan" else _sine)(near, x, shift)
    if not shift:  # -0.0 keeps its sign
        formula = near.select(near.equal(x, 0.0), x, formula)
    return op.if_then_else(
        likely(all_lanes(is_near)), near.around(formula), far.around(_far(far, x, name))
    )


def _far(k: Formula, x: PrimExpr, name: str) -> PrimExpr:
    """The C library's function of float64, rounded."""
    if k.dtype.bits == 64:
        return by_lanes(k.dtype, name, x)
    d = k.double()
    return d.narrow(by_lanes(d.dtype, name, d.let("wide", d.widen(x))))
