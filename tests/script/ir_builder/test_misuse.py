"""Frames that are opened, left and filled in a wrong way: each says what was expected."""

from __future__ import annotations

import pytest

from weft.script.ir_builder import IRBuilder
from weft.script.ir_builder import ir as I
from weft.script.ir_builder import relax as R
from weft.script.ir_builder import tir as T
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError
from weft.tir.expr import Var


def function(body):
    """What ``body`` makes, called inside of a PrimFunc."""
    with IRBuilder() as builder:
        with T.prim_func():
            body()
    return builder.get()


def graph(body):
    """What ``body`` makes, called inside of a graph function."""
    with IRBuilder() as builder:
        with R.function():
            R.func_name("main")
            body()
    return builder.get()


def choice(*branches):
    """A choice with these branches."""
    with T.If(Var("x", "int32") > 0):
        for number, branch in enumerate(branches):
            with branch():
                T.evaluate(number)


def stray_statement():
    with T.If(Var("x", "int32") > 0):
        T.evaluate(3)
        with T.Then():
            T.evaluate(0)


def opened(frame):
    with frame():
        T.evaluate(0)


TIR = [
    (lambda: opened(T.Else), "T.Else belongs inside T.If"),
    (lambda: opened(T.Then), "T.Then belongs inside T.If"),
    (lambda: choice(), "T.If has no T.Then"),
    (lambda: choice(T.Else), "T.If has no T.Then"),
    (lambda: choice(T.Then, T.Then), "T.If has two T.Then"),
    (lambda: choice(T.Then, T.Else, T.Else), "T.If has two T.Else"),
    (stray_statement, "inside T.If only T.Then and T.Else may stand"),
    (lambda: opened(T.init), "T.init must stand directly inside `with T.block"),
    (lambda: T.reads(), "T.reads must stand directly inside `with T.block"),
    (lambda: T.axis.spatial(4, 0), "T.axis must stand directly inside `with T.block"),
    (lambda: opened(T.prim_func), "a T.prim_func cannot stand inside another function"),
    (lambda: R.emit(R.const(1, "int32")), "R.emit belongs inside an R.function"),
]


@pytest.mark.parametrize(("body", "message"), TIR, ids=[message for _, message in TIR])
def test_statements_of_a_prim_func(body, message):
    with pytest.raises(IRValueError, match=message):
        function(body)


def test_branches_in_order():
    body = function(lambda: choice(T.Then, T.Else)).body
    assert (body.then_case.value.value, body.else_case.value.value) == (0, 1)


def output_twice():
    value = R.arg("x", R.Tensor((2,), "float32"))
    with R.dataflow():
        twice = R.emit(R.add(value, value))
        R.output(twice)
        R.output(twice)


def returned_twice():
    value = R.arg("x", R.Tensor((2,), "float32"))
    R.func_ret_value(value)
    R.func_ret_value(value)


GRAPH = [
    (lambda: None, IRValueError, "function main: no value is returned"),
    (returned_twice, IRValueError, "function main returns twice"),
    (output_twice, IRValueError, "the dataflow block has two R.output"),
    (lambda: R.output(), IRValueError, "R.output must stand directly inside `with R.dataflow"),
    (lambda: R.arg("x", 5), IRTypeError, "expected struct info such as R.Tensor"),
    (lambda: R.emit(None), IRTypeError, "expected a graph expression, got NoneType"),
    (lambda: T.evaluate(0), IRValueError, "a TensorIR statement cannot stand in a FunctionFrame"),
]


@pytest.mark.parametrize(("body", "error", "message"), GRAPH, ids=[row[2] for row in GRAPH])
def test_statements_of_a_graph_function(body, error, message):
    with pytest.raises(error, match=message):
        graph(body)


def test_one_builder_makes_one_result():
    with IRBuilder() as builder:
        with T.prim_func():
            T.evaluate(0)
        with pytest.raises(IRValueError, match="the IRBuilder has a result already"):
            with T.prim_func():
                T.evaluate(1)
    assert builder.get().body.value.value == 0


def test_two_functions_of_one_name():
    with pytest.raises(IRValueError, match="the module has two functions named 'f'"):
        with IRBuilder(), I.ir_module():
            for number in range(2):
                with T.prim_func():
                    T.func_name("f")
                    T.evaluate(number)


def test_frames_are_left_in_the_order_of_entering():
    with IRBuilder():
        outer, inner = T.prim_func(), T.block("b")
        outer.__enter__()
        inner.__enter__()
        with pytest.raises(UnsupportedError, match="must be left in the order of entering"):
            outer.__exit__(None, None, None)


def test_an_error_inside_leaves_no_frame_behind():
    with IRBuilder() as builder:
        with pytest.raises(KeyError), T.prim_func(), T.block("b"):
            raise KeyError("inside")
        with T.prim_func():
            T.evaluate(7)
    assert builder.get().body.value.value == 7


def test_what_is_not_finished_has_no_result():
    with IRBuilder() as builder:
        with T.prim_func():
            T.evaluate(0)
            with pytest.raises(IRValueError, match="no outermost frame was completed"):
                builder.get()
    assert builder.get().body.value.value == 0


def test_without_a_builder_nothing_can_be_said():
    for statement in (lambda: T.evaluate(0), lambda: T.prim_func().__enter__(), IRBuilder.current):
        with pytest.raises(IRValueError, match="no IRBuilder is active"):
            statement()


def test_a_builder_inside_of_another_is_its_own():
    with IRBuilder() as outer, T.prim_func():
        with IRBuilder() as inner, T.prim_func():
            T.evaluate(1)
        T.evaluate(0)
    assert (outer.get().body.value.value, inner.get().body.value.value) == (0, 1)
