"""Element-wise operators of one, two and three tensors against numpy, through relax.build."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, t
from weft.relax.op.definition import FUNCTIONS as F

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-30, -1e-30, 0.5, -2.5, 3.5]
N = ({"n": 0}, {"n": 1}, {"n": 5}, {"n": 33})


def unit(generator, shape):
    return generator.uniform(-0.99, 0.99, shape)


def positive(generator, shape):
    return generator.uniform(0.05, 9.0, shape)


def above_one(generator, shape):
    return generator.uniform(1.0, 50.0, shape)


def wide(generator, shape):
    return generator.uniform(-60, 60, shape)


def ties(generator, shape):
    return generator.integers(-7, 8, shape) / 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(math.erf, otypes=[np.float64])

# operator: numpy's function, values
FLOAT_UNARY = {
    "abs": (np.abs, None),
    "acos": (np.arccos, unit),
    "acosh": (np.arccosh, above_one),
    "asin": (np.arcsin, unit),
    "asinh": (np.arcsinh, wide),
    "atan": (np.arctan, wide),
    "atanh": (np.arctanh, unit),
    "ceil": (np.ceil, ties),
    "cos": (np.cos, wide),
    "cosh": (np.cosh, None),
    "erf": (erf, None),
    "exp": (np.exp, None),
    "floor": (np.floor, ties),
    "isfinite": (np.isfinite, SPECIAL),
    "isinf": (np.isinf, SPECIAL),
    "isnan": (np.isnan, SPECIAL),
    "log": (np.log, positive),
    "negative": (np.negative, None),
    "round": (np.round, ties),
    "rsqrt": (lambda x: 1 / np.sqrt(x), positive),
    "sigmoid": (sigmoid, wide),
    "sign": (np.sign, ties),
    "sin": (np.sin, wide),
    "sinh": (np.sinh, None),
    "sqrt": (np.sqrt, positive),
    "square": (np.square, None),
    "tan": (np.tan, unit),
    "tanh": (np.tanh, None),
    "trunc": (np.trunc, ties),
}


def quiet(function):
    def reference(*args):
        with np.errstate(all="ignore"):
            return function(*args)

    return reference


def unary_cases_first():
    ints = {
        "abs": np.abs,
        "negative": np.negative,
        "square": np.square,
        "sign": np.sign,
        "bitwise_not": np.invert,
    }
    for name, (reference, fill) in FLOAT_UNARY.items():
        yield Case(name, F[name], [t("n", 3, fill=fill)], reference, N)
        yield Case(name, F[name], [t(dtype="float64", fill=fill)], reference)
        yield Case(name, F[name], [t(3, 5, dtype="float16", fill=fill)], reference)
    for name in ("exp", "tanh", "sigmoid", "abs", "negative", "sqrt", "erf", "floor"):
        reference, fill = FLOAT_UNARY[name]
        yield Case(name, F[name], [t(4, dtype="bfloat16", fill=fill)], reference)
    for name in (
        "abs",
        "ceil",
        "cos",
        "exp",
        "floor",
        "negative",
        "sign",
        "sigmoid",
        "sin",
        "sqrt",
        "tanh",
        "trunc",
        "square",
        "log",
        "asinh",
        "atan",
        "erf",
        "round",
    ):
        reference, _ = FLOAT_UNARY[name]
        special = quiet(
            reference
            if name != "sign"
            else lambda x: np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))
        )
        yield Case(name, F[name], [t(12, fill=SPECIAL)], special, note="special")
    for name, reference in ints.items():
        yield Case(name, F[name], [t(3, "n", dtype="int32")], reference, N)
        yield Case(name, F[name], [t(4, dtype="int8", fill=[-128, 127, 0, 5])], reference)
        yield Case(name, F[name], [t(1, dtype="int64")], reference)
    for name in ("ceil", "floor", "round", "trunc"):
        yield Case(name, F[name], [t(3, dtype="int32")], lambda x: x)


def unary_cases_second():
    clip = F["clip"]
    yield Case("sign", F["sign"], [t(3, dtype="uint8", fill=[0, 1, 255])], np.sign)
    yield Case("bitwise_not", F["bitwise_not"], [t(3, dtype="uint8", fill=[0, 1, 255])], np.invert)
    yield Case("bitwise_not", F["bitwise_not"], [t(3, dtype="bool")], np.invert)
    yield Case("logical_not", F["logical_not"], [t("n", dtype="bool")], np.logical_not, N)
    yield Case(
        "clip", lambda x: clip(x, -0.5, 0.75), [t("n", 3)], lambda x: np.clip(x, -0.5, 0.75), N
    )
    yield Case(
        "clip",
        lambda x: clip(x, -0.5, 0.75),
        [t(12, fill=SPECIAL)],
        lambda x: np.clip(x, -0.5, 0.75),
        note="special",
    )
    yield Case(
        "clip", lambda x: clip(x, 2, -1), [t(7)], lambda x: np.full_like(x, 2), note="crossed"
    )
    yield Case("clip", lambda x: clip(x, -2, 3), [t(7, dtype="int8")], lambda x: np.clip(x, -2, 3))
    yield Case("clip", lambda x: clip(x, 0, 6), [t(7, dtype="float16")], lambda x: np.clip(x, 0, 6))


def operators_first():
    arithmetic = {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }
    for name, reference in arithmetic.items():
        make = F[name]
        yield Case(name, make, [t("n", 1, 4), t(3, 1)], reference, N)
        yield Case(name, make, [t(), t(dtype="float32")], reference)
        yield Case(name, make, [t(0, 3), t(3)], reference)
        yield Case(
            name,
            make,
            [t(12, fill=SPECIAL), t(12, fill=SPECIAL[::-1])],
            quiet(reference),
            note="special",
        )
        yield Case(name, make, [t(2, "n", dtype="int64"), t("n", dtype="int64")], reference, N)
        yield Case(
            name,
            make,
            [
                t(4, dtype="int8", fill=[-128, 127, 100, 3]),
                t(4, dtype="int8", fill=[-1, 1, 100, -7]),
            ],
            reference,
        )
        yield Case(name, make, [t(3, dtype="uint8"), t(1, dtype="uint8", fill=[250])], reference)
        yield Case(name, make, [t(5, dtype="float16"), t(5, dtype="float16")], reference)
        yield Case(name, make, [t(5, dtype="bfloat16"), t(dtype="bfloat16")], reference)
        yield Case(
            name,
            lambda x, make=make: make(x, 2.5),
            [t("n", dtype="float64")],
            lambda x, r=reference: r(x, 2.5),
            N,
        )


def operators_second():
    for name, reference in {
        "equal": np.equal,
        "not_equal": np.not_equal,
        "less": np.less,
        "greater": np.greater,
        "less_equal": np.less_equal,
        "greater_equal": np.greater_equal,
    }.items():
        make = F[name]
        yield Case(name, make, [t("n", 1, dtype="int32"), t(3, dtype="int32")], reference, N)
        yield Case(
            name,
            make,
            [t(12, fill=SPECIAL), t(12, fill=[0.0, NAN, INF, -INF])],
            reference,
            note="special",
        )
        yield Case(
            name, make, [t(dtype="uint8"), t(4, dtype="uint8", fill=[0, 255, 128, 7])], reference
        )
        for first, second in (("float32", "int32"), ("int64", "int32"), ("int8", "float16")):
            given = [t("n", 1, dtype=first), t(3, dtype=second)]
            yield Case(name, make, given, reference, N, note="mixed")
    for name, reference in {
        "logical_and": np.logical_and,
        "logical_or": np.logical_or,
        "logical_xor": np.logical_xor,
    }.items():
        yield Case(name, F[name], [t("n", 1, dtype="bool"), t(4, dtype="bool")], reference, N)
    for name, reference in {
        "bitwise_and": np.bitwise_and,
        "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor,
    }.items():
        yield Case(name, F[name], [t("n", 1, dtype="int32"), t(4, dtype="int32")], reference, N)
        yield Case(name, F[name], [t(4, dtype="uint8"), t(1, dtype="uint8")], reference)
        yield Case(name, F[name], [t(5, dtype="bool"), t(5, dtype="bool")], reference)


def operators_third():
    for name, reference in {"left_shift": np.left_shift, "right_shift": np.right_shift}.items():
        shifts = {"int32": [0, 1, 5, 31], "int64": [0, 1, 33, 63], "uint8": [0, 1, 3, 7]}
        for kind, fill in shifts.items():
            yield Case(
                name,
                F[name],
                [t("n", 1, dtype=kind), t(4, dtype=kind, fill=fill)],
                reference,
                N[:3],
            )


def truncated(x, y):
    return np.trunc(x / y).astype(x.dtype)


def division():
    nonzero = [1, -2, 3, -4, 5, 7, -7]
    make = F["divide"]
    yield Case("divide", make, [t("n", 1), t(3, fill=[2.0, -0.3, 1e-3])], np.divide, N)
    yield Case(
        "divide",
        make,
        [t(12, fill=SPECIAL), t(12, fill=[0.0, INF, 1.0, NAN])],
        quiet(np.divide),
        note="special",
    )
    yield Case("divide", make, [t(7, dtype="int32"), t(7, dtype="int32", fill=nonzero)], truncated)
    yield Case("divide", make, [t(4, dtype="float16"), t(dtype="float16", fill=[3.0])], np.divide)
    for kind in ("int32", "int64", "int8"):
        pair = [t("n", 1, dtype=kind), t(7, dtype=kind, fill=nonzero)]
        yield Case("floor_divide", F["floor_divide"], pair, np.floor_divide, N)
        yield Case("floor_mod", F["floor_mod"], pair, np.mod, N)
        yield Case("mod", F["mod"], pair, np.fmod, N)
    low = [t(1, dtype="int32", fill=[-(2**31)]), t(3, dtype="int32", fill=[3, -3, 2**31 - 1])]
    yield Case("floor_divide", F["floor_divide"], low, np.floor_divide, note="extreme")
    yield Case("floor_mod", F["floor_mod"], low, np.mod, note="extreme")
    ends = [3.0, -3.0, 0.0, INF, -INF, NAN, 1e8, -1e8]
    ends = [t(8, 1, fill=ends), t(5, fill=[INF, -INF, 0.0, 0.1, 3.0])]
    yield Case("floor_mod", F["floor_mod"], ends, quiet(np.mod), note="ends")
    yield Case("mod", F["mod"], ends, quiet(np.fmod), note="ends")
    pair = [t("n", 1), t(3, fill=[2.0, -0.75, 1.5])]
    yield Case("floor_divide", F["floor_divide"], pair, np.floor_divide, N)
    yield Case("floor_mod", F["floor_mod"], pair, np.mod, N)
    yield Case("mod", F["mod"], pair, np.fmod, N)


def powers():
    yield Case(
        "power",
        F["power"],
        [t("n", 1, fill=positive), t(4, fill=[0.0, 1.0, -1.5, 2.0])],
        np.power,
        N,
    )
    yield Case(
        "power",
        F["power"],
        [
            t(4, dtype="float64", fill=[-2.0, -1.0, 0.0, 3.0]),
            t(4, dtype="float64", fill=[2.0, 3.0, 0.0, -1.0]),
        ],
        np.power,
    )
    for dtype in ("int8", "int32", "int64", "uint8"):
        yield Case(
            "power",
            F["power"],
            [
                t("n", 1, dtype=dtype, fill=[3, 1, 0, 7, 2]),
                t(5, dtype=dtype, fill=[0, 1, 2, 5, 70]),
            ],
            lambda x, y: np.power(x, y),
            N,
        )
    inverse = [
        t(6, dtype="int32", fill=[1, -1, -1, 2, -7, -3]),
        t(6, dtype="int32", fill=[-3, -3, -2, -1, -9, 3]),
    ]
    yield Case(
        "power",
        F["power"],
        inverse,
        lambda *_: np.array([1, -1, 1, 0, 0, -27], "int32"),
        note="negative",
    )
    squared = [t(3, dtype="int64")]
    yield Case("power", lambda x: F["power"](x, 3), squared, lambda x: x**3, note="a number")
    yield Case(
        "log_add_exp", F["log_add_exp"], [t("n", 3, fill=wide), t(3, fill=wide)], np.logaddexp, N
    )
    half = [t(2, 3, dtype="float16"), t(3, dtype="float16")]
    yield Case("log_add_exp", F["log_add_exp"], half, np.logaddexp, tolerance=5e-4)
    yield Case(
        "log_add_exp",
        F["log_add_exp"],
        [t(4, fill=[-INF, -INF, INF, 1e30]), t(4, fill=[-INF, 2.0, 1.0, 1e30])],
        np.logaddexp,
        note="special",
    )


def others():
    where, fma, astype = F["where"], F["ewise_fma"], F["astype"]
    yield Case("where", where, [t("n", 1, dtype="bool"), t(3), t("n", 3)], np.where, N)
    yield Case("where", where, [t(dtype="bool"), t(2, dtype="int64"), t(dtype="int64")], np.where)
    yield Case(
        "where",
        where,
        [t(4, dtype="bool"), t(4, fill=[NAN, INF, 1.0]), t(4, fill=[1.0, NAN])],
        np.where,
    )
    yield Case("ewise_fma", fma, [t("n", 3), t("n", 3), t("n", 3)], lambda x, y, z: x * y + z, N)
    yield Case("ewise_fma", fma, [t(4, dtype="int32")] * 3, lambda x, y, z: x * y + z)
    values = [0.0, 1.5, -1.5, 127.7, 3.0]
    for source in ("float32", "float16", "float64", "bfloat16", "int32", "int8", "int64", "bool"):
        for target in ("float32", "float16", "int32", "int64", "int8", "bool", "float64"):
            if source == target:
                continue
            yield Case(
                "astype",
                lambda x, d=target: astype(x, d),
                [t(5, dtype=source, fill=values)],
                lambda x, d=target: x.astype(d),
                note=target,
            )
    yield Case(
        "astype",
        lambda x: astype(x, "int32"),
        [t(4, fill=[NAN, INF, -INF, 1e20])],
        lambda x: np.array([0, 2**31 - 1, -(2**31), 2**31 - 1], "int32"),
        note="saturates",
    )
    yield Case(
        "astype",
        lambda x: astype(x, "uint8"),
        [t(4, fill=[NAN, INF, -1.0, 3.9])],
        lambda x: np.array([0, 255, 0, 3], "uint8"),
        note="saturates",
    )


UNARY, BINARY = (
    Table([*unary_cases_first(), *unary_cases_second()]),
    Table([*operators_first(), *operators_second(), *operators_third(), *division(), *powers()]),
)
OTHERS = Table(list(others()))


@SAMPLED
@pytest.mark.parametrize("case", UNARY.cases, ids=str)
def test_unary(case):
    UNARY.check(case)


@SAMPLED
@pytest.mark.parametrize("case", BINARY.cases, ids=str)
def test_binary(case):
    BINARY.check(case)


@SAMPLED
@pytest.mark.parametrize("case", OTHERS.cases, ids=str)
def test_others(case):
    OTHERS.check(case)
