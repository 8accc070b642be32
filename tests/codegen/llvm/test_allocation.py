"""Memory of a size that only the run tells: on the stack while it is small, inside of loops."""

import re

import numpy as np
import pytest

import weft
from weft.codegen.llvm.allocation import ON_HEAP, SMALL
from weft.script import tir as T

LIMIT = SMALL // 4
"""How many float32 are small."""


@T.prim_func
def sums(a: T.handle, c: T.handle):
    rows, n = T.int64(), T.int64()
    A = T.match_buffer(a, (rows, n))
    C = T.match_buffer(c, (rows, n))
    for i in range(rows):
        with T.decl_buffer((n,)) as t:
            for j in range(n):
                t[j] = A[i, j] + T.float32(1)
            for j in range(n):
                C[i, j] = t[n - T.int64(1) - j] * T.float32(2)


@pytest.fixture(scope="module")
def native():
    return weft.build(sums)


@pytest.mark.parametrize("n", [0, 1, 5, LIMIT - 1, LIMIT, LIMIT + 1, 5 * LIMIT])
def test_results_do_not_depend_on_where_memory_is(native, n):
    x = np.random.default_rng(0).standard_normal((3, n)).astype("float32")
    out = weft.nd.array(np.zeros_like(x))
    native(weft.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), (x[:, ::-1] + 1) * 2)


def test_the_heap_is_asked_only_for_what_is_not_small(native):
    source = native.get_source("ll")
    assert re.search(rf"icmp ule i64 %\w+, {SMALL}\n", source)
    assert f"alloca [{SMALL} x i8], align 64" in source
    assert source.count("call noalias ptr @aligned_alloc") == 1


@T.prim_func
def outside(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    with T.decl_buffer((n,)) as t:
        for j in range(n):
            t[j] = A[j]
        for j in range(n):
            A[j] = t[n - T.int64(1) - j]


@T.prim_func
def deep(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,))
    for i in range(2):
        t = T.allocate([n], "float32", "global", annotations={"weft.on_heap": 1})
        T_ = T.Buffer((n,), data=t)
        T_[0] = T.Cast("float32", i)
        A[0] = T_[0]


@pytest.mark.parametrize("func", [outside, deep])
def test_memory_that_is_allocated_once_or_in_deep_calls_is_on_the_heap(func):
    assert ON_HEAP == "weft.on_heap"
    assert "icmp ule i64" not in weft.build(func).get_source("ll")


@pytest.mark.parametrize("n", [3, 2 * LIMIT])
def test_a_fault_leaves_by_way_of_what_must_be_freed(n):
    @T.prim_func
    def bad(a: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n,))
        for _i in range(4):
            with T.decl_buffer((n,)) as t:
                t[0] = A[0]
                A[0] = t[0] + T.Cast("float32", T.floordiv(T.int64(7), k))

    built = weft.build(bad)
    x = weft.nd.array(np.zeros(n, "float32"))
    for _ in range(200):
        with pytest.raises(weft.TVMError, match="division by zero"):
            built(x, 0)
    built(x, 7)
    assert x.numpy()[0] == 4
