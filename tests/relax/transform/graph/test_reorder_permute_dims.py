"""ReorderPermuteDimsAfterConcat: parts that are all transposed alike are joined first."""

import numpy as np
import pytest

from weft.relax.transform import ReorderPermuteDimsAfterConcat
from weft.script import ir as I
from weft.script import relax as R


def test_three_parts(check):
    @I.ir_module
    class Before:
        @R.function
        def main(
            a: R.Tensor((2, 3, 4), "float32"),
            b: R.Tensor((2, 5, 4), "float32"),
            c: R.Tensor((2, 1, 4), "float32"),
        ):
            with R.dataflow():
                a1 = R.permute_dims(a, axes=[2, 0, 1])
                b1 = R.permute_dims(b, axes=[-1, 0, 1])
                c1 = R.permute_dims(c, axes=[2, 0, 1])
                parts = (a1, b1, c1)
                joined = R.concat(parts, axis=-1)
                R.output(joined)
            return joined

    @I.ir_module
    class Expected:
        @R.function
        def main(
            a: R.Tensor((2, 3, 4), "float32"),
            b: R.Tensor((2, 5, 4), "float32"),
            c: R.Tensor((2, 1, 4), "float32"),
        ):
            with R.dataflow():
                lv = R.concat([a, b, c], axis=1)
                joined = R.permute_dims(lv, axes=[2, 0, 1])
                R.output(joined)
            return joined

    data = [np.random.default_rng(0).random((2, n, 4)).astype("float32") for n in (3, 5, 1)]
    check(ReorderPermuteDimsAfterConcat(), Before, Expected, *data)


@pytest.mark.parametrize("axes", [None, [1, 0]])
def test_matrices_with_axes_and_without(axes):
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((2, 3), "float32"), b: R.Tensor((4, 3), "float32")):
            with R.dataflow():
                a1 = R.permute_dims(a)
                b1 = R.permute_dims(b, axes=axes)
                joined = R.concat([a1, b1], axis=1)
                R.output(joined)
            return joined

    after = ReorderPermuteDimsAfterConcat()(Before)
    [first, last] = after["main"].body.blocks[0].bindings
    assert (first.value.op.name, first.value.attrs["axis"]) == ("relax.concat", 0)
    assert last.value.op.name == "relax.permute_dims"
    assert ReorderPermuteDimsAfterConcat()(after) is after


def test_parts_in_different_orders_stay():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((3, 3), "float32"), b: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a1 = R.permute_dims(a)
                b1 = R.permute_dims(b, axes=[0, 1])
                c1 = R.concat([a1, b1], axis=1)
                d1 = R.concat([a1, b], axis=0)
                joined = R.add(R.concat([c1, c1], axis=0), R.concat([d1, d1], axis=1))
                R.output(joined)
            return joined

    assert ReorderPermuteDimsAfterConcat()(Before) is Before
