"""The functions that te offers inside of a computation, each against numpy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from weft import te
from weft.tir.interp import run

FLOATS = np.array(
    [-np.inf, -3.5, -2.5, -1.5, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 1.5, 2.5, 3.5, 7, np.inf, np.nan],
    "float64",
)
INTEGERS = np.array([-(2**31), -100, -7, -2, -1, 0, 1, 2, 3, 7, 100, 2**31 - 1], "int32")
TRUTHS = np.array([True, False])

erf = np.vectorize(math.erf)
REAL = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh,
    "erf": erf, "exp": np.exp, "exp10": lambda x: 10.0**x, "exp2": np.exp2, "floor": np.floor,
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "nearbyint": np.rint,
    "round": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "trunc": np.trunc,
}  # fmt: skip


def elementwise(function, *arrays):
    """``function`` of the elements of the arrays, computed by the interpreter."""
    tensors = [
        te.placeholder(array.shape, str(array.dtype), name=f"A{position}")
        for position, array in enumerate(arrays)
    ]
    result = te.compute(
        arrays[0].shape, lambda *i: function(*[tensor(*i) for tensor in tensors]), name="B"
    )
    out = np.zeros(arrays[0].shape, str(result.dtype))
    run(te.create_prim_func([*tensors, result]), *arrays, out)
    return out


def pairs(left, right):
    """All pairs of values, as two arrays."""
    both = list(itertools.product(left, right))
    return [np.array(column, array.dtype) for column, array in
            zip(zip(*both, strict=True), (left, right), strict=True)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(REAL))
def test_functions_of_a_real_number(name, dtype):
    data = FLOATS.astype(dtype)
    with np.errstate(all="ignore"):
        wanted = REAL[name](data)
    found = elementwise(getattr(te, name), data)
    assert found.dtype == wanted.dtype or name in ("erf", "exp10")
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("name", ["abs", "bitwise_not", "clz", "popcount"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_functions_of_an_integer(name, dtype):
    limits = np.iinfo(dtype)
    data = np.array([limits.min, 0, 1, 2, 5, 100, limits.max], dtype)
    unsigned = [int(value) % 2**limits.bits for value in data]
    wanted = {
        "abs": [abs(value) if value != limits.min else value for value in map(int, data)],
        "bitwise_not": [int(~value) for value in data],
        "clz": [limits.bits - value.bit_length() for value in unsigned],
        "popcount": [value.bit_count() for value in unsigned],
    }
    assert elementwise(getattr(te, name), data).tolist() == wanted[name]


BINARY_REAL = {
    "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "power": np.power, "add": np.add,
    "subtract": np.subtract, "multiply": np.multiply, "div": np.divide, "max": np.maximum,
    "min": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BINARY_REAL))
def test_functions_of_two_real_numbers(name):
    numbers = FLOATS[np.isfinite(FLOATS)]
    left, right = pairs(numbers, numbers[numbers != 0])
    with np.errstate(all="ignore"):
        wanted = BINARY_REAL[name](left, right)
    np.testing.assert_allclose(elementwise(getattr(te, name), left, right), wanted, rtol=1e-12)


def truncated(a, b):
    return math.trunc(a / b)


INTEGRAL = {
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b,
    "indexdiv": lambda a, b: a // b, "indexmod": lambda a, b: a % b, "truncdiv": truncated,
    "div": truncated, "truncmod": lambda a, b: a - truncated(a, b) * b,
    "ceildiv": lambda a, b: -(-a // b), "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b, "max": max, "min": min,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(INTEGRAL))
def test_functions_of_two_integers(name):
    small = INTEGERS[np.abs(INTEGERS.astype("int64")) <= 100]
    left, right = pairs(small, small[small != 0])
    if name == "ceildiv":
        left, right = pairs(small, small[small > 0])
    wanted = [INTEGRAL[name](int(a), int(b)) for a, b in zip(left, right, strict=True)]
    assert elementwise(getattr(te, name), left, right).tolist() == wanted


def test_shifts():
    left, right = pairs(np.array([0, 1, 5, 1000, -8], "int32"), np.array([0, 1, 7, 20], "int32"))
    np.testing.assert_array_equal(elementwise(te.shift_right, left, right), left >> right)
    np.testing.assert_array_equal(elementwise(te.shift_left, left, right), left << right)


@pytest.mark.parametrize(
    ("name", "wanted"), [("logical_and", np.logical_and), ("logical_or", np.logical_or)]
)
def test_functions_of_two_truths(name, wanted):
    left, right = pairs(TRUTHS, TRUTHS)
    assert (elementwise(getattr(te, name), left, right) == wanted(left, right)).all()


def test_all_and_any_take_as_many_as_there_are():
    columns = list(np.array(list(itertools.product(TRUTHS, repeat=3))).T.copy())
    assert (elementwise(te.all, *columns) == np.logical_and.reduce(columns)).all()
    assert (elementwise(te.any, *columns) == np.logical_or.reduce(columns)).all()
    assert elementwise(te.logical_not, TRUTHS).tolist() == [False, True]


def test_a_choice_takes_one_side_only():
    """The other one may not be computable: ``a[i - 1]`` of the first element."""
    a = te.placeholder((4,), name="A")
    out = te.compute((4,), lambda i: te.if_then_else(i > 0, a[i - 1], -1.0), name="out")
    data, result = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    run(te.create_prim_func([a, out]), data, result)
    assert result.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
def test_limits_of_integers(dtype):
    limits = np.iinfo(dtype)
    assert (te.min_value(dtype).value, te.max_value(dtype).value) == (limits.min, limits.max)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_limits_of_real_numbers(dtype):
    limits = np.finfo(dtype)
    assert te.max_value(dtype).value == float(limits.max)
    assert te.min_value(dtype).value == float(limits.min)
    data = np.zeros(1, dtype)
    assert elementwise(lambda x: x + te.infinity(dtype), data)[0] == np.inf


def test_a_product_of_fixed_point_numbers():
    """``x * y * 2**(-q - s)``, rounded: half of 100 with 31 bits behind the point."""
    data = np.array([100, -100, 7, 1], "int32")
    half = te.const(1 << 30, "int32")
    found = elementwise(
        lambda x: te.q_multiply_shift(x, half, te.const(31, "int32"), te.const(0, "int32")), data
    )
    assert found.tolist() == [50, -50, 4, 1]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [(1, "int32", "1"), (1, "int64", "T.int64(1)"), (2.5, "float32", "T.float32(2.5)"),
     (True, "bool", "T.bool(True)"), (np.float32(0.5), "float16", "T.float16(0.5)"),
     (np.int64(7), "uint8", "T.uint8(7)")],
)  # fmt: skip
def test_constants(value, dtype, text):
    constant = te.const(value, dtype)
    assert (constant.dtype, str(constant)) == (dtype, text)


def test_a_constant_that_does_not_fit():
    with pytest.raises(ValueError, match="300 does not fit int8"):
        te.const(300, "int8")


def test_variables():
    assert (te.var().name, te.var().dtype) == ("tindex", "int32")
    assert (te.var("n", "int64").name, te.var("n", "int64").dtype) == ("n", "int64")
    size = te.size_var("m")
    assert (size.name, size.dtype, type(size).__name__) == ("m", "int32", "SizeVar")
    assert te.var("n") is not te.var("n")
