"""DecomposeOpsForInference: batch norm by its moving statistics, tensors as shapes."""
# ruff: noqa: F841 - scripts are no plain Python

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax import op
from weft.relax.transform import DecomposeOpsForInference
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

RNG = np.random.default_rng(0)


@I.ir_module
class Norm:
    @R.function
    def main(x: R.Tensor((2, 3, 4), "float32"), gamma: R.Tensor((3,), "float32"),
             beta: R.Tensor((3,), "float32"), mean: R.Tensor((3,), "float32"),
             var: R.Tensor((3,), "float32")):  # fmt: skip
        with R.dataflow():
            bn = R.nn.batch_norm(x, gamma, beta, mean, var, axis=1, epsilon=0.5, training=False)
            out = bn[0]
            R.output(out)
        return out


def norm_arrays():
    data = [RNG.standard_normal(shape).astype("float32") for shape in [(2, 3, 4), *[(3,)] * 3]]
    return [*data, RNG.random(3).astype("float32")]


def test_batch_norm(check, check_native):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3, 4), "float32"), gamma: R.Tensor((3,), "float32"),
                 beta: R.Tensor((3,), "float32"), mean: R.Tensor((3,), "float32"),
                 var: R.Tensor((3,), "float32")):  # fmt: skip
            with R.dataflow():
                a = R.expand_dims(mean, axis=[0, 2])
                b = R.subtract(x, a)
                c = R.expand_dims(var, axis=[0, 2])
                d = R.add(c, R.const(0.5, "float32"))
                e = R.sqrt(d)
                f = R.divide(b, e)
                g = R.expand_dims(gamma, axis=[0, 2])
                h = R.multiply(f, g)
                i = R.expand_dims(beta, axis=[0, 2])
                j = R.add(h, i)
                bn = (j, mean, var)
                out = bn[0]
                R.output(out)
            return out

    made = check(DecomposeOpsForInference(), Norm, Expected)
    check_native(Norm, made, *norm_arrays(), tolerance=1e-5)
    check(DecomposeOpsForInference(), made, made)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(("scale", "center"), [(True, False), (False, True), (False, False)])
def test_axes_and_flags(axis, scale, center, check_native):
    shapes = [(3, 2, 3), *[(3,)] * 4]
    params = [
        relax.Var(f"p{index}", relax.TensorStructInfo(shape, "float32"))
        for index, shape in enumerate(shapes)
    ]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        out = bb.emit(
            op.nn.batch_norm(*params, axis=axis, scale=scale, center=center, training=False)
        )
        bb.emit_func_output(out)
    before = bb.get()
    made = DecomposeOpsForInference()(before)
    assert "batch_norm" not in made.script()
    data = [RNG.random(shape).astype("float32") for shape in shapes]
    check_native(before, made, *data, tolerance=1e-5)


def test_other_functions_stay():
    assert DecomposeOpsForInference("other")(Norm) is Norm
    assert DecomposeOpsForInference("main")(Norm) is not Norm


def test_a_vector_as_shape(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((6,), "float32"), sizes: R.Tensor((2,), "int64")):
            shape: R.Shape(ndim=2) = R.tensor_to_shape(sizes)
            y = R.reshape(x, shape)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((6,), "float32"), sizes: R.Tensor((2,), "int64")) -> R.Tensor(
            "float32", ndim=2
        ):
            n = T.int64()
            m = T.int64()
            found: R.Shape(ndim=2) = R.call_pure_packed(
                "vm.builtin.tensor_to_shape", sizes, sinfo_args=(R.Shape(ndim=2),)
            )
            cast: R.Shape([n, m]) = R.match_cast(found, R.Shape([n, m]))
            shape: R.Shape([n, m]) = R.shape([n, m])
            y: R.Tensor((n, m), "float32") = R.reshape(x, shape)
            return y

    made = check(DecomposeOpsForInference(), Before, Expected)
    machine = relax.VirtualMachine(relax.build(made, "llvm"), weft.cpu())
    data = np.arange(6, dtype="float32")
    found = machine["main"](weft.nd.array(data), weft.nd.array(np.array([3, 2], "int64")))
    np.testing.assert_array_equal(found.numpy(), data.reshape(3, 2))
