"""parallel, vectorize, unroll and bind after decompose_reduction: what works, what is refused.

The maps of the init and of the update must show that an iteration of the loop keeps to itself.
What is accepted is run with its loops backwards, and as native code on several threads.
"""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import weft
from weft import te, tir, topi
from weft.ir.functor import rewrite, substitute
from weft.runtime.threads.parallel import own_num_threads
from weft.script import tir as T
from weft.support.errors import ScheduleError
from weft.testing.schedules import assert_same_meaning, random_arguments
from weft.tir.analysis.thread_memory import find_thread_memory_fault
from weft.tir.interp import run
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.loop import kinds
from weft.tir.stmt import For, ForKind

pytestmark = pytest.mark.sampled(3)


def matmul(m: int = 8, n: int = 12, k: int = 10):
    x, w = te.placeholder((m, k), name="x"), te.placeholder((k, n), name="w")
    r = te.reduce_axis((0, k), name="k")
    return te.create_prim_func(
        [x, w, te.compute((m, n), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="C")]
    )


def decomposed(at: int, program=None):
    """A schedule whose reduction is decomposed at a loop; the init and the update."""
    sch = tir.Schedule(program or matmul())
    block = sch.get_block("C")
    return sch, sch.decompose_reduction(block, sch.get_loops(block)[at]), block


def backwards(func):
    """The function with its parallel, vectorised and bound loops from the last to the first."""

    def turned(node):
        if not isinstance(node, For) or node.kind in (ForKind.SERIAL, ForKind.UNROLLED):
            return None
        last = node.extent - 1 - node.loop_var
        body = substitute(node.body, {node.loop_var: last})
        return node.with_(body=body, kind=ForKind.SERIAL, thread_binding=None)

    return rewrite(func, turned)


def assert_independent(before, after):
    """Same meaning, with the loops in the other order too, and on three threads."""
    assert_same_meaning(before, after)
    func = after["main"]
    given = random_arguments(before)
    expected, turned, threads = ([np.array(item) for item in given] for _ in range(3))
    run(before, *expected)
    run(backwards(func), *turned)
    np.testing.assert_allclose(turned[-1], expected[-1], rtol=1e-4, atol=1e-4)
    if any(loop.kind is ForKind.THREAD_BINDING for loop in _loops(func)):
        return
    with own_num_threads(3):
        weft.build(func)(*threads)
    np.testing.assert_allclose(threads[-1], expected[-1], rtol=1e-4, atol=1e-4)


def _loops(func):
    return weft.ir.functor.collect(func, For)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("loop", [0, 1])
@pytest.mark.parametrize("name", ["parallel", "vectorize", "unroll", "bind"])
def test_spatial_loops_of_a_decomposed_reduction(name, loop, at):
    sch, _, update = decomposed(at)
    chosen = sch.get_loops(update)[loop]
    getattr(sch, name)(chosen, *(["threadIdx.x"] if name == "bind" else []))
    kind = {"parallel": "PARALLEL", "vectorize": "VECTORIZED", "unroll": "UNROLLED",
            "bind": "THREAD_BINDING"}[name]  # fmt: skip
    assert sch.get(chosen).kind.name == kind
    if name != "bind":
        assert_independent(matmul(), sch.mod)


def test_it_gives_what_the_other_order_gives():
    late, early = tir.Schedule(matmul()), tir.Schedule(matmul())
    for sch, kinds_first in ((early, True), (late, False)):
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        outer, inner = sch.split(j, [None, 4])
        sch.reorder(i, outer, k, inner)
        if kinds_first:
            sch.parallel(sch.fuse(i, outer))
            sch.vectorize(inner)
        init = sch.decompose_reduction(block, k)
        if not kinds_first:
            sch.parallel(sch.fuse(i, outer))
            sch.vectorize(inner)
            sch.vectorize(sch.get_loops(init)[-1])
    weft.ir.assert_structural_equal(late.mod, early.mod, map_free_vars=True)


def test_tiles_of_a_fused_loop():
    """The order of the assignment's steps: no single dimension tells the iterations apart."""
    x, w = te.placeholder((4, 1, 10, 10), name="x"), te.placeholder((8, 1, 3, 3), name="w")
    program = te.create_prim_func([x, w, topi.nn.conv2d(x, w, 1, 0, 1)])
    sch = tir.Schedule(program)
    block = sch.get_block("conv2d_nchw")
    sch.compute_inline(sch.get_block("pad_temp"))
    loops = sch.get_loops(block)
    split = [sch.split(loop, [None, size]) for loop, size in zip(loops, (2, 4, 2, 2), strict=False)]
    outer, inner = [parts[0] for parts in split], [parts[1] for parts in split]
    sch.reorder(*outer, *loops[4:], *inner)
    init = sch.decompose_reduction(block, loops[4])
    sch.parallel(sch.fuse(*outer))
    for part in (block, init):
        rest = sch.get_loops(part)[-4:]
        sch.unroll(sch.fuse(*rest[:2]))
        sch.vectorize(sch.fuse(*rest[2:]))
    assert_independent(program, sch.mod)


def test_a_maximum():
    a = te.placeholder((6, 9), name="a")
    k = te.reduce_axis((0, 9), name="k")
    most = te.compute((6,), lambda i: te.max(a[i, k], axis=k), name="C")
    program = te.create_prim_func([a, most])
    sch, _, update = decomposed(1, program)
    sch.parallel(sch.get_loops(update)[0])
    assert_independent(program, sch.mod)


def test_a_consumer_in_the_same_iteration():
    x = te.placeholder((8, 10), name="x")
    k = te.reduce_axis((0, 10), name="k")
    c = te.compute((8,), lambda i: te.sum(x[i, k], axis=k), name="C")
    program = te.create_prim_func([x, te.compute((8,), lambda i: c[i] * 2.0, name="D")])
    sch = tir.Schedule(program)
    block, consumer = sch.get_block("C"), sch.get_block("D")
    i, r = sch.get_loops(block)
    sch.reverse_compute_at(consumer, i)
    sch.decompose_reduction(block, r)
    sch.parallel(i)
    assert_independent(program, sch.mod)


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("tags", [("threadIdx.x", "threadIdx.y"), ("blockIdx.x", "threadIdx.x")])
def test_threads_keep_to_their_elements(at, tags):
    sch, _, update = decomposed(at)
    for loop, tag in zip(sch.get_loops(update), tags, strict=False):
        sch.bind(loop, tag)
    assert find_thread_memory_fault(sch.mod["main"]) is None
    given = random_arguments(matmul())
    expected, threads = ([np.array(item) for item in given] for _ in range(2))
    run(matmul(), *expected)
    run(sch.mod["main"], *threads, threads=True)
    np.testing.assert_allclose(threads[-1], expected[-1], rtol=1e-4, atol=1e-4)


def test_an_init_that_every_thread_runs_is_a_fault_until_it_is_bound_too():
    """Threads of j add to their elements while others still set the whole row to zero."""
    sch, init, update = decomposed(1)
    i, j, _ = sch.get_loops(update)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    message = "block C_update, .* reads C.*, which block C_init writes in another thread"
    assert re.search(message, str(find_thread_memory_fault(sch.mod["main"])))
    with pytest.raises(weft.TVMError, match=message):
        weft.build(sch.mod)
    sch.bind(sch.get_loops(init)[-1], "threadIdx.x")
    assert find_thread_memory_fault(sch.mod["main"]) is None


# ---- refusals


def test_the_loop_of_the_terms_stays_serial():
    sch, _, update = decomposed(2)
    terms = sch.get_loops(update)[2]
    for name in ("parallel", "vectorize"):
        with pytest.raises(
            kinds.LoopCarriedError,
            match="runs axis v_k of block C_update, which is a reduction[^$]*before "
            "decompose_reduction, rfactor makes partial results",
        ):
            getattr(sch, name)(terms)
    with pytest.raises(kinds.LoopCarriedError, match="the init is a part of the block: bind the"):
        sch.bind(terms, "threadIdx.x")


@T.prim_func
def init_of_the_next(A: T.Buffer((8, 4), "float32"), C: T.Buffer((9,), "float32")):
    """Iteration i sets the element to zero to which the next iteration adds."""
    for i in range(8):
        with T.block("C_init"):
            vi = T.axis.spatial(8, i)
            C[vi + 1] = T.float32(0)
        for k in range(4):
            with T.block("C_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi], A[vi, vk])
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def init_of_all(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    """Every iteration sets all elements to zero."""
    for i in range(8):
        for j in range(8):
            with T.block("C_init"):
                vj = T.axis.spatial(8, j)
                C[vj] = T.float32(0)
        for k in range(4):
            with T.block("C_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi], A[vi, vk])
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def init_of_a_tile(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    """Two iterations share a tile of two elements, which each of them sets to zero."""
    for i in range(8):
        for j in range(2):
            with T.block("C_init"):
                vj = T.axis.spatial(8, i // 2 * 2 + j)
                C[vj] = T.float32(0)
        for k in range(4):
            with T.block("C_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi], A[vi, vk])
                C[vi] = C[vi] + A[vi, vk]


@pytest.mark.parametrize("name", ["parallel", "vectorize", "bind"])
@pytest.mark.parametrize("program", [init_of_the_next, init_of_all, init_of_a_tile])
def test_an_init_of_other_elements_is_refused(program, name):
    sch = tir.Schedule(program)
    loop = sch.get_loops("C_update")[0]
    with pytest.raises(
        ScheduleError,
        match="block C_init writes C.*, and block C_update may access the same elements in another "
        "iteration[^$]*do this before decompose_reduction",
    ):
        getattr(sch, name)(loop, *(["threadIdx.x"] if name == "bind" else []))
    sch.unroll(loop)


@T.prim_func
def adds_again(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
    """The loop t runs the whole update three times."""
    for i in range(4):
        with T.block("C_init"):
            vi = T.axis.spatial(4, i)
            C[vi] = T.float32(0)
    for _t, i, k in T.grid(3, 4, 8):
        with T.block("C_update"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(C[vi], A[vk])
            C[vi] = C[vi] + A[vk]


@T.prim_func
def shared_element(A: T.Buffer((8, 4), "float32"), C: T.Buffer((4,), "float32")):
    """Two iterations of i add to one element."""
    for i, k in T.grid(8, 4):
        with T.block("C_update"):
            vi = T.axis.spatial(4, i // 2)
            vk = T.axis.reduce(8, k * 2 + i % 2)
            T.reads(C[vi], A[vk, vi])
            C[vi] = C[vi] + A[vk, vi]


@T.prim_func
def guarded(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32"), n: T.int32):
    for i, k in T.grid(8, 4):
        if n > 3:
            with T.block("C_update"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(C[vi], A[vi, vk])
                C[vi] = C[vi] + A[vi, vk]


@pytest.mark.parametrize("name", ["parallel", "vectorize"])
@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (adds_again, kinds.RepeatedReductionError, "iteration computes all of block C_update"),
        (shared_element, kinds.LoopCarriedError, "loop i cannot be"),
        (guarded, errors.NotCompactDataflowError, "before decompose_reduction"),
    ],
)
def test_an_update_that_shares_elements_is_refused(program, error, message, name):
    sch = tir.Schedule(program)
    with pytest.raises(error, match=message):
        getattr(sch, name)(sch.get_loops("C_update")[0])


# ---- random schedules


def _workload(rng: random.Random):
    sizes = [rng.choice([2, 3, 4, 6, 8]) for _ in range(4)]
    a, b, c, k = sizes
    x = te.placeholder((a, b, k), name="x")
    r = te.reduce_axis((0, k), name="r")
    if rng.random() < 0.5:
        s = te.reduce_axis((0, c), name="s")
        y = te.placeholder((c, k), name="y")
        total = te.compute((a, b), lambda i, j: te.sum(x[i, j, r] * y[s, r], axis=[s, r]), name="C")
        inputs = [x, y]
    else:
        y = te.placeholder((c, k), name="y")
        total = te.compute(
            (a, b, c), lambda i, j, l: te.sum(x[i, j, r] * y[l, r], axis=r), name="C"
        )
        inputs = [x, y]
    if rng.random() < 0.3:
        total = te.compute(total.shape, lambda *i: total(*i) + 1.0, name="D")
    return te.create_prim_func([*inputs, total])


def _random_schedule(seed: int):
    """A random program, decomposed somewhere, then kinds of loops: accepted and refused."""
    rng = random.Random(seed)
    program = _workload(rng)
    sch = tir.Schedule(program)
    block = sch.get_block("C")
    for loop in sch.get_loops(block):
        if rng.random() < 0.5:
            sch.split(loop, [None, rng.choice([2, 3, 4])])
    loops = sch.get_loops(block)
    rng.shuffle(loops)
    _attempt(lambda: sch.reorder(*loops))
    at = rng.choice(sch.get_loops(block))
    init = _attempt(lambda: sch.decompose_reduction(block, at))
    accepted = 0
    for _ in range(4):
        part = init if init is not None and rng.random() < 0.3 else block
        loops = sch.get_loops(part)
        place = rng.randrange(len(loops))
        chosen = loops[place]
        if rng.random() < 0.4 and place + 1 < len(loops):
            chosen = _attempt(lambda a=chosen, b=loops[place + 1]: sch.fuse(a, b)) or chosen
        name = rng.choice(["parallel", "parallel", "vectorize", "unroll"])
        before = sch.mod
        _attempt(lambda loop=chosen, name=name: getattr(sch, name)(loop))
        accepted += sch.mod is not before and init is not None
    return program, sch, accepted


def _attempt(action):
    try:
        return action()
    except ScheduleError:
        return None


@pytest.mark.parametrize("block", range(4))
def test_random_schedules_keep_their_meaning(block):
    accepted = 0
    for seed in range(block * 10, block * 10 + 10):
        program, sch, count = _random_schedule(seed)
        accepted += count
        assert_independent(program, sch.mod)
    assert accepted >= 5, "the generator makes programs in which there is something to run at once"
