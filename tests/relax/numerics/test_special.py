"""Special functions against PyTorch's, in float64: of one float and of two."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, t
from weft.relax.op.definition import FUNCTIONS as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
N = ({"n": 0}, {"n": 1}, {"n": 33})


def between(low, high):
    return lambda generator, shape: generator.uniform(low, high, shape)


def by_torch(function):
    return lambda *arrays: function(*[torch.from_numpy(np.array(a)) for a in arrays]).numpy()


# operator: PyTorch's function, values
UNARY = {
    "deg2rad": (torch.deg2rad, between(-400, 400)),
    "rad2deg": (torch.rad2deg, between(-7, 7)),
    "reciprocal": (torch.reciprocal, between(0.1, 9)),
    "exp2": (torch.exp2, between(-9, 9)),
    "expm1": (torch.expm1, between(-2, 2)),
    "log2": (torch.log2, between(0.01, 9)),
    "log10": (torch.log10, between(0.01, 9)),
    "log1p": (torch.log1p, between(-0.9, 9)),
    "erfc": (torch.erfc, between(-4, 4)),
    "erfcx": (torch.special.erfcx, between(-2, 40)),
    "erfinv": (torch.erfinv, between(-0.999, 0.999)),
    "lgamma": (torch.lgamma, between(0.1, 40)),
    "digamma": (torch.digamma, between(-6.4, 40)),
    "trigamma": (lambda x: torch.polygamma(1, x), between(-6.4, 40)),
    "i0": (torch.special.i0, between(-9, 9)),
    "i0e": (torch.special.i0e, between(-9, 9)),
    "i1": (torch.special.i1, between(-9, 9)),
    "i1e": (torch.special.i1e, between(-9, 9)),
    "sinc": (torch.sinc, between(-3, 3)),
    "entr": (torch.special.entr, between(0, 3)),
    "ndtr": (torch.special.ndtr, between(-5, 5)),
    "log_ndtr": (torch.special.log_ndtr, between(-40, 5)),
    "ndtri": (torch.special.ndtri, between(0.001, 0.999)),
    "frac": (torch.frac, between(-9, 9)),
}
BINARY = {
    "atan2": (torch.atan2, between(-3, 3)),
    "copysign": (torch.copysign, between(-3, 3)),
    "fmax": (torch.fmax, [1.0, np.nan, -2.0, 3.0, 0.5]),
    "fmin": (torch.fmin, [1.0, np.nan, -2.0, 3.0, 0.5]),
    "hypot": (torch.hypot, between(-3, 3)),
    "heaviside": (torch.heaviside, [1.0, 0.0, -2.0, 0.0, 0.5]),
    "log_add_exp2": (torch.logaddexp2, between(-9, 9)),
    "xlogy": (torch.xlogy, [1.0, 0.0, 2.5, 0.3, 0.5]),
    "xlog1py": (torch.special.xlog1py, [1.0, 0.0, 2.5, 0.3, 0.5]),
}


def quotients():
    """Rounded down as if exact, of signs, zeros and infinities; greatest common divisors."""
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -2.5, 0.3, 1e30]
    divide = F["exact_floor_divide"]
    for dtype in ("float32", "float64"):
        both = [t(9, 1, dtype=dtype, fill=edges), t(9, dtype=dtype, fill=edges)]

        def floor_divide(x, y, dtype=dtype):
            with np.errstate(all="ignore"):
                return np.floor_divide(x.astype(dtype), y.astype(dtype))

        yield Case("exact_floor_divide", divide, both, floor_divide, note="edges")
    given = [t("n", 3, fill=between(-9, 9)), t(3, fill=[0.1, -0.7, 2.0])]
    yield Case("exact_floor_divide", divide, given, lambda x, y: np.floor(x / y), N)
    for dtype in ("int32", "int64", "uint8"):
        numbers = t("n", 5, dtype=dtype, fill=[0, 12, 60, 7, 64, 1])
        yield Case("gcd", F["gcd"], [numbers, t(5, dtype=dtype, fill=[0, 18])], np.gcd, N)
    single = [t(dtype="int32", fill=-12), t(1, dtype="int32", fill=[18])]
    yield Case("gcd", F["gcd"], single, np.gcd)
    yield Case("gcd", lambda x: F["gcd"](x, 6), [t("n", dtype="int64")], lambda x: np.gcd(x, 6), N,
               note="a number")  # fmt: skip


def cases():
    for name, (function, values) in UNARY.items():
        for dtype in ("float32", "float64", "float16"):
            inputs = [t("n", 3, dtype=dtype, fill=values)]
            tolerance = 1e-11 if dtype == "float64" else None
            yield Case(name, F[name], inputs, by_torch(function), N, tolerance)
    for name, (function, values) in BINARY.items():
        inputs = [t("n", 3, fill=values), t(3, fill=values)]
        yield Case(name, F[name], inputs, by_torch(function), N)
    yield from quotients()
    orders, places = t("n", 3, fill=[1.5, 2.0, 4.0, 1.0]), t(3, fill=[0.3, 7.0, 20.0])
    yield Case("zeta", F["zeta"], [orders, places], by_torch(torch.special.zeta), N)
    step = F["nextafter"]
    yield Case(
        "nextafter", step, [t("n", 3), t(3)],
        lambda x, y: np.nextafter(x.astype("float32"), y.astype("float32")), N,
    )  # fmt: skip
    edges = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 6e-8, 65504.0]
    for dtype in ("float16", "float32", "float64"):
        both = [t(9, 1, dtype=dtype, fill=edges), t(9, dtype=dtype, fill=edges)]

        def after(x, y, dtype=dtype):
            with np.errstate(all="ignore"):
                return np.nextafter(x.astype(dtype), y.astype(dtype))

        yield Case("nextafter", step, both, after, note="edges")
    yield Case(
        "heaviside", F["heaviside"], [t(7, dtype="int32"), t(7, dtype="int32")],
        by_torch(torch.heaviside),
    )  # fmt: skip


TABLE = Table(list(cases()))


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_special(case):
    TABLE.check(case)
