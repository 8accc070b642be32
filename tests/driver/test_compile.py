"""weft.compile: its two spellings, what it takes, what it says of what it does not take."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.backends.cpu import pipeline
from weft.ir.transform import PassContext
from weft.runtime.model.compiled_model import CompiledModel
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRTypeError, IRValueError, PassError


@I.ir_module
class Kernels:
    @T.prim_func
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] * T.float32(2)


@I.ir_module
class Graph:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.add(R.nn.relu(x), R.const(1.0, "float32"))
            z = R.multiply(y, y)
            R.output(z)
        return z


X = np.array([-1, 0, 1, 2], "float32")
EXPECTED = (np.maximum(X, 0) + 1) ** 2


@pytest.mark.parametrize(
    "compiled",
    [
        lambda: weft.compile(Graph),
        lambda: weft.compile(Graph, "llvm"),
        lambda: weft.compile(Graph, weft.Target("llvm")),
        lambda: weft.compile(Graph, {"kind": "llvm"}),
        lambda: weft.compile(Graph, target="llvm -opt-level=1"),
        lambda: weft.compile(Graph, relax_pipeline="default"),
        lambda: weft.compile(Graph, relax_pipeline=relax.get_pipeline("zero")),
        lambda: weft.compile(Graph["main"]),
        lambda: weft.compile(Graph, verify=True),
    ],
)
def test_a_graph_becomes_a_model(compiled):
    model = compiled()
    assert isinstance(model, CompiledModel | relax.VMExecutable)
    np.testing.assert_array_equal(model(X), EXPECTED)
    machine = relax.VirtualMachine(model, weft.cpu())
    np.testing.assert_array_equal(machine["main"](X).numpy(), EXPECTED)


def test_kernels_become_a_runtime_module():
    for built in (weft.compile(Kernels), weft.compile(Kernels, "llvm"),
                  weft.compile(Kernels["double"])):  # fmt: skip
        assert isinstance(built, weft.Executable)
        y = weft.nd.empty((4,))
        built[next(iter(built.functions))](weft.nd.array(X), y)
        np.testing.assert_array_equal(y.numpy(), X * 2)


def test_the_target_in_scope_counts():
    with weft.Target("llvm -mcpu=x86-64-v2"):
        assert "avx" not in weft.compile(Graph).code.features
    assert weft.compile(Graph, "llvm -mcpu=x86-64-v2").code.cpu == "x86-64-v2"


def test_elementwise_operators_share_a_kernel():
    assert len(weft.compile(Graph).kernels.functions) == 1


def test_the_pipeline_by_its_name():
    assert relax.get_pipeline("weft").passes == pipeline.GRAPH


def test_constants_are_shared_and_folded():
    weight = relax.const(np.arange(4, dtype="float32"))

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                y = R.multiply(x, weight)
                z = R.add(y, R.multiply(weight, R.const(2.0, "float32")))
                R.output(z)
            return z

    model = weft.compile(Module, cache=False)  # a kept model has constants of its own
    np.testing.assert_array_equal(model(X), X * np.arange(4) + 2 * np.arange(4))
    assert any(constant is weight.data for constant in model.program.constants)
    assert len(model.program.constants) == 2
    assert len(model.kernels.functions) == 1


@pytest.mark.parametrize("training", [False, True])
def test_batch_norms_go_into_convolutions_but_those_of_training(training):
    rng = np.random.default_rng(0)

    def const(*shape):
        return relax.const(rng.random(shape, "float32") + 0.5)

    weight, gamma, beta, mean, var = const(3, 2, 3, 3), *[const(3) for _ in range(4)]
    x = relax.Var("x", relax.TensorStructInfo((1, 2, 6, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            conv = builder.emit(relax.op.nn.conv2d(x, weight))
            norm = builder.emit(
                relax.op.nn.batch_norm(conv, gamma, beta, mean, var, axis=1, training=training)
            )
            out = builder.emit_output(relax.op.nn.relu(norm[0]))
        builder.emit_func_output(out)
    model = weft.compile(builder.get())
    plain = weft.compile(builder.get(), relax_pipeline="default")
    data = rng.random((1, 2, 6, 6), "float32")
    np.testing.assert_allclose(model(data), plain(data), rtol=2e-5, atol=1e-5)
    assert training or len(model.kernels.functions) == 1


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3,), {}, IRTypeError, r"expected a model \(torch.* got int"),
        ((np.sin,), {}, IRTypeError, "got ufunc sin; wrap a function in a torch.nn.Module"),
        ((CompiledModel,), {}, IRTypeError, "got the class CompiledModel; make an object of it"),
        (("model.xyz",), {}, IRValueError, r"ends in \.pt2, \.onnx, got 'model.xyz'"),
        (("none.onnx",), {}, IRValueError, "expected a model at 'none.onnx', found no file"),
        (("m.weft",), {}, IRValueError, "is compiled already; load it with weft.load"),
        ((Graph, "llvm"), {"target": "llvm"}, IRTypeError, "the target is given twice"),
        ((Graph,), {"dynamic_shapes": {}}, IRValueError, "the shapes of an IRModule stand in its"),
        ((Graph,), {"num_threads": 0}, IRValueError, "threads from 1 to 4096, got 0"),
        ((Graph,), {"target": "llvm -mcpu=z9"}, IRValueError, "'z9' is no x86-64 processor"),
        ((Graph,), {"relax_pipeline": "fastest"}, PassError, "there is no pipeline 'fastest'"),
    ],
)  # fmt: skip
def test_what_cannot_be_compiled(arguments, options, error, message):
    with pytest.raises(error, match=message):
        weft.compile(*arguments, **options)


def test_options_that_nobody_takes():
    with pytest.raises(IRTypeError, match="compile: an IRModule takes no option 'opset'"):
        weft.compile(Graph, opset=3)


def test_verify_names_the_pass_that_changes_a_result():
    from weft.ir.transform import module_pass
    from weft.support.errors import VerifyError

    @module_pass(opt_level=0, name="test.Wrong")
    def wrong(mod, ctx):
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            with R.dataflow():
                z = R.nn.relu(x)
                R.output(z)
            return z

        return weft.IRModule({"main": main})

    with pytest.raises(VerifyError, match=r"test\.Wrong"):
        weft.compile(Graph, verify=True, relax_pipeline=wrong)
    with PassContext(config={"tir.disable_vectorize": True}):
        np.testing.assert_array_equal(weft.compile(Graph, verify=True)(X), EXPECTED)
