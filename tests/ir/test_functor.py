"""Visitor and Mutator: dispatch, sharing, and the short walks built on them."""

from __future__ import annotations

import pytest

from weft import ir, relax, te, tir, topi
from weft.ir.functor import (
    Mutator,
    Visitor,
    collect,
    contains,
    post_order_visit,
    rewrite,
    substitute,
)
from weft.ir.node import Array
from weft.ir.summary import identities
from weft.relax.expr import Var as RelaxVar
from weft.tir.stmt import BufferStore, For


@pytest.fixture
def function():
    x = te.placeholder((4, 4), name="x")
    return te.create_prim_func([x, topi.exp(x)])


def test_dispatch_is_by_class_name_and_falls_back_to_bases():
    seen = []

    class Names(Visitor):
        def visit_Add(self, expr):
            seen.append("Add")
            self.visit_default(expr)

        def visit_BinaryExpr(self, expr):
            seen.append("binary")
            self.visit_default(expr)

        def visit_PrimExpr(self, expr):
            seen.append("other")
            self.visit_default(expr)

    x = tir.Var("x", "int32")
    Names().visit(tir.Add(tir.Mul(x, x), x))
    assert seen == ["Add", "binary", "other", "other", "other"]


def test_a_subclass_has_its_own_dispatch():
    class First(Mutator):
        def visit_Var(self, var):
            return ir.IntImm("int32", 1)

    class Second(First):
        def visit_Var(self, var):
            return ir.IntImm("int32", 2)

    x = tir.Var("x", "int32")
    assert First().visit(tir.Add(x, x)).a.value == 1
    assert Second().visit(tir.Add(x, x)).a.value == 2


def test_a_method_for_calls_of_tensorir_does_not_pass_over_those_of_a_graph():
    class Calls(Visitor):
        def visit_Call(self, node):
            raise AssertionError

    class Both(Visitor):
        def visit_Call(self, node):
            raise AssertionError

        def visit_RelaxCall(self, node):
            seen.append(node)

    seen = []
    call = relax.op.exp(relax.Var("x", relax.TensorStructInfo((4,), "float32")))
    with pytest.raises(TypeError, match=r"Calls\.visit_Call is for calls .* write visit_RelaxCall"):
        Calls().visit(call)
    Both().visit(call)
    assert seen == [call]


def test_a_method_that_names_no_node_is_an_error_of_the_class():
    with pytest.raises(TypeError, match=r"Wrong\.visit_Addd: there is no node class Addd"):
        type("Wrong", (Visitor,), {"visit_Addd": lambda self, node: None})


def test_variables_of_the_two_irs_are_told_apart():
    seen = []

    class Both(Visitor):
        def visit_Var(self, var):
            seen.append("tir")

        def visit_RelaxVar(self, var):
            seen.append("relax")

    Both().visit(
        Array([tir.Var("x", "int32"), RelaxVar("x", relax.TensorStructInfo((2,), "int32"))])
    )
    assert seen == ["tir", "relax"]


def test_what_does_not_change_stays_the_same_object(function):
    assert Mutator().visit(function) is function
    assert rewrite(function, lambda node: None) is function
    assert substitute(function.body, {}) is function.body
    assert (
        substitute(function.body, {tir.Var("no", "int32"): ir.IntImm("int32", 0)}) is function.body
    )


def test_only_the_path_to_a_change_is_rebuilt():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    left, right = tir.Mul(x, x), tir.Mul(y, y)
    changed = substitute(tir.Add(left, right), {y: ir.IntImm("int32", 3)})
    assert changed.a is left
    assert changed.b is not right


def test_all_uses_of_a_rewritten_buffer_share_one_object(function):
    class Rename(Mutator):
        def __init__(self):  # a mutator works without the call of its base's constructor
            self.made = 0

        def visit_Buffer(self, buffer):
            self.made += 1
            return buffer.with_(name=buffer.name + "_new")

    mutator = Rename()
    changed = mutator.visit(function)
    (store,) = collect(changed.body, BufferStore)
    assert mutator.made == 2
    assert store.buffer in list(changed.buffer_map.values())
    assert {buffer.name for buffer in changed.buffer_map.values()} == {"x_new", "compute_new"}


def test_post_order_meets_each_object_once_children_first():
    x = tir.Var("x", "int32")
    shared = x + 1
    order = []
    post_order_visit(tir.Mul(shared, shared), order.append)
    assert [type(item).__name__ for item in order] == ["Var", "IntImm", "Add", "Mul"]


def test_collect_takes_classes_and_tuples_of_classes(function):
    assert len(collect(function, For)) == 2
    assert len(collect(function, (For, BufferStore))) == 3


def test_contains_is_whether_collect_gives_any(function):
    module = ir.IRModule({"main": function})
    for root in (function, function.body, [function.body], module, None):
        for kind in (For, tir.Mul, (tir.Mul, BufferStore), ir.GlobalVar):
            assert contains(root, kind) == bool(collect(root, kind))


def test_what_was_skipped_is_visited_once_it_matters():
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")

    class Replace(Mutator):
        def visit_Var(self, node):
            return y if node is x else node

    mutator = Replace()
    mutator.skip_all_but(0)
    expr = x + 1
    assert mutator.visit(expr) is expr
    mutator.skip_less(identities([x]))
    assert ir.structural_equal(mutator.visit(expr), y + 1)


def test_rewrite_sees_rebuilt_children():
    x = tir.Var("x", "int32")

    def fold(node):
        return node.a if isinstance(node, tir.Add) and isinstance(node.b, ir.IntImm) else None

    assert rewrite(tir.Add(tir.Add(x, ir.IntImm("int32", 1)), ir.IntImm("int32", 2)), fold) is x


def test_walks_are_not_limited_by_recursion():
    x = expr = tir.Var("x", "int32")
    for _ in range(20_000):
        expr = tir.Add(expr, x)
    assert len(collect(expr, tir.Add)) == 20_000
    y = tir.Var("y", "int32")
    assert substitute(expr, {x: y}).b is y
