"""The error function of float64, and x * Phi(x) by it, on a target with fma.

For x below 1 it is a polynomial; from there on 1 - erfc(x), with
``erfc(x) = t * exp(P(2 * t - 1) - x**2)`` and ``t = 2 / (2 + x)``. Errors are at most 2 ulp. The
coefficients are fits of our own: of the first as ``exponentials64`` says, of P by interpolation in
64 Chebyshev nodes in 50 digits.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.expr import PrimExpr
from weft.tir.lowering.mathematics import exponentials64
from weft.tir.lowering.mathematics.formula import Formula

# erf(x) = x + x * P(x**2) for |x| <= 1
_ERF: Final = (
    0.1283791670955126, -0.3761263890318408, 0.11283791670969842, -0.026866170647756336,
    0.005223977649861145, -0.0008548328370573942, 0.00012055380212980047, -1.4926740829602002e-05,
    1.6478871816627536e-06, -1.6534804368860513e-07, 1.5869395566369594e-08,
    -1.5934478353691778e-09, 1.349113627116452e-10,
)  # fmt: skip
TAIL: Final = (
    -0.6717940840566923, 0.6726432239776567, 0.04734330684190443, -0.0468956102311753,
    -0.009872689366389959, 0.008824938557060623, 0.001758933557799016, -0.002345812500482853,
    -0.00014624686337800336, 0.000673678795580235, -9.37350311709817e-05, -0.0001743029472030762,
    7.14010141275703e-05, 3.17451797494374e-05, -3.0187884551394243e-05, 1.3772664134464417e-07,
    8.562623420121286e-06, -2.947986876998259e-06, -1.27231190486887e-06, 1.2500276612569754e-06,
    -1.6849800720653297e-07, -2.495832761719667e-07, 1.5334345920908177e-07, 1.4448658046252676e-09,
    -3.9171820510271855e-08, 1.1172352263623759e-08, 4.06088214696972e-09, -1.8902306008944537e-09,
)  # fmt: skip
"""log(exp(z**2) * erfc(z) / t) = P(2 * t - 1) with t = 2 / (2 + z), for all z >= 0."""
_ZERO: Final = 38.5
"""x from which on x * Phi(-x) counts as 0."""
_ONE: Final = 6.0
"""x from which on erf is 1."""


def erf(k: Formula, x: PrimExpr) -> PrimExpr:
    """The error function."""
    size = k.let("size", k.at_most(k.let("size", k.call("fabs", x)), _ONE))
    square = k.let("square", k.mul(size, size))
    near = k.fma(size, k.poly(square, _ERF), size)
    t = k.let("t", k.div(2.0, k.add(size, 2.0)))
    tail = k.sub(k.poly(k.let("u", k.fma(t, 2.0, -1.0)), TAIL), square)
    far = k.sub(1.0, k.mul(t, exponentials64.exp(k, k.let("tail", tail))))
    return k.call("copysign", k.select(k.less(size, 1.0), near, far), x)


def x_times_phi(k: Formula, x: PrimExpr) -> PrimExpr:
    """x * Phi(x) as ``max(x, 0) - |x| * erfc(z) / 2`` with z = |x| / sqrt(2).

    ``z**2`` is the sum of two floats, half of x**2 and what its rounding lost.
    """
    size = k.let("size", k.call("fabs", x))
    near = k.let("near", k.at_most(size, _ZERO))
    square = k.let("square", k.mul(near, near))
    lost = k.mul(k.fma(near, near, k.minus(square)), -0.5)
    t = k.let("t", k.div(2.0, k.fma(near, math.sqrt(0.5), 2.0)))
    more = k.add(k.poly(k.let("u", k.fma(t, 2.0, -1.0)), TAIL), lost)
    half = k.let("half", k.mul(square, -0.5))
    power = exponentials64.exp_of_sum(k, half, k.let("more", more))
    tail = k.mul(k.mul(near, 0.5), k.mul(t, power))
    tail = k.select(k.more(size, _ZERO), 0.0, tail)
    return k.sub(k.select(k.less(x, 0.0), 0.0, x), tail)
