"""RemoveWeightLayoutRewriteBlock: weights are expected as a schedule lays them out."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.tuning_programs import matmul
from weft import tir
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tir import interp

MARK = "meta_schedule_layout_rewrite_preproc"


def rewritten():
    sch = tir.Schedule(matmul(8))
    panels = sch.cache_read(sch.get_block("matmul"), 1, "global")
    sch.transform_layout(panels, ("write", 0), lambda k, j: (j // 4, k, j % 4), pad_value=None)
    sch.annotate(panels, MARK, True)
    return sch.mod


def test_a_parameter_is_expected_in_its_new_layout():
    mod = tir.transform.RemoveWeightLayoutRewriteBlock()(rewritten())
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((8, 8)).astype("float32") for _ in range(2))
    c = np.zeros((8, 8), "float32")
    panels = np.ascontiguousarray(b.reshape(8, 2, 4).transpose(1, 0, 2))
    interp.run(mod["main"], a, panels, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("skip", [False, True])
def test_a_constant_is_rearranged(skip):
    weight = np.arange(6, dtype="float32").reshape(2, 3)

    def build(constant):
        @T.prim_func
        def main(C: T.Buffer((2, 3), "float32")):
            data = T.allocate_const(constant, "float32", (2, 3))
            W = T.Buffer((2, 3), "float32", data=data)
            with T.block("root"):
                W_t = T.alloc_buffer((3, 2), "float32")
                for i, j in T.grid(2, 3):
                    with T.block("layout"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        T.block_attr({"meta_schedule_layout_rewrite_preproc": True})
                        W_t[vj, vi] = W[vi, vj]
                for i, j in T.grid(2, 3):
                    with T.block("C"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        C[vi, vj] = W_t[vj, vi] * T.float32(2)

        return main

    mod = weft.IRModule({"main": build(weight.tolist())})
    c = np.zeros((2, 3), "float32")
    out = tir.transform.RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite=skip)(mod)
    interp.run(out["main"], c)
    kept_order = weight.reshape(3, 2).T
    np.testing.assert_array_equal(c, 2 * (kept_order if skip else weight))


def test_a_marked_block_that_is_no_copy_is_refused():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("twice"):
                vi = T.axis.spatial(4, i)
                T.block_attr({"meta_schedule_layout_rewrite_preproc": True})
                B[vi] = A[vi] * T.float32(2)

    with pytest.raises(IRValueError, match="block twice: expected a copy of a buffer"):
        tir.transform.RemoveWeightLayoutRewriteBlock()(weft.IRModule({"main": main}))


def test_other_programs_stay_as_they_are():
    mod = matmul(8)
    assert tir.transform.RemoveWeightLayoutRewriteBlock()(mod)["main"] is mod["main"]
