"""Faults of memory between threads, in functions written by hand."""

import pytest

import weft
from weft.script import tir as T
from weft.tir.analysis import (
    ThreadMemoryError,
    find_thread_memory_fault,
    verify_thread_memory,
)


@T.prim_func
def serial(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32", scope="local")
    for i in range(8):
        B[i] = A[i]
    for i in range(8):
        C[i] = B[7 - i]


@T.prim_func
def guarded(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32", scope="local")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i] = A[i]
        C[i] = T.if_then_else(i > 3, B[i], 0)


@T.prim_func
def guarded_write(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((1,), "int32", scope="local")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        if i == 0:
            B[0] = A[0]
        C[i] = B[0]


@T.prim_func
def updated_in_another_kernel(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32", scope="shared")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i] = A[i]
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[i] = B[i] + 1
        C[i] = B[i]


@T.prim_func
def two_rounds(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")):
    B = T.alloc_buffer((8, 2), "int32", scope="local")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(5):
            if k > 0:
                C[i, k - 1] = B[i, (k - 1) % 2]
            if k < 4:
                B[i, k % 2] = A[i, k]


@T.prim_func
def from_data(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32", scope="local")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        B[A[i]] = 1
        C[i] = B[7 - i]


@T.prim_func
def large(A: T.Buffer((4096, 4096), "int32"), C: T.Buffer((4096, 4096), "int32")):
    B = T.alloc_buffer((4096, 4096), "int32")
    for i in T.thread_binding(4096, thread="blockIdx.x"):
        for j in range(4096):
            B[i, j] = A[i, j]
        for j in range(4096):
            C[i, j] = B[4095 - i, j]


@T.prim_func
def symbolic(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (n,), "int32")
    B = T.alloc_buffer((n,), "int32", scope="shared")
    for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
        for i in T.thread_binding(32, thread="threadIdx.x"):
            if b * 32 + i < n:
                B[b * 32 + i] = A[b * 32 + i]
    for b in T.thread_binding((n + 31) // 32, thread="blockIdx.x"):
        for i in T.thread_binding(32, thread="threadIdx.x"):
            if b * 32 + i < n:
                C[b * 32 + i] = B[b * 32 + i]


@T.prim_func
def in_place(A: T.Buffer((8,), "int32")):
    for i in T.thread_binding(7, thread="threadIdx.x"):
        A[i] = A[i + 1]


@T.prim_func
def evens_and_odds(A: T.Buffer((16,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i * 2] = A[i * 2 + 1]


@T.prim_func
def own_element_through_a_let(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("own"):
            S = T.alloc_buffer((8,), "int32", scope="shared")
            S[i] = A[i]
            x: T.int32 = S[i]
            S[i] = x + 1
            C[i] = S[i]


@T.prim_func
def pair_in_place(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.thread_binding(7, thread="threadIdx.x"):
        x: T.int32 = A[i] + B[i + 1]
        y: T.int32 = A[i] - B[i + 1]
        A[i] = x
        B[i] = y


@T.prim_func
def with_a_barrier(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = i
        T.evaluate(T.tvm_storage_sync("shared"))
        C[i] = A[7 - i]


@pytest.mark.parametrize(
    "func",
    [
        serial, guarded, two_rounds, from_data, evens_and_odds, own_element_through_a_let,
        with_a_barrier,
    ],
)  # fmt: skip
def test_no_fault_is_named_where_there_may_be_none(func):
    assert find_thread_memory_fault(func) is None
    verify_thread_memory(func)


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (guarded_write, r"\(threadIdx.x=7\), reads B\[0\], which block root writes in another"),
        (updated_in_another_kernel, r"reads B\[0\], which block root writes in another nest"),
        (large, r"\(blockIdx.x=0\), reads B\[4095, 0\], which block root writes in another th"),
        (symbolic, r"\(blockIdx.x=0\), reads B\[0\], which block root writes in another nest"),
        (in_place, r"\(threadIdx.x=0\), reads A\[1\], which .*: threads run one statement"),
        (pair_in_place, r"\(threadIdx.x=0\), reads B\[1\], which .*: threads run one statement"),
    ],
)
def test_a_fault_is_named_with_its_numbers(func, message):
    with pytest.raises(ThreadMemoryError, match=message):
        verify_thread_memory(func)
    with pytest.raises(ThreadMemoryError, match=f"{func.attrs['global_symbol']}: "):
        weft.lower(func)


def test_a_module_is_searched_whole():
    module = weft.IRModule({"one": serial, "two": guarded_write})
    with pytest.raises(ThreadMemoryError, match="^two: block root, "):
        verify_thread_memory(module)
