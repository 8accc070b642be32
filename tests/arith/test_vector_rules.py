"""Vectors: every rule keeps the value of each lane, on random operands."""

from __future__ import annotations

import random

import pytest

from weft.arith.analyzer import Analyzer
from weft.arith.const_int_bound import ConstIntBound
from weft.ir.expr import IntImm, Range
from weft.tir import expr as nodes
from weft.tir.arithmetic import truncated_quotient, truncated_remainder
from weft.tir.expr import Broadcast, Ramp, Var

X, Y = (Var(name, "int32") for name in "xy")
PYTHON = {
    nodes.Add: lambda a, b: a + b, nodes.Sub: lambda a, b: a - b, nodes.Mul: lambda a, b: a * b,
    nodes.FloorDiv: lambda a, b: a // b, nodes.FloorMod: lambda a, b: a % b, nodes.Min: min,
    nodes.Max: max, nodes.Div: truncated_quotient, nodes.Mod: truncated_remainder,
    nodes.LT: lambda a, b: a < b,
    nodes.LE: lambda a, b: a <= b, nodes.GT: lambda a, b: a > b, nodes.EQ: lambda a, b: a == b,
    nodes.NE: lambda a, b: a != b, nodes.GE: lambda a, b: a >= b,
    nodes.And: lambda a, b: a and b, nodes.Or: lambda a, b: a or b,
}  # fmt: skip


def number(value):
    return IntImm("int32", value)


def lanes(expr, scope, count=4):
    """The values of all lanes; a scalar stands for each."""
    kind = type(expr)
    if kind is IntImm:
        return [expr.value] * count
    if kind is Var:
        return [scope[expr]] * count
    if kind is Broadcast:
        return lanes(expr.value, scope)
    if kind is nodes.Not:
        return [not value for value in lanes(expr.a, scope)]
    if kind is Ramp:
        base, stride = lanes(expr.base, scope), lanes(expr.stride, scope)
        return [base[i] + stride[i] * i for i in range(count)]
    pairs = zip(lanes(expr.a, scope), lanes(expr.b, scope), strict=True)
    return [PYTHON[kind](a, b) for a, b in pairs]


def scalar(rng):
    made = rng.choice([X, Y, X * rng.choice([2, 4, 8, 16]), X * 8 + rng.randint(-9, 9)])
    return made if rng.random() < 0.8 else number(rng.randint(-9, 9))


def vector(rng, depth):
    if depth == 0:
        if rng.random() < 0.5:
            return Broadcast(scalar(rng), 4)
        return Ramp(scalar(rng), number(rng.choice([-2, -1, 0, 1, 1, 2, 4, 8])), 4)
    kind = rng.choice(list(PYTHON)[:9])
    divisor = kind in (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)
    right = Broadcast(number(rng.choice([1, 2, 4, 8, 16])), 4) if divisor else None
    return kind(vector(rng, depth - 1), right if divisor else vector(rng, depth - 1))


@pytest.mark.parametrize("low", [-20, 0])
def test_lanes_keep_their_values(low):
    rng = random.Random(9 + low)
    for _ in range(400):
        expr = vector(rng, rng.choice([1, 1, 2]))
        if rng.random() < 0.3:
            kind = rng.choice([nodes.LT, nodes.LE, nodes.GT, nodes.EQ])
            expr = kind(expr, vector(rng, 1))
        analyzer = Analyzer()
        for var in (X, Y):
            analyzer.update(var, ConstIntBound(low, 20))
        result = analyzer.simplify(expr)
        assert result.dtype is expr.dtype
        assert analyzer.simplify(result) is result
        for _ in range(12):
            scope = {var: rng.randint(low, 20) for var in (X, Y)}
            assert lanes(result, scope) == lanes(expr, scope), (str(expr), str(result), scope)


@pytest.mark.parametrize(("before", "after"), [
    (lambda: Ramp(X, 1, 4) + Ramp(Y, 2, 4), "T.Ramp(x + y, 3, 4)"),
    (lambda: Ramp(X, 1, 4) + Broadcast(Y, 4), "T.Ramp(x + y, 1, 4)"),
    (lambda: Broadcast(X, 4) - Ramp(Y, 1, 4), "T.Ramp(x - y, -1, 4)"),
    (lambda: Ramp(X, 1, 4) - Ramp(Y, 1, 4), "T.Broadcast(x - y, 4)"),
    (lambda: Broadcast(X, 4) * Ramp(Y, 2, 4), "T.Ramp(y * x, x * 2, 4)"),
    (lambda: Ramp(X * 8, 1, 4) // Broadcast(number(4), 4), "T.Broadcast(x * 2, 4)"),
    (lambda: Ramp(X, 8, 4) // Broadcast(number(4), 4), "T.Ramp(x // 4, 2, 4)"),
    (lambda: Ramp(X * 8 + 1, 1, 4) % Broadcast(number(8), 4), "T.Ramp(1, 1, 4)"),
    (lambda: Ramp(X * 8 + 6, 1, 4) % Broadcast(number(8), 4),
     "T.Ramp(6, 1, 4) % T.Broadcast(8, 4)"),
    (lambda: Ramp(X, 8, 4) % Broadcast(number(4), 4), "T.Broadcast(x % 4, 4)"),
    (lambda: nodes.LT(Ramp(X, 2, 4), Ramp(Y, 2, 4)), "T.Broadcast(x < y, 4)"),
    (lambda: nodes.Not(nodes.LT(Broadcast(X, 4), Broadcast(Y, 4))), "T.Broadcast(y <= x, 4)"),
    (lambda: nodes.Min(nodes.Min(Ramp(X, 1, 4), Broadcast(Y, 4)), Broadcast(number(3), 4)),
     "T.min(T.Ramp(x, 1, 4), T.Broadcast(T.min(y, 3), 4))"),
])  # fmt: skip
def test_forms(before, after):
    assert str(Analyzer().simplify(before())) == after


def test_a_bound_keeps_all_lanes_in_one_tile():
    analyzer = Analyzer()
    analyzer.bind(X, Range(0, 4))
    tile = Ramp(X * 4, 1, 4) // Broadcast(number(16), 4)
    assert str(analyzer.simplify(tile)) == "T.Broadcast(0, 4)"
