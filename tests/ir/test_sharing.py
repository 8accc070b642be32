"""An object that stands in many places of an expression is visited once."""

from __future__ import annotations

import pytest

from weft.ir.functor import Mutator, Visitor, collect, substitute
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import BufferLoad, Let, Mul, Var
from weft.tir.stmt import BufferStore


def squared(value, times):
    """The value squared so often: so many objects, a tree of twice as many for each."""
    for _ in range(times):
        value = Mul(value, value)
    return value


class Count(Visitor):
    """How many multiplications were visited."""

    products = 0

    def visit_Mul(self, node):
        self.products += 1
        self.visit_default(node)


@pytest.mark.parametrize("times", [20, 40, 200])
def test_a_visitor_visits_each_object_once(times):
    count = Count()
    count.visit(squared(Var("x", "int32"), times))
    assert count.products == times


@pytest.mark.parametrize("times", [20, 40, 200])
def test_a_mutator_rebuilds_each_object_once_and_one_object_stays_one(times):
    x, y = Var("x", "int32"), Var("y", "int32")
    result = substitute(squared(x, times), {x: y})
    products = collect(result, Mul)
    assert len(products) == times
    assert all(item.a is item.b for item in products)
    assert collect(result, Var) == [y]


def test_statements_are_looked_at_one_by_one():
    """Between two stores a buffer may change, and so may what a walk knows."""
    a, count = decl_buffer((4,), "int32", "a"), Count()
    product = Mul(BufferLoad(a, [0]), BufferLoad(a, [0]))
    stores = [BufferStore(a, product, [place]) for place in range(3)]
    count.visit(stores)
    assert count.products == 3


def test_what_a_let_of_one_variable_defines_twice_is_visited_twice():
    v, x = Var("v", "int32"), Var("x", "int32")
    square = Mul(v, v)

    class Inlined(Mutator):
        def __init__(self):
            self.values = {}

        def visit_Let(self, let):
            self.values[let.var] = self.visit(let.value)
            return self.visit(let.body)

        def visit_Var(self, var):
            return self.values.get(var, var)

    one, two = op.const(1, "int32"), op.const(2, "int32")
    result = Inlined().visit(op.add(Let(v, op.add(x, one), square), Let(v, op.add(x, two), square)))
    assert str(result) == "(x + 1) * (x + 1) + (x + 2) * (x + 2)"
    result = Inlined().visit(op.add(square, Let(v, op.add(x, one), square)))
    assert str(result) == "v * v + (x + 1) * (x + 1)"


def test_lets_of_other_variables_share_what_they_have_in_common():
    value = Var("x", "int32")
    for number in range(40):
        t = Var(f"t{number}", "int32")
        value = Let(t, value, op.add(Mul(t, t), value))
    count = Count()
    count.visit(value)
    assert count.products == 40


def test_a_state_sees_each_object_once():
    a, x = decl_buffer((4,), "int32", "a"), Var("x", "int32")

    class Places(Visitor):
        def __init__(self):
            self.inside, self.seen = False, []

        def visit_BufferLoad(self, load):
            outer, self.inside = self.inside, True
            with self.apart(True):
                self.visit(load.indices)
            self.inside = outer

        def visit_Mul(self, node):
            self.seen.append(self.inside)

    place = Mul(x, x)
    load = BufferLoad(a, [place])
    walk = Places()
    walk.visit(op.add(op.add(place, load), op.add(BufferLoad(a, [op.add(place, place)]), place)))
    assert walk.seen == [False, True]
    walk.visit(load)  # another expression: nothing is known of it
    assert walk.seen == [False, True, True]
