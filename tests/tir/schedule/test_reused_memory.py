"""Buffers that a loop fills anew at every iteration: nobody reads them after the loop."""

import pytest

import weft
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule.primitive.cache.reused_memory import OverwritingAxisError, ReusedMemoryError


@T.prim_func
def refilled(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (3, 8))
    C = T.match_buffer(c, (3, 8))
    B = T.alloc_buffer((8,))
    for t in range(3):
        for i in range(8):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vi] = A[vt, vi]
        for i in range(8):
            with T.block("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                C[vt, vi] = B[7 - vi] + T.float32(1)


def cached():
    sch = tir.Schedule(refilled)
    sch.cache_write("C", 0, "shared")
    return sch


def test_a_copy_stays_where_its_values_are():
    sch = cached()
    with pytest.raises(ReusedMemoryError, match="block C would leave loop t, at every iteration of "
                       "which block B overwrites B"):  # fmt: skip
        sch.compute_inline("C")
    with pytest.raises(ReusedMemoryError, match="block C would leave loop t"):
        sch.compute_at("C", sch.get_loops("C_shared")[0])


def test_instances_that_overwrite_each_other_keep_their_order():
    sch = tir.Schedule(refilled)
    with pytest.raises(OverwritingAxisError, match="axis vt of block B does not index B"):
        sch.compute_at("B", sch.get_loops("C")[1])


def test_moves_that_keep_the_meaning_are_made():
    sch = cached()
    sch.reverse_compute_at("C_shared", sch.get_loops("C")[0])
    assert_same_meaning(refilled, sch.mod)
    whole = cached()
    whole.reverse_compute_inline("C_shared")
    assert_same_meaning(refilled, whole.mod)


def test_equal_values_may_be_read_later():
    @T.prim_func
    def repeated(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (8,))
        C = T.match_buffer(c, (3, 8))
        B = T.alloc_buffer((8,))
        for t in range(3):
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi]
            for i in range(8):
                with T.block("C"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = B[7 - vi] + T.float32(1)

    sch = tir.Schedule(repeated)
    sch.cache_write("C", 0, "shared")
    try:
        sch.compute_inline("C")
    except weft.TVMError as error:
        pytest.fail(f"refused: {error}")
    assert_same_meaning(repeated, sch.mod)
