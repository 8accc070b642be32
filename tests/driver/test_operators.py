"""Operators on tensors of unknown rank, dtype or shape: compiled for what is there at the call."""

import json

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from weft import relax
from weft.driver.operators import OperatorRunner
from weft.runtime.vm import builtins as vm_builtins
from weft.script import ir as I
from weft.script import relax as R

PIPELINES = ("default", "default_build")


@I.ir_module
class Unknown:
    @R.function
    def exp(x: R.Tensor(dtype="float32")):
        y = R.exp(x)
        return y

    @R.function
    def add(x: R.Tensor(ndim=2), y: R.Tensor(ndim=2)):
        z = R.add(x, y)
        return z

    @R.function
    def parts(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            found = R.unique(x)
            more = R.add(found, R.const(1.0, "float32"))
            total = R.sum(more, axis=[0], keepdims=True)
            both = R.concat((more, total), axis=0)
            halves = R.split(both, 2, axis=0)
            R.output(both, halves)
        return (both, halves)

    @R.function
    def full(s: R.Shape(ndim=2), x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(
        ndim=2, dtype="float32"
    ):
        y = R.full(s, R.const(2.0, "float32"), "float32")
        z = R.broadcast_to(x, s)
        w = R.multiply(y, z)
        return w

    @R.function
    def cast(x: R.Tensor, i: R.Prim("int64")):
        y = R.astype(x, "int32")
        z = R.take(y, i, axis=0)
        return z


@pytest.fixture(scope="module", params=PIPELINES)
def machine(request):
    executable = relax.build(Unknown, relax_pipeline=request.param)
    return relax.VirtualMachine(executable, weft.cpu())


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 1)])
def test_one_artefact_runs_at_every_rank(machine, shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    np.testing.assert_allclose(machine["exp"](x).numpy(), np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_one_artefact_runs_at_every_dtype_and_broadcast(machine, dtype):
    x, y = np.ones((2, 3), dtype), np.arange(3, dtype=dtype).reshape(1, 3)
    found = machine["add"](x, y).numpy()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, x + y)


@pytest.mark.parametrize("values", [[3, 1, 3], [5], [4, 3, 2, 1]])
def test_what_follows_a_result_of_a_size_that_only_the_data_tell(machine, values):
    more = np.unique(np.array(values, "float32")) + 1
    expected = np.append(more, more.sum())
    both, halves = machine["parts"](np.array(values, "float32"))
    np.testing.assert_array_equal(both.numpy(), expected)
    np.testing.assert_array_equal(np.concatenate([h.numpy() for h in halves]), expected)


def test_shapes_and_numbers_are_part_of_what_is_compiled(machine):
    x = np.arange(3, dtype="float32")
    for rows in (2, 5):
        found = machine["full"]((rows, 3), x).numpy()
        np.testing.assert_array_equal(found, np.broadcast_to(2 * x, (rows, 3)))
    y = np.arange(6.0).reshape(3, 2)
    for index in (0, 2):
        np.testing.assert_array_equal(machine["cast"](y, index).numpy(), y.astype("int32")[index])


def test_shapes_that_do_not_fit_name_the_operator(machine):
    with pytest.raises(weft.TVMError, match="relax.add") as caught:
        machine["add"](np.zeros((2, 3), "float32"), np.zeros((2, 4), "float32"))
    assert any("(2, 3) float32, (2, 4) float32" in note for note in caught.value.__notes__)


def test_a_result_is_held_against_its_struct_info():
    x = relax.Var("x", relax.TensorStructInfo(dtype="float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        call = relax.Call(weft.ir.Op.get("relax.exp"), [x])
        call.struct_info = relax.TensorStructInfo(dtype="float32", ndim=2)
        builder.emit_func_output(builder.emit(call))
    executable = relax.build(builder.get(), relax_pipeline=None)
    run = relax.VirtualMachine(executable, weft.cpu())["main"]
    assert run(np.zeros((1, 2), "float32")).shape == (1, 2)
    with pytest.raises(ValueError, match=r"the result of relax.exp: expected 2 dimensions"):
        run(np.zeros(3, "float32"))


def test_the_bytecode_holds_plain_data():
    program = relax.build(Unknown).program
    calls = [i for i in program.functions["parts"].code if i[0] == "call"]
    texts = [i[3][0][1] for i in calls if i[2] == ("operator", "relax.sum")]
    assert len(texts) == 1
    assert json.loads(texts[0])
    assert "call operator relax.sum(" in program.as_text()


def test_functions_are_compiled_once_for_each_signature(monkeypatch):
    built = []

    def build(mod):
        built.append(mod)
        return relax.build(mod)

    monkeypatch.setitem(vm_builtins.__dict__, "get_global_func", lambda *_, **__: runner)
    runner = OperatorRunner(build)
    run = relax.VirtualMachine(relax.build(Unknown), weft.cpu())["exp"]
    for shape in [(2,), (3,), (2,), (3,), (2,)]:
        run(np.zeros(shape, "float32"))
    assert len(built) == 2


def test_an_operator_whose_shapes_are_known_asks_for_legalize_ops():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x)))
    with pytest.raises(weft.TVMError, match="run relax.transform.LegalizeOps first"):
        relax.build(builder.get(), relax_pipeline=None)


WITHOUT_COMPILER = """
import numpy as np
from weft.runtime.vm.bytecode import Program, VMFunction
from weft.runtime.module import Executable as Kernels
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.virtual_machine import VirtualMachine
code = (("call", 1, ("operator", "relax.exp"), (("value", "{}"), ("reg", 0))), ("ret", ("reg", 1)))
main = VMFunction("main", (("x", ("object",)),), code, 2)
try:
    VirtualMachine(Executable(Program({"main": main}), Kernels({})))["main"](np.zeros(2))
except RuntimeError as error:
    print(error)
"""


def test_without_the_compiler_the_error_says_what_is_missing():
    printed = output_of(WITHOUT_COMPILER)
    assert "relax.exp works on a tensor of unknown rank, dtype or shape" in printed
    assert "import weft.driver.build" in printed


def test_constants_without_dimensions_are_known_when_an_operator_is_compiled():
    """Found by a random graph: one_hot is compiled for its values, which came as tensors."""

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "int64")) -> R.Tensor(dtype="float32", ndim=2):
            with R.dataflow():
                found: R.Tensor(dtype="int64", ndim=1) = R.unique(x)
                gv = R.one_hot(found, R.const(2.0, "float32"), R.const(-1.0, "float32"), 3)
                R.output(gv)
            return gv

    for pipeline in ("default", "default_build"):
        machine = relax.VirtualMachine(relax.build(Module, relax_pipeline=pipeline), weft.cpu())
        found = machine["main"](np.array([2, 0, 2, 0])).numpy()
        np.testing.assert_array_equal(found, [[2, -1, -1], [-1, -1, 2]])
