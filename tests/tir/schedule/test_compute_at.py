"""compute_at and reverse_compute_at: scripts, meaning kept, refusals."""

from weft import tir
from weft.script import tir as T
from weft.testing.programs import elementwise_chain
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol as assert_equal


def test_a_producer_moves_below_a_loop_of_its_consumer():
    @T.prim_func
    def expected(A: T.Buffer((16, 12)), D: T.Buffer((16, 12))):
        B = T.alloc_buffer((16, 12))
        C = T.alloc_buffer((16, 12))
        for i, j in T.grid(16, 12):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i in range(16):
            for ax0 in range(12):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, ax0])
                    C[vi, vj] = B[vi, vj] + T.float32(1)
            for j in range(12):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = C[vi, vj] * C[vi, vj]

    sch = tir.Schedule(elementwise_chain)
    sch.compute_at("C", sch.get_loops("D")[0])
    assert_equal(sch.mod["main"], expected)
    assert_same_meaning(elementwise_chain, sch.mod)
