"""The pipelines of graphs by name: literal lists, and one result."""

import functools

import numpy as np
import pytest

import weft
from tests.lib.model_graphs import bert_base, llama, resnet50
from weft import relax
from weft.driver.pipeline import RELAX_BUILD, RELAX_DEFAULT, RELAX_ZERO, get_pipeline
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import PassError

MODELS = {
    "resnet": resnet50(32, (1, 1, 1, 1)),
    "bert": bert_base(length=8, layers=1, width=128),
    "llama": llama(layers=1, width=128, hidden=64, vocabulary=50),
}
LISTS = {"zero": RELAX_ZERO, "default": RELAX_DEFAULT, "default_build": RELAX_BUILD}


def arguments(mod, n):
    generator = np.random.default_rng(3)
    made = []
    for param in mod["main"].params:
        shape = [e.value if hasattr(e, "value") else n for e in param.struct_info.shape]
        made.append((0.1 * generator.standard_normal(shape)).astype("float32"))
    return made


@functools.cache
def expected(model):
    """What a model computes unfused."""
    return run(MODELS[model], "default", arguments(MODELS[model], 5))


def run(mod, pipeline, args):
    executable = relax.build(mod, "llvm", pipeline=pipeline)
    return relax.VirtualMachine(executable, weft.cpu())["main"](*args).numpy()


@pytest.mark.parametrize("name", LISTS)
def test_a_pipeline_is_its_list(name):
    assert get_pipeline(name).passes == LISTS[name]


@pytest.mark.parametrize("model", MODELS)
def test_zero_fuses_and_computes_the_same(model):
    mod = MODELS[model]
    fused = get_pipeline("zero")(mod)
    assert relax.analysis.well_formed(fused)
    calls = sum(len(block.bindings) for block in fused["main"].body.blocks)
    operators = sum(len(block.bindings) for block in mod["main"].body.blocks)
    assert calls <= 0.6 * operators
    found = run(fused, "default", arguments(mod, 5))
    np.testing.assert_allclose(found, expected(model), rtol=1e-4, atol=1e-5)


def test_default_build_takes_a_fused_model():
    fused = get_pipeline("zero")(MODELS["llama"])
    found = run(fused, "default_build", arguments(fused, 5))
    np.testing.assert_allclose(found, expected("llama"), rtol=1e-4, atol=1e-5)


def test_an_unknown_name_lists_the_pipelines():
    with pytest.raises(PassError, match="no pipeline 'zeros'; there are default, zero, .*'zero'"):
        get_pipeline("zeros")


def test_the_default_pipeline_of_a_target_is_default_build():
    assert relax.get_default_pipeline("llvm").info.name == "relax.default_build"
    with pytest.raises(weft.TVMError, match="target kind 'nope'"):
        relax.get_default_pipeline("nope")


@I.ir_module
class Halving:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        @R.function
        def halve(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            is_large = R.less(R.const(1.0, "float32"), R.max(y))
            if is_large:
                smaller = R.multiply(R.tanh(R.multiply(y, R.const(0.5, "float32"))), y)
                result = halve(smaller)
            else:
                result = R.add(R.exp(y), R.const(1.0, "float32"))
            return result

        z = halve(x)
        return z


@pytest.mark.parametrize("name", ["weft", "unscheduled"])
def test_branches_and_bodies_of_local_functions_are_fused(name):
    lowered = get_pipeline(name)(Halving)
    kernels = sorted(var.name_hint for var in lowered.get_global_vars())
    assert [kernel for kernel in kernels if "multiply" in kernel and "tanh" in kernel], kernels
    assert [kernel for kernel in kernels if "exp" in kernel and "add" in kernel], kernels
    x = np.array([0.5, 3, -1, 1], "float32")
    expected = x
    while expected.max() > 1:
        expected = np.tanh(expected / 2) * expected
    machine = relax.VirtualMachine(relax.build(lowered, "llvm"), weft.cpu())
    np.testing.assert_allclose(
        machine["main"](weft.nd.array(x)).numpy(), np.exp(expected) + 1, rtol=1e-6
    )
