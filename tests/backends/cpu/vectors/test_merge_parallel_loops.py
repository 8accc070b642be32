"""MergeParallelLoops: neighbours that share a partition are one loop; others stay two."""

from __future__ import annotations

import random

import numpy as np
import pytest

import weft
from weft.backends.cpu.vectors.merge_parallel_loops import MergeParallelLoops
from weft.ir.functor import collect, rewrite, substitute
from weft.ir.module import IRModule
from weft.script import tir as T
from weft.target.target import Target
from weft.tir.interp import run
from weft.tir.stmt import For, ForKind

TARGET = "llvm -num-cores=2 -l1d-cache-bytes=128 -l2-cache-bytes=1024"


def merged(func):
    with Target(TARGET):
        return MergeParallelLoops()(IRModule({"main": func.with_attr("tir.noalias", True)}))["main"]


def parallel_extents(func):
    loops = [loop for loop in collect(func.body, For) if loop.kind is ForKind.PARALLEL]
    return [loop.extent.value for loop in loops]


def assert_same(before, after):
    """Both compute the same, the second in all ways to run it."""
    rng = np.random.default_rng(0)
    buffers = [before.buffer_map[param] for param in before.params]
    shapes = [[extent.value for extent in buffer.shape] for buffer in buffers]
    given = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    expected, found, native = [[array.copy() for array in given] for _ in range(3)]
    run(before, *expected)
    run(after, *found)
    tensors = [weft.nd.array(array) for array in native]
    weft.build(after, target="llvm -num-cores=2")(*tensors)
    for one, other, third in zip(expected, found, tensors, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third.numpy())


def test_each_iteration_goes_on_with_what_it_wrote(becomes):
    @T.prim_func
    def before(A: T.Buffer((60,), "float32"), B: T.Buffer((60,), "float32")):
        T.func_attr({"tir.noalias": True})
        C = T.allocate([60], "float32", "global")
        C_1 = T.decl_buffer((60,), data=C)
        for i in T.parallel(6):
            for j in range(10):
                C_1[i * 10 + j] = A[i * 10 + j] * T.float32(2)
        for k in T.parallel(3):
            for j in range(20):
                B[k * 20 + j] = C_1[k * 20 + j] + A[k * 20 + j]

    # what a function allocates stands before its loops: those of a body that is one sequence merge
    assert parallel_extents(merged(before)) == [6, 3]

    @T.prim_func
    def in_blocks(A: T.Buffer((60,), "float32"), B: T.Buffer((60,), "float32")):
        T.func_attr({"tir.noalias": True})
        with T.block("root"):
            C = T.alloc_buffer((60,))
            for i in T.parallel(6):
                for j in range(10):
                    with T.block("C"):
                        v = T.axis.spatial(60, i * 10 + j)
                        C[v] = A[v] * T.float32(2)
            for k in T.parallel(3):
                for j in range(20):
                    with T.block("B"):
                        v = T.axis.spatial(60, k * 20 + j)
                        B[v] = C[v] + A[v]

    @T.prim_func
    def expected(A: T.Buffer((60,), "float32"), B: T.Buffer((60,), "float32")):
        T.func_attr({"tir.noalias": True})
        with T.block("root"):
            C = T.alloc_buffer((60,))
            for i in T.parallel(3):
                for i_inner in range(2):
                    for j in range(10):
                        with T.block("C"):
                            v = T.axis.spatial(60, (i * 2 + i_inner) * 10 + j)
                            C[v] = A[v] * T.float32(2)
                for j in range(20):
                    with T.block("B"):
                        v = T.axis.spatial(60, i * 20 + j)
                        B[v] = C[v] + A[v]

    with Target(TARGET):
        becomes(MergeParallelLoops(), in_blocks, expected)
    assert_same(in_blocks, merged(in_blocks))


def two_loops(first, second, read="i * 6 + j", more=""):
    """C from A by ``first`` iterations, D from B (or C) by ``second``."""
    source = f"""
@T.prim_func
def f(A: T.Buffer((48,), "float32"), B: T.Buffer((48,), "float32"),
      C: T.Buffer((48,), "float32"), D: T.Buffer((48,), "float32")):
    for i in T.parallel({first}):
        for j in range({48 // first}):
            C[i * {48 // first} + j] = A[i * {48 // first} + j] + T.float32(1)
    for i in T.parallel({second}):
        for j in range({48 // second}):
            D[i * {48 // second} + j] = {read}
"""
    return weft.script.from_source(source)


@pytest.mark.parametrize(
    ("first", "second", "read", "extents"),
    [
        # nothing is passed: parts of several iterations, two for each core or more
        (8, 8, "B[i * 6 + j]", [4]),
        (24, 8, "B[i * 6 + j]", [4]),
        (12, 16, "B[i * 3 + j]", [4]),
        (3, 3, "B[i * 16 + j]", [3]),
        (6, 6, "B[i * 8 + j]", [6]),
        (6, 3, "B[i * 16 + j]", [6, 3]),
        (2, 8, "B[i * 6 + j]", [2, 8]),
        # iterations read what the same iterations wrote
        (8, 8, "C[i * 6 + j]", [8]),
        (8, 4, "C[i * 12 + j]", [4]),
        (4, 8, "C[i * 6 + j]", [4]),
        (8, 8, "C[i * 6 + 5 - j]", [8]),
        (8, 8, "C[i * 6]", [8]),
        (8, 8, "C[i * 6 + T.min(j + 1, 5)]", [8]),
        # they read what others wrote
        (8, 8, "C[T.min(i * 6 + j + 1, 47)]", [8, 8]),
        (8, 8, "C[47 - (i * 6 + j)]", [8, 8]),
        (8, 8, "C[(i * 6 + j + 1) % 48]", [8, 8]),
        (8, 8, "C[T.max(i * 6 + j - 1, 0)]", [8, 8]),
        (8, 8, "C[j]", [8, 8]),
        (8, 8, "C[T.Cast('int32', B[i]) % 48]", [8, 8]),
        (12, 8, "C[i * 6 + j]", [12, 8]),
        (8, 8, "C[(i // 2) * 12 + j]", [8, 8]),
    ],
)
def test_two_loops(first, second, read, extents):
    func = two_loops(first, second, read)
    after = merged(func)
    assert parallel_extents(after) == extents
    assert_same(func, after)


def test_what_is_read_must_not_be_overwritten():
    @T.prim_func
    def shifted(A: T.Buffer((33,), "float32"), B: T.Buffer((32,), "float32")):
        for i in T.parallel(8):
            for j in range(4):
                B[i * 4 + j] = A[i * 4 + j + 1]
        for i in T.parallel(8):
            for j in range(4):
                A[i * 4 + j] = T.float32(0)

    @T.prim_func
    def own(A: T.Buffer((33,), "float32"), B: T.Buffer((32,), "float32")):
        for i in T.parallel(8):
            for j in range(4):
                B[i * 4 + j] = A[i * 4 + j]
        for i in T.parallel(8):
            for j in range(4):
                A[i * 4 + j] = T.float32(0)

    assert parallel_extents(merged(shifted)) == [8, 8]
    assert parallel_extents(merged(own)) == [8]
    assert_same(own, merged(own))


def test_three_loops_and_one_that_is_not_parallel():
    @T.prim_func
    def four(A: T.Buffer((48,), "float32"), B: T.Buffer((48,), "float32"),
             C: T.Buffer((48,), "float32")):  # fmt: skip
        for i in T.parallel(8):
            for j in range(6):
                A[i * 6 + j] = T.float32(3)
        for i in T.parallel(8):
            for j in range(6):
                B[i * 6 + j] = A[i * 6 + j] * A[i * 6 + j]
        for i in range(48):
            C[i] = B[47 - i]
        for i in T.parallel(8):
            for j in range(6):
                B[i * 6 + j] = C[i * 6 + j]
        for i in T.parallel(4):
            for j in range(12):
                A[i * 12 + j] = B[i * 12 + j]

    assert parallel_extents(merged(four)) == [8, 4]
    assert_same(four, merged(four))


def large(of_second):
    """Loops in each iteration of which all of a large buffer is read."""
    source = f"""
@T.prim_func
def f(A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32"),
      C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        for j in range(96):
            C[i] = C[i] + A[j]
    for i in T.parallel(8):
        for j in range(96):
            D[i] = D[i] + {of_second}[j]
"""
    return weft.script.from_source(source)


def test_what_all_iterations_read_stays_in_the_second_cache():
    assert parallel_extents(merged(large("A"))) == [4]
    assert parallel_extents(merged(large("B"))) == [8, 8]


def test_what_is_said_of_one_loop_is_not_said_of_another():
    @T.prim_func
    def f(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
        for i in T.parallel(6, annotations={"pragma_loop_partition_hint": 1}):
            A[i] = T.float32(1)
        for i in T.parallel(6):
            B[i] = A[i]

    assert parallel_extents(merged(f)) == [6, 6]


def test_what_is_said_of_iterations_stays_with_them():
    @T.prim_func
    def f(A: T.Buffer((48,), "float32"), B: T.Buffer((48,), "float32")):
        for i in T.parallel(8, annotations={"tir.prefetch_next": True}):
            for j in range(6):
                A[i * 6 + j] = T.float32(1)
        for i in T.parallel(8):
            for j in range(6):
                B[i * 6 + j] = T.float32(2)

    after = merged(f)
    outer, *inner = list(collect(after.body, For))[::-1]
    assert parallel_extents(after) == [4]
    assert not outer.annotations
    assert [bool(loop.annotations) for loop in inner if loop.loop_var.name == "i_inner"] == [
        False, True,
    ]  # fmt: skip


def test_memory_that_may_be_one():
    func = two_loops(8, 8, "B[i * 6 + j]")
    assert MergeParallelLoops()(IRModule({"main": func}))["main"] is func  # no noalias


def test_addresses_may_be_of_any_element():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            A[i] = T.float32(1)
        for i in T.parallel(8):
            T.evaluate(T.call_extern("int32", "touch", T.address_of(A[i])))

    @T.prim_func
    def g(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            A[i] = T.float32(1)
        for i in T.parallel(8):
            T.evaluate(T.call_extern("int32", "touch", A.access_ptr("w"), i))

    assert parallel_extents(merged(f)) == [8, 8]
    assert parallel_extents(merged(g)) == [8, 8]


def turned(func):
    """The function with its parallel loops in reverse: no iteration may need an earlier one."""

    def reverse(node):
        if not isinstance(node, For) or node.kind is not ForKind.PARALLEL:
            return None
        last = node.extent - 1
        return node.with_(body=substitute(node.body, {node.loop_var: last - node.loop_var}))

    return func.with_(body=rewrite(func.body, reverse))


@pytest.mark.parametrize("block", range(4))
def test_random_pairs_keep_their_meaning(block):
    """Reads of any place, by chance within the iteration's own slab."""
    choose = random.Random(block)
    counts = {1: 0, 2: 0}
    for _ in range(60):
        first, second = choose.choice([(8, 8), (8, 8), (8, 4), (4, 8), (12, 12), (6, 3), (16, 8)])
        width = 48 // second
        place = choose.choice([
            f"i * {width} + j", f"i * {width} + {width - 1} - j", f"i * {width} + j // 2",
            f"i * {width} + (j * 5) % {width}",
            f"i * {width} + T.max(j - {choose.randrange(3)}, 0)",
            f"T.min(i * {width} + j + {choose.randrange(3)}, 47)",
            f"T.max(i * {width} + j - {choose.randrange(3)}, 0)",
            f"(i * {choose.randrange(1, 20)} + j * {choose.randrange(3)}) % 48",
            f"(i // 2) * {2 * width} + j + (i % 2) * {width}",
        ])  # fmt: skip
        func = two_loops(first, second, f"C[{place}]")
        after = merged(func)
        counts[len(parallel_extents(after))] += 1
        arrays = [np.arange(48, dtype="float32") + n for n in range(4)]
        expected, found = ([array.copy() for array in arrays] for _ in range(2))
        run(func, *expected)
        run(turned(after), *found)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)
    assert min(counts.values()) > 5
