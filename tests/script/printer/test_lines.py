"""``text_and_lines``: the text of ``script()``, and the line of each statement in it."""

from __future__ import annotations

import pytest

from weft.ir.functor import collect
from weft.script import tir as T
from weft.script.printer import text_and_lines
from weft.tir.stmt import BufferStore, Evaluate, For, IfThenElse, LetStmt


@T.prim_func
def mixed(A: T.Buffer((8, 8), "float32"), n: T.int32):
    for i, j in T.grid(8, 8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.float32(1)
    for k in T.parallel(8):
        if k < n:
            A[k, 0] = T.float32(2)
        else:
            A[k, 1] = T.float32(3)
        T.evaluate(T.call_extern("int32", "puts", A.data))


def test_the_text_is_that_of_script():
    for options in ({}, {"name": "other"}, {"indent_spaces": 2}):
        assert text_and_lines(mixed, **options)[0] == mixed.script(**options)


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        (BufferStore, ("A[",)), (IfThenElse, ("if ",)), (Evaluate, ("T.call_extern",)),
        (For, ("for ",)), (LetStmt, ()),
    ],
)  # fmt: skip
def test_each_statement_has_the_line_on_which_it_begins(kind, begins):
    text, lines = text_and_lines(mixed)
    rows = text.split("\n")
    for stmt in collect(mixed.body, kind):
        assert rows[lines[id(stmt)] - 1].strip().startswith(begins), stmt


def test_loops_of_a_grid_share_their_line():
    _, lines = text_and_lines(mixed)
    outer, inner, _ = [lines[id(loop)] for loop in collect(mixed.body, For)]
    assert outer == inner
