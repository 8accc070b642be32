"""Mathematics against wider floats of numpy: at most 2 ulp, special values included."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.ir.module import IRModule
from weft.target.codegen import target_has_features
from weft.tir import interp
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Call, Ramp, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.lowering.decompose_math import FLOAT32, DecomposeMath
from weft.tir.lowering.decompose_math import FLOAT64 as FLOAT64_FORMULAS
from weft.tir.op import const
from weft.tir.stmt import BufferStore, For, ForKind, seq
from weft.topi.special import next_float

pytestmark = pytest.mark.sampled(3)

REFERENCE = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(math.erf), "sin": np.sin,
    "cos": np.cos, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt, "expm1": np.expm1,
    "erfc": np.vectorize(math.erfc), "tan": np.tan, "cosh": np.cosh, "sinh": np.sinh,
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh,
}  # fmt: skip
BINARY = {"atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod}
WITHOUT_FMA = ["tan", "asin", "acos", "atan", "sinh", "cosh", "acosh", "asinh", "atanh", "log2"]
SPECIAL = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, -1e-40, 3e38, 32768, 32769, 1e10, 88.8]
N = 1 << 13


def samples(kind: str = "float32") -> np.ndarray:
    rng, kind = np.random.default_rng(7), np.dtype(kind)
    powers = 10 ** rng.uniform(-12, 3, N)
    with np.errstate(all="ignore"):
        bits = rng.integers(0, 2 ** (8 * kind.itemsize), N, dtype=f"u{kind.itemsize}").view(kind)
        parts = [bits, rng.uniform(-110, 110, N), rng.uniform(-2, 2, N), rng.uniform(0.5, 1.5, N),
                 rng.uniform(-32768, 32768, N), np.arange(N) * (np.pi / 2), powers, -powers,
                 1 - powers, rng.uniform(-1, 1, N), rng.uniform(-750, 750, N)]  # fmt: skip
        x = np.concatenate([np.asarray(p, kind) for p in parts])
        x[: len(SPECIAL)] = SPECIAL
    return x


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in spacings; infinite where signs of zeros or NaN differ."""
    with np.errstate(all="ignore"):
        near = exact.astype(got.dtype)
        same = (got == near) | (np.isnan(got) & np.isnan(near))
        unit = np.spacing(np.abs(np.where(np.isfinite(near), near, 1))).astype(exact.dtype)
        error = np.abs(got.astype(exact.dtype) - exact) / unit
        error = np.where(same, 0, np.where(np.isfinite(error), error, np.inf)).astype(np.float64)
    return np.where((near == 0) & (got == 0) & (np.signbit(near) != np.signbit(got)), np.inf, error)


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("name", REFERENCE)
def test_polynomials_stay_within_two_ulp(name, lanes, elementwise):
    x = samples()
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float32", x, lanes=lanes)
    with np.errstate(all="ignore"):
        error = ulps(got, REFERENCE[name](x.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= 2, (name, x[worst], got[worst])


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize(
    ("name", "places"),
    [("sigmoid", (-1.0986, -3.8, -5.84, -8.63, -16.97, -26.69, -88, -103.5)),
     ("tanh", (0.1099, 0.3466, -0.5196, 9.01)),
     ("exp", (-103.97, -103.3, -87.3, -26.69, 5.2, 48.9))],
)  # fmt: skip
def test_polynomials_stay_within_two_ulp_where_roundings_add_up(name, places, target, elementwise):
    bits = np.arange(-(1 << 14), 1 << 14, dtype=np.int32)
    x = np.concatenate([(np.float32(place).view(np.int32) + bits) for place in places])
    x = x.view(np.float32)
    got = elementwise(
        lambda v: Call(v.dtype, f"tir.{name}", [v]), "float32", x, lanes=8, target=target
    )
    assert ulps(got, REFERENCE[name](x.astype(np.float64))).max() <= (1 if name == "exp" else 2)


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "erf"])
def test_polynomials_without_avx512(name, elementwise):
    x = samples()
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float32", x, lanes=8,
                      target="llvm -mcpu=x86-64-v3")  # fmt: skip
    with np.errstate(all="ignore"):
        assert ulps(got, REFERENCE[name](x.astype(np.float64))).max() <= 2


@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 8, 12, 16, 24, 48, 64])
def test_exp_of_any_number_of_lanes(lanes, elementwise):
    row = [-np.inf, -3.4e38, -104.5, -103.9, -88, -1, -0.0, 0, 1, 88.7, 88.8, np.inf, np.nan]
    x = np.resize(np.array(row, np.float32), 13 * lanes)
    got = elementwise(lambda v: Call(v.dtype, "tir.exp", [v]), "float32", x, lanes=lanes)
    with np.errstate(all="ignore"):
        assert ulps(got, np.exp(x.astype(np.float64))).max() <= 1


@pytest.mark.parametrize("lanes", [1, 2, 3, 5, 8, 12, 16, 24, 48, 64])
@pytest.mark.parametrize("options", ["", "-mcpu=x86-64-v3", "-mcpu=x86-64 -mattr=+avx2,-fma"])
def test_gelu_looks_up_its_pieces_in_any_number_of_lanes(lanes, options, elementwise):
    x = np.resize(np.linspace(-13.1, 13.1, 1009, dtype=np.float32), 64 * lanes)
    got = elementwise(
        lambda v: Call(v.dtype, "tir.gelu", [v]), "float32", x, lanes=lanes,
        target=f"llvm {options}",
    )  # fmt: skip
    exact = [value * math.erfc(-value * math.sqrt(0.5)) / 2 for value in x.tolist()]
    assert ulps(got, np.array(exact)).max() <= 2


@pytest.mark.parametrize("name", WITHOUT_FMA)
def test_float32_without_fused_operations_is_computed_in_float64(name, elementwise):
    x = samples()
    got = elementwise(
        lambda v: Call(v.dtype, f"tir.{name}", [v]), "float32", x, lanes=4,
        target="llvm -mcpu=x86-64",
    )  # fmt: skip
    with np.errstate(all="ignore"):
        assert ulps(got, REFERENCE[name](x.astype(np.float64))).max() <= 1


def pairs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Samples beside samples in another order, and special values beside all special values."""
    x = samples(kind)
    with np.errstate(over="ignore"):
        special = np.array(SPECIAL, kind)
    grid = [np.resize(side.ravel(), 208) for side in np.meshgrid(special, special)]
    return np.concatenate([x, grid[0]]), np.concatenate([x[::-1], grid[1]])


@pytest.mark.parametrize("options", ["", "-mcpu=x86-64-v3", "-mcpu=x86-64"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers_are_within_two_ulp(name, kind, options, elementwise):
    x, y = pairs(kind)
    got = elementwise(
        lambda a, b: Call(a.dtype, f"tir.{name}", [a, b]), kind, x, y, lanes=8,
        target=f"llvm {options}",
    )  # fmt: skip
    with np.errstate(all="ignore"):
        error = ulps(got, BINARY[name](x.astype(np.longdouble), y.astype(np.longdouble)))
    worst = int(np.argmax(error))
    assert error[worst] <= (0 if name == "fmod" else 2), (x[worst], y[worst], got[worst])


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_next_float_is_numpys(kind, elementwise):
    x, y = pairs(kind)
    got = elementwise(next_float, kind, x, y)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        exact = np.nextafter(x, y)
    np.testing.assert_array_equal(got, exact)
    assert (np.signbit(got) == np.signbit(exact))[~np.isnan(exact)].all()


def test_remainders_are_exact_for_any_quotient(elementwise):
    rng = np.random.default_rng(2)
    for kind, digits in (("float32", 24), ("float64", 53)):
        y = rng.uniform(0.5, 1, 1 << 14).astype(kind)
        whole = np.floor(2 ** rng.uniform(0, digits + 3, len(y)))
        x = (y * whole.astype(kind)).astype(kind)
        for beside in (x, np.nextafter(x, np.array(0, kind)), np.nextafter(x, x + x), -x):
            got = elementwise(
                lambda a, b: Call(a.dtype, "tir.fmod", [a, b]), kind, beside, y, lanes=8
            )
            np.testing.assert_array_equal(got, np.fmod(beside, y))


FLOAT64 = {
    name: function for name, function in REFERENCE.items() if name not in ("exp10", "erf", "erfc")
}
"""Functions of float64 with a reference of more digits."""


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("name", FLOAT64)
def test_float64_is_within_two_ulp(name, lanes, elementwise):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("numpy has no wider float")
    x = samples("float64")
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float64", x, lanes=lanes,
                      target="llvm -mcpu=x86-64-v3")  # fmt: skip
    with np.errstate(all="ignore"):
        error = ulps(got, FLOAT64[name](x.astype(np.longdouble)))
    worst = int(np.argmax(error))
    assert error[worst] <= 2, (name, x[worst], got[worst])


def test_the_error_function_of_float64(elementwise):
    x = samples("float64")
    got = elementwise(lambda v: Call(v.dtype, "tir.erf", [v]), "float64", x, lanes=8)
    with np.errstate(invalid="ignore"):
        assert ulps(got, REFERENCE["erf"](x)).max() <= 2


def test_gelu_of_float64_keeps_its_digits_far_below_0(elementwise):
    x = np.array([-38, -30.5, -20.25, -12.0, -6.5, -1.0, -1e-9, 1e-9, 0.5, 6.0])
    exact = [-1.096462777e-314, -3.973960635193133e-203, -3.596804726522879e-90,
             -2.1317785344932147e-32, -2.6104003795084267e-10, -0.15865525393145705,
             -4.999999996010577e-10, 5.000000003989423e-10, 0.34573123063700656,
             5.999999994080474]  # fmt: skip
    got = elementwise(lambda v: Call(v.dtype, "tir.gelu", [v]), "float64", x, lanes=5,
                      target="llvm -mcpu=x86-64-v3")  # fmt: skip
    np.testing.assert_allclose(got, exact, rtol=3e-15, atol=1e-322)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "nearbyint"])
def test_roundings_of_every_float16(name, elementwise):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float16", x, lanes=16)
    with np.errstate(invalid="ignore"):
        exact = (np.rint if name == "nearbyint" else getattr(np, name))(x)
    np.testing.assert_array_equal(got, exact)
    same = np.signbit(got) == np.signbit(exact)
    assert same[~np.isnan(x)].all()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("tanh", 0.17, 1.2), ("sigmoid", -6, 0.5), ("sigmoid", -45, -3), ("expm1", -0.7, 0.7),
     ("tan", -1.6, 1.6), ("asin", 0.5, 1), ("sinh", -3, 3), ("log1p", -0.5, 1)],
)  # fmt: skip
def test_float64_is_within_two_ulp_where_roundings_add_up(name, low, high, elementwise):
    x = np.random.default_rng(1).uniform(low, high, 1 << 18)
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float64", x, lanes=8,
                      target="llvm -mcpu=x86-64-v3")  # fmt: skip
    assert ulps(got, FLOAT64[name](x.astype(np.longdouble))).max() <= 2


@pytest.mark.parametrize("lanes", [1, 8])
def test_pow_special_values_and_accuracy(lanes, elementwise):
    values = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 2, -2, 0.5, -0.5, 3, -3, 1e-40,
                       1e30, -1e30, 16777217, 2.5, 1.0001, -7], np.float32)  # fmt: skip
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    rng = np.random.default_rng(3)
    x = np.concatenate([x, rng.uniform(0, 50, 1 << 12).astype(np.float32)])
    y = np.concatenate([y, rng.uniform(-25, 25, 1 << 12).astype(np.float32)])
    got = elementwise(lambda a, b: Call(a.dtype, "tir.pow", [a, b]), "float32", x, y, lanes=lanes)
    with np.errstate(all="ignore"):
        error = ulps(got, np.power(x.astype(np.float64), y.astype(np.float64)))
    assert error.max() <= 1


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "sin", "rsqrt", "erf"])
def test_float64_is_the_librarys(name, elementwise):
    x = np.random.default_rng(5).uniform(0.1, 20, 512)
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float64", x, lanes=4)
    np.testing.assert_allclose(got, REFERENCE[name](x), rtol=1e-15)


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_float16_is_rounded_once(name, elementwise):
    with np.errstate(all="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
        exact = REFERENCE[name](x.astype(np.float32).astype(np.float64))
    got = elementwise(lambda v: Call(v.dtype, f"tir.{name}", [v]), "float16", x)
    with np.errstate(all="ignore"):
        assert ulps(got, exact).max() <= 0.5002


def test_two_argument_functions(elementwise):
    x = np.linspace(-4, 4, 64)
    y = np.linspace(3, -2, 64)
    cases = {"atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign,
             "nextafter": np.nextafter}  # fmt: skip
    for name, reference in cases.items():
        got = elementwise(
            lambda a, b, name=name: Call(a.dtype, f"tir.{name}", [a, b]), "float64", x, y
        )
        np.testing.assert_allclose(got, reference(x, y), rtol=1e-15)


INSTRUCTIONS = {
    "llvm -mcpu=x86-64-v4": ("fma", "scaleb", "lookup"),
    "llvm -mcpu=haswell": ("fma", "lookup"),
    "llvm -mcpu=x86-64": (),
}
"""What ``DecomposeMath`` has for each of these processors."""


def by_lanes(name: str, count: int, every_lanes: tuple[int, ...], kind: str) -> PrimFunc:
    """A loop for each number of lanes, each with a result of its own."""
    arity = 2 if name in ("pow", *BINARY) else 1
    given = [decl_buffer((count,), kind, f"x{at}") for at in range(arity)]
    results, loops = [], []
    for lanes in every_lanes:
        out, i = decl_buffer((count,), kind, f"out{lanes}"), Var("i", "int32")
        place = i if lanes == 1 else Ramp(i * lanes, const(1), lanes)
        loads = [x[place] for x in given]
        store = BufferStore(out, Call(loads[0].dtype, f"tir.{name}", loads), [place])
        loops.append(For(i, const(0), const(count // lanes), ForKind.SERIAL, store))
        results.append(out)
    return PrimFunc([*given, *results], seq(*loops)).with_attr("global_symbol", "main")


@pytest.mark.parametrize("target", INSTRUCTIONS)
@pytest.mark.parametrize("name", [*FLOAT32, "rsqrt"])
def test_the_interpreter_and_native_code_agree_to_the_last_bit(name, target, native):
    agree_to_the_last_bit(name, target, native, "float32", (1, 4, 8, 16))


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("name", FLOAT64_FORMULAS)
def test_the_interpreter_and_native_code_agree_on_float64(name, target, native):
    agree_to_the_last_bit(name, target, native, "float64", (1, 8))


def agree_to_the_last_bit(name, target, native, kind, every_lanes):
    if target.endswith("v4") and not target_has_features(["avx512f", "avx512vl"]):
        pytest.skip("this processor has no AVX-512")
    count = 96
    func = by_lanes(name, count, every_lanes, kind)
    rng = np.random.default_rng(0)
    x = np.empty(count, kind)
    with np.errstate(invalid="ignore"):
        x[:] = rng.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    x[count // 2 :] = rng.uniform(-20, 20, count // 2)
    x[: len(SPECIAL)] = SPECIAL
    if kind == "float64":  # of large angles numpy's functions are not C's
        x = np.where(np.abs(x) < 1e6, x, 1.5)
    given = [x, np.roll(x, 30)] if name in ("pow", *BINARY) else [x]
    names = INSTRUCTIONS.get(target, ("fma",))
    step = DecomposeMath(lambda expr: any(is_call(expr, word) for word in names))
    lowered = step(IRModule({"main": func}))["main"]
    results = [[np.zeros_like(x) for _ in every_lanes] for _ in range(2)]
    native(func, target)(*given, *results[0])
    interp.run(lowered, *given, *results[1])
    for compiled, interpreted in zip(*results, strict=True):
        nan = np.isnan(compiled)
        np.testing.assert_array_equal(nan, np.isnan(interpreted))
        words = f"u{x.itemsize}"
        bits = [np.where(nan, 0, out.view(words)) for out in (compiled, interpreted)]
        np.testing.assert_array_equal(*bits)
