"""Choices inside of choices: each is simplified under its condition, unless many share them."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from weft.arith import choices
from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm
from weft.tir import expr as nodes
from weft.tir import op
from weft.tir.expr import Var

X, I, J = (Var(name, "int32") for name in "xij")


@contextmanager
def entered(seen, condition):
    seen.append(condition)
    yield


def enters(choice):
    """Whether the branches of a choice are simplified under its condition."""
    seen = []
    with choices.scope(lambda condition: entered(seen, condition), X < 3, choice):
        pass
    return bool(seen)


def shared(steps):
    """``x = select(x > i, x, x + j)``, many times: each step uses the one before three times."""
    value = X
    for _ in range(steps):
        value = nodes.Select(value > I, value, value + J)
    return value


def unshared(steps):
    value = X
    for step in range(steps):
        value = nodes.Select(I > step, value, J + step)
    return value


@pytest.mark.parametrize("choice", [
    nodes.Select(I < 3, X, J), op.if_then_else(I < 3, X, J), nodes.And(I < 3, J < 3), unshared(30),
    shared(2),
], ids=["select", "call", "and", "chain", "two steps"])  # fmt: skip
def test_branches_know_their_condition(choice):
    assert enters(choice)


@pytest.mark.parametrize("steps", [4, 8, 40])
def test_values_that_many_steps_share_are_simplified_without_it(steps):
    assert not enters(shared(steps))


def test_the_answer_is_kept_with_the_expression():
    choice = shared(6)
    assert not enters(choice)
    assert choice._cache["shares choices"] is True
    assert not enters(choice)


def test_a_long_chain_of_steps_is_simplified_in_a_moment():
    """Forty steps have 3**40 paths."""
    analyzer = Analyzer()
    result = analyzer.simplify(shared(40))
    assert result.dtype == "int32"
    assert analyzer.rewrite_simplify_stats.nodes_visited < 2000


def test_a_long_chain_of_branches_still_knows_all_conditions():
    value = J
    for step in range(10):
        value = nodes.Select(I < step, nodes.Max(I, IntImm("int32", step)), value)
    assert "T.max" not in str(Analyzer().simplify(value))
