"""The number rules: wrap, division, shifts, casts, NaN, 16-bit floats."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from weft.ir.expr import FloatImm, IntImm
from weft.runtime.faults import DivisionFault
from weft.support.dtype import DataType
from weft.tir import expr as e
from weft.tir.expr import Call

pytestmark = pytest.mark.sampled(3)

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def grid(dtype: str, nonzero: bool = False) -> tuple[np.ndarray, np.ndarray]:
    info = np.iinfo(dtype)
    values = sorted({v for v in (info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, 100,
                                 info.max - 1, info.max) if info.min <= v <= info.max})  # fmt: skip
    pairs = [(a, b) for a, b in itertools.product(values, values) if b or not nonzero]
    pairs += [(1, 1)] * (-len(pairs) % 8)
    x, y = np.array(pairs, dtype=dtype).T
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def python_rows(kind: type, a: int, b: int, bits: int) -> int:
    if kind is e.FloorDiv:
        return a // b
    if kind is e.FloorMod:
        return a % b
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient if kind is e.Div else a - b * quotient


def wrapped(values: list[int], dtype: str) -> np.ndarray:
    bits = np.iinfo(dtype).bits
    return np.array([v % (1 << bits) for v in values], dtype=f"uint{bits}").view(dtype)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("kind", [e.FloorDiv, e.FloorMod, e.Div, e.Mod])
def test_division(kind, dtype, lanes, elementwise):
    x, y = grid(dtype, nonzero=True)
    want = [python_rows(kind, int(a), int(b), 8) for a, b in zip(x, y, strict=True)]
    got = elementwise(kind, dtype, x, y, lanes=lanes)
    np.testing.assert_array_equal(got, wrapped(want, dtype))


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, -1, -3, -4])
@pytest.mark.parametrize("kind", [e.FloorDiv, e.FloorMod, e.Div, e.Mod])
def test_division_by_constants(kind, divisor, elementwise):
    x = grid("int32")[0]
    got = elementwise(lambda v: kind(v, IntImm("int32", divisor)), "int32", x)
    want = [python_rows(kind, int(a), divisor, 32) for a in x]
    np.testing.assert_array_equal(got, wrapped(want, "int32"))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("kind", [e.FloorDiv, e.FloorMod, e.Div, e.Mod])
def test_division_by_zero_raises(kind, lanes, elementwise):
    x = np.arange(8, dtype=np.int32)
    with pytest.raises(DivisionFault, match="main: integer division by zero"):
        elementwise(lambda a, b: kind(a, b), "int32", x, x - 4, lanes=lanes)


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("kind", [e.Add, e.Sub, e.Mul])
def test_arithmetic_wraps(kind, dtype, elementwise):
    x, y = grid(dtype)
    compute = {e.Add: lambda a, b: a + b, e.Sub: lambda a, b: a - b, e.Mul: lambda a, b: a * b}
    want = [compute[kind](int(a), int(b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(elementwise(kind, dtype, x, y), wrapped(want, dtype))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
@pytest.mark.parametrize("name", ["shift_left", "shift_right"])
def test_shifts_outside_of_the_width_give_zero_or_the_sign(name, dtype, lanes, elementwise):
    bits = np.iinfo(dtype).bits
    counts = [0, 1, bits - 1, bits, bits + 1, 100] + ([-1] if dtype[0] == "i" else [3])
    values = [5, -3 if dtype[0] == "i" else 250, np.iinfo(dtype).min, np.iinfo(dtype).max]
    pairs = list(itertools.product(values, counts))
    pairs += [(1, 1)] * (-len(pairs) % 8)
    x, n = (np.array(v, dtype) for v in zip(*pairs, strict=True))
    got = elementwise(lambda a, b: Call(a.dtype, f"tir.{name}", [a, b]), dtype, x, n, lanes=lanes)
    want = []
    for a, count in pairs:
        inside = 0 <= count < bits
        if name == "shift_left":
            want.append(int(a) << count if inside else 0)
        else:
            want.append(int(a) >> count if inside else (-1 if a < 0 else 0))
    np.testing.assert_array_equal(got, wrapped(want, dtype))


@pytest.mark.parametrize("target", INTS)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("lanes", [1, 8, 16, 32])
def test_float_to_int_saturates_and_nan_is_zero(source, target, lanes, elementwise):
    values = [0.5, -0.5, 1.9, -1.9, 300, -300, 7e4, -7e4, 3e9, -3e9, 1e19, -1e19, 2e19, np.inf,
              -np.inf, np.nan, 127.9, 128, -128.9, -129, 255.9, 256, -np.nan, 32767.9, 65535.9,
              2147483520, 2147483648, 2147483647.5, -2147483648, -2147483904, 4294967040,
              4294967296]  # fmt: skip
    kind = ml_dtypes.bfloat16 if source == "bfloat16" else np.dtype(source)
    with np.errstate(over="ignore"):
        x = np.array(values, kind)
    got = elementwise(
        lambda v: e.Cast(DataType(target).with_lanes(lanes), v),
        target, x, lanes=lanes,
    )  # fmt: skip
    info = np.iinfo(target)
    want = [0 if np.isnan(v) else info.min if v <= info.min else info.max if v >= info.max
            else int(v) for v in x.astype(np.float64)]  # fmt: skip
    np.testing.assert_array_equal(got, np.array(want, dtype=target))


@pytest.mark.parametrize("target", ["float16", "float32", "float64", "bool", "int8", "uint64"])
@pytest.mark.parametrize("source", [*INTS, "bool"])
def test_int_conversions(source, target, elementwise):
    x = np.array([0, 1, 1, 0], "bool") if source == "bool" else grid(source)[0]
    got = elementwise(lambda v: e.Cast(target, v), target, x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, x.astype(target))


def test_float64_is_rounded_to_sixteen_bits_once(elementwise):
    rng = np.random.default_rng(0)
    base = rng.integers(0, 0x7C00, 4096, dtype=np.uint16).view(np.float16).astype(np.float64)
    above = np.nextafter(base.astype(np.float16), np.float16(np.inf)).astype(np.float64)
    middle = (base + above) / 2
    x = np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf), [np.nan]])
    got = elementwise(lambda v: e.Cast("float16", v), "float16", x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got, x.astype(np.float16))


def test_bfloat16_rounds_to_nearest_even_subnormals_too(elementwise):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 1 << 14, dtype=np.uint32)
    bits[:4096] &= 0x807FFFFF
    with np.errstate(invalid="ignore"):
        x = bits.view(np.float32)
        want = x.astype(ml_dtypes.bfloat16)
    got = elementwise(lambda v: e.Cast("bfloat16x16", v), "bfloat16", x, lanes=16)
    ok = (got.view(np.uint16) == want.view(np.uint16)) | np.isnan(x)
    assert ok.all()
    assert np.isnan(got[np.isnan(x)]).all()


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", [e.Add, e.Sub, e.Mul, e.Div])
def test_sixteen_bit_operations_round_each(kind, dtype, lanes, elementwise):
    numpy_kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    rng = np.random.default_rng(2)
    x, y, z = (rng.normal(size=1024).astype(numpy_kind) for _ in range(3))
    compute = {e.Add: np.add, e.Sub: np.subtract, e.Mul: np.multiply, e.Div: np.divide}[kind]
    got = elementwise(lambda a, b, c: e.Add(kind(a, b), c), dtype, x, y, z, lanes=lanes)
    want = (compute(x.astype("f4"), y.astype("f4")).astype(numpy_kind).astype("f4")
            + z.astype("f4")).astype(numpy_kind)  # fmt: skip
    np.testing.assert_array_equal(got.astype("f4"), want.astype("f4"))


@pytest.mark.parametrize("lanes", [2, 7, 32])
@pytest.mark.parametrize("kind", [e.Add, e.Sub, e.Mul, e.Div])
def test_bfloat16_operations_round_any_bits(kind, lanes, elementwise):
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 2**16, 7 << 10, dtype=np.uint16) for _ in range(2))
    x[:2048] &= 0x80FF  # subnormals and the smallest normal numbers
    y[1024:3072] &= 0x80FF
    x[4096:6144] |= 0x7F80  # NaN and infinities
    y[5120:7168] |= 0x7F80
    x, y = (bits.view(ml_dtypes.bfloat16) for bits in (x, y))
    compute = {e.Add: np.add, e.Sub: np.subtract, e.Mul: np.multiply, e.Div: np.divide}[kind]
    with np.errstate(all="ignore"):
        want = compute(x.astype("f4"), y.astype("f4")).astype(ml_dtypes.bfloat16)
    got = elementwise(kind, "bfloat16", x, y, lanes=lanes)
    nan = np.isnan(want)
    assert (np.isnan(got) == nan).all()
    np.testing.assert_array_equal(got[~nan].view(np.uint16), want[~nan].view(np.uint16))


@pytest.mark.parametrize("lanes", [1, 7, 32])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", [e.Min, e.Max])
def test_min_and_max_of_any_sixteen_bits(kind, dtype, lanes, elementwise):
    rng = np.random.default_rng(4)
    x, y = (rng.integers(0, 2**16, 7 << 10, dtype=np.uint16) for _ in range(2))
    x[:4096] &= 0x8001  # zeros and subnormals
    y[2048:6144] &= 0x8001
    y[6144:] |= 0x7C00  # NaN and infinities, or large numbers
    kind_of = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    x, y = (bits.view(kind_of) for bits in (x, y))
    a = x.astype("f4")
    for other in (y, np.zeros_like(y)):
        b = other.astype("f4")
        tie, first = np.signbit(a) == (kind is e.Min), a < b if kind is e.Min else a > b
        want = np.where(np.where(a == b, tie, first), x, other)
        got = elementwise(kind, dtype, x, other, lanes=lanes)
        nan = np.isnan(a) | np.isnan(b)
        with np.errstate(invalid="ignore"):
            assert (np.isnan(got) == nan).all()
        np.testing.assert_array_equal(got[~nan].view(np.uint16), want[~nan].view(np.uint16))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("kind", [e.Min, e.Max])
def test_min_and_max_order_zeros(kind, dtype, lanes, elementwise):
    x, y = np.array([[0, 0, -0.0, -0.0], [0, -0.0, 0, -0.0]], dtype)
    got = elementwise(kind, dtype, x, y, lanes=lanes)
    negative = [False, True, True, True] if kind is e.Min else [False, False, False, True]
    assert np.signbit(got).tolist() == negative


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("kind", [e.Min, e.Max])
def test_min_and_max_propagate_nan(kind, dtype, lanes, elementwise):
    values = np.array([1, -1, np.nan, np.inf, -np.inf, 2.5, -7, 3])
    kind_of = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x, y = (g.ravel().astype(kind_of) for g in np.meshgrid(values, values))
    reference = np.minimum if kind is e.Min else np.maximum
    got = elementwise(kind, dtype, x, y, lanes=lanes).astype("f8")
    np.testing.assert_array_equal(got, reference(x.astype("f8"), y.astype("f8")))
    for compute in (
        lambda v: kind(v, constant_like(v, 0.5)),
        lambda v: kind(constant_like(v, 0.5), v),
    ):
        got = elementwise(compute, dtype, x, lanes=lanes).astype("f8")
        np.testing.assert_array_equal(got, reference(x.astype("f8"), 0.5))


def constant_like(value, number):
    dtype = value.dtype
    scalar = FloatImm(dtype.element, number)
    return scalar if dtype.lanes == 1 else e.Broadcast(scalar, IntImm("int32", dtype.lanes))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_comparisons(dtype, elementwise):
    x, y = grid(dtype) if dtype[0] in "iu" else (
        g.ravel().astype(dtype)
        for g in np.meshgrid([1, -2, np.nan, np.inf], [1, 0, np.nan, -np.inf])
    )  # fmt: skip
    cases = {e.EQ: np.equal, e.NE: np.not_equal, e.LT: np.less, e.LE: np.less_equal,
             e.GT: np.greater, e.GE: np.greater_equal}  # fmt: skip
    for kind, reference in cases.items():
        for lanes in (1, 4):
            got = elementwise(kind, "bool", x, y, lanes=lanes)
            np.testing.assert_array_equal(got, reference(x, y))


def test_logic_and_bits(elementwise):
    a, b = np.array([0, 0, 1, 1], "bool"), np.array([0, 1, 0, 1], "bool")
    for kind, reference in ((e.And, np.logical_and), (e.Or, np.logical_or)):
        for lanes in (1, 4):
            np.testing.assert_array_equal(
                elementwise(kind, "bool", a, b, lanes=lanes), reference(a, b)
            )
    np.testing.assert_array_equal(elementwise(e.Not, "bool", a, lanes=4), ~a)
    x = np.array([0, 1, 5, -1, 2**31 - 1, -(2**31), 12, 255], "int32")
    got = elementwise(lambda v: Call(v.dtype, "tir.popcount", [v]), "int32", x, lanes=8)
    assert list(got) == [bin(int(v) & 0xFFFFFFFF).count("1") for v in x]
    got = elementwise(lambda v: Call("int32", "tir.clz", [v]), "int32", x)
    assert list(got) == [32 - (int(v) & 0xFFFFFFFF).bit_length() for v in x]
    got = elementwise(lambda v: Call("int32", "tir.clz", [v]), "int32", x.astype("int64"))
    assert list(got) == [64 - (int(v) & (2**64 - 1)).bit_length() for v in x]
    got = elementwise(lambda v: Call("float32", "tir.reinterpret", [v]), "float32", x)
    np.testing.assert_array_equal(got.view("int32"), x)


def test_classification(elementwise):
    x = np.array([0, 1, np.nan, np.inf, -np.inf, -3, 1e-40, 3e38], "float32")
    for name, reference in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
        for lanes in (1, 8):
            got = elementwise(
                lambda v, name=name: Call(
                    DataType("bool").with_lanes(v.dtype.lanes), f"tir.{name}", [v]
                ),
                "bool", x, lanes=lanes,
            )  # fmt: skip
            np.testing.assert_array_equal(got, reference(x))


def test_float_floor_division_and_rounding(elementwise):
    x = np.array([7.5, -7.5, 3, -3, 0.1, 1e5, 2.5, -0.5], "float32")
    y = np.array([2, 2, -2, -2, 3, 0.7, 1, 1], "float32")
    np.testing.assert_array_equal(elementwise(e.FloorDiv, "float32", x, y), np.floor(x / y))
    got = elementwise(e.FloorMod, "float32", x, y)
    np.testing.assert_array_equal(got, x - np.floor(x / y) * y)
    np.testing.assert_array_equal(elementwise(e.Mod, "float32", x, y), np.fmod(x, y))
    for name, reference in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc),
                            ("round", np.rint), ("nearbyint", np.rint),
                            ("fabs", np.abs)):  # fmt: skip
        got = elementwise(lambda v, n=name: Call(v.dtype, f"tir.{n}", [v]), "float32", x, lanes=8)
        np.testing.assert_array_equal(got, reference(x))


def test_integer_power_and_absolute_value(elementwise):
    x = np.array([-3, 2, 7, -(2**31)], "int32")
    got = elementwise(lambda v: Call(v.dtype, "tir.pow", [v, IntImm("int32", 5)]), "int32", x)
    np.testing.assert_array_equal(got, wrapped([int(v) ** 5 for v in x], "int32"))
    got = elementwise(lambda v: Call(v.dtype, "tir.fabs", [v]), "int32", x)
    np.testing.assert_array_equal(got, wrapped([abs(int(v)) for v in x], "int32"))


def test_q_multiply_shift_rounds_half_up(elementwise):
    x = np.array([1, -1, 1000, -1000, 2**20, -(2**20), 12345, 7], "int32")
    factor, bits, shift = 1395864371, 31, -2
    got = elementwise(
        lambda v: Call("int32", "tir.q_multiply_shift",
                       [v, IntImm("int32", factor), IntImm("int32", bits), IntImm("int32", shift)]),
        "int32", x,
    )  # fmt: skip
    want = [(int(v) * factor + (1 << (bits - shift - 1))) >> (bits - shift) for v in x]
    np.testing.assert_array_equal(got, want)
