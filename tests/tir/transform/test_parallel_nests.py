"""UnfuseParallelLoops and FuseParallelLoops: before and after, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import structural_equal
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, For, ForKind, LetStmt
from weft.tir.transform import FuseParallelLoops, UnfuseParallelLoops
from weft.tir.transform.parallel_nests import DIGIT


@T.prim_func
def fused(p: T.handle, q: T.handle):
    n, h, w = T.int64(), T.int64(), T.int64()
    a = T.match_buffer(p, (n, 2, h, w, 8))
    b = T.match_buffer(q, (n, 2, h, w, 8))
    for i in T.parallel(n * (2 * (h * w))):
        for k in range(8):
            b[i // (2 * (h * w)), i % (w * h * 2) // (h * w), i % (h * w) // w, i % w, k] = a[
                i // (2 * (h * w)), i // (h * w) % 2, i % (h * w) // w, i % w, k
            ] * T.float32(2)


@T.prim_func
def nested(p: T.handle, q: T.handle):
    n, h, w = T.int64(), T.int64(), T.int64()
    a = T.match_buffer(p, (n, 2, h, w, 8))
    b = T.match_buffer(q, (n, 2, h, w, 8))
    for i0 in T.parallel(n, annotations={"pragma_loop_partition_hint": 0}):
        for i1 in T.parallel(
            T.int64(2), annotations={"pragma_loop_partition_hint": 0, "weft.digit": 1}
        ):
            for i2 in T.parallel(h, annotations={"pragma_loop_partition_hint": 0, "weft.digit": 1}):
                for i3 in T.parallel(
                    w, annotations={"pragma_loop_partition_hint": 0, "weft.digit": 1}
                ):
                    for k in range(8):
                        b[i0, i1, i2, i3, k] = a[i0, i1, i2, i3, k] * T.float32(2)


@T.prim_func
def joined_digits(p: T.handle, q: T.handle):
    """The first index is a number of two digits."""
    n, h, w = T.int64(), T.int64(), T.int64()
    a = T.match_buffer(p, (n * h, w))
    b = T.match_buffer(q, (n, h, w))
    for i in T.parallel(n * h * w):
        b[i // (h * w), i // w % h, i % w] = a[i // w, i % w] + T.float32(1)


@T.prim_func
def in_a_branch(p: T.handle, q: T.handle):
    n, w = T.int64(), T.int64()
    a = T.match_buffer(p, (n, w))
    b = T.match_buffer(q, (n, w))
    for i0 in T.parallel(n):
        with T.LetStmt(i0 * 2) as twice:
            if twice < n:
                for i1 in T.parallel(w, annotations={"weft.digit": 1}):
                    b[i0, i1] = a[twice, i1]
            else:
                for j1 in T.parallel(w, annotations={"weft.digit": 1}):
                    b[i0, j1] = a[i0, j1] + T.float32(1)


def whole_variable():
    @T.prim_func
    def func(p: T.handle):
        n, w = T.int64(), T.int64()
        a = T.match_buffer(p, (n, w), "int64")
        for i in T.parallel(n * w):
            a[i // w, i % w] = i

    return func


def other_divisor():
    @T.prim_func
    def func(p: T.handle, m: T.int64):
        n, w = T.int64(), T.int64()
        a = T.match_buffer(p, (n, w), "int64")
        for i in T.parallel(n * w):
            a[i // w, i % w] = i % m

    return func


def constant_extents():
    @T.prim_func
    def func(a: T.Buffer((4, 3), "int64")):
        for i in T.parallel(12):
            a[i // 3, i % 3] = T.int64(1)

    return func


def serial_loop():
    @T.prim_func
    def func(p: T.handle):
        n, w = T.int64(), T.int64()
        a = T.match_buffer(p, (n, w), "int64")
        for i in range(n * w):
            a[i // w, i % w] = T.int64(1)

    return func


def passed(func, *passes):
    module = weft.IRModule({"main": func})
    for item in passes:
        module = item(module)
    return module["main"]


def loops_of(func):
    return [loop for loop in collect(func.body, For) if loop.kind is ForKind.PARALLEL]


def test_quotients_become_the_variables_of_a_nest(becomes):
    becomes(UnfuseParallelLoops(), fused, nested)


@pytest.mark.parametrize("func", [fused, joined_digits, in_a_branch])
@pytest.mark.parametrize(
    "sizes", [(3, 4, 5), (1, 1, 1), (2, 1, 3), (0, 4, 5), (3, 0, 5), (3, 4, 0)]
)
def test_results_are_those_of_the_fused_loop(func, sizes):
    n, h, w = sizes
    shapes = {
        "fused": [(n, 2, h, w, 8)] * 2,
        "joined_digits": [(n * h, w), (n, h, w)],
        "in_a_branch": [(n, w)] * 2,
    }[func.__name__]
    data = np.random.default_rng(0).random(shapes[0], "float32")
    apart = passed(func, UnfuseParallelLoops())
    again = passed(apart, FuseParallelLoops())
    results = []
    for program in (func, apart, again):
        results.append(np.zeros(shapes[1], "float32"))
        run(program, data, results[-1])
    results.append(np.zeros(shapes[1], "float32"))
    weft.build(func, target="llvm")(data, results[-1])
    for result in results[1:]:
        assert np.array_equal(result, results[0])


@pytest.mark.parametrize("func", [fused, joined_digits, in_a_branch])
def test_one_parallel_loop_is_left(func):
    again = passed(func, UnfuseParallelLoops(), FuseParallelLoops())
    [loop] = loops_of(again)
    assert isinstance(loop.body, LetStmt)
    assert "weft.digit" not in loop.annotations


@pytest.mark.parametrize(
    "make", [whole_variable, other_divisor, constant_extents, serial_loop], ids=lambda f: f.__name__
)
def test_other_loops_stay(make):
    func = make()
    assert structural_equal(passed(func, UnfuseParallelLoops()), func)


def test_loops_that_a_statement_stands_between_stay_apart():
    @T.prim_func
    def func(p: T.handle, q: T.handle):
        n, w = T.int64(), T.int64()
        a = T.match_buffer(p, (n,), "int64")
        b = T.match_buffer(q, (n, w), "int64")
        for i0 in T.parallel(n):
            a[i0] = T.int64(1)
            for i1 in T.parallel(w, annotations={"weft.digit": 1}):
                b[i0, i1] = T.int64(2)

    assert structural_equal(passed(func, FuseParallelLoops()), func)


def test_branches_of_other_extents_stay_apart():
    @T.prim_func
    def func(q: T.handle):
        n, w = T.int64(), T.int64()
        b = T.match_buffer(q, (n, w), "int64")
        for i0 in T.parallel(n):
            if i0 < 2:
                for i1 in T.parallel(w, annotations={"weft.digit": 1}):
                    b[i0, i1] = T.int64(2)
            else:
                for j1 in T.parallel(w - 1, annotations={"weft.digit": 1}):
                    b[i0, j1] = T.int64(3)

    assert structural_equal(passed(func, FuseParallelLoops()), func)


@pytest.mark.parametrize("kinds", [("int64", "int32"), ("int32", "int64")])
def test_digits_of_two_widths(kinds):
    """Symbols are int64 where a literal extent is int32."""
    n = Var("n", "int64")
    i, j = (Var(name, kind) for name, kind in zip("ij", kinds, strict=True))
    buffer = decl_buffer((n, 3), "int64", "a")
    extents = [n if var.dtype.bits == 64 else op.const(3, "int32") for var in (i, j)]
    places = [i, j] if kinds[0] == "int64" else [j, i]
    value = op.cast("int64", places[0]) * 10 + op.cast("int64", places[1])
    store = BufferStore(buffer, value, places)
    inner = For(j, op.const(0, kinds[1]), extents[1], ForKind.PARALLEL, store, None, {DIGIT: 1})
    loop = For(i, op.const(0, kinds[0]), extents[0], ForKind.PARALLEL, inner)
    func = PrimFunc([buffer], loop).with_attr("global_symbol", "main")
    expected = np.array([[row * 10 + column for column in range(3)] for row in range(5)])
    fused = FuseParallelLoops()(weft.IRModule({"main": func}))["main"]
    assert len(collect(fused.body, For)) == 1
    out = np.zeros((5, 3), "int64")
    run(fused, out)
    np.testing.assert_array_equal(out, expected)
    given = weft.nd.array(np.zeros((5, 3), "int64"))
    weft.build(func)(given)
    np.testing.assert_array_equal(given.numpy(), expected)
