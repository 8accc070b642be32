"""The constructors of the simplifier: constants fold as machines compute, sums have one form."""

from __future__ import annotations

import itertools

import pytest

from tests.lib.wrapping import ARITHMETIC, COMPARISONS, wrapped
from weft.arith import fold
from weft.arith.deep_equal import all_deep_equal, contains_deep_equal, expr_deep_equal
from weft.ir.expr import FloatImm, IntImm, StringImm, integer_range
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.buffer import decl_buffer

TYPES = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
X, Y = nodes.Var("x", "int32"), nodes.Var("y", "int32")


def numbers(dtype):
    """The ends of a type, numbers around zero, and a few between."""
    low, high = integer_range(DataType(dtype))
    near = [low, low + 1, high - 1, high, *range(-3, 4), 7, 100]
    return sorted({value for value in near if low <= value <= high})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ARITHMETIC, ids=lambda kind: kind.__name__)
def test_constants_wrap_as_their_type_does(kind, dtype):
    for a, b in itertools.product(numbers(dtype), repeat=2):
        result = fold.BUILDERS[kind](IntImm(dtype, a), IntImm(dtype, b))
        if b == 0 and kind in (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod):
            assert type(result) is kind  # the program stops there, when it runs
            continue
        assert (type(result), result.dtype) == (IntImm, dtype)
        assert result.value == wrapped(ARITHMETIC[kind](a, b), dtype), (a, b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", COMPARISONS, ids=lambda kind: kind.__name__)
def test_comparisons_of_constants_are_truths(kind, dtype):
    for a, b in itertools.product(numbers(dtype), repeat=2):
        result = fold.BUILDERS[kind](IntImm(dtype, a), IntImm(dtype, b))
        assert result is (fold.TRUE if COMPARISONS[kind](a, b) else fold.FALSE)


NUMBER = IntImm("int32", 3)
ZERO, ONE = IntImm("int32", 0), IntImm("int32", 1)
FORMS = [
    (fold.add(X, ZERO), "x"), (fold.add(ZERO, X), "x"), (fold.add(NUMBER, X), "x + 3"),
    (fold.add(X, IntImm("int32", -3)), "x - 3"), (fold.sub(X, ZERO), "x"),
    (fold.sub(X, IntImm("int32", -3)), "x + 3"), (fold.sub(NUMBER, X), "3 - x"),
    (fold.add(X, IntImm("int32", -(2**31))), "x + -2147483648"), (fold.mul(X, ONE), "x"),
    (fold.mul(NUMBER, X), "x * 3"), (fold.mul(X, ZERO), "0"), (fold.mul(ZERO, X), "0"),
    (fold.floordiv(X, ONE), "x"), (fold.floormod(X, ONE), "0"), (fold.truncdiv(X, ONE), "x"),
    (fold.truncmod(X, ONE), "0"), (fold.floordiv(X, ZERO), "T.FloorDiv(x, 0)"),
    (fold.min_(X, X), "x"), (fold.max_(X, X), "x"), (fold.min_(X, Y), "T.min(x, y)"),
    (fold.eq(X, X), "x == x"), (fold.lt(X, NUMBER), "x < 3"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "text"), FORMS, ids=[text for _, text in FORMS])
def test_neutral_numbers_and_the_one_form_of_sums(expr, text):
    assert str(expr) == text


def test_truths_are_folded():
    p, q = nodes.Var("p", "bool"), nodes.Var("q", "bool")
    true, false = fold.TRUE, fold.FALSE
    assert fold.and_(true, p) is fold.and_(p, true) is fold.or_(false, p) is fold.or_(p, false) is p
    assert fold.and_(false, p) is fold.and_(p, false) is false
    assert fold.or_(true, p) is fold.or_(p, true) is true
    assert (type(fold.and_(p, q)), type(fold.or_(p, q))) == (nodes.And, nodes.Or)
    assert fold.not_(true) is false
    assert fold.not_(false) is true
    assert type(fold.not_(p)) is nodes.Not
    assert fold.select(true, X, Y) is X
    assert fold.select(false, X, Y) is Y
    assert type(fold.select(p, X, Y)) is nodes.Select


def test_constants_are_kept_and_checked():
    assert fold.const(DataType("int32"), 5) is fold.const(DataType("int32"), 5)
    vector = fold.const(DataType("int32").with_lanes(4), 5)
    assert (type(vector), vector.value.value, vector.dtype) == (nodes.Broadcast, 5, "int32x4")
    for dtype, value in (("int8", 128), ("uint8", -1), ("int64", 2**63), ("uint64", 2**64)):
        with pytest.raises(fold.ConstantOverflow, match=f"{value} does not fit {dtype}"):
            fold.const(DataType(dtype), value)
    assert issubclass(fold.ConstantOverflow, IRValueError)


@pytest.mark.parametrize("dtype", TYPES)
def test_exact_arithmetic_does_not_wrap(dtype):
    low, high = integer_range(DataType(dtype))
    for build, kind in ((fold.add, nodes.Add), (fold.sub, nodes.Sub), (fold.mul, nodes.Mul)):
        for a, b in itertools.product(numbers(dtype), repeat=2):
            value = ARITHMETIC[kind](a, b)
            if low <= value <= high:
                assert fold.exact(build, IntImm(dtype, a), IntImm(dtype, b)).value == value
            else:
                with pytest.raises(fold.ConstantOverflow):
                    fold.exact(build, IntImm(dtype, a), IntImm(dtype, b))
    var = nodes.Var("v", dtype)
    assert type(fold.exact(fold.add, var, IntImm(dtype, high))) is nodes.Add


BUFFER = decl_buffer((8,), "int32", "A")
EQUAL = [
    (X + Y, X + Y), (IntImm("int32", 3), IntImm("int32", 3)), (BUFFER[X], BUFFER[X]),
    (op.exp(FloatImm("float32", 1.5)), op.exp(FloatImm("float32", 1.5))),
    (nodes.Select(X < Y, X, Y), nodes.Select(X < Y, X, Y)),
    (nodes.Ramp(X, 1, 4), nodes.Ramp(X, 1, 4)), (StringImm("a"), StringImm("a")),
    (FloatImm("float32", float("nan")), FloatImm("float32", float("nan"))),
]  # fmt: skip
DIFFERENT = [
    (X + Y, Y + X), (X, nodes.Var("x", "int32")), (IntImm("int32", 3), IntImm("int64", 3)),
    (FloatImm("float32", 0.0), FloatImm("float32", -0.0)), (X + Y, X - Y), (BUFFER[X], BUFFER[Y]),
    (BUFFER[X], decl_buffer((8,), "int32", "A")[X]), (nodes.Ramp(X, 1, 4), nodes.Ramp(X, 1, 8)),
    (X < Y, X <= Y), (nodes.Cast("int64", X), nodes.Cast("int8", X)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), EQUAL, ids=[str(a) for a, _ in EQUAL])
def test_equal_expressions(a, b):
    assert expr_deep_equal(a, b)
    assert expr_deep_equal(op.call_extern("int32", "f", a), op.call_extern("int32", "f", b))


@pytest.mark.parametrize(("a", "b"), DIFFERENT, ids=[f"{a} and {b}" for a, b in DIFFERENT])
def test_different_expressions(a, b):
    assert not expr_deep_equal(a, b)
    assert not expr_deep_equal(b, a)


def test_lists_of_expressions():
    assert contains_deep_equal([X, X + Y], X + Y)
    assert not contains_deep_equal([X, X + Y], Y + X)
    assert all_deep_equal([X, X + 1], [X, X + 1])
    assert not all_deep_equal([X, X + 1], [X, X + 2])


def test_equality_of_shared_expressions_takes_no_time_of_their_paths():
    """Forty doublings: 2**40 paths to the leaves."""
    left = right = X
    for _ in range(40):
        left, right = left + left, right + right
    assert expr_deep_equal(left, right)
    assert not expr_deep_equal(left, right + 1)
