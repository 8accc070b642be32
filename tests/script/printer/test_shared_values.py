"""An expression in many places of a statement prints once, and parses to the same graph."""

from __future__ import annotations

import pytest

from weft import te
from weft.ir.functor import collect
from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Let, Mul, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, IfThenElse, LetStmt


def squared(value, times):
    for _ in range(times):
        value = value * value
    return value


def stored(value, a):
    return BufferStore(a, value, [op.const(0)])


A = decl_buffer((4,), "int32", "A")
FORMS = {
    "a store": lambda value: stored(value, A),
    "a condition": lambda value: IfThenElse(value > 3, stored(value, A), stored(value + 1, A)),
    "a let": lambda value: LetStmt(Var("v", "int32"), value, stored(value, A)),
    "a place": lambda value: BufferStore(A, value, [op.floormod(value, 4)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_text_grows_with_the_number_of_objects(form):
    def func(times):
        return PrimFunc([A], FORMS[form](squared(BufferLoad(A, [op.const(1)]), times)))

    twenty, forty, eighty = (func(times).script().count("\n") for times in (20, 40, 80))
    assert eighty - forty == 2 * (forty - twenty)
    again = from_source(func(80).script())
    assert structural_equal(again, func(80))
    assert len(collect(again, Mul)) < 80 + 5  # short ones are written out in each statement


def test_short_expressions_are_written_out():
    x = te.placeholder((4,), "float32", name="x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: squared(x[i], 4), name="y")])
    assert "meta_var" not in func.script()
    assert structural_equal(from_source(func.script()), func)


def test_a_let_in_two_places_is_one_let():
    t, v = Var("t", "int32"), BufferLoad(A, [op.const(1)])
    let = Let(t, v, t * t)
    func = PrimFunc([A], stored(let + let, A))
    assert "shared = T.meta_var(T.Let(t * t, where={t: A[1]}))" in func.script()
    again = from_source(func.script())
    assert structural_equal(again, func)
    assert len(collect(again, Let)) == 1


def test_what_holds_a_let_is_in_two_places_as_one():
    """``z * z`` for ``z = 1 + let``: z has the name, since the let has one place only."""
    t, v = Var("t", "int32"), BufferLoad(A, [op.const(1)])
    shared = Let(t, v, t * t) + 1
    func = PrimFunc([A], stored(op.max(shared * 2, shared * 3), A))
    again = from_source(func.script())
    assert structural_equal(func, again)
    assert len(collect(again, Let)) == 1


def test_an_expression_alone_has_its_names_above_it():
    lines = str(squared(Var("x", "int32"), 9)).splitlines()
    assert lines[0] == "shared = T.meta_var(x * x)"
    assert lines[-1] == "shared_7 * shared_7"
