"""Special functions, one row each: of one float and of two, element by element.

Frameworks have them (torch.special, ONNX); TVM has no operators of these names. What loses digits
in float32 is computed in float64 and rounded once (weft.topi.precision).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.ir.expr import PrimExpr
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.op.binary import infer_arithmetic, infer_floats, operands
from weft.relax.op.definition import Infer, Replacements, operator
from weft.relax.op.infer import same_as_float_input
from weft.relax.op.reference import special as reference
from weft.relax.op.reference.rule import Reference, in_float64, quiet
from weft.tir import intrinsic
from weft.tir import op as tir_op
from weft.topi import special
from weft.topi.broadcast import binary, by_operands, log_add_exp
from weft.topi.math import elementwise, floor_quotient
from weft.topi.precision import Scalar, in_double, in_wide_float


def _unary(name: str, function: Scalar, numpy: Reference, text: str) -> Callable[..., Call]:
    """The row of a function of one element."""

    def body(x: Expr) -> None:  # noqa: ARG001 - the signature of the operator
        return None

    body.__name__, body.__doc__ = name, text
    row = operator(
        f"relax.{name}",
        same_as_float_input,
        te=lambda x: elementwise(x, function, f"T_{name}"),
        numpy=in_float64(numpy),
        traits=Trait.ELEMENTWISE,
    )
    return row(body)


def _binary(
    name: str, function: Scalar, numpy: Reference, text: str, infer: Infer = infer_floats
) -> Callable[..., Call]:
    """The row of a function of two elements; operands broadcast."""

    def body(x1: Expr, x2: Expr) -> Replacements:
        return operands(x1, x2)

    body.__name__, body.__doc__ = name, text
    row = operator(
        f"relax.{name}",
        infer,
        te=by_operands(lambda x, y: binary(name, x, y, function)),
        numpy=numpy,
        traits=Trait.ELEMENTWISE,
    )
    return row(body)


def _times(factor: float) -> Scalar:
    return lambda x: x * tir_op.const(factor, x.dtype)


deg2rad = _unary("deg2rad", _times(math.pi / 180), np.deg2rad, "Degrees as radians.")
rad2deg = _unary("rad2deg", _times(180 / math.pi), np.rad2deg, "Radians as degrees.")
reciprocal = _unary(
    "reciprocal", in_wide_float(lambda x: tir_op.const(1.0, x.dtype) / x), lambda x: 1 / x, "1 / x."
)
exp2 = _unary("exp2", in_wide_float(tir_op.exp2), np.exp2, "2 to the power of x.")
expm1 = _unary("expm1", in_wide_float(intrinsic.expm1), np.expm1, "exp(x) - 1 near 0, too.")
log2 = _unary("log2", in_wide_float(tir_op.log2), np.log2, "The logarithm to the base 2.")
log10 = _unary("log10", in_wide_float(tir_op.log10), np.log10, "The logarithm to the base 10.")
log1p = _unary("log1p", in_wide_float(tir_op.log1p), np.log1p, "log(1 + x) without loss of digits.")
erfc = _unary("erfc", in_wide_float(special.erfc), reference.erfc, "1 - erf(x).")
erfcx = _unary("erfcx", in_double(special.erfcx), reference.erfcx, "exp(x**2) * erfc(x).")
erfinv = _unary("erfinv", in_wide_float(special.erfinv), reference.erfinv, "The inverse of erf.")
lgamma = _unary("lgamma", in_double(special.lgamma), reference.lgamma, "log of abs(gamma(x)).")
trigamma = _unary(
    "trigamma", in_double(special.trigamma), reference.trigamma, "The slope of digamma."
)
digamma = _unary("digamma", in_double(special.digamma), reference.digamma, "The slope of lgamma.")
i0 = _unary("i0", in_double(special.bessel_i0), np.i0, "The modified Bessel function of order 0.")
i0e = _unary(
    "i0e", in_double(special.bessel_i0e), lambda x: np.i0(x) * np.exp(-np.abs(x)),
    "exp(-abs(x)) * i0(x).",
)  # fmt: skip
i1 = _unary("i1", in_double(special.bessel_i1), reference.i1, "As i0, of order 1.")
i1e = _unary(
    "i1e", in_double(special.bessel_i1e), lambda x: reference.i1(x) * np.exp(-np.abs(x)),
    "exp(-abs(x)) * i1(x).",
)  # fmt: skip
sinc = _unary("sinc", in_wide_float(special.sinc), np.sinc, "sin(pi x) / (pi x); 1 at 0.")
entr = _unary("entr", in_wide_float(special.entropy), reference.entr, "-x * log(x); 0 at 0.")
ndtr = _unary(
    "ndtr", in_wide_float(special.normal_cdf), lambda x: 0.5 * reference.erfc(-x / math.sqrt(2)),
    "The cumulative distribution of the normal law.",
)  # fmt: skip
log_ndtr = _unary(
    "log_ndtr", in_double(special.log_normal_cdf), reference.log_ndtr, "The logarithm of ndtr."
)
ndtri = _unary("ndtri", in_double(special.normal_quantile), reference.ndtri, "The inverse of ndtr.")
frac = _unary(
    "frac", lambda x: x - tir_op.trunc(x), lambda x: x - np.trunc(x),
    "x less its integer part, with the sign of x.",
)  # fmt: skip


def _other_if_nan(choose: Scalar) -> Scalar:
    """The choice between two numbers; of a number and NaN the number."""
    return lambda x, y: tir_op.select(
        tir_op.isnan(x), y, tir_op.select(tir_op.isnan(y), x, choose(x, y))
    )


def _heaviside(x: PrimExpr, at_zero: PrimExpr) -> PrimExpr:
    zero, unit = tir_op.const(0, x.dtype), tir_op.const(1, x.dtype)
    side = tir_op.select(tir_op.greater(x, zero), unit, zero)  # 0 for NaN, as torch gives
    return tir_op.select(tir_op.equal(x, zero), at_zero, side)


def _zero_times(function: Scalar) -> Scalar:
    """x * f(y), 0 where x is 0 unless y is NaN."""

    def computed(x: PrimExpr, y: PrimExpr) -> PrimExpr:
        zero = tir_op.const(0.0, x.dtype)
        value = tir_op.select(tir_op.equal(x, zero), zero, x * function(y))
        return tir_op.select(tir_op.isnan(y), y, value)

    return computed


def _log_add_exp2(x: PrimExpr, y: PrimExpr) -> PrimExpr:
    scale = tir_op.const(math.log(2.0), x.dtype)
    return log_add_exp(x * scale, y * scale) / scale


atan2 = _binary(
    "atan2", in_wide_float(tir_op.atan2), in_float64(np.arctan2), "The angle of the point (x2, x1)."
)
copysign = _binary(
    "copysign", tir_op.copysign, in_float64(np.copysign), "The size of x1 with the sign of x2."
)
fmax = _binary(
    "fmax", _other_if_nan(tir_op.maximum), in_float64(np.fmax), "The larger; the other one of NaN."
)
fmin = _binary(
    "fmin", _other_if_nan(tir_op.minimum), in_float64(np.fmin), "The smaller; the other one of NaN."
)
hypot = _binary(
    "hypot", in_wide_float(tir_op.hypot), in_float64(np.hypot), "The root of x1**2 + x2**2."
)
heaviside = _binary(
    "heaviside", _heaviside,
    in_float64(lambda x, y: np.where(x == 0, y, x > 0).astype(x.dtype)),
    "0 below 0 and of NaN, 1 above 0, and x2 where x1 is 0.", infer_arithmetic,
)  # fmt: skip
log_add_exp2 = _binary(
    "log_add_exp2", in_wide_float(_log_add_exp2), in_float64(np.logaddexp2),
    "log2(2**x1 + 2**x2), stable.",
)  # fmt: skip
nextafter = _binary(
    "nextafter", special.next_float, quiet(np.nextafter), "The float after x1 on the way to x2."
)
zeta = _binary(
    "zeta", in_double(special.zeta), in_float64(reference.zeta),
    "Hurwitz' zeta function: the sum of (x2 + k)**-x1 over all k of 0 or more.",
)  # fmt: skip
exact_floor_divide = _binary(
    "exact_floor_divide", floor_quotient, in_float64(np.floor_divide),
    "x1 / x2 rounded down as if the quotient were exact (Python's //); x1 / x2 where x2 is 0.",
)  # fmt: skip
xlogy = _binary(
    "xlogy", in_wide_float(_zero_times(tir_op.log)),
    in_float64(lambda x, y: reference.product_or_zero(x, np.log(y), y)),
    "x1 * log(x2); 0 where x1 is 0.",
)  # fmt: skip
xlog1py = _binary(
    "xlog1py", in_double(_zero_times(tir_op.log1p)),
    in_float64(lambda x, y: reference.product_or_zero(x, np.log1p(y), y)),
    "x1 * log(1 + x2); 0 where x1 is 0.",
)  # fmt: skip
