"""SplitLayoutRewritePreproc: what lays weights out becomes a PrimFunc of its own."""

import numpy as np

from weft.relax.transform import SplitLayoutRewritePreproc
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Rewriting:
    @T.prim_func(private=True)
    def mm(X: T.Buffer((4, 4), "float32"), W: T.Buffer((4, 4), "float32"),
           Y: T.Buffer((4, 4), "float32")):  # fmt: skip
        T.func_attr({"layout_free_buffers": [1]})
        blocks = T.alloc_buffer((2, 2, 2, 2))
        for i, j in T.grid(4, 4):
            with T.block("blocks"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": T.bool(True)})
                blocks[vi // 2, vj // 2, vi % 2, vj % 2] = W[vi, vj]
        for i, j in T.grid(4, 4):
            with T.block("sum"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] - blocks[vi // 2, vj // 2, vi % 2, vj % 2]

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            out = R.call_tir(Rewriting.mm, (x, w), out_sinfo=R.Tensor((4, 4), "float32"))
            R.output(out)
        return out


SQUARES = [np.arange(16, dtype="float32").reshape(4, 4), np.eye(4, dtype="float32")]


def test_what_lays_weights_out_is_split_off(check, check_native):
    @I.ir_module
    class Expected:
        @T.prim_func(private=True)
        def mm_weight_prepack(
            W: T.Buffer((4, 4), "float32"), blocks: T.Buffer((2, 2, 2, 2), "float32")
        ):
            for i, j in T.grid(4, 4):
                with T.block("blocks"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    blocks[vi // 2, vj // 2, vi % 2, vj % 2] = W[vi, vj]

        @T.prim_func(private=True)
        def mm_prepacked(X: T.Buffer((4, 4), "float32"), blocks: T.Buffer((2, 2, 2, 2), "float32"),
                         Y: T.Buffer((4, 4), "float32")):  # fmt: skip
            for i, j in T.grid(4, 4):
                with T.block("sum"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] - blocks[vi // 2, vj // 2, vi % 2, vj % 2]

        @R.function
        def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                packed = R.call_tir(
                    Expected.mm_weight_prepack, (w,), out_sinfo=R.Tensor((2, 2, 2, 2), "float32")
                )
                result = R.call_tir(
                    Expected.mm_prepacked, (x, packed), out_sinfo=R.Tensor((4, 4), "float32")
                )
                out = result
                R.output(out)
            return out

    made = check(SplitLayoutRewritePreproc(), Rewriting, Expected, *SQUARES)
    check_native(Rewriting, made, *SQUARES)
    check(SplitLayoutRewritePreproc(), made, made)


def test_several_weights(check_native):
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def f(U: T.Buffer((4,), "float32"), W: T.Buffer((4,), "float32"),
              Y: T.Buffer((4,), "float32")):  # fmt: skip
            u = T.alloc_buffer((2, 2))
            w = T.alloc_buffer((2, 2))
            for i in range(4):
                with T.block("w"):
                    vi = T.axis.spatial(4, i)
                    T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                    w[vi % 2, vi // 2] = W[vi]
            for i in range(4):
                with T.block("u"):
                    vi = T.axis.spatial(4, i)
                    T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                    u[vi // 2, vi % 2] = U[vi]
            for i in range(4):
                with T.block("y"):
                    vi = T.axis.spatial(4, i)
                    Y[vi] = u[vi // 2, vi % 2] * T.float32(10) + w[vi % 2, vi // 2]

        @R.function
        def main(u: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
            with R.dataflow():
                out = R.call_tir(Before.f, (u, w), out_sinfo=R.Tensor((4,), "float32"))
                R.output(out)
            return out

    made = SplitLayoutRewritePreproc()(Before)
    prepack = made["f_weight_prepack"]
    assert [prepack.buffer_map[p].name for p in prepack.params] == ["U", "W", "u", "w"]
    check_native(Before, made, np.arange(4, dtype="float32"), np.arange(4, dtype="float32") * 3)


def test_a_weight_that_is_also_read_as_it_is_stays(check):
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def f(W: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
            w = T.alloc_buffer((2, 2))
            for i in range(4):
                with T.block("w"):
                    vi = T.axis.spatial(4, i)
                    T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                    w[vi % 2, vi // 2] = W[vi]
            for i in range(4):
                with T.block("y"):
                    vi = T.axis.spatial(4, i)
                    Y[vi] = w[vi % 2, vi // 2] + W[vi]

        @R.function
        def main(w: R.Tensor((4,), "float32")):
            with R.dataflow():
                out = R.call_tir(Before.f, (w,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(out)
            return out

    check(SplitLayoutRewritePreproc(), Before, Before, np.arange(4, dtype="float32"))
