"""Reductions over threads: scripts, and every way to run them against numpy.

Tuples (argmax, argmin, sums of several values) above all; see test_thread_passes.py for the rest.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.ir.functor import collect
from weft.ir.transform import Sequential
from weft.script import tir as T
from weft.support.errors import ScheduleError
from weft.tir.expr import Call
from weft.tir.interp import run
from weft.tir.transform import (
    ConvertBlocksToOpaque,
    LowerCrossThreadReduction,
    LowerInitBlock,
    LowerOpaqueBlock,
    LowerThreadAllreduce,
    PlanAndUpdateBufferAllocationLocation,
    ThreadSync,
    UnifyThreadBinding,
)

pytestmark = pytest.mark.sampled(3)


def through(step, func):
    return step(weft.IRModule({"main": func}))["main"]


def treed(func):
    """The function with trees in shared memory, as a GPU would run it."""
    steps = [
        LowerCrossThreadReduction(), LowerInitBlock(), PlanAndUpdateBufferAllocationLocation(),
        ConvertBlocksToOpaque(), UnifyThreadBinding(), LowerOpaqueBlock(), ThreadSync("shared"),
        LowerThreadAllreduce(),
    ]  # fmt: skip
    lowered = through(Sequential(steps), func)
    assert not [call for call in collect(lowered.body, Call) if "allreduce" in str(call.op)]
    return lowered


def ways(func):
    """Threads, loops, the call, trees in shared memory, all lowered, native, native with trees."""

    def native(built):
        def call(*args):
            arrays = [weft.nd.array(array) for array in args]
            built["main"](*arrays)
            for array, result in zip(args, arrays, strict=True):
                array[...] = result.numpy()

        return call

    tree = treed(func)
    yield lambda *args: run(func, *args, threads=True)
    yield lambda *args: run(func, *args, threads=False)
    yield lambda *args: run(through(LowerCrossThreadReduction(), func), *args)
    yield lambda *args: run(tree, *args)
    yield lambda *args: run(weft.lower(func)["main"], *args)
    yield native(weft.build(func, name="main"))
    yield native(weft.build(tree, name="main"))


def check(func, given, *wanted):
    for way in ways(func):
        results = [np.full(result.shape, 9, result.dtype) for result in wanted]
        way(*[array.copy() for array in given], *results)
        for result, right in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(result, right)


def reduction_block(sch):
    (found,) = [b for b in sch.get_child_blocks(sch.get_block("root")) if sch.get(b).init]
    return found


# ---- scripts


@T.prim_func
def pair(
    idx: T.Buffer((6, 30), "int32"),
    val: T.Buffer((6, 30), "float32"),
    out0: T.Buffer((6,), "int32"),
    out1: T.Buffer((6,), "float32"),
):
    for i, k0 in T.grid(6, 4):
        for k1 in T.thread_binding(8, "threadIdx.x"):
            with T.block("argmax"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(30, k0 * 8 + k1)
                T.where(k0 * 8 + k1 < 30)
                T.reads(val[vi, vk], idx[vi, vk])
                with T.init():
                    out1[vi] = T.min_value("float32")
                    out0[vi] = -1
                v0: T.int32 = T.Select(out1[vi] >= val[vi, vk], out0[vi], idx[vi, vk])
                v1: T.float32 = T.Select(out1[vi] >= val[vi, vk], out1[vi], val[vi, vk])
                out0[vi] = v0
                out1[vi] = v1


@T.prim_func
def pair_of_threads(
    idx: T.Buffer((6, 30), "int32"),
    val: T.Buffer((6, 30), "float32"),
    out0: T.Buffer((6,), "int32"),
    out1: T.Buffer((6,), "float32"),
):
    all0 = T.alloc_buffer((1,), "int32", strides=(1,), scope="local")
    all1 = T.alloc_buffer((1,), "float32", strides=(1,), scope="local")
    own0 = T.alloc_buffer((1,), "int32", strides=(1,), scope="local")
    own1 = T.alloc_buffer((1,), "float32", strides=(1,), scope="local")
    for i in range(6):
        for k1 in T.thread_binding(8, "threadIdx.x"):
            with T.block("argmax_in_thread_init"):
                T.reads()
                own0[0] = -1
                own1[0] = T.min_value("float32")
            for k0 in range(4):
                with T.block("argmax_in_thread"):
                    vi = T.axis.spatial(6, i)
                    vk = T.axis.reduce(30, k0 * 8 + k1)
                    T.where(k0 * 8 + k1 < 30)
                    T.reads(val[vi, vk], idx[vi, vk])
                    T.writes(own0[0], own1[0])
                    v0: T.int32 = T.Select(own1[0] >= val[vi, vk], own0[0], idx[vi, vk])
                    v1: T.float32 = T.Select(own1[0] >= val[vi, vk], own1[0], val[vi, vk])
                    own0[0] = v0
                    own1[0] = v1
            with T.block("argmax_cross_thread"):
                T.reads(own0[0], own1[0])
                T.writes(all0[0], all1[0])
                T.attr(
                    T.comm_reducer(
                        lambda x0, x1, y0, y1: (
                            T.Select(x1 >= y1, x0, y0),
                            T.Select(x1 >= y1, x1, y1),
                        ),
                        [-1, T.min_value("float32")],
                    ),
                    "reduce_scope",
                    T.reinterpret("handle", T.uint64(0)),
                )
                T.tvm_thread_allreduce(
                    T.uint32(2), own0[0], own1[0], T.bool(True), all0[0], all1[0], k1
                )
            with T.block("argmax_write_back"):
                vi = T.axis.spatial(6, i)
                T.where(k1 == 0)
                T.reads(all0[0], all1[0])
                T.writes(out0[vi], out1[vi])
                out0[vi] = all0[0]
                out1[vi] = all1[0]


def test_the_script_of_a_pair(becomes):
    becomes(LowerCrossThreadReduction(), pair, pair_of_threads)


def test_one_thread_stores_what_is_made_of_a_local_result(becomes):
    @T.prim_func
    def before(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
        R = T.alloc_buffer((4,), "int32", scope="local")
        for i in T.thread_binding(4, "blockIdx.x"):
            for k in T.thread_binding(8, "threadIdx.x"):
                with T.block("R"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        R[vi] = 0
                    R[vi] = R[vi] + A[vi, vk]
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = R[vi] + 1

    # The call names k, and stands in a block that is not opaque.
    @T.prim_func(check_well_formed=False)
    def expected(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4,), "int32")):
        R = T.alloc_buffer((4,), "int32", scope="local")
        total = T.alloc_buffer((1,), "int32", strides=(1,), scope="local")
        for i in T.thread_binding(4, "blockIdx.x"):
            for k in T.thread_binding(8, "threadIdx.x"):
                with T.block("R_cross_thread"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(A[vi, vk])
                    T.writes(total[0])
                    T.attr(
                        T.comm_reducer(lambda x, y: x + y, [0]),
                        "reduce_scope",
                        T.reinterpret("handle", T.uint64(0)),
                    )
                    T.tvm_thread_allreduce(T.uint32(1), A[vi, vk], T.bool(True), total[0], k)
                with T.block("R_write_back"):
                    vi = T.axis.spatial(4, i)
                    T.reads(total[0])
                    T.writes(R[vi])
                    R[vi] = total[0]
            for tx in T.thread_binding(8, "threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(4, i)
                    T.where(tx == 0)
                    T.reads(R[vi])
                    B[vi] = R[vi] + 1

    becomes(LowerCrossThreadReduction(), before, expected)
    given = np.random.default_rng(0).integers(0, 9, (4, 8), "int32")
    check(before.with_attr("global_symbol", "main"), [given], given.sum(1, dtype="int32") + 1)


# ---- schedules of argmax and argmin


def inner(sch, k):
    """A thread has every eighth element."""
    _, threads = sch.split(k, [None, 8])
    sch.bind(threads, "threadIdx.x")


def outer(sch, k):
    """A thread has a stretch."""
    threads, _ = sch.split(k, [8, None])
    sch.bind(threads, "threadIdx.x")


def whole(sch, k):
    """A thread has one element."""
    sch.bind(k, "threadIdx.x")


def two_axes(sch, k):
    """Threads of two axes, and two serial loops around and between them."""
    _, first, _, second = sch.split(k, [None, 3, 2, 2])
    sch.bind(first, "threadIdx.x")
    sch.bind(second, "threadIdx.y")


@pytest.mark.parametrize(
    ("bound", "extent", "operator", "dtype", "last"),
    [
        (inner, 24, "argmax", "float32", False), (inner, 29, "argmin", "int8", False),
        (inner, 5, "argmax", "int32", True), (outer, 24, "argmin", "float32", True),
        (outer, 29, "argmax", "float64", False), (whole, 24, "argmin", "int32", False),
        (whole, 13, "argmax", "float16", True), (two_axes, 24, "argmax", "int64", False),
        (two_axes, 29, "argmin", "float32", False), (two_axes, 5, "argmax", "float32", True),
    ],
)  # fmt: skip
def test_argmax_and_argmin_over_threads(bound, extent, operator, dtype, last):
    source = te.placeholder((3, extent), dtype, name="A")
    result = getattr(topi, operator)(source, 1, select_last_index=last)
    func = te.create_prim_func([source, result]).with_attr("global_symbol", "main")
    sch = tir.Schedule(func, debug_mask="all")
    i, k = sch.get_loops(reduction_block(sch))
    sch.bind(i, "blockIdx.x")
    bound(sch, k)
    given = np.random.default_rng(extent).integers(-2, 3, (3, extent)).astype(dtype)
    found = getattr(np, operator)(given[:, ::-1] if last else given, 1).astype("int32")
    check(sch.mod["main"], [given], extent - 1 - found if last else found)


def test_nan_and_rows_of_the_worst_value():
    source = te.placeholder((3, 9), "float32", name="A")
    func = te.create_prim_func([source, topi.argmax(source, 1)]).with_attr("global_symbol", "main")
    sch = tir.Schedule(func)
    inner(sch, sch.get_loops(reduction_block(sch))[1])
    given = np.array([[0, 1, np.nan] * 3, [-np.inf] * 9, [np.inf] * 9], "float32")
    check(sch.mod["main"], [given], np.array([2, 0, 0], "int32"))


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_every_thread_reads_the_pair(scope):
    """A row relative to its largest element, and the distance from it: one kernel."""

    @T.prim_func
    def main(A: T.Buffer((4, 20), "int32"), B: T.Buffer((4, 20), "int32")):
        T.func_attr({"global_symbol": "main"})
        place = T.alloc_buffer((4,), "int32", scope=scope)
        best = T.alloc_buffer((4,), "int32", scope=scope)
        for i in T.thread_binding(4, "blockIdx.x"):
            for k0 in range(3):
                for k1 in T.thread_binding(8, "threadIdx.x"):
                    with T.block("argmax"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(20, k0 * 8 + k1)
                        T.where(k0 * 8 + k1 < 20)
                        with T.init():
                            place[vi] = -1
                            best[vi] = -100
                        v0: T.int32 = T.Select(
                            best[vi] > A[vi, vk] or (best[vi] == A[vi, vk] and place[vi] < vk),
                            place[vi],
                            vk,
                        )
                        v1: T.int32 = T.Select(best[vi] > A[vi, vk], best[vi], A[vi, vk])
                        place[vi] = v0
                        best[vi] = v1
            for j0 in range(3):
                for j1 in T.thread_binding(8, "threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        vj = T.axis.spatial(20, j0 * 8 + j1)
                        T.where(j0 * 8 + j1 < 20)
                        B[vi, vj] = (best[vi] - A[vi, vj]) * 100 + vj - place[vi]

    given = np.random.default_rng(0).integers(0, 5, (4, 20), "int32")
    behind = np.arange(20) - given.argmax(1)[:, None]
    wanted = (given.max(1, keepdims=True) - given) * 100 + behind
    check(main, [given], wanted.astype("int32"))


# ---- other tuples


def pairs(combine, identity, dtypes, shape=(3, 26)):
    """``out = reduce(combine)`` over the second axis of one input for each member."""
    reducer = te.comm_reducer(combine, identity)
    inputs = [te.placeholder(shape, d, name=f"in{i}") for i, d in enumerate(dtypes)]
    axis = te.reduce_axis((0, shape[1]), name="k")
    outputs = te.compute(
        shape[:1], lambda i: reducer(tuple([x[i, axis] for x in inputs]), axis=axis), name="out"
    )
    return te.create_prim_func([*inputs, *outputs]).with_attr("global_symbol", "main")


@pytest.mark.parametrize("bound", [inner, whole, two_axes])
def test_three_values_at_once(bound):
    """The largest of x, the y that stands beside the first such x, and the sum of z."""

    def combine(a, b):
        keep = a[0] >= b[0]
        return (
            tir.Select(keep, a[0], b[0]), tir.Select(keep, a[1], b[1]), a[2] + b[2]
        )  # fmt: skip

    def identity(x, y, z):
        return te.min_value(x), tir.const(0, y), tir.const(0, z)

    func = pairs(combine, identity, ["int32", "float32", "int32"])
    sch = tir.Schedule(func)
    bound(sch, sch.get_loops(reduction_block(sch))[1])
    random = np.random.default_rng(0)
    x = np.stack([random.permutation(26) for _ in range(3)]).astype("int32")
    y = random.random((3, 26), "float32")
    z = random.integers(-9, 9, (3, 26), "int32")
    chosen = y[np.arange(3), x.argmax(1)]
    check(sch.mod["main"], [x, y, z], x.max(1), chosen, z.sum(1, dtype="int32"))


@pytest.mark.parametrize(("bound", "extent"), [(outer, 12), (outer, 26), (whole, 11), (whole, 16)])
def test_the_first_of_equal_values_where_threads_have_stretches(bound, extent):
    """Without a comparison of indices, the order of the threads decides, also in a tree."""

    def combine(a, b):
        keep = a[1] >= b[1]
        return tir.Select(keep, a[0], b[0]), tir.Select(keep, a[1], b[1])

    def identity(index, value):
        return tir.const(-1, index), te.min_value(value)

    func = pairs(combine, identity, ["int32", "float32"], (4, extent))
    sch = tir.Schedule(func)
    bound(sch, sch.get_loops("out")[1])
    index = np.tile(np.arange(extent, dtype="int32"), (4, 1))
    values = np.random.default_rng(extent).integers(0, 3, (4, extent)).astype("float32")
    check(sch.mod["main"], [index, values], values.argmax(1).astype("int32"), values.max(1))


def test_the_order_of_two_axes_is_that_of_the_loops():
    """threadIdx.y changes fastest here, though threads are numbered by x first."""

    @T.prim_func
    def main(
        A: T.Buffer((6, 4), "int32"), place: T.Buffer((), "int32"), best: T.Buffer((), "int32")
    ):
        T.func_attr({"global_symbol": "main"})
        for kx in T.thread_binding(6, "threadIdx.x"):
            for ky in T.thread_binding(4, "threadIdx.y"):
                with T.block("argmax"):
                    vx, vy = T.axis.remap("RR", [kx, ky])
                    with T.init():
                        place[()] = -1
                        best[()] = -1
                    v0: T.int32 = T.Select(best[()] >= A[vx, vy], place[()], vx * 4 + vy)
                    v1: T.int32 = T.Select(best[()] >= A[vx, vy], best[()], A[vx, vy])
                    place[()] = v0
                    best[()] = v1

    given = np.zeros((6, 4), "int32")
    given[0, 3] = given[1, 0] = given[5, 0] = 7
    check(main, [given], np.array(3, "int32"), np.array(7, "int32"))


@pytest.mark.parametrize("bound", [inner, whole])
def test_a_start_that_is_more_than_the_identity(bound):
    """The largest element, but 5 at least."""

    @T.prim_func
    def main(A: T.Buffer((3, 26), "int32"), B: T.Buffer((3,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for i, k in T.grid(3, 26):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 5
                B[vi] = T.max(B[vi], A[vi, vk])

    sch = tir.Schedule(main)
    bound(sch, sch.get_loops("B")[1])
    given = np.stack([np.arange(26), np.arange(26) - 30, np.arange(26) - 22]).astype("int32")
    check(sch.mod["main"], [given], np.array([25, 5, 5], "int32"))


# ---- loops


def test_threads_of_a_spatial_axis_inside_a_serial_reduction_loop():
    @T.prim_func
    def main(A: T.Buffer((4, 32), "int32"), B: T.Buffer((4,), "int32")):
        T.func_attr({"global_symbol": "main"})
        for k0 in range(4):
            for i in T.thread_binding(4, "threadIdx.y"):
                for k1 in T.thread_binding(8, "threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(32, k0 * 8 + k1)
                        with T.init():
                            B[vi] = 0
                        B[vi] = B[vi] + A[vi, vk]

    given = np.random.default_rng(0).integers(0, 9, (4, 32), "int32")
    check(main, [given], given.sum(1, dtype="int32"))


def test_a_neighbour_in_the_loop_that_reduces_over_threads_itself():
    """Sums of rows over threadIdx.y, in the loop whose threadIdx.x looks for the largest sum."""

    @T.prim_func
    def main(
        A: T.Buffer((8, 3, 4), "int32"), place: T.Buffer((), "int32"), best: T.Buffer((), "int32")
    ):
        T.func_attr({"global_symbol": "main"})
        S = T.alloc_buffer((8, 3), "int32", scope="local")
        for kx in T.thread_binding(8, "threadIdx.x"):
            for k0 in range(3):
                for r in T.thread_binding(4, "threadIdx.y"):
                    with T.block("S"):
                        vx, v0 = T.axis.remap("SS", [kx, k0])
                        vr = T.axis.reduce(4, r)
                        with T.init():
                            S[vx, v0] = 0
                        S[vx, v0] = S[vx, v0] + A[vx, v0, vr]
                with T.block("argmax"):
                    vx, v0 = T.axis.remap("RR", [kx, k0])
                    with T.init():
                        place[()] = -1
                        best[()] = -1
                    p: T.int32 = T.Select(best[()] >= S[vx, v0], place[()], vx * 3 + v0)
                    b: T.int32 = T.Select(best[()] >= S[vx, v0], best[()], S[vx, v0])
                    place[()] = p
                    best[()] = b

    given = np.random.default_rng(0).integers(0, 99, (8, 3, 4), "int32")
    sums = given.sum(2, dtype="int32").reshape(-1)
    check(main, [given], np.array(sums.argmax(), "int32"), np.array(sums.max(), "int32"))


def test_a_tree_counts_all_threads_of_the_kernel():
    """The second sum stands outside of threadIdx.y, whose threads all come by."""

    # The call names kx, and stands in a block that is not opaque.
    @T.prim_func(check_well_formed=False)
    def main(A: T.Buffer((8, 4), "int32"), B: T.Buffer((), "int32")):
        T.func_attr({"global_symbol": "main"})
        for kx in T.thread_binding(8, "threadIdx.x"):
            with T.block("row"):
                vx = T.axis.spatial(8, kx)
                S = T.alloc_buffer((1,), "int32", scope="local")
                R = T.alloc_buffer((1,), "int32", scope="local")
                for r in T.thread_binding(4, "threadIdx.y"):
                    with T.block("S"):
                        vr = T.axis.reduce(4, r)
                        with T.init():
                            S[0] = 0
                        S[0] = S[0] + A[vx, vr]
                T.attr(
                    T.comm_reducer(lambda x, y: x + y, [0]),
                    "reduce_scope",
                    T.reinterpret("handle", T.uint64(0)),
                )
                T.tvm_thread_allreduce(T.uint32(1), S[0], T.bool(True), R[0], kx)
                if vx == 0:
                    B[()] = R[0]

    given = np.random.default_rng(0).integers(0, 99, (8, 4), "int32")
    steps = [
        LowerCrossThreadReduction(), PlanAndUpdateBufferAllocationLocation(),
        ConvertBlocksToOpaque(), LowerOpaqueBlock(), LowerThreadAllreduce(),
    ]  # fmt: skip
    for func in (main, through(Sequential(steps), main)):
        result = np.zeros((), "int32")
        run(func, given, result)
        assert result == given.sum()


# ---- what is refused

HEAD = """
@T.prim_func
def main(A: T.Buffer((4, 64), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    X = T.alloc_buffer((4,), "int32", scope="local")
"""
PAIR = """
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0
                    {other}[vi] = 0
                B[vi] = B[vi] + A[vi, vk]
                {other}[{place}] = {other}[{place}] + {value}
"""
LOOPS = """
    for i in range(4):
        for k in T.thread_binding(64, "threadIdx.x"):
            with T.block("B"):
"""
SUM = """
                with T.init():
                    B[vi] = {start}
                B[vi] = B[vi] + A[vi, vk]
"""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (LOOPS + PAIR.format(other="X", place="vi", value="1"),
         "its results are B in global memory, X in local memory"),
        (LOOPS + PAIR.format(other="C", place="3 - vi", value="1"),
         r"updates B\[vi\] and C\[3 - vi\], other indices"),
        (LOOPS + PAIR.format(other="C", place="vi", value="B[vi]"),
         "its body reads B after storing there"),
        (LOOPS + PAIR.format(other="C", place="vi", value="A[vi, vk] - C[vi]"),
         "starts and goes on as no known reducer"),
        (LOOPS + " " * 16 + 'vi, vk = T.axis.remap("SR", [i, k])' + SUM.format(start=1),
         "no known reducer: 1 and"),
        (LOOPS.replace("threadIdx", "blockIdx") + " " * 16
         + 'vi, vk = T.axis.remap("SR", [i, k])' + SUM.format(start=0),
         "the reduction loop k is bound to blockIdx.x; only threadIdx.x"),
        ("""
    for f in T.thread_binding(256, "threadIdx.x"):
        for u in range(1):
            with T.block("B"):
                vi = T.axis.spatial(4, f // 64)
                vk = T.axis.reduce(64, f % 64)
""" + SUM.format(start=0), "loop f runs spatial axes too; split it"),
        (LOOPS + """
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vk // 16] = 0
                B[vk // 16] = B[vk // 16] + A[vi, vk]
""", "B is indexed by the reduction axis vk"),
        ("""
    for i in range(4):
        for k in T.thread_binding(64, "threadIdx.x"):
            if k < 7:
              with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
""" + SUM.format(start=0), "a IfThenElse stands inside the reduction loop k"),
        ("""
    for i in range(4):
        for k0 in range(8):
            for k1 in T.thread_binding(8, "threadIdx.x"):
              with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(64, k0 * 8 + k1)
""" + SUM.format(start=0) + """
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]
""", "not the last statement in its reduction loop"),
        ("""
    for i in range(4):
        for k0 in range(8):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = 1
            for k1 in T.thread_binding(8, "threadIdx.x"):
              with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(64, k0 * 8 + k1)
""" + SUM.format(start=0), "inside a loop that it shares with 1 other statements"),
        ("""
    for i in range(4):
        for k1 in T.thread_binding(8, "threadIdx.x"):
          for k0 in range(8):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi]
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(64, k0 * 8 + k1)
""" + SUM.format(start=0), "another statement in its reduction loop accesses B before"),
    ],
)  # fmt: skip
def test_what_threads_cannot_share(source, message):
    func = weft.script.from_source(HEAD + source)
    with pytest.raises(ScheduleError, match=message) as caught:
        through(LowerCrossThreadReduction(), func)
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value).splitlines()) <= 10
