"""compute_inline and reverse_compute_inline: scripts, meaning kept, refusals."""


from weft import tir
from weft.script import tir as T
from weft.testing.programs import elementwise_chain
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol as assert_equal


def test_a_chain_dissolves_into_its_last_block():
    @T.prim_func
    def expected(A: T.Buffer((16, 12)), D: T.Buffer((16, 12))):
        for i, j in T.grid(16, 12):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = (A[vi, vj] * T.float32(2) + T.float32(1)) * (
                    A[vi, vj] * T.float32(2) + T.float32(1)
                )

    sch = tir.Schedule(elementwise_chain)
    sch.compute_inline("B")
    sch.compute_inline(sch.get_block("C"))
    assert_equal(sch.mod["main"], expected)
    assert_same_meaning(elementwise_chain, sch.mod)
