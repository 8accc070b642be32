"""ForceNarrowIndexToInt32: before and after, and what is called keeps its types."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.support.errors import PassError
from weft.tir.interp import run
from weft.tir.transform import ForceNarrowIndexToInt32


def narrowed(func):
    return ForceNarrowIndexToInt32()(weft.IRModule({"main": func}))["main"]


def test_loops_extents_parameters_and_lets():
    @T.prim_func
    def before(a: T.handle, B: T.Buffer((T.int64(8),), "float32"), first: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(4)), "float32")
        half = T.Cast("int64", T.sqrt(T.Cast("float32", n)))
        for i, j in T.grid(T.min(half, T.int64(2)), T.int64(4)):
            with T.block("B"):
                v = T.axis.spatial(T.int64(8), i * T.int64(4) + j)
                B[v] = T.Select(
                    first <= v, A[v // T.int64(4), v % T.int64(4)], T.Cast("float32", v)
                )

    @T.prim_func
    def expected(a: T.handle, B: T.Buffer((8,), "float32"), first: T.int32):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "float32")
        half = T.Cast("int32", T.sqrt(T.Cast("float32", n)))
        for i, j in T.grid(T.min(half, 2), 4):
            with T.block("B"):
                v = T.axis.spatial(8, i * 4 + j)
                B[v] = T.Select(first <= v, A[v // 4, v % 4], T.Cast("float32", v))

    weft.ir.assert_structural_equal(narrowed(before), expected.with_attr("global_symbol", "before"))
    results = []
    for func in (before, narrowed(before)):
        results.append(np.zeros(8, "float32"))
        run(func, np.arange(16, dtype="float32").reshape(4, 4), results[-1], 3)
    np.testing.assert_array_equal(*results)


def test_threads():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        block, thread = T.env_thread("blockIdx.x"), T.env_thread("threadIdx.x")
        T.launch_thread(block, T.int64(2))
        T.launch_thread(thread, T.int64(32))
        A[T.Cast("int64", block) * T.int64(32) + T.Cast("int64", thread)] = T.float32(1)

    @T.prim_func
    def expected(A: T.Buffer((64,), "float32")):
        block, thread = T.env_thread("blockIdx.x"), T.env_thread("threadIdx.x")
        T.launch_thread(block, 2)
        T.launch_thread(thread, 32)
        A[block * 32 + thread] = T.float32(1)

    weft.ir.assert_structural_equal(narrowed(before), expected.with_attr("global_symbol", "before"))


def test_what_is_called_keeps_its_types():
    @T.prim_func
    def before(A: T.Buffer((4,), "int32"), n: T.int64):
        for i in range(T.int64(4)):
            A[i] = T.clz(i) + T.Cast("int32", T.call_pure_extern("int64", "llabs", n - i))

    @T.prim_func
    def expected(A: T.Buffer((4,), "int32"), n: T.int32):
        for i in range(4):
            A[i] = T.clz(T.Cast("int64", i)) + T.Cast(
                "int32", T.call_pure_extern("int64", "llabs", T.Cast("int64", n - i))
            )

    weft.ir.assert_structural_equal(narrowed(before), expected.with_attr("global_symbol", "before"))


def test_a_function_without_int64_is_the_same_object():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), n: T.int32):
        for i in range(4):
            A[i] = A[i] + T.Cast("float32", T.clz(n) | T.shift_left(n, 1)) + T.exp(A[i])

    module = weft.IRModule({"main": func})
    assert ForceNarrowIndexToInt32()(module) is module


def test_int64_data_and_large_numbers_are_refused():
    @T.prim_func
    def data(A: T.Buffer((4,), "int64")):
        A[0] = T.int64(1)

    @T.prim_func
    def local(A: T.Buffer((4,), "float32")):
        with T.block("root"):
            B = T.alloc_buffer((4,), "int64")
            B[0] = T.int64(1)
            A[0] = T.Cast("float32", B[0])

    @T.prim_func
    def large(A: T.Buffer((4,), "float32")):
        A[0] = T.Cast("float32", T.int64(1 << 40))

    for func in (data, local):
        with pytest.raises(
            PassError, match=r"expected buffers of other types than int64, got [AB]"
        ):
            narrowed(func)
    with pytest.raises(PassError, match="large: expected numbers of 32 bits, got .*1099511627776"):
        narrowed(large)
