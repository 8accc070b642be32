"""Stateful calls by name, the arity of outputs, shapes as ShapeTuple, the two executors' names."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.runtime import ShapeTuple
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MODES = ("native", "bytecode")


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), s: R.Shape(["m"])):
        n, m = T.int64(), T.int64()
        y = R.add(x, x)
        return (y, (y, R.shape([n, m])), R.prim_value(n))

    @R.function
    def single(x: R.Tensor(("n", 2), "float32")):
        return R.add(x, x)

    @R.function
    def shape(x: R.Tensor(("n", 2), "float32")):
        n = T.int64()
        return R.shape([n + 1, 2])

    @R.function
    def asked(x: R.Tensor("float32")):
        s = R.shape_of(x)
        return s


@pytest.fixture(scope="module", params=MODES)
def machine(request):
    return relax.VirtualMachine(relax.build(Module), weft.cpu(), exec_mode=request.param)


def test_the_arity_of_outputs(machine):
    x = np.ones((3, 2), "float32")
    machine.set_input("main", x, (5,))
    machine.invoke_stateful("main")
    arity, output = machine["get_output_arity"], machine["get_output"]
    found = [arity("main", *path) for path in ((), (0,), (1,), (1, 1))]
    assert found == [3, -1, 2, -1]
    np.testing.assert_array_equal(output("main", 1, 0).numpy(), 2 * x)
    assert (output("main", 1, 1), output("main", 2)) == ((3, 5), 3)
    with pytest.raises(IndexError, match=r"main: expected a field at \(1, 2\) of the output, .* 2"):
        output("main", 1, 2)
    with pytest.raises(IndexError, match=r"expected a field at \(0, 0\) of the output, found NDA"):
        output("main", 0, 0)
    with pytest.raises(ValueError, match="single: there is no output; call invoke_stateful first"):
        arity("single")


def test_parameters_by_number(machine):
    assert machine["get_function_arity"]("main") == 2
    assert machine["get_function_param_name"]("main", 1) == "s"
    with pytest.raises(IndexError, match="main: expected a parameter of 2, got 2"):
        machine.get_function_param_name("main", 2)


def test_stateful_calls_are_timed(machine):
    machine.set_input("single", np.ones((3, 2), "float32"))
    timer = machine.time_evaluator("invoke_stateful", weft.cpu(), number=3, repeat=2)
    result = timer("single")
    assert len(result.results) == 2
    assert min(result.results) > 0
    np.testing.assert_array_equal(machine.get_outputs("single").numpy(), np.full((3, 2), 2))


def test_shapes_are_shape_tuples(machine):
    x = np.zeros((3, 2), "float32")
    found = [machine["shape"](x), machine["asked"](x), machine["main"](x, [4])[1][1]]
    assert [type(shape) for shape in found] == [ShapeTuple] * 3
    assert found == [(4, 2), (3, 2), (3, 4)]
    first, second = found[0]
    assert first + second == 6
    assert np.zeros(found[0]).shape == (4, 2)
    np.testing.assert_array_equal(machine["main"](x, found[1][:1])[0].numpy(), x)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_both_executors_build_the_same(mode):
    executable = relax.build(Module, exec_mode=mode)
    assert executable.program.functions["main"].native is not None
    compiled = relax.VirtualMachine(executable, weft.cpu(), exec_mode="compiled")
    assert compiled["single"](np.ones((1, 2), "float32")).numpy().tolist() == [[2, 2]]
    with pytest.raises(ValueError, match="expected 'native', 'compiled' or 'bytecode', got 'jit'"):
        relax.VirtualMachine(executable, weft.cpu(), exec_mode="jit")


def test_numbers_and_instruments_of_other_types():
    machine = relax.VirtualMachine(relax.build(Module), weft.cpu())
    with pytest.raises(weft.TVMError, match="main: expected a number, got str"):
        machine.get_function_param_name("main", "a")
    with pytest.raises(weft.TVMError, match="set_instrument: expected a function .* got int"):
        machine.set_instrument(5)
