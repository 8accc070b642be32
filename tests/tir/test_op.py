"""Operator functions: promotion, constant folding against Python and numpy, and errors."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

from weft import ir, tir
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op


def var(dtype, name="x"):
    return tir.Var(name, dtype)


# ---- promotion


PROMOTION = [
    ("int32", "int32", "int32"),
    ("int32", "int64", "int64"),
    ("int8", "int16", "int16"),
    ("uint8", "uint32", "uint32"),
    ("int8", "uint8", "uint8"),
    ("int32", "uint8", "int32"),
    ("uint64", "int32", "uint64"),
    ("bool", "int8", "int8"),
    ("bool", "uint8", "uint8"),
    ("int64", "float16", "float16"),
    ("uint8", "float32", "float32"),
    ("float16", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("bfloat16", "float32", "float32"),
    ("int32", "bfloat16", "bfloat16"),
    ("int32x4", "int32", "int32x4"),
    ("int32x4", "int64", "int64x4"),
    ("int32x4", "float32x4", "float32x4"),
    ("float32", "int8x2", "float32x2"),
    ("float32xvscalex4", "float32", "float32xvscalex4"),
]


@pytest.mark.parametrize(("left", "right", "common"), PROMOTION)
def test_promotion(left, right, common):
    for a, b in ((left, right), (right, left)):
        lhs, rhs = op.match_types(var(a), var(b))
        assert lhs.dtype == rhs.dtype == common
        assert op.add(var(a), var(b)).dtype == common
        assert op.less(var(a), var(b)).dtype.element == "bool"


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ("int32x4", "int32x8", "cannot match the types int32x4 and int32x8: their lanes differ"),
        ("float16", "bfloat16", "cannot match the types float16 and bfloat16: cast one explicitly"),
        ("handle", "int32", "cannot match the types handle and int32"),
    ],
)
def test_types_without_a_common_one(left, right, message):
    with pytest.raises(IRTypeError, match=message):
        op.add(var(left), var(right))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64", "uint8"])
def test_python_numbers_take_the_type_of_the_expression_where_it_is_wider(dtype):
    made = var(dtype) + 1
    assert made.dtype == {"int8": "int32", "uint8": "int32"}.get(dtype, dtype)


# ---- folding of integers, on every pair of a range


SMALL = range(-9, 10)
ARITHMETIC = {
    "add": (op.add, operator.add),
    "subtract": (op.subtract, operator.sub),
    "multiply": (op.multiply, operator.mul),
    "minimum": (op.minimum, min),
    "maximum": (op.maximum, max),
    "bitwise_and": (op.bitwise_and, operator.and_),
    "bitwise_or": (op.bitwise_or, operator.or_),
    "bitwise_xor": (op.bitwise_xor, operator.xor),
}
DIVISIONS = {
    "floordiv": (op.floordiv, operator.floordiv),
    "floormod": (op.floormod, operator.mod),
    "truncdiv": (op.truncdiv, lambda x, y: math.trunc(x / y)),
    "truncmod": (op.truncmod, lambda x, y: int(math.fmod(x, y))),
}
COMPARISONS = {
    "less": (op.less, operator.lt),
    "less_equal": (op.less_equal, operator.le),
    "greater": (op.greater, operator.gt),
    "greater_equal": (op.greater_equal, operator.ge),
    "equal": (op.equal, operator.eq),
    "not_equal": (op.not_equal, operator.ne),
}


@pytest.mark.parametrize("name", [*ARITHMETIC, *DIVISIONS, *COMPARISONS])
def test_small_integers_fold_as_python_computes(name):
    made, python = {**ARITHMETIC, **DIVISIONS, **COMPARISONS}[name]
    for x in SMALL:
        for y in SMALL:
            if name in DIVISIONS and y == 0:
                continue
            found = made(ir.IntImm("int32", x), ir.IntImm("int32", y))
            assert isinstance(found, ir.IntImm), (x, y)
            assert found.value == python(x, y), (x, y)
            assert found.dtype == ("bool" if name in COMPARISONS else "int32")


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_folding_wraps_at_the_ends_of_the_type(name, dtype):
    made, python = ARITHMETIC[name]
    low, high = op.min_value(dtype).value, op.max_value(dtype).value
    bits = ir.IntImm(dtype, 0).dtype.bits
    for x in (low, low + 1, 0, 1, high - 1, high):
        for y in (low, 1, high):
            found = made(ir.IntImm(dtype, x), ir.IntImm(dtype, y)).value
            assert low <= found <= high
            assert (found - python(x, y)) % (1 << bits) == 0


def test_the_smallest_divided_by_minus_one_wraps():
    low, one = ir.IntImm("int8", -128), ir.IntImm("int8", -1)
    assert op.floordiv(low, one).value == op.truncdiv(low, one).value == -128
    assert op.negative(low).value == op.abs(low).value == -128


@pytest.mark.parametrize("shift", [0, 1, 7, 31, 32, 63, 64, 200])
@pytest.mark.parametrize("value", [0, 1, -1, 5, -5, 2**31 - 1, -(2**31)])
def test_shifts_follow_numpy(value, shift):
    x, n = ir.IntImm("int32", value), ir.IntImm("int32", shift)
    assert op.shift_right(x, n).value == value >> min(shift, 63)
    left = value << shift if shift < 64 else 0
    assert op.shift_left(x, n).value == (left + 2**31) % 2**32 - 2**31


def test_unary_folding():
    for x in SMALL:
        imm = ir.IntImm("int32", x)
        assert op.negative(imm).value == -x
        assert op.abs(imm).value == abs(x)
        assert op.bitwise_not(imm).value == ~x
        assert op.logical_not(imm).value == int(not x)
        assert op.ceildiv(imm, 4).value == -(-x // 4)


# ---- identities, which keep the operand itself


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x + 0, lambda x: 0 + x, lambda x: x - 0, lambda x: x * 1, lambda x: 1 * x,
        lambda x: x // 1, lambda x: op.truncdiv(x, 1), lambda x: x**1, lambda x: op.minimum(x, x),
        lambda x: op.maximum(x, x), lambda x: x.astype("int32"), lambda x: op.all(x > 0, True).a,
        lambda x: op.if_then_else(True, x, 0), lambda x: op.add_n(x, 0, 0),
    ],
)  # fmt: skip
def test_neutral_elements_vanish(make):
    x = var("int32")
    assert make(x) is x


@pytest.mark.parametrize(
    ("make", "value"),
    [(lambda x: x * 0, 0), (lambda x: 0 * x, 0), (lambda x: x % 1, 0), (lambda x: 0 // x, 0),
     (lambda x: 0 % x, 0), (lambda x: x**0, 1), (lambda x: op.all(x > 0, False), 0),
     (lambda x: op.any(x > 0, True), 1)],
)  # fmt: skip
def test_absorbing_elements(make, value):
    assert make(var("int32")).value == value


def test_floats_have_no_identities_that_change_a_result():
    x = var("float32")
    assert isinstance(x * 0.0, tir.Mul)
    assert isinstance(x + 0.0, tir.Add)
    assert isinstance(x - x, tir.Sub)


# ---- folding of floats


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_constants_fold_in_their_own_type(dtype):
    kind = np.dtype(dtype).type
    for x in (0.1, -2.5, 3e4, 0.0):
        for y in (0.3, -1e-3, 7.0):
            lhs, rhs = ir.FloatImm(dtype, x), ir.FloatImm(dtype, y)
            with np.errstate(all="ignore"):
                pairs = [
                    (lhs + rhs, kind(x) + kind(y)), (lhs - rhs, kind(x) - kind(y)),
                    (lhs * rhs, kind(x) * kind(y)), (lhs / rhs, kind(x) / kind(y)),
                ]  # fmt: skip
            for found, expected in pairs:
                assert found.value == float(expected)


def test_float_folding_keeps_nan_and_infinity():
    nan, one = ir.FloatImm("float32", math.nan), ir.FloatImm("float32", 1.0)
    assert math.isnan((nan + one).value)
    assert math.isnan(op.maximum(nan, one).value)
    assert math.isnan(op.minimum(one, nan).value)
    assert (one / ir.FloatImm("float32", 0.0)).value == math.inf


# ---- casts


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (300, "int32", "int8", 44), (-1, "int32", "uint8", 255), (-1, "int32", "uint64", 2**64 - 1),
        (5, "int32", "bool", 1), (3, "int32", "float32", 3.0),
        (2**24 + 1, "int32", "float32", 2.0**24),
        (2.9, "float32", "int32", 2), (-2.9, "float32", "int32", -2),
        (1e20, "float32", "int32", 2**31 - 1),
        (-1e20, "float32", "int8", -128), (-1.0, "float32", "uint8", 0),
        (math.nan, "float32", "int32", 0),
        (math.nan, "float32", "bool", 1),
        (math.inf, "float64", "int64", 2**63 - 1),
        (0.1, "float64", "float16", float(np.float16(0.1))),
        (0.5, "float32", "bool", 1),
    ],
)  # fmt: skip
def test_casts_of_constants(value, source, target, result):
    assert op.cast(target, op.const(value, source)).value == result


def test_casts_to_vectors_broadcast():
    made = op.cast("float32x4", var("int32"))
    assert isinstance(made, tir.Broadcast)
    assert made.dtype == "float32x4"
    assert isinstance(made.value, tir.Cast)
    with pytest.raises(IRTypeError, match="the lanes of int32x4 and float32x2 must be the same"):
        op.cast("float32x2", var("int32x4"))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, "int32"), (2**40, "int64"), (1.5, "float32"), (True, "bool"), (np.int8(3), "int8"),
     (np.float64(1), "float64"), (np.array(2, "int16"), "int16")],
)  # fmt: skip
def test_the_type_of_a_constant_follows_the_value(value, dtype):
    assert op.const(value).dtype == dtype


def test_vector_constants_are_broadcasts():
    made = op.const(1, "int8x4")
    assert (made.dtype, made.value.value) == ("int8x4", 1)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "float64"])
def test_ends_of_types(dtype):
    assert op.min_value(dtype).value < op.max_value(dtype).value
    assert op.max_value(dtype).dtype == dtype
    assert op.infinity("float32").value == math.inf


# ---- logic


def test_conditions_join_and_fold():
    x = var("int32")
    assert isinstance(op.all(x > 0, x < 4), tir.And)
    assert isinstance(op.any([x > 0, x < 4]), tir.Or)
    assert isinstance(op.logical_not(x > 0), tir.Not)
    assert isinstance(~(x > 0), tir.Not)
    assert op.all(x).dtype == "bool"


def test_selects_promote_their_branches():
    chosen = op.if_then_else(var("bool"), var("int32"), 1.5)
    assert chosen.dtype == "float32"
    assert op.select(var("int32") > 0, 1, ir.IntImm("int64", 2)).dtype == "int64"


# ---- errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: x // 0, "floordiv: the divisor is the constant 0"),
        (lambda x: x % 0, "floormod: the divisor is the constant 0"),
        (lambda x: op.truncdiv(x, 0), "truncdiv: the divisor is the constant 0"),
        (lambda x: op.all(), "all: expected at least one condition"),
    ],
)
def test_errors_of_value(make, message):
    with pytest.raises(IRValueError, match=message):
        make(var("int32"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: x / 2, "/ on int32 is ambiguous: use // .floor. or tir.truncdiv, or cast to a"),
        (lambda x: x & 1.5, "bitwise_and: expected integers, got float32"),
        (lambda x: op.bitwise_not(ir.FloatImm("float32", 1)), "expected an integer, got float32"),
        (lambda x: op.add(x, object()), "expected an expression or a number, got object"),
        (lambda x: op.max(x), "max: expected two values, or a value and axis=, got 1"),
    ],
)
def test_errors_of_type(make, message):
    with pytest.raises(IRTypeError, match=message):
        make(var("int32"))


@pytest.mark.parametrize("other", ["text", None, object(), [1]])
def test_python_refuses_what_is_no_number(other):
    with pytest.raises(TypeError, match="unsupported operand"):
        var("int32") + other
