"""RunCodegen with a backend written here: composites evaluated with numpy."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir import assert_structural_equal
from weft.relax.dpl import is_op, wildcard
from weft.relax.transform import FuseOpsByPattern, MergeCompositeFunctions, RunCodegen
from weft.runtime.module import Module
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import PassError

NUMPY = {
    "relax.add": np.add,
    "relax.multiply": np.multiply,
    "relax.matmul": np.matmul,
    "relax.nn.relu": lambda x: np.maximum(x, 0),
}


def evaluate(func, arguments, local):
    """The value of a graph function, its local functions included."""
    known = dict(zip(func.params, arguments, strict=True))

    def value(expr):
        if isinstance(expr, relax.Constant):
            return expr.data.numpy()
        if isinstance(expr, relax.Function):
            return expr
        if not isinstance(expr, relax.Call):
            return known[expr]
        given = [value(arg) for arg in expr.args]
        callee = known.get(expr.op)
        return evaluate(callee, given, local) if callee else NUMPY[expr.op.name](*given)

    for block in func.body.blocks:
        for binding in block.bindings:
            known[binding.var] = value(binding.value)
    return value(func.body.body)


@pytest.fixture
def backend():
    """The backend "npy"; the fixture is what it was called with."""
    calls = []

    def codegen(functions, options, constants):
        calls.append((functions, options, constants))

        def compiled(func):
            def run(*arrays):
                *inputs, output = arrays
                result = evaluate(func, [array.numpy() for array in inputs], {})
                output.copyfrom(result.astype("float32"))

            return run

        table = {str(func.attrs["global_symbol"]): compiled(func) for func in functions}
        return [Module(table, type_key="npy")]

    weft.register_func("relax.ext.npy", codegen, override=True)
    return calls


PATTERNS = [
    ("npy.matmul_relu", is_op("relax.nn.relu")(is_op("relax.matmul")(wildcard(), wildcard()))),
    ("npy.add", is_op("relax.add")(wildcard(), wildcard())),
]


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.add(b, R.const([1.0, 2.0, 3.0], "float32"))
            d = R.exp(c)
            e = R.add(d, x)
            R.output(e)
        return e


def run(module, *arrays):
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), weft.cpu())
    return machine["main"](*(weft.nd.array(array) for array in arrays)).numpy()


@pytest.mark.parametrize("merge", [False, True])
def test_a_partitioned_model_computes_the_same(backend, merge):
    partitioned = FuseOpsByPattern(PATTERNS, annotate_codegen=not merge)(Model)
    if merge:
        partitioned = MergeCompositeFunctions()(partitioned)
    made = RunCodegen({"npy": {"level": 2}})(partitioned)
    functions, options, constants = backend[0]
    assert options == {"level": 2}
    assert len(backend) == 1
    assert len(functions) == (2 if merge else 3)
    assert [gvar.name_hint for gvar in made.functions] == ["main"]
    assert [name.endswith("_npy_const_0") for name in constants.values()] == [True]
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3)).astype("f4"), rng.standard_normal((3, 3)).astype("f4")
    np.testing.assert_allclose(run(made, x, w), run(Model, x, w), rtol=1e-5)


@I.ir_module
class Marked:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Marked
        with R.dataflow():
            y = cls.double_npy(x)
            z = cls.double_npy(y)
            R.output(z)
        return z

    @R.function
    def double_npy(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Codegen": "npy"})
        y = R.add(x, x)
        return y


def test_calls_become_calls_of_what_the_backend_made(backend):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.call_dps_packed("double_npy", (x,), out_sinfo=R.Tensor((4,), "float32"))
                z = R.call_dps_packed("double_npy", (y,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(z)
            return z

    made = RunCodegen()(Marked)
    assert_structural_equal(made["main"], Expected["main"])
    assert len(made.attrs["external_mods"]) == 1
    assert "double_npy" in made.script()
    assert len(backend[0][0]) == 1
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run(made, x), 4 * x)


def test_two_models_may_use_one_symbol(backend):
    """Functions of a backend belong to the executable, not to the process."""
    other = weft.IRModule(
        {
            gvar: func
            if gvar.name_hint == "main"
            else func.with_(body=relax.SeqExpr([], func.params[0]))
            for gvar, func in Marked.functions.items()
        }
    )
    first, second = RunCodegen()(Marked), RunCodegen()(other)
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run(second, x), x)
    np.testing.assert_array_equal(run(first, x), 4 * x)
    assert len(backend) == 2


def test_a_module_without_marked_functions_is_returned_as_it_is():
    assert RunCodegen()(Model) is Model


def test_errors_of_backends():
    def marked(name):
        return weft.IRModule(
            {
                gvar: func.with_attr("Codegen", name) if "Codegen" in func.attrs else func
                for gvar, func in Marked.functions.items()
            }
        )

    with pytest.raises(PassError, match="no backend 'nowhere': cannot find global function"):
        RunCodegen()(marked("nowhere"))
    weft.register_func("relax.ext.lazy", lambda *_: [Module({})], override=True)
    with pytest.raises(PassError, match="a module with the function 'double_npy', none has it"):
        RunCodegen()(marked("lazy"))
    weft.register_func("relax.ext.wrong", lambda *_: [1], override=True)
    with pytest.raises(PassError, match="to return a list of runtime modules, got one with int"):
        RunCodegen()(marked("wrong"))
    with pytest.raises(PassError, match="the module has no function 'absent'"):
        RunCodegen(entry_functions=["absent"])(Marked)
