"""ConvertSSA: one definition for each variable."""

from __future__ import annotations

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.tir import op
from weft.tir.analysis.verify_well_formed import verify_well_formed
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Let, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind, seq
from weft.tir.transform import ConvertSSA


def test_a_loop_that_stands_twice_gets_a_second_variable(becomes):
    a, i, j = decl_buffer((4,), "int32", "a"), Var("i", "int32"), Var("j", "int32")

    def loop(var):
        return For(var, 0, 4, ForKind.SERIAL, BufferStore(a, BufferLoad(a, [var]) + var, [var]))

    before = PrimFunc([a], seq(loop(i), loop(i)))
    assert not verify_well_formed(before, assert_mode=False)
    becomes(ConvertSSA(), before, PrimFunc([a], seq(loop(i), loop(j))))


def test_a_let_that_is_copied_gets_a_second_variable():
    a, v = decl_buffer((4,), "int32", "a"), Var("v", "int32")
    square = op.multiply(v, v)
    lets = [Let(v, BufferLoad(a, [place]), square) for place in range(2)]
    func = PrimFunc([a], BufferStore(a, op.add(*lets), [1]))
    after = ConvertSSA()(IRModule({"main": func}))["main"]
    assert len({id(item.var) for item in collect(after.body, Let)}) == 2
    assert verify_well_formed(after)


def test_one_let_in_two_places_of_an_expression_stays_one():
    a, v = decl_buffer((4,), "int32", "a"), Var("v", "int32")
    let = Let(v, BufferLoad(a, [0]), op.multiply(v, v))
    func = PrimFunc([a], seq(*[BufferStore(a, op.add(let, let), [place]) for place in (1, 2)]))
    after = ConvertSSA()(IRModule({"main": func}))["main"]
    assert [store.value.a is store.value.b for store in collect(after, BufferStore)] == [True, True]
    assert len({id(item.var) for item in collect(after.body, Let)}) == 2
    assert verify_well_formed(after)


def test_what_is_in_form_stays_the_same_object():
    a, i = decl_buffer((4,), "int32", "a"), Var("i", "int32")
    func = PrimFunc([a], For(i, 0, 4, ForKind.SERIAL, BufferStore(a, i, [i])))
    module = IRModule({"main": func})
    assert ConvertSSA()(module) is module
