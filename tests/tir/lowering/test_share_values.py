"""ShareValues: what gets a variable, what does not, and the same results."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal, structural_equal
from weft.script import from_source
from weft.script import tir as T
from weft.tir import expr as e
from weft.tir import interp, op
from weft.tir.buffer import decl_buffer
from weft.tir.function import PrimFunc
from weft.tir.lowering.share_values import ShareValues
from weft.tir.stmt import BufferStore

N = 16


def storing(value_of, dtype="int32"):
    """out[0] = value_of(a, b), each of them a function from a number to an element."""
    a, b = decl_buffer((N,), dtype, "a"), decl_buffer((N,), dtype, "b")
    out = decl_buffer((1,), dtype, "out")
    value = value_of(*[lambda at, buffer=buffer: buffer[at] for buffer in (a, b)])
    func = PrimFunc([a, b, out], BufferStore(out, value, [op.const(0)]))
    return func.with_attr("global_symbol", "main")


def after(func, checks=True):
    return ShareValues(checks)(IRModule({"main": func}))["main"]


def result(func, seed=0):
    given = np.random.default_rng(seed).integers(0, 9, (2, N)).astype("int32")
    out = np.zeros(1, "int32")
    interp.run(func, *given, out)
    return out[0]


def test_what_is_surely_needed_is_computed_first():
    def value(a, b):
        x = op.if_then_else(a(1) > 3, a(2), b(2))
        return op.if_then_else(b(1) > 3, x, 0) + x

    @T.prim_func
    def expected(
        a: T.Buffer((16,), "int32"), b: T.Buffer((16,), "int32"), out: T.Buffer((1,), "int32")
    ):
        T.func_attr({"global_symbol": "main"})
        x = T.int32()
        out[0] = T.Let(
            T.if_then_else(b[1] > 3, x, 0) + x,
            where={x: T.if_then_else(a[1] > 3, a[2], b[2])},
        )

    func = storing(value)
    assert_structural_equal(after(func), expected)
    assert [result(func, seed) for seed in range(8)] == [
        result(after(func), seed) for seed in range(8)
    ]


def test_what_stands_in_no_branch_is_computed_once_as_it_is():
    def value(a, b):
        x = op.if_then_else(a(1) > 3, a(2), b(2))
        return x * x

    func = storing(value)
    assert after(func) is func


def test_a_few_copies_of_what_is_perhaps_needed_stay():
    def value(a, b):
        x = op.if_then_else(a(1) > 3, op.floordiv(a(2), b(2)), b(2))
        return op.if_then_else(a(3) > 3, x, 0) * op.if_then_else(b(3) > 3, x, 1)

    func = storing(value)
    assert after(func) is func


def steps(step, times):
    """``times`` steps on top of each other, each under conditions of its own."""

    def value(a, b):
        return functools.reduce(lambda x, at: step(x, a(at), b(at)), range(times), a(0))

    return value


def in_either_branch(x, a, b):
    first = op.if_then_else(a > 3, op.floordiv(x, a) + x, 7)
    return first * op.if_then_else(b > 3, op.floordiv(x, b) - x, 5)


def without_faults(x, a, b):
    return op.if_then_else(a > 3, x, 7) * op.if_then_else(b > 3, x, 5)


@pytest.mark.parametrize("step", [in_either_branch, without_faults])
def test_many_ways_to_a_value_are_one(step):
    sizes = [len(collect(after(storing(steps(step, n))).body, e.Let)) for n in (6, 9, 12)]
    assert sizes[1] - sizes[0] == sizes[2] - sizes[1] > 0
    func = storing(steps(step, 8))
    for seed in range(10):
        assert result(after(func), seed) == result(func, seed)


def test_what_can_fault_is_computed_where_it_is_needed():
    func = after(storing(steps(in_either_branch, 8)))
    needs = [let for let in collect(func.body, e.Let) if let.var.name == "need"]
    assert needs
    assert all(let.var.dtype == "bool" for let in needs)
    for let in collect(func.body, e.Let):
        is_guarded = isinstance(let.value, e.Call) and "if_then_else" in let.value.op.name
        assert let.var.name == "need" or is_guarded


def test_without_checks_a_load_counts_as_able_to_fault():
    func = storing(steps(without_faults, 8))
    needs = [
        [let for let in collect(after(func, checks).body, e.Let) if let.var.name == "need"]
        for checks in (True, False)
    ]
    assert not needs[0]
    assert needs[1]


def test_a_condition_on_the_value_itself_makes_it_sure():
    func = storing(steps(lambda x, a, b: op.if_then_else(x > a, x, x * b), 12))
    lets = collect(after(func).body, e.Let)
    assert len(lets) == 11
    assert not [let for let in lets if let.var.name == "need"]
    assert result(after(func)) == result(func)


def test_an_expression_with_an_effect_stays():
    def value(a, b):
        x = op.if_then_else(a(1) > 3, a(2), b(2))
        return op.if_then_else(b(1) > 3, x, op.call_packed("tests.lowering.number")) + x

    func = storing(value)
    assert after(func) is func


def test_its_text_is_the_program():
    func = after(storing(steps(in_either_branch, 7)))
    assert structural_equal(from_source(func.script()), func)
