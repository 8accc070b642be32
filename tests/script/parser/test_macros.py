"""Macros: their names, arguments, results, places; what may not be one."""
# ruff: noqa: B007, F821, F841 - scripts are no plain Python

from __future__ import annotations

import warnings

import pytest

from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal
from weft.relax.expr import DataflowBlock
from weft.script import from_source
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import DiagnosticError, IRTypeError, IRValueError, ScriptWarning
from weft.tir.stmt import BufferStore, For, LetStmt

FACTOR = 2


@T.macro
def scaled(A, i, factor=FACTOR, *, offset=0):
    A[i] = A[i] * factor + offset


def same(func, expected):
    assert_structural_equal(
        func.without_attr("global_symbol"), expected.without_attr("global_symbol")
    )


def test_arguments_by_place_by_name_and_by_default():
    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        scaled(A, 0)
        scaled(A, i=1, factor=3)
        scaled(A, 2, offset=5, factor=4)

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32")):
        A[0] = A[0] * 2 + 0
        A[1] = A[1] * 3 + 0
        A[2] = A[2] * 4 + 5

    same(func, expected)


CALLS = [
    ("scaled()", "missing a required argument: 'A'"),
    ("scaled(A)", "missing a required argument: 'i'"),
    ("scaled(A, 0, 1, 2)", "too many positional arguments"),
    ("scaled(A, 0, scale=1)", "got an unexpected keyword argument 'scale'"),
    ("scaled(A, 0, A=A)", "multiple values for argument 'A'"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[call for call, _ in CALLS])
def test_wrong_arguments_are_said_at_the_call(call, message):
    text = f"@T.prim_func\ndef f(A: T.Buffer((8,), 'int32')):\n    {call}\n"
    with pytest.raises(DiagnosticError, match=message) as caught:
        from_source(text, {"scaled": scaled})
    assert f"3 |     {call}" in str(caught.value)


def test_a_hygienic_macro_has_the_names_of_its_definition():
    offset = 7

    @T.macro
    def add(A):
        A[0] = A[0] + offset

    def inner():
        offset = 1000

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            add(A)

        return func

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32")):
        A[0] = A[0] + 7

    same(inner(), expected)


def test_a_macro_without_hygiene_has_the_names_of_its_call():
    @T.macro(hygienic=False)
    def clear():
        A[i] = width

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        width = T.meta_var(5)
        for i in range(8):
            clear()

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = 5

    same(func, expected)


def test_a_hygienic_macro_does_not_see_the_names_of_its_call():
    @T.macro
    def clear():
        A[0] = 1

    with pytest.raises(DiagnosticError, match="undefined name 'A'"):

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            clear()


def test_names_of_a_macro_end_with_it():
    @T.macro
    def bind(A):
        value = A[0]
        A[1] = value

    with pytest.raises(DiagnosticError, match="undefined name 'value'"):

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            bind(A)
            A[2] = value


def test_each_expansion_has_variables_of_its_own():
    @T.macro
    def bind(A, i):
        value = A[i]
        A[i] = value * value

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        bind(A, 0)
        bind(A, 1)

    first, second = (let.var for let in collect(func.body, LetStmt))
    assert first is not second
    assert [first.name, second.name] == ["value", "value"]


def test_statements_of_every_kind_stand_in_a_macro():
    @T.macro
    def fill(A, n):
        for i in T.serial(n):
            with T.block("fill"):
                vi = T.axis.spatial(n, i)
                if vi < 4:
                    A[vi] = 1
                else:
                    A[vi] = 2

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        fill(A, 8)

    @T.prim_func
    def expected(A: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.block("fill"):
                vi = T.axis.spatial(8, i)
                if vi < 4:
                    A[vi] = 1
                else:
                    A[vi] = 2

    same(func, expected)


def test_macros_call_macros():
    @T.macro
    def twice(A, i):
        scaled(A, i)
        scaled(A, i, 3)

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        for i in range(8):
            twice(A, i)

    assert len(collect(func.body, BufferStore)) == 2
    assert isinstance(func.body, For)


def test_a_macro_in_a_loop_of_python_is_expanded_for_each():
    @T.macro
    def unrolled(A, places):
        scaled(A, places[0])
        scaled(A, places[1])

    @T.prim_func
    def func(A: T.Buffer((8,), "int32")):
        unrolled(A, [k * 3 for k in range(2)])

    assert [store.indices[0].value for store in collect(func.body, BufferStore)] == [0, 3]


def test_a_macro_that_expands_itself_ends():
    @T.macro
    def forever(itself):
        itself(itself)

    with pytest.raises(DiagnosticError, match="macro 'forever' expands itself without end"):

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            forever(forever)


def test_an_error_inside_is_shown_in_the_macro():
    @T.macro
    def wrong(A):
        A[0] = T.nothing(1)

    with pytest.raises(DiagnosticError, match="T.nothing is not part of TVMScript") as caught:

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            wrong(A)

    assert "A[0] = T.nothing(1)" in str(caught.value)
    assert "test_macros.py" in str(caught.value)


def test_a_likely_mistake_inside_warns_in_the_macro():
    @T.macro
    def half(A):
        A[0] = 0.5

    with pytest.warns(ScriptWarning, match="what stands behind the point is cut off") as caught:

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            half(A)

    with open(__file__, encoding="utf-8") as file:
        assert "A[0] = 0.5" in file.readlines()[caught[0].lineno - 1]


def test_a_variable_that_a_macro_binds_in_a_loop_warns_of_nothing():
    @T.macro
    def bind(A, i):
        s = A[i]
        A[i] = s

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @T.prim_func
        def func(A: T.Buffer((8,), "int32")):
            s = A[0]
            for i in range(8):
                bind(A, i)
            A[1] = s


def test_a_macro_is_no_function_of_python():
    with pytest.raises(IRValueError, match="macro 'scaled' can only be called inside a script"):
        scaled(1, 2)


def test_a_method_is_no_function_of_python_either():
    class Holder:
        @T.macro
        def store(self, A):
            A[0] = self.value

    holder = Holder()
    with pytest.raises(IRValueError, match="macro 'store' can only be called inside a script"):
        holder.store(1)


def test_a_macro_belongs_to_one_kind_of_function():
    with pytest.raises(DiagnosticError, match="macro 'scaled' is not one of this kind of function"):

        @R.function
        def main(x: R.Tensor((8,), "int32")):
            y = scaled(x, 0)
            return y


@pytest.mark.parametrize(("prefix", "macro"), [("T", T.macro), ("R", R.macro)])
def test_a_macro_is_made_of_a_function(prefix, macro):
    message = rf"macro: expected a function, got 3; write @{prefix}.macro\(hygienic="
    with pytest.raises(IRValueError, match=message):
        macro(3)
    with pytest.raises(IRValueError, match=message):
        macro(hygienic=True)(3)
    with pytest.raises(IRTypeError, match="macro: expected one function, got 2 arguments"):
        macro(same, same)


def test_a_graph_macro_gives_its_first_result():
    @R.macro
    def norm(x, y):
        both = R.add(x, y)
        return R.multiply(both, both)

    @R.function(private=True)
    def func(x: R.Tensor((8,), "float32")):
        with R.dataflow():
            z = norm(x, y=x)
            R.output(z)
        return z

    @R.function(private=True)
    def expected(x: R.Tensor((8,), "float32")):
        with R.dataflow():
            both = R.add(x, x)
            z = R.multiply(both, both)
            R.output(z)
        return z

    assert_structural_equal(func, expected)
    assert isinstance(func.body.blocks[0], DataflowBlock)


def test_a_graph_macro_gives_several_results_as_a_tuple():
    @R.macro
    def pair(x):
        return R.exp(x), x

    @R.function(private=True)
    def func(x: R.Tensor((8,), "float32")):
        first, second = pair(x)
        return R.add(first, second)

    @R.function(private=True)
    def expected(x: R.Tensor((8,), "float32")):
        first = R.exp(x)
        second = x
        return R.add(first, second)

    assert_structural_equal(func, expected)


def test_a_graph_macro_without_hygiene_names_the_values_of_its_call():
    @R.macro(hygienic=False)
    def shifted():
        z = R.add(x, shift)
        return z

    @R.function(private=True)
    def func(x: R.Tensor((8,), "float32")):
        shift = R.const(1.0, "float32")
        y = shifted()
        return y

    names = [binding.var.name_hint for binding in func.body.blocks[0].bindings]
    assert names == ["shift", "z", "y"]


def test_a_graph_macro_that_returns_nothing_only_binds():
    @R.macro
    def noted(x):
        R.print(x, format="{}")

    @R.function(pure=False)
    def func(x: R.Tensor((8,), "float32")):
        noted(x)
        return x

    assert func.body.blocks[0].bindings[0].value.op.name == "relax.print"
