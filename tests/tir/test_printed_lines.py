"""Lines of printed programs as spans: given, kept by passes, filled in."""

from __future__ import annotations

import weft
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.script import tir as T
from weft.script.printer import text_and_lines
from weft.tir.printed_lines import fill_lines, line_of, with_line_of, with_lines
from weft.tir.stmt import BufferStore, Evaluate, For, Stmt, seq


@T.prim_func
def doubled(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(8):
        for j in T.vectorized(8):
            with T.block("B"):
                vi = T.axis.spatial(64, i * 8 + j)
                B[vi] = A[vi] * T.float32(2)


def test_marked_statements_know_their_line_and_are_else_the_same():
    text, lines = text_and_lines(doubled)
    marked = with_lines(doubled, lines)
    assert weft.ir.structural_equal(marked, doubled)
    [store] = collect(marked.body, BufferStore)
    assert text.split("\n")[line_of(store) - 1].strip().startswith("B[vi] = ")
    assert all(line_of(stmt) for stmt in collect(marked.body, Stmt))
    assert not any(line_of(stmt) for stmt in collect(doubled.body, Stmt))


def test_a_vector_store_keeps_the_line_of_the_scalar_one():
    text, lines = text_and_lines(doubled)
    module = weft.IRModule({"main": with_lines(doubled, lines).with_attr("global_symbol", "main")})
    lowered = lower_tir()(module)["main"]
    [store] = collect(lowered.body, BufferStore)
    assert store.value.dtype.lanes == 8
    assert "B[vi] = " in text.split("\n")[line_of(store) - 1]


def test_statements_without_a_line_get_that_of_the_one_around():
    [loop] = [loop for loop in collect(doubled.body, For) if loop.loop_var.name == "j"]
    marked = with_lines(doubled, {id(loop): 7})
    [inner] = [loop for loop in collect(marked.body, For) if loop.loop_var.name == "j"]
    assert line_of(inner) == 7
    made = seq(Evaluate(1), Evaluate(2))
    assert with_line_of(inner, made) is made
    assert [line_of(stmt) for stmt in (made, *made.seq)] == [7, 7, 7]
    fill_lines(made, 9)
    assert line_of(made) == 7


def test_without_lines_nothing_is_marked():
    made = Evaluate(1)
    assert with_line_of(doubled.body, made).span is None
