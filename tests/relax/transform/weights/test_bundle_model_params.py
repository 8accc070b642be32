"""BundleModelParams: weights as one tuple."""

import numpy as np
import pytest

from weft.relax.reference import run
from weft.relax.transform import BundleModelParams
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import PassError

X = np.arange(6, dtype="float32").reshape(2, 3)


@I.ir_module
class Before:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"),
        w: R.Tensor((3, 3), "float32"),
        b: R.Tensor((3,), "float32"),
        c: R.Prim("bool"),
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.add(y, b)
            u = R.add(z, b)
            R.output(u)
        if c:
            v = R.matmul(u, w)
        else:
            v = u
        return v


@I.ir_module
class Expected:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"),
        weights: R.Tuple(R.Tensor((3, 3), "float32"), R.Tensor((3,), "float32"), R.Prim("bool")),
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w = weights[0]
            y = R.matmul(x, w)
            b = weights[1]
            z = R.add(y, b)
            u = R.add(z, b)
            R.output(u)
        c = weights[2]
        if c:
            w1 = weights[0]
            v = R.matmul(u, w1)
        else:
            v = u
        return v


def test_each_weight_is_bound_where_a_block_uses_it_first(check):
    made = check(BundleModelParams("weights"), Before, Expected)
    assert made["main"].params[1].name_hint == "weights"
    w, b = np.eye(3, dtype="float32"), np.ones(3, "float32")
    for flag in (True, False):
        got = run(made, "main", X, (w, b, flag))
        np.testing.assert_array_equal(got, run(Before, "main", X, w, b, flag))


def test_without_weights_the_tuple_is_empty():
    @I.ir_module
    class Inputs:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            R.func_attr({"num_input": 1})
            return x

    made = BundleModelParams()(Inputs)
    assert [param.name_hint for param in made["main"].params] == ["x", "model_params"]
    np.testing.assert_array_equal(run(made, "main", X, ()), X)


def test_functions_that_do_not_count_inputs_stay(check):
    @I.ir_module
    class Plain:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            return x

    check(BundleModelParams(), Plain, Plain, X)


def test_more_inputs_than_parameters_is_an_error():
    @I.ir_module
    class Wrong:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            R.func_attr({"num_input": 2})
            return x

    with pytest.raises(PassError, match="num_input is 2, but the function has only 1 parameters"):
        BundleModelParams()(Wrong)
