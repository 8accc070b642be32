"""AnnotateTIROpPattern: attributes on kernels."""

from weft import ir
from weft.relax.transform import AnnotateTIROpPattern, LegalizeOps
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Before:
    @T.prim_func(private=True)
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] * T.float32(2)

    @T.prim_func(private=True)
    def mine(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 8})
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi]


@I.ir_module
class Expected:
    @T.prim_func(private=True)
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] * T.float32(2)

    @T.prim_func(private=True)
    def mine(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 8})
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi]


def test_kernels_say_their_pattern_and_what_is_written_stays():
    after = AnnotateTIROpPattern()(Before)
    ir.assert_structural_equal(after, Expected)
    assert AnnotateTIROpPattern()(after) is after


def test_the_provenance_stays():
    @I.ir_module
    class Graph:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                gv = R.exp(x)
                R.output(gv)
            return gv

    after = AnnotateTIROpPattern()(LegalizeOps()(Graph))
    assert after["tir_exp"].attrs["op_pattern"] == 0
    assert after["tir_exp"].provenance == "te"
