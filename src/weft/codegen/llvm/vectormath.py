"""float32 mathematics as polynomials: exp, log, tanh, erf, sin, pow and friends.

Errors are at most 2 ulp.

The coefficients are minimax fits of our own on the reduced interval that each function's comment
names; reductions follow Cody and Waite, *Software Manual for the Elementary Functions* (1980).
Each function takes a kernel and operands and returns the operand of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from weft.codegen.llvm.kernel import Kernel

# exp(r) = 1 + r + r**2 * P(r) for |r| <= ln(2) / 2
EXP: Final = (0.49999993412261523, 0.1666652010554261, 0.041668394259006265,
               0.008368780622560848, 0.0013814464761351276)  # fmt: skip
# log1p(f) = f - f**2 / 2 + f**3 * P(f) for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG: Final = (0.33333331659547494, -0.2500082273596439, 0.20001233174443991,
               -0.16623297500434275, 0.14201557540553408, -0.13160595243502182,
               0.12763300312185774, -0.07635588162399559)  # fmt: skip
# exp(2 * r) = 1 + 2 * r + 2 * r * (r * P(r)) for |r| <= ln(2) / 4
_EXP_TWICE: Final = tuple([c * 2.0**power for power, c in enumerate(EXP, 1)])
# 3 / 2 * exp(r); the factor of r**3 is a little less than the best, where sigmoid rounds most
EXP_HALVES: Final = tuple([1.5 * c for c in (1.0, 1.0, EXP[0], 0.16666514145, *EXP[2:])])
# erf(x) = 1 - exp(-x - x * P(x)) for 0 <= x <= 3.92, fit for the relative error of erf
_ERF: Final = (0.12837918102741241, 0.636618971824646, 0.10278289765119553,
               -0.019177136942744255, -0.00010650144395185634, 0.0016039618058130145,
               -0.0005933744832873344, 0.00010519959323573858,
               -7.7110626079957e-06)  # fmt: skip
# sin(r) = r + r**3 * P(r**2), cos(r) = 1 - r**2 / 2 + r**4 * Q(r**2) for |r| <= pi / 4
_SIN: Final = (-0.16666666641425976, 0.00833332936223468, -0.00019839327125058896,
               2.718237186750362e-06)  # fmt: skip
_COS: Final = (0.04166666662247578, -0.0013888883722533813, 2.4799511743907427e-05,
               -2.7209546321340224e-07)  # fmt: skip
# in float64: log(m) = s * P(s**2), s = (m - 1) / (m + 1), for sqrt(1/2) <= m <= sqrt(2)
_LOG64: Final = (2.000000000000001, 0.666666666665418, 0.40000000065769015, 0.28571415416725165,
                 0.22223476320060243, 0.1812058329560898, 0.16853984864108715)  # fmt: skip
# in float64: 2**r = 1 + r * P(r) for |r| <= 1/2
_EXP64: Final = (0.6931471805598846, 0.2402265069572126, 0.05550410866845459,
                 0.009618129181593592, 0.0013333557620605811, 0.00015403440540095984,
                 1.5252992076593496e-05, 1.325841790247037e-06, 1.0148074151400753e-07)  # fmt: skip

_TANH_ONE: Final = 9.5
"""From where tanh is one."""
_LN2_HIGH, _LN2_LOW = LN2_PARTS = 0.693145751953125, 1.42860682030941723212e-6
_ROOT_HALF_BITS: Final = 0x3F3504F3
_LARGE_ANGLE: Final = 32768.0
_PIO2_HIGH, _PIO2_LOW = 1.5707963267341256, 6.0771005065061922e-11


def _nearest_field(k: Kernel, x: str, factor: float, plus: int) -> tuple[str, str]:
    """The whole number n nearest to x * factor, and bits of which the last nine are n + ``plus``.

    ``plus`` is part of the constant whose addition rounds, so it costs nothing.
    """
    magic = 12582912.0 + plus
    shifted = k.fma(x, factor, magic)
    return k.sub(shifted, magic), k.bits(shifted)


def _as_exponent(k: Kernel, bits: str) -> str:
    """The power of two whose biased exponent is in the last nine bits."""
    return k.from_bits(k.iop("shl", bits, 23))


def power_of_two(k: Kernel, x: str, factor: float, plus: int = 0) -> tuple[str, str]:
    """The whole number n nearest to x * factor, and 2**(n + ``plus``), a normal number."""
    n, bits = _nearest_field(k, x, factor, 127 + plus)
    return n, _as_exponent(k, bits)


def reduced(k: Kernel, x: str, n: str) -> str:
    """x - n * log(2)."""
    return k.fma(n, -_LN2_LOW, k.fma(n, -_LN2_HIGH, x))


def _exp_of_rest(k: Kernel, x: str, n: str, coefficients: Sequence[float]) -> str:
    """The polynomial, e**r times its first coefficient, at r = x - n * log(2)."""
    if k.b.context.fuses:
        return k.poly(reduced(k, x, n), coefficients)
    return k.fma(_exp_less_one(k, x, n, -1.0), coefficients[0], coefficients[0])


def _exp_less_one(k: Kernel, x: str, n: str, sign: float) -> str:
    """e**r - 1 at r = x + ``sign`` * n * log(2), where products are rounded.

    The sum of r's leading part, which is exact, and of what is small, as in Sun's fdlibm: by
    Horner's rule exp was 1.2 ulp off.
    """
    leading, rest = k.fma(n, sign * _LN2_HIGH, x), k.mul(n, sign * _LN2_LOW)
    r = k.add(leading, rest)
    return k.add(leading, k.fma(k.mul(r, r), k.poly(r, EXP), rest))


def exp(k: Kernel, x: str) -> str:
    """e**x, by vscalefps where there is one.

    That is not run where the result is 0: masked scores are there by the thousand, and a product
    that comes out below the normal numbers takes a hundred cycles.
    """
    if not k.b.context.scales:
        return _exp_in_two_steps(k, k.clamp(x, -104.0, 89.0))
    zero = k.compare("olt", x, -104.0)
    x = k.select(zero, 0.0, k.select(k.compare("ogt", x, 89.0), 89.0, x))
    n, _ = k.nearest(x, 1.0 / math.log(2))
    return k.scale(_exp_of_rest(k, x, n, (1.0, 1.0, *EXP)), n, zero)


def _exp_in_two_steps(k: Kernel, x: str) -> str:
    """e**x for -104 <= x <= 89 as 2**103 * e**r times two powers of two, rounded once.

    Their biased exponents are the halves of n + 151, at least one; but for n = -150, where one of
    them is 0 and so its power: nothing is slow there either.
    """
    n, bits = _nearest_field(k, x, 1.0 / math.log(2), 151)
    value = _exp_of_rest(k, x, n, [c * 2.0**103 for c in (1.0, 1.0, *EXP)])
    half = k.iop("lshr", bits, 1)
    value = k.mul(value, _as_exponent(k, k.iop("sub", bits, half)))
    return k.mul(value, _as_exponent(k, half))


def exp2(k: Kernel, x: str) -> str:
    """2**x, through float64."""
    d = k.double()
    return d.narrow(exp2_64(d, d.widen(k.clamp(x, -152.0, 129.0))))


def exp10(k: Kernel, x: str) -> str:
    """10**x, through float64."""
    d = k.double()
    wide = d.mul(d.widen(k.clamp(x, -46.0, 39.0)), math.log2(10))
    return d.narrow(exp2_64(d, wide))


def exp2_64(d: Kernel, x: str) -> str:
    """2**x in float64 for |x| < 1000, to 1e-13."""
    n, power = d.nearest(x)
    r = d.sub(x, n)
    p = d.fma(r, d.poly(r, _EXP64), 1.0)
    return d.mul(p, d.from_bits(d.iop("shl", d.iop("add", power, 1023), 52)))


def _split(k: Kernel, x: str) -> tuple[str, str]:
    """(exponent as a number, f) with x = 2**exponent * (1 + f), 1 + f in [sqrt(1/2), sqrt(2))."""
    tiny = k.compare("olt", x, 1.1754943508222875e-38)
    x = k.select(tiny, k.mul(x, 8388608.0), x)
    bits = k.iop("sub", k.bits(x), _ROOT_HALF_BITS)
    power = k.iop("ashr", bits, 23)
    mantissa = k.from_bits(k.iop("add", k.iop("and", bits, 0x7FFFFF), _ROOT_HALF_BITS))
    exponent = k.to_real(power)
    exponent = k.select(tiny, k.sub(exponent, 23.0), exponent)
    return exponent, k.sub(mantissa, 1.0)


def _log_special(k: Kernel, x: str, value: str) -> str:
    """The logarithm's values at 0, below it, at infinity and NaN."""
    value = k.select(k.compare("oeq", x, math.inf), math.inf, value)
    value = k.select(k.compare("oeq", x, 0.0), -math.inf, value)
    value = k.select(k.compare("olt", x, 0.0), math.nan, value)
    return k.select(k.compare("uno", x, x), x, value)


def _log_tail(k: Kernel, f: str) -> str:
    """log1p(f) - f."""
    square = k.mul(f, f)
    cubic = k.mul(k.mul(square, f), k.poly(f, _LOG))
    return k.fma(square, -0.5, cubic)


def log(k: Kernel, x: str) -> str:
    """The natural logarithm."""
    exponent, f = _split(k, x)
    tail = k.fma(exponent, _LN2_LOW, _log_tail(k, f))
    value = k.fma(exponent, _LN2_HIGH, k.add(f, tail))
    return _log_special(k, x, value)


def log2(k: Kernel, x: str) -> str:
    """The logarithm to base 2, through float64."""
    return _log_in(k, x, 1.0 / math.log(2))


def log10(k: Kernel, x: str) -> str:
    """The logarithm to base 10, through float64."""
    return _log_in(k, x, 1.0 / math.log(10))


def _log_in(k: Kernel, x: str, scale: float) -> str:
    d = k.double()
    value = d.narrow(d.mul(_log_64(d, d.widen(x)), scale))
    return _log_special(k, x, value)


def log1p(k: Kernel, x: str) -> str:
    """log(1 + x): the fraction of 1 + x is taken from x itself, which has all its digits."""
    exponent, f = _split_one_plus(k, x)
    tail = k.fma(exponent, _LN2_LOW, _log_tail(k, f))
    value = k.fma(exponent, _LN2_HIGH, k.add(f, tail))
    value = k.select(k.compare("oeq", x, math.inf), math.inf, value)
    value = k.select(k.compare("oeq", x, -1.0), -math.inf, value)
    value = k.select(k.compare("olt", x, -1.0), math.nan, value)
    value = k.select(k.compare("oeq", x, 0.0), x, value)
    return k.select(k.compare("uno", x, x), x, value)


def _split_one_plus(k: Kernel, x: str) -> tuple[str, str]:
    """As ``_split`` of 1 + x: f = x / 2**exponent + (2**-exponent - 1), rounded once.

    From 2**26 on, where the one no longer counts, f is that of the sum.
    """
    bits = k.iop("sub", k.bits(k.add(x, 1.0)), _ROOT_HALF_BITS)
    power = k.iop("ashr", bits, 23)
    mantissa = k.from_bits(k.iop("add", k.iop("and", bits, 0x7FFFFF), _ROOT_HALF_BITS))
    scale = k.from_bits(k.iop("sub", k.integer(127 << 23), k.iop("shl", power, 23)))
    f = k.fma(x, scale, k.sub(scale, 1.0))
    f = k.select(k.compare("ogt", x, 67108864.0), k.sub(mantissa, 1.0), f)
    return k.to_real(power), f


def _log_64(d: Kernel, x: str) -> str:
    """The natural logarithm in float64 of a positive normal number, to 1e-15."""
    bits = d.iop("sub", d.bits(x), 0x3FE6A09E667F3BCD)
    exponent = d.to_real(d.iop("ashr", bits, 52))
    fraction = d.iop("and", bits, 0xFFFFFFFFFFFFF)
    m = d.from_bits(d.iop("add", fraction, 0x3FE6A09E667F3BCD))
    s = d.div(d.sub(m, 1.0), d.add(m, 1.0))
    return d.fma(exponent, math.log(2), d.mul(s, d.poly(d.mul(s, s), _LOG64)))


def tanh(k: Kernel, x: str) -> str:
    """The hyperbolic tangent, as (1 - e) / (1 + e) with e = exp(-2 * abs(x)).

    With e = s + v, s a power of two, these are (1 - s) - v and (1 + s) + v: the first halves are
    exact, and nothing cancels, not even near 0, where s is 1.
    """
    size = k.call("fabs", x)
    size = k.select(k.compare("ogt", size, _TANH_ONE), _TANH_ONE, size)
    n, s = power_of_two(k, size, -2.0 / math.log(2))
    r = k.fma(n, -math.log(2) / 2, k.sub(-0.0, size))
    twice = k.mul(s, k.add(r, r))
    v = k.fma(twice, k.mul(r, k.poly(r, _EXP_TWICE)), twice)
    value = k.div(k.sub(k.sub(1.0, s), v), k.add(k.add(s, 1.0), v))
    return k.call("copysign", value, x)


def sigmoid(k: Kernel, x: str) -> str:
    """1 / (1 + e**-x) as q / (s + q), q = e**r, s a power of two, -x = n * log(2) - r.

    Both are 2**-32 times that, so that no s overflows, and 3/2 times: then s + q, for n > 1, is in
    the upper half of its binade, where rounding it loses less. The result was 2.3 ulp off without.
    """
    x = k.clamp(x, -104.0, 30.0)
    n, s = power_of_two(k, x, -1.0 / math.log(2), -32)
    if not k.b.context.fuses:
        return _share(k.double(), s, _exp_less_one(k, x, n, 1.0))
    s = k.from_bits(k.iop("or", k.bits(s), 0x400000))
    q = k.poly(k.fma(n, _LN2_LOW, k.fma(n, _LN2_HIGH, x)), [c * 2.0**-32 for c in EXP_HALVES])
    return k.div(q, k.add(s, q))


def _share(d: Kernel, s: str, t: str) -> str:
    """q / (2**32 * s + q) with q = 1 + t, of float32, in float64: each of its roundings counts."""
    q = d.add(d.widen(t), 1.0)
    return d.narrow(d.div(q, d.fma(d.widen(s), 2.0**32, q)))


def erf(k: Kernel, x: str) -> str:
    """The error function, as 1 - exp(-u) with u = |x| + |x| * P(|x|)."""
    size = k.call("fabs", x)
    size = k.select(k.compare("ogt", size, 3.92), 3.92, size)
    return k.call("copysign", _below_one(k, k.fma(size, k.poly(size, _ERF), size)), x)


def _below_one(k: Kernel, u: str) -> str:
    """1 - exp(-u) for 0 <= u < 80.

    With u = n * log(2) - r that is (1 - 2**-n) - 2**-n * (exp(r) - 1): nothing cancels, not even
    for u near 0, where n is 0.
    """
    n, scale = power_of_two(k, u, -1.0 / math.log(2))
    r = k.fma(n, -math.log(2), k.sub(-0.0, u))
    p = k.fma(k.mul(r, r), k.poly(r, EXP), r)
    return k.fma(k.sub(-0.0, scale), p, k.sub(1.0, scale))


def rsqrt(k: Kernel, x: str) -> str:
    """1 / sqrt(x)."""
    return k.div(1.0, k.call("sqrt", x))


def _quadrant(k: Kernel, x: str) -> tuple[str, str]:
    """x = n * pi/2 + r, |r| <= pi/4: (n as an integer, r), reduced in float64."""
    d = k.double()
    wide = d.widen(x)
    n, _ = d.nearest(d.mul(wide, 2.0 / math.pi))
    r = d.narrow(d.sub(d.sub(wide, d.mul(n, _PIO2_HIGH)), d.mul(n, _PIO2_LOW)))
    _, number = k.nearest(d.narrow(n))
    return number, r


def _sine(k: Kernel, x: str, shift: int) -> str:
    """sin(x + shift * pi/2) for |x| <= 2**15."""
    n, r = _quadrant(k, x)
    if shift:
        n = k.iop("add", n, shift)
    square = k.mul(r, r)
    sine = k.fma(k.mul(square, r), k.poly(square, _SIN), r)
    cosine = k.fma(k.mul(square, square), k.poly(square, _COS), k.fma(square, -0.5, 1.0))
    odd = k.iop("and", n, 1)
    flag = k.b.op(f"icmp ne {k.ints} {odd}, {k.integer(0)}")
    value = k.select(flag, cosine, sine)
    sign = k.iop("shl", k.iop("and", n, 2), 30)
    return k.from_bits(k.iop("xor", k.bits(value), sign))


def sin(k: Kernel, x: str) -> str:
    """The sine; angles beyond 2**15 are handed to the C library."""
    return _with_library(k, x, "sinf", lambda: _sine(k, x, 0))


def cos(k: Kernel, x: str) -> str:
    """The cosine; angles beyond 2**15 are handed to the C library."""
    return _with_library(k, x, "cosf", lambda: _sine(k, x, 1))


def _with_library(k: Kernel, x: str, name: str, fast: Callable[[], str]) -> str:
    """``fast()`` if every lane is small enough, else the C function on each lane."""
    b = k.b
    inside = k.compare("ole", k.call("fabs", x), _LARGE_ANGLE)
    if k.lanes != 1:
        inside = b.call(f"llvm.vector.reduce.and.v{k.lanes}i1", "i1", [(k.flags, inside)])
    b.branch_if(inside, "near", "far", "!0")
    b.start("near")
    near = fast()
    b.branch("join")
    b.start("far")
    far = library_lanes(k, name, [x])
    b.branch("join")
    b.start("join")
    return b.phi(k.kind, [(near, "near"), (far, "far")])


def library_lanes(k: Kernel, name: str, args: list[str]) -> str:
    """The C function ``name`` applied lane by lane."""
    if k.lanes == 1:
        return k.b.call(name, k.real, [(k.real, arg) for arg in args])
    result = "poison"
    for lane in range(k.lanes):
        values = [(k.real, k.b.op(f"extractelement {k.kind} {arg}, i64 {lane}")) for arg in args]
        one = k.b.call(name, k.real, values)
        result = k.b.op(f"insertelement {k.kind} {result}, {k.real} {one}, i64 {lane}")
    return result


def power(k: Kernel, x: str, y: str) -> str:
    """x**y, through float64; the special values are C's."""
    d = k.double()
    size = k.call("fabs", x)
    wide = d.widen(size)
    log = d.mul(_log_64(d, wide), 1.0 / math.log(2))
    log = d.select(d.compare("oeq", wide, 0.0), -math.inf, log)
    log = d.select(d.compare("oeq", wide, math.inf), math.inf, log)
    exponent = d.clamp(d.mul(log, d.widen(y)), -152.0, 129.0)
    value = d.narrow(exp2_64(d, exponent))
    value = k.select(k.compare("uno", x, x), x, value)
    half = k.mul(y, 0.5)
    whole = k.compare("oeq", k.call("trunc", y), y)
    even = k.compare("oeq", k.call("trunc", half), half)
    odd = k.b.op(f"xor {k.flags} {even}, {'true' if k.lanes == 1 else 'splat (i1 true)'}")
    odd = k.b.op(f"and {k.flags} {odd}, {whole}")
    value = k.select(odd, k.call("copysign", value, x), value)
    below = k.b.op(f"and {k.flags} {k.compare('olt', x, 0.0)}, {k.compare('ogt', x, -math.inf)}")
    broken = k.select(whole, value, math.nan)
    value = k.select(below, broken, value)
    for flag in (k.compare("oeq", y, 0.0), k.compare("oeq", x, 1.0)):
        value = k.select(flag, 1.0, value)
    endless = k.b.op(
        f"and {k.flags} {k.compare('oeq', x, -1.0)}, "
        f"{k.compare('oeq', k.call('fabs', y), math.inf)}"
    )
    return k.select(endless, 1.0, value)
