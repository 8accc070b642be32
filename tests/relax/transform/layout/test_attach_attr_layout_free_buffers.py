"""AttachAttrLayoutFreeBuffers: PrimFuncs learn which of their inputs are weights."""

import numpy as np

from weft.ir.module import IRModule
from weft.relax.transform import AttachAttrLayoutFreeBuffers
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
                Sums.add,
                (d, R.const([1, 2, 3, 4], "float32")),
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
