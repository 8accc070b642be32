"""Two PrimFuncs of a module with one symbol: refused, where a call could mean either of them."""

import pytest

import weft
from weft import relax
from weft.ir.module import IRModule
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class TwoTimesG:
    @T.prim_func
    def double(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        T.func_attr({"global_symbol": "g"})
        for i in range(2):
            y[i] = x[i] * T.float32(2)

    @T.prim_func
    def g(x: T.Buffer((2,), "float32"), y: T.Buffer((2,), "float32")):
        for i in range(2):
            y[i] = x[i] * T.float32(3)

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = TwoTimesG
        two = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((2,), "float32"))
        six = R.call_tir(cls.g, (two,), out_sinfo=R.Tensor((2,), "float32"))
        return six


REFUSED = "g: expected a symbol of its own, but the function double is 'g', too"


def test_a_module_of_kernels():
    kernels = {var: f for var, f in TwoTimesG.functions.items() if var.name_hint != "main"}
    with pytest.raises(weft.TVMError, match=REFUSED):
        weft.build(IRModule(kernels))


@pytest.mark.parametrize("pipeline", ["default", None])
def test_a_module_with_a_graph(pipeline):
    with pytest.raises(weft.TVMError, match=REFUSED):
        relax.build(TwoTimesG, relax_pipeline=pipeline)
