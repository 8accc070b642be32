"""Places of nodes: each statement, expression, variable and axis has those of its text."""

from __future__ import annotations

import pytest

from tests.lib.script_errors import error_of
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.relax.expr import Call
from weft.script import from_source
from weft.tir import expr as nodes
from weft.tir import stmt as S
from weft.tir.buffer import BufferLoad

TEXT = """@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), n: T.int32):
    assert n > 0, "positive"
    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            vk = T.axis.spatial(8, n)
            with T.init():
                A[vi, vj] = T.float32(0)
            if n < 4:
                A[vi, vj] = A[vi, 0] + T.exp(
                    A[0, vj]
                )
            else:
                A[vi, vk] += 1.0
    while n > 3:
        T.evaluate(n)
    x: T.int32 = n + 1
    T.call_extern("int32", "g", x)
"""
LINES = TEXT.split("\n")
FUNC = from_source(TEXT, check_well_formed=False)


def text_of(span):
    """What a span covers, if it is one line."""
    assert span.line == span.end_line
    return LINES[span.line - 1][span.column - 1 : span.end_column - 1]


STATEMENTS = [
    (S.AssertStmt, [3]), (S.For, [4, 4]), (S.While, [16]), (S.LetStmt, [18]), (S.IfThenElse, [10]),
    (S.BufferStore, [9, 11, 15]), (S.Evaluate, [17, 19]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "lines"), STATEMENTS, ids=[row[0].KIND for row in STATEMENTS])
def test_a_statement_stands_at_its_line(kind, lines):
    assert sorted(stmt.span.line for stmt in collect(FUNC.body, kind)) == lines


EXPRESSIONS = [
    (nodes.GT, ["n > 0", "n > 3"]), (nodes.LT, ["n < 4"]),
    (BufferLoad, ["A[0, vj]", "A[vi, 0]", "A[vi, vk]"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "texts"), EXPRESSIONS, ids=["GT", "LT", "BufferLoad"])
def test_an_expression_stands_at_its_text(kind, texts):
    assert sorted(text_of(node.span) for node in collect(FUNC.body, kind)) == texts


def test_an_expression_of_several_lines_covers_them():
    (call,) = [node for node in collect(FUNC.body, nodes.Call) if node.op.name == "tir.exp"]
    assert (call.span.line, call.span.end_line) == (11, 13)
    assert LINES[10][call.span.column - 1 :] == "T.exp("


def test_an_axis_stands_where_it_is_bound():
    block = next(b for b in collect(FUNC.body, S.Block) if b.name_hint == "b")
    assert [axis.span.line for axis in block.iter_vars] == [6, 6, 7]
    assert block.span.line == 5


def test_an_augmented_value_stands_at_its_statement():
    store = next(s for s in collect(FUNC.body, S.BufferStore) if s.span.line == 15)
    assert text_of(store.span) == "A[vi, vk] += 1.0"


def test_the_function_stands_at_its_head():
    assert FUNC.span.line == 2
    assert FUNC.span.source_name.name == "<str>"


GRAPH = """@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((4,), "float32"),
        y: R.Tensor((4,), "float32"),
    ):
        with R.dataflow():
            a = R.add(x, R.multiply(x, y))
            b = a, x
            R.output(b)
        z = R.match_cast(b[0], R.Tensor((4,), "float32"))
        return z
"""


def test_bindings_and_values_of_graphs_stand_at_their_text():
    module = from_source(GRAPH)
    assert isinstance(module, IRModule)
    main = module["main"]
    lines = GRAPH.split("\n")
    bindings = [b for block in main.body.blocks for b in block.bindings]
    written = {b.var.name_hint: b.span.line for b in bindings if b.span is not None}
    assert {name: written[name] for name in "abz"} == {"a": 9, "b": 10, "z": 12}
    calls = [call.span for call in collect(main.body, Call)]
    assert sorted(lines[s.line - 1][s.column - 1 : s.end_column - 1] for s in calls) == [
        "R.add(x, R.multiply(x, y))", "R.multiply(x, y)",
    ]  # fmt: skip
    assert [param.span.line for param in main.params] == [5, 6]
    assert main.span.line == 4


def test_an_error_of_a_check_stands_at_the_node():
    message, place = error_of("""@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            A[v] = A[i]
""")
    assert message.startswith("f is not well formed: loop variable i is defined outside of any")
    assert place == 'def f(A: T.Buffer((8,), "float32")):'
