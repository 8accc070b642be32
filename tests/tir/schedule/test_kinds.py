"""parallel, vectorize, bind, unroll: what they make and what they refuse."""

import pytest

from tests.lib.programs import elementwise_chain, matmul
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.loop import kinds, loops


@pytest.mark.parametrize("name", ["parallel", "vectorize", "unroll"])
def test_kinds_of_a_spatial_loop(name):
    sch = tir.Schedule(matmul)
    outer, inner = sch.split(sch.get_loops("C")[1], [None, 4])
    i, _, _, k = sch.get_loops("C")
    sch.reorder(outer, i, k, inner)
    getattr(sch, name)(inner)
    kind = {"parallel": "PARALLEL", "vectorize": "VECTORIZED", "unroll": "UNROLLED"}[name]
    assert sch.get(inner).kind.name == kind
    assert_same_meaning(matmul, sch.mod)


def test_a_tail_may_be_vectorized():
    sch = tir.Schedule(elementwise_chain)
    _, j = sch.get_loops("D")
    _, inner = sch.split(j, [None, 8])
    sch.vectorize(inner)
    assert_same_meaning(elementwise_chain, sch.mod)


def test_threads():
    sch = tir.Schedule(elementwise_chain)
    for name in "BCD":
        i, j = sch.get_loops(name)
        sch.bind(i, "blockIdx.x")
        sch.bind(j, "threadIdx.x")
    assert sch.mod.script().count('T.thread_binding(16, thread="blockIdx.x")') == 3
    assert sch.get(sch.get_loops("B")[1]).thread_binding.thread_tag == "threadIdx.x"


def test_a_reduction_may_be_bound_to_threads_of_one_block():
    sch = tir.Schedule(matmul)
    i, _, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    assert sch.get(k).thread_binding.thread_tag == "threadIdx.x"


@T.prim_func
def repeated(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    C = T.match_buffer(c, (4,))
    for _t, i, k in T.grid(3, 4, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]


@T.prim_func
def scan(a: T.handle) -> None:
    A = T.match_buffer(a, (8,))
    for i in range(7):
        with T.block("A"):
            vi = T.axis.opaque(7, i)
            A[vi + 1] = A[vi] + T.float32(1)


@pytest.mark.parametrize("name", ["parallel", "vectorize"])
@pytest.mark.parametrize(
    ("program", "block", "index", "error", "message"),
    [
        (matmul, "C", 2, kinds.LoopCarriedError, "loop k cannot be .*: it runs axis vk of block C"),
        (repeated, "C", 0, kinds.RepeatedReductionError, "every iteration computes all of block C"),
        (scan, "A", 0, errors.NotCompactDataflowError, "below loop i, block A is no complete"),
    ],
)
def test_refusals(name, program, block, index, error, message):
    sch = tir.Schedule(program)
    with pytest.raises(error, match=message):
        getattr(sch, name)(sch.get_loops(block)[index])


def test_more_refusals():
    sch = tir.Schedule(matmul)
    i, _, k = sch.get_loops("C")
    with pytest.raises(kinds.ThreadTagError, match="no thread axis 'warp.x'"):
        sch.bind(i, "warp.x")
    with pytest.raises(kinds.LoopCarriedError, match="axis vk of block C, which is a reduction"):
        sch.bind(k, "blockIdx.x")
    sch.bind(i, "blockIdx.x")
    with pytest.raises(kinds.LoopCarriedError, match="i is bound to blockIdx.x already"):
        sch.parallel(i)
    with pytest.raises(loops.AnnotatedLoopError, match="loop i has a thread binding"):
        sch.split(i, [None, 2])
