"""split, fuse and reorder: programs kept, bindings, predicates, refusals."""

import numpy as np
import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul
from weft import te, tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.interp import run
from weft.tir.schedule import errors
from weft.tir.schedule.primitive.loop import loops

pytestmark = pytest.mark.sampled(3)


@pytest.mark.parametrize(
    ("factors", "extents"),
    [
        ([None, 8], [4, 8]),
        ([4, None], [4, 8]),
        ([2, None, 4], [2, 4, 4]),
        ([32], [32]),
        ([1, 32], [1, 32]),
        ([None, 5], [7, 5]),
        ([3, 11], [3, 11]),
        ([None, 64], [1, 64]),
    ],
)
def test_split(factors, extents):
    sch = tir.Schedule(matmul)
    i, _, _ = sch.get_loops("C")
    parts = sch.split(i, factors)
    assert [sch.get(part).extent.value for part in parts] == extents
    assert_same_meaning(matmul, sch.mod)


def test_a_split_that_does_not_divide_gets_a_predicate():
    sch = tir.Schedule(matmul)
    sch.split(sch.get_loops("C")[0], [None, 5])
    assert "T.where(i_0 * 5 + i_1 < 32)" in sch.mod.script()
    exact = tir.Schedule(matmul)
    exact.split(exact.get_loops("C")[0], [None, 4])
    assert "T.where" not in exact.mod.script()


def test_disable_predication_leaves_the_predicate_out():
    sch = tir.Schedule(matmul)
    sch.split(sch.get_loops("C")[0], [None, 5], disable_predication=True)
    assert "T.where" not in sch.mod.script()


def test_fuse_then_split_then_reorder():
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("C")
    fused = sch.fuse(i, j)
    outer, inner = sch.split(fused, [None, 7])
    sch.reorder(outer, k, inner)
    assert [sch.get(loop).extent.value for loop in sch.get_loops("C")] == [110, 20, 7]
    assert_same_meaning(matmul, sch.mod)


def test_references_of_blocks_and_untouched_loops_survive():
    sch = tir.Schedule(elementwise_chain)
    blocks = [sch.get_block(name) for name in "BCD"]
    before = [sch.get_loops(block) for block in blocks]
    sch.fuse(*before[1])
    for block in blocks:
        assert sch.get(block).name_hint in "BCD"
    assert sch.get(before[0][0]).extent.value == 16
    assert sch.get(before[2][1]).extent.value == 12


def test_a_consumed_loop_says_who_consumed_it():
    sch = tir.Schedule(matmul)
    i, j, _ = sch.get_loops("C")
    sch.fuse(i, j)
    with pytest.raises(errors.ExpiredReferenceError, match=r"loop j no longer.*sch.fuse\(i, j\)"):
        sch.split(j, [None, 4])


def test_a_refused_call_changes_nothing():
    sch = tir.Schedule(matmul)
    i, j, _ = sch.get_loops("C")
    text, trace = sch.mod.script(), str(sch.trace)
    with pytest.raises(loops.SplitFactorError):
        sch.split(i, [3, 5])
    with pytest.raises(loops.LoopOrderError):
        sch.reorder(i, j, i)
    assert (sch.mod.script(), str(sch.trace)) == (text, trace)
    sch.split(i, [None, 4])


def test_symbolic_extents():
    @T.prim_func
    def double(a: T.handle, b: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n,))
        B = T.match_buffer(b, (n,))
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)

    sch = tir.Schedule(double)
    sch.split(sch.get_loops("B")[0], [None, 8])
    for n in (0, 1, 7, 8, 9, 33):
        assert_same_meaning(double, sch.mod, {"n": n})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, i, j, k: s.split(i, [3, 5]), loops.SplitFactorError, "extent 32.*3 x 5 = 15"),
        (lambda s, i, j, k: s.split(i, [None, None]), loops.SplitFactorError, "more than one"),
        (lambda s, i, j, k: s.split(i, []), loops.SplitFactorError, "no factors"),
        (lambda s, i, j, k: s.split(i, [0, None]), loops.SplitFactorError, "have 0"),
        (lambda s, i, j, k: s.split(i, [-4, None]), loops.SplitFactorError, "have -4"),
        (lambda s, i, j, k: s.split(None, [4]), weft.TVMError, "loop: expected a LoopRV"),
        (
            lambda s, i, j, k: s.fuse(i, k),
            loops.NotNestedError,
            "k is not the whole body of loop i",
        ),
        (lambda s, i, j, k: s.fuse(j, i), loops.NotNestedError, "loop i is not the whole body"),
        (lambda s, i, j, k: s.reorder(i, i), loops.LoopOrderError, "i is listed twice"),
        (lambda s, i, j, k: s.fuse([i, j]), weft.TVMError, "unpack the list"),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(matmul)
    with pytest.raises(error, match=message) as raised:
        call(sch, *sch.get_loops("C"))
    assert len(str(raised.value).splitlines()) <= 10


def test_what_is_fused_inside_of_an_opaque_block():
    @T.prim_func
    def func(A: T.Buffer((4, 5, 6), "int32")) -> None:
        for i, j, k in T.grid(4, 5, 6):
            with T.block("opaque"):
                T.reads()
                T.writes(A[i, j, k])
                A[i, j, k] = i + j + k

    sch = tir.Schedule(func)
    sch.fuse(*sch.get_loops("opaque"))
    text = "T.writes(A[i_j_k_fused // 30, i_j_k_fused % 30 // 6, i_j_k_fused % 6])"
    assert text in sch.mod.script()
    assert_same_meaning(func, sch.mod)


def test_factors_take_the_type_of_the_loop():
    @T.prim_func
    def func(a: T.handle, n: T.int32) -> None:
        A = T.match_buffer(a, (n,), "int32")
        for i in range(n):
            with T.block("A"):
                vi = T.axis.spatial(n, i)
                A[vi] = vi

    sch = tir.Schedule(func)
    sch.split(sch.get_loops("A")[0], [tir.const(10, "int64"), None])
    assert "T.grid(10, (n + 9) // 10)" in sch.mod.script()
    assert_same_meaning(func, sch.mod, {"n": 23})


def test_facts_of_a_block_whose_predicate_speaks_of_its_bindings_as_they_were():
    """Found by a random schedule: the map of the simpler bindings was kept with the old predicate.

    ``j // 2`` of ``j`` below 2 vanishes from the binding, not from the predicate that bounds it.
    """

    @T.prim_func
    def func(A: T.Buffer((7, 4), "int32"), B: T.Buffer((7, 4), "int32")):
        for i, k, j in T.grid(6, 5, 2):
            with T.block("B"):
                v0 = T.axis.spatial(7, i + j % 2)
                v1 = T.axis.spatial(4, j // 2 + k)
                T.where(j // 2 + k < 4)
                T.reads(A[v0, v1])
                T.writes(B[v0, v1])
                B[v0, v1] = A[v0, v1] + 1

    sch = tir.Schedule(func, debug_mask="all")
    sch.split(sch.get_loops("B")[1], [5, 4, None])  # compares each flag with one computed anew
    assert_same_meaning(func, sch.mod)


@pytest.mark.parametrize("shape", [(3, 0, 2), (0, 2), (2, 0)])
def test_loops_of_which_one_is_empty_are_fused(shape):
    x = te.placeholder(shape, name="x")
    y = te.compute(shape, lambda *place: x(*place) + 1, name="y")
    schedule = tir.Schedule(te.create_prim_func([x, y]))
    fused = schedule.fuse(*schedule.get_loops("y"))
    assert int(schedule.get(fused).extent) == 0
    data = np.zeros(shape, "float32")
    run(schedule.mod["main"], data, data.copy())
