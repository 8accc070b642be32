"""AttachAttrLayoutFreeBuffers and SplitLayoutRewritePreproc: weights in layouts of their own."""

import numpy as np

from weft.ir.module import IRModule
from weft.relax.transform import AttachAttrLayoutFreeBuffers, SplitLayoutRewritePreproc
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Sums:
    @T.prim_func(private=True)
    def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"),
            C: T.Buffer((4,), "float32")):  # fmt: skip
        for i in range(4):
            with T.block("add"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + B[vi]

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            a = R.call_tir(Sums.add, (x, w), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(Sums.add, (a, x), out_sinfo=R.Tensor((4,), "float32"))
            c = R.call_tir(Sums.add, (w, b), out_sinfo=R.Tensor((4,), "float32"))
            d = R.call_tir(Sums.add, (c, w), out_sinfo=R.Tensor((4,), "float32"))
            out = R.call_tir(
                Sums.add, (d, R.const([1, 2, 3, 4], "float32")),
                out_sinfo=R.Tensor((4,), "float32"),
            )
            R.output(out)
        return out  # fmt: skip


def marks(mod):
    return {
        gvar.name_hint: [int(index) for index in func.attrs["layout_free_buffers"]]
        for gvar, func in mod.functions.items()
        if gvar.name_hint != "main"
    }


def callees(mod):
    return [b.value.args[0].name_hint for b in mod["main"].body.blocks[0].bindings]


def test_calls_are_told_which_inputs_are_weights(check_native):
    made = AttachAttrLayoutFreeBuffers()(Sums)
    found = marks(made)
    assert [found[name] for name in callees(made)] == [[1], [], [0], [1], [1]]
    assert len(found) == 3
    check_native(Sums, made, np.arange(4, dtype="float32"), np.ones(4, "float32"))
    assert AttachAttrLayoutFreeBuffers()(made) is made


def test_without_a_number_of_inputs_only_constants_are_weights():
    main = Sums["main"].without_attr("num_input")
    made = AttachAttrLayoutFreeBuffers()(IRModule({**dict(Sums.functions.items()),
                                                   Sums.get_global_var("main"): main}))  # fmt: skip
    found = marks(made)
    assert [found[name] for name in callees(made)] == [[], [], [], [], [1]]


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
