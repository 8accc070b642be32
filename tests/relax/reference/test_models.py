"""The interpreter and native code agree on models, small in their extents."""

import numpy as np
import pytest

import weft
from tests.lib.model_graphs import bert_base, llama, resnet50
from weft import relax
from weft.ir.transform import PassContext
from weft.relax.reference import run
from weft.relax.reference.verify import VerifyGraphs

MODELS = {
    "resnet": (lambda: resnet50(32, (1, 1, 1, 1)), [{}]),
    "bert": (lambda: bert_base(length=5, layers=2, width=128), [{}]),
    "llama": (lambda: llama(1, width=128, hidden=96, vocabulary=50), [{"n": 1}, {"n": 6}]),
}


def arguments(mod, sizes, seed=3):
    random = np.random.default_rng(seed)
    made = []
    for param in mod["main"].params:
        shape = [
            sizes[extent.name] if hasattr(extent, "name") else int(extent)
            for extent in param.struct_info.shape.values
        ]
        made.append((random.standard_normal(shape) * 0.1).astype("float32"))
    return made


@pytest.mark.parametrize("name", MODELS)
def test_native_code_agrees(name):
    make, sizes_of_runs = MODELS[name]
    mod = make()
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    for sizes in sizes_of_runs:
        given = arguments(mod, sizes)
        expected = run(mod, "main", *given)
        got = machine["main"](*[weft.nd.array(item) for item in given]).numpy()
        assert got.shape == expected.shape
        assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_passes_of_the_graph_are_verified(name):
    mod = MODELS[name][0]()
    passes = [
        relax.transform.Normalize(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.DeadCodeElimination(),
        relax.transform.ToNonDataflow(),
    ]
    instrument = VerifyGraphs()
    with PassContext(instruments=[instrument]):
        for step in passes:
            mod = step(mod)
    assert not instrument.left_out
