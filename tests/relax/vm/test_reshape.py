"""Reshapes whose numbers of elements are compared at run time, in every way to run."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

WAYS = [("default", "native"), ("default", "bytecode"), ("default_build", "bytecode")]


@I.ir_module
class Pairs:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.reshape(x, R.shape([n // 2, 2]))
            z = R.add(y, R.const(1, "float32"))
            R.output(z)
        return z

    @R.function
    def moved(x: R.Tensor(("n", "m"), "float32"), s: R.Shape(("k", "j"))):
        k, j = T.int64(), T.int64()
        y = R.reshape(x, R.shape([k, j]))
        return y


@pytest.fixture(params=WAYS, ids=["native", "bytecode", "default_build"])
def machine(request):
    pipeline, mode = request.param
    executable = relax.build(Pairs, relax_pipeline=pipeline)
    if mode == "native":
        functions = executable.program.functions
        assert functions["main"].native is not None, functions["main"].why_not_native
    return relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)


@pytest.mark.parametrize("n", [0, 2, 6])
def test_the_elements_stay_in_order(machine, n):
    x = np.arange(n, dtype="float32")
    np.testing.assert_array_equal(machine["main"](x).numpy(), x.reshape(-1, 2) + 1)


@pytest.mark.parametrize("n", [1, 5])
def test_a_remainder_is_an_error_with_both_shapes(machine, n):
    with pytest.raises(ValueError, match=rf"reshape: \({n},\) has {n} elements, \({n // 2}, 2\)"):
        machine["main"](np.zeros(n, "float32"))


def test_shapes_of_two_arguments_are_compared(machine):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    made = machine["moved"](x, (3, 2))
    np.testing.assert_array_equal(made.numpy(), x.reshape(3, 2))
    with pytest.raises(ValueError, match=r"reshape: \(2, 3\) has 6 elements, \(3, 3\) has 9"):
        machine["moved"](x, (3, 3))
    made.numpy()[...] = 0
    assert x[1, 2] == 5  # the result has memory of its own


def test_a_reshape_that_is_proved_is_a_kernel():
    x = relax.Var("x", relax.TensorStructInfo((weft.tir.Var("n", "int64"), 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.reshape(x, (-1, 2))))
    lowered = relax.transform.LegalizeOps()(builder.get())
    assert "reshape_into" not in lowered.script()
