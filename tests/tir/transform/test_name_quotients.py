"""NameQuotients: before and after, what is left as it is, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.script import tir as T
from weft.tir.expr import FloorDiv, FloorMod
from weft.tir.interp import run
from weft.tir.stmt import LetStmt
from weft.tir.transform import NameQuotients


def test_each_quotient_is_computed_once_an_iteration(becomes):
    @T.prim_func
    def before(p: T.handle, q: T.handle):
        n, t = T.int64(), T.int64()
        a = T.match_buffer(p, (n, 12, t, t))
        b = T.match_buffer(q, (n, 12, t, t))
        for i in T.parallel(t * n * 12):
            for k in range(t):
                b[i // (t * 12), i % (t * 12) // t, i % t, k] = a[
                    i // (t * 12), i % (t * 12) // t, i % t, k
                ] + T.float32(1)

    @T.prim_func
    def expected(p: T.handle, q: T.handle):
        n, t = T.int64(), T.int64()
        a = T.match_buffer(p, (n, 12, t, t))
        b = T.match_buffer(q, (n, 12, t, t))
        for i in T.parallel(t * n * 12):
            with T.LetStmt(i // (t * 12)) as quotient:
                with T.LetStmt(i % (t * 12)) as rest:
                    with T.LetStmt(rest // t) as head:
                        with T.LetStmt(i % t) as row:
                            for k in range(t):
                                b[quotient, head, row, k] = a[quotient, head, row, k] + T.float32(1)

    becomes(NameQuotients(), before, expected)


def test_a_quotient_belongs_to_the_innermost_loop_that_it_uses(becomes):
    @T.prim_func
    def before(p: T.handle):
        m, n, t = T.int32(), T.int32(), T.int32()
        a = T.match_buffer(p, (m, n, t), "int32")
        for i in range(m):
            for j in range(n * t):
                a[i, j // t, j % t] = (i + j) % t

    @T.prim_func
    def expected(p: T.handle):
        m, n, t = T.int32(), T.int32(), T.int32()
        a = T.match_buffer(p, (m, n, t), "int32")
        for i in range(m):
            for j in range(n * t):
                with T.LetStmt((i + j) % t) as value:
                    with T.LetStmt(j // t) as quotient:
                        with T.LetStmt(j % t) as rest:
                            a[i, quotient, rest] = value

    becomes(NameQuotients(), before, expected)


def test_what_loops_around_count_by_parts_is_no_zero(becomes):
    """Tiles of images of any size, numbered, in groups of three."""

    @T.prim_func
    def before(p: T.handle, q: T.handle):
        h, w = T.int64(), T.int64()
        a = T.match_buffer(p, (h, w))
        b = T.match_buffer(q, (3,))
        for group in range((h * w + 2) // 3):
            for t in range(T.int64(3)):
                b[t] = a[T.min(group * 3 + t, h * w - 1) // w, T.min(group * 3 + t, h * w - 1) % w]

    @T.prim_func
    def expected(p: T.handle, q: T.handle):
        h, w = T.int64(), T.int64()
        a = T.match_buffer(p, (h, w))
        b = T.match_buffer(q, (3,))
        for group in range((h * w + 2) // 3):
            for t in range(T.int64(3)):
                with T.LetStmt(T.min(group * 3 + t, h * w - 1) // w) as quotient:
                    with T.LetStmt(T.min(group * 3 + t, h * w - 1) % w) as rest:
                        b[t] = a[quotient, rest]

    becomes(NameQuotients(), before, expected)


@T.prim_func
def by_parts_that_may_be_there_though_the_number_is_zero(p: T.handle):
    n, t = T.int32(), T.int32()
    a = T.match_buffer(p, (n, t), "int32")
    for i in range((n * t + 3) // 3):
        if t > 0:
            if i // t < n:
                a[i // t, i % t] = i


@T.prim_func
def by_constants(p: T.handle):
    n = T.int32()
    a = T.match_buffer(p, (n, 4), "int32")
    for i in range(n * 4):
        a[i // 4, i % 4] = i


@T.prim_func
def by_no_factor_of_the_extent(p: T.handle):
    n, t = T.int32(), T.int32()
    a = T.match_buffer(p, (n, t), "int32")
    for i in range(n * t + 1):
        if t > 0:
            if i // t < n:
                a[i // t, i % t] = i


@T.prim_func
def of_what_the_body_defines(p: T.handle):
    n, t = T.int32(), T.int32()
    a = T.match_buffer(p, (n, t, t), "int32")
    for i in range(n * t):
        with T.LetStmt(i * 2) as k:
            a[0, 0, k % t] = i


@T.prim_func
def of_what_is_loaded(p: T.handle, q: T.handle):
    n, t = T.int32(), T.int32()
    a = T.match_buffer(p, (n,), "int32")
    T.match_buffer(q, (n, t), "int32")
    for i in range(n * t):
        a[0] = (i + a[0]) % t


@pytest.mark.parametrize(
    "func",
    [
        by_constants,
        by_no_factor_of_the_extent,
        by_parts_that_may_be_there_though_the_number_is_zero,
        of_what_the_body_defines,
        of_what_is_loaded,
    ],
)
def test_others_stay_where_they_are(func):
    module = weft.IRModule({"main": func})
    after = NameQuotients()(module)["main"]
    weft.ir.assert_structural_equal(after, module["main"])
    assert collect(after.body, (FloorDiv, FloorMod))


@pytest.mark.parametrize(("n", "t"), [(0, 3), (2, 0), (1, 1), (3, 5)])
def test_results_are_kept(n, t):
    """Also where the loop does not run, whose divisor is then zero."""

    @T.prim_func
    def func(p: T.handle, q: T.handle):
        n, t = T.int64(), T.int64()
        a = T.match_buffer(p, (n, t), "int32")
        b = T.match_buffer(q, (t, n), "int32")
        for i in range(n * t):
            b[i % t, i // t] = a[i // t, i % t] + T.Cast("int32", i // t % n)

    after = NameQuotients()(weft.IRModule({"func": func}))["func"]
    assert len(collect(after.body, LetStmt)) == 3
    array = np.arange(n * t, dtype=np.int32).reshape(n, t)
    expected = (array + np.arange(n, dtype=np.int32)[:, None]).T
    for which in (func, after):
        result = np.zeros((t, n), np.int32)
        run(which, array, result)
        np.testing.assert_array_equal(result, expected)
        native = weft.nd.array(np.zeros((t, n), np.int32))
        weft.build(weft.IRModule({"func": which}), "llvm")["func"](weft.nd.array(array), native)
        np.testing.assert_array_equal(native.numpy(), expected)
