"""Calls: bit operations of constants against Python's, and masks that change nothing."""

from __future__ import annotations

import itertools
import math

import pytest

from weft.arith.analyzer import Analyzer
from weft.ir.expr import FloatImm, IntImm, Range
from weft.tir import op
from weft.tir.expr import Call, Var

X = Var("x", "int32")
PYTHON = {
    "shift_left": lambda a, b: a << b, "shift_right": lambda a, b: a >> b,
    "bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}  # fmt: skip


def call(name, *values):
    args = [IntImm("int32", value) if isinstance(value, int) else value for value in values]
    return Call("int32", name, args)


@pytest.mark.parametrize("name", sorted(PYTHON))
def test_bits_of_constants(name):
    for a, b in itertools.product((-9, -1, 0, 1, 6, 1000), (0, 1, 3, 12)):
        assert Analyzer().simplify(call(name, a, b)).value == PYTHON[name](a, b)


def test_absolute_values():
    analyzer = Analyzer()
    for value in (-7, 0, 3, -(1 << 31)):
        found = analyzer.simplify(call("fabs", value)).value
        assert found == (abs(value) if abs(value) < 1 << 31 else value)
    assert isinstance(analyzer.simplify(call("fabs", X)), Call)
    analyzer.bind(X, Range(0, 9))
    assert analyzer.simplify(call("fabs", X)) is X
    assert isinstance(analyzer.simplify(call("fabs", X - 5)), Call)


def test_counts_of_bits():
    for value in (-1, 0, 1, 8, 255, -(1 << 31)):
        text = f"{value % (1 << 32):032b}"
        assert Analyzer().simplify(call("clz", value)).value == len(text) - len(text.lstrip("0"))
        assert Analyzer().simplify(call("popcount", value)).value == text.count("1")


def test_neutral_operands():
    for name in ("shift_left", "shift_right", "bitwise_or", "bitwise_xor"):
        assert Analyzer().simplify(call(name, X, 0)) is X
    assert Analyzer().simplify(call("bitwise_and", X, 0)).value == 0


def test_masks_and_shifts_within_bounds():
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, 16))
    assert analyzer.simplify(call("bitwise_and", X, 15)) is X
    assert analyzer.simplify(call("shift_right", X, 4)).value == 0
    assert isinstance(analyzer.simplify(call("bitwise_and", X, 7)), Call)
    assert isinstance(analyzer.simplify(call("shift_right", X, 3)), Call)


def test_a_shift_beyond_the_width_stays():
    assert isinstance(Analyzer().simplify(call("shift_right", 8, 32)), Call)


def test_rounded_up_logarithms():
    for value in (0.75, 1.0, 3.0, 8.0, 1000.0):
        expr = op.ceil(op.log2(X.astype("float32")))
        made = Call("float32", expr.op, [Call("float32", "log2", [FloatImm("float32", value)])])
        assert Analyzer().simplify(made).value == math.ceil(math.log2(value))


def test_likely_of_what_is_known():
    analyzer = Analyzer()
    with analyzer.constraint_scope(X < 3):
        assert analyzer.simplify(op.likely(X < 3)).value == 1
