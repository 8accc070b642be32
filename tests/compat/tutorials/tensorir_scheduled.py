"""A loop nest and its schedules: the same numbers, other loops, a trace that can be replayed."""

from __future__ import annotations

import weft

weft.install_as_tvm()

import numpy as np
import tvm
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Sums:
    @T.prim_func
    def main(
        A: T.Buffer((48, 64), "float32"),
        W: T.Buffer((64, 32), "float32"),
        C: T.Buffer((48, 32), "float32"),
    ):
        P = T.alloc_buffer((48, 32))
        for i, j, k in T.grid(48, 32, 64):
            with T.block("P"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    P[vi, vj] = T.float32(0)
                P[vi, vj] = P[vi, vj] + A[vi, vk] * W[vk, vj]
        for i, j in T.grid(48, 32):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(P[vi, vj], T.float32(0))


def runs(module):
    rng = np.random.default_rng(1)
    a, w = (rng.standard_normal(shape).astype("float32") for shape in ((48, 64), (64, 32)))
    out = tvm.nd.array(np.zeros((48, 32), "float32"))
    library = tvm.compile(module, target="llvm")
    library(tvm.nd.array(a), tvm.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), np.maximum(a @ w, 0), rtol=1e-4, atol=1e-4)
    timer = library.time_evaluator("main", tvm.cpu(0), number=1)
    return timer(tvm.nd.array(a), tvm.nd.array(w), out).mean


assert runs(Sums) > 0
sch = tvm.tir.Schedule(Sums)
product = sch.get_block("P", func_name="main")
i, j, k = sch.get_loops(product)
outer, inner = sch.split(j, factors=[None, 8])
sch.reorder(outer, k, inner)
sch.reverse_compute_at(sch.get_block("C", func_name="main"), outer)
sch.decompose_reduction(product, k)
sch.trace.show()
assert runs(sch.mod) > 0
again = tvm.tir.Schedule(Sums)
sch.trace.apply_to_schedule(again, remove_postproc=False)
tvm.ir.assert_structural_equal(again.mod, sch.mod)
