"""Offsets in working memory: no two tensors that live at one time share a byte; all are aligned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir.expr import IntImm
from weft.relax.vm.arena import ALIGNMENT, ArenaPlan, TensorLife
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.stmt_functor import substitute

INT64 = DataType("int64")


def life(size, first, last, name="t"):
    extent = IntImm(INT64, size) if isinstance(size, int) else size
    return TensorLife(decl_buffer((extent,), "uint8", name), extent, first, last)


def number(expr, values):
    folded = substitute(op.add(expr, IntImm(INT64, 0)), values)
    return evaluate(folded)


def evaluate(expr):
    if isinstance(expr, IntImm):
        return expr.value
    a, b = evaluate(expr.a), evaluate(expr.b)
    kind = type(expr).__name__
    return {"Add": a + b, "Mul": a * b, "FloorDiv": a // b if b else 0}[kind]


LIVES = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 6), st.integers(0, 4)), max_size=8)


@given(LIVES, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=5))
def test_plans_are_disjoint_and_aligned(static, symbolic):
    n = Var("n", "int64")
    lives = [life(size, first, first + length) for size, first, length in static]
    for position, (first, length) in enumerate(symbolic):
        lives.append(life(op.multiply(n, 4 + position % 2), first, first + length))
    plan = ArenaPlan(lives)
    assert len(plan.offsets) == len(lives)
    for value in (0, 1, 100):
        values = {n: IntImm(INT64, value)}
        whole = number(plan.size, values)
        placed = [
            (item, number(at, values), number(item.size, values)) for item, at in plan.offsets
        ]
        for item, at, size in placed:
            assert at % ALIGNMENT == 0
            assert at + size <= whole
            for other, start, extent in placed:
                if other is not item and item.overlaps(other) and size and extent:
                    assert at + size <= start or start + extent <= at


def test_symbolic_tensors_start_aligned_where_nothing_is_static():
    n = Var("n", "int64")
    plan = ArenaPlan([life(op.multiply(n, 4), 0, 1), life(op.multiply(n, 4), 1, 2)])
    assert [number(at, {n: IntImm(INT64, 5)}) for _, at in plan.offsets] == [0, 64]


def test_tensors_share_memory_when_their_lives_do_not_meet():
    plan = ArenaPlan([life(100, 0, 1), life(100, 2, 3), life(100, 4, 5)])
    assert plan.size.value == 128
    assert [at.value for _, at in plan.offsets] == [0, 0, 0]


@pytest.mark.parametrize("lives", [[], [life(0, 0, 0)]])
def test_the_smallest_plans(lives):
    assert ArenaPlan(lives).size.value == ALIGNMENT * len(lives)
