"""Parts that stand very often in an expression are evaluated once, each time it is evaluated."""

from __future__ import annotations

import numpy as np
import pytest

from weft.script import tir as T
from weft.support.errors import RuntimeFault
from weft.tir import interp, op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Let, Select, Var
from weft.tir.function import PrimFunc
from weft.tir.interp.repeated_values import repeated_values
from weft.tir.stmt import BufferStore, For, ForKind, seq

A = decl_buffer((4,), "int32", "A")


def steps(compute, value, times):
    for _ in range(times):
        value = compute(value)
    return value


def run(body):
    given = np.arange(1, 5, dtype="int32")
    interp.run(PrimFunc([A], body), given)
    return given.tolist()


def test_each_iteration_evaluates_anew():
    """1000 steps ``x + x`` as a tree would never end."""
    i = Var("i", "int32")
    value = steps(lambda x: x + x, BufferLoad(A, [i]), 1000)
    small = steps(lambda x: x + x, BufferLoad(A, [i]), 12)
    assert run(For(i, 0, 4, ForKind.SERIAL, BufferStore(A, value, [i]))) == [0, 0, 0, 0]
    loop = For(i, 0, 4, ForKind.SERIAL, BufferStore(A, small, [i]))
    assert run(loop) == [1 << 12, 2 << 12, 3 << 12, 4 << 12]


def test_a_statement_sees_what_the_one_before_it_stored():
    value = steps(lambda x: x + x, BufferLoad(A, [op.const(0)]), 12)
    stores = [BufferStore(A, value, [op.const(0)]) for _ in range(2)]
    assert run(seq(*stores))[0] == 1 << 24


def test_an_arm_that_is_not_taken_is_not_evaluated():
    """The index of 100 steps is outside of A."""
    far = BufferLoad(A, [steps(lambda x: x + x, BufferLoad(A, [op.const(3)]), 20)])
    value = steps(lambda x: Select(BufferLoad(A, [op.const(0)]) > 5, x + x, 7), far, 20)
    assert run(BufferStore(A, value, [op.const(0)]))[0] == 7
    with pytest.raises(RuntimeFault, match="outside"):
        run(BufferStore(A, far, [op.const(0)]))


def test_a_variable_with_two_values_is_evaluated_twice():
    t = Var("t", "int32")
    square = steps(lambda x: x + x, t, 12)
    one, two = (Let(t, BufferLoad(A, [op.const(place)]), square) for place in range(2))
    assert run(BufferStore(A, one + two, [op.const(0)]))[0] == (1 + 2) << 12
    assert id(square) not in repeated_values(one + two)


def test_nothing_is_kept_around_a_call_that_may_write():
    doubled = steps(lambda x: x + x, BufferLoad(A, [op.const(0)]), 12)
    calls = doubled + T.call_extern("int32", "rand")
    assert repeated_values(calls) == {}
    assert repeated_values(BufferLoad(A, [op.const(0)]) * 2) == {}
