"""Parallel loops: what they capture, and the jumps that they do not take."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.support.errors import CodegenError, RuntimeFault
from weft.tir import interp


@T.prim_func
def add_captured(
    a: T.Buffer((64,), "float32"),
    b: T.Buffer((64,), "float32"),
    c: T.Buffer((100000, 64), "float32"),
):
    with T.LetStmt(a[T.Ramp(0, 1, 32)]) as v:
        with T.LetStmt(b[T.Ramp(0, 1, 32)]) as w:
            for i in T.parallel(100000):
                c[i, T.Ramp(0, 1, 32)] = v + w


def test_a_captured_vector_is_as_long_as_it_is():
    a, c = np.arange(64, dtype="float32"), np.zeros((100000, 64), "float32")
    weft.build(add_captured)(a, 100 * a, c)
    np.testing.assert_array_equal(c[:, :32], np.broadcast_to(101 * a[:32], (100000, 32)))
    assert not c[:, 32:].any()


@T.prim_func
def leave_parallel(a: T.Buffer((8,), "int32")):
    for i in T.parallel(8):
        if a[i] > 3:
            T.evaluate(T.break_loop())
        a[i] = 9


@T.prim_func
def skip_parallel(a: T.Buffer((8,), "int32")):
    for i in T.parallel(8):
        if a[i] > 3:
            T.evaluate(T.continue_loop())
        a[i] = 9


@T.prim_func
def leave_inner(a: T.Buffer((8,), "int32")):
    for i in T.parallel(8):
        for j in range(5):
            if j > a[i]:
                T.evaluate(T.break_loop())
            a[i] = a[i] - 1


@T.prim_func
def count(a: T.Buffer((8,), "int32")):
    while T.bool(True):
        a[0] = a[0] + 1
        if a[0] == 3:
            T.evaluate(T.continue_loop())
        a[a[0] % 7 + 1] = a[0]
        if a[0] > 10:
            T.evaluate(T.break_loop())


def test_break_in_a_parallel_loop_is_refused():
    with pytest.raises(CodegenError, match="it stands in a parallel loop"):
        weft.build(leave_parallel)
    with pytest.raises(RuntimeFault, match="break_loop leaves the parallel loop i"):
        interp.run(leave_parallel, np.arange(8, dtype="int32"))


@pytest.mark.parametrize("func", [skip_parallel, leave_inner, count])
def test_jumps_are_those_of_the_interpreter(func):
    x = np.arange(8, dtype="int32") if func is not count else np.zeros(8, "int32")
    y = x.copy()
    weft.build(func)(x)
    interp.run(func, y)
    np.testing.assert_array_equal(x, y)
    assert x.any()


@T.prim_func
def doubled(
    a: T.Buffer((4096, 64), "float32"),
    b: T.Buffer((4096, 64), "float32"),
    c: T.Buffer((4096, 64), "float32"),
):
    T.func_attr({"tir.noalias": True})
    for i in T.parallel(4096):
        for j in range(64):
            c[i, j] = a[i, j] + b[i, j]


def test_what_a_parallel_loop_only_reads_may_be_given_twice_and_be_read_only():
    a, c = np.ones((4096, 64), "float32"), np.zeros((4096, 64), "float32")
    a.flags.writeable = False
    built = weft.build(doubled, target="llvm -num-cores=2")
    assert "weft.parallel.doubled.0" in built.get_source("ll")
    built(a, a, c)
    assert (c == 2).all()
    with pytest.raises(weft.TVMError, match="shares no memory"):
        built(c, a, c)


def test_a_parallel_loop_that_calls_python_says_so():
    @T.prim_func
    def main(a: T.Buffer((4096, 64), "float32")):
        T.func_attr({"global_symbol": "main"})
        for i in T.parallel(4096):
            for j in range(64):
                a[i, j] = 1.0
            if a[i, 0] < 0.0:
                T.evaluate(T.call_packed("a.function", a))

    built = weft.build(main, target="llvm -num-cores=2")
    assert built["main"].spec.calls_packed
