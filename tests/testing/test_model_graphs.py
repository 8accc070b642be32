"""The graphs of well-known models: they infer, run, and their memory is planned near its bound."""

import numpy as np
import pytest

import weft
from tests.lib.model_graphs import bert_base, llama, resnet50
from weft import relax
from weft.runtime.memory.plan import largest_live, plan_offsets

RESNET = resnet50(32, (1, 1, 1, 1))
BERT = bert_base(length=8, layers=1, width=128)
LLAMA = llama(layers=1, width=128, hidden=64, vocabulary=50)


def arguments(mod, n):
    """Random inputs and small weights."""
    generator = np.random.default_rng(3)
    made = []
    for param in mod["main"].params:
        shape = [e.value if hasattr(e, "value") else n for e in param.struct_info.shape]
        made.append((0.1 * generator.standard_normal(shape)).astype("float32"))
    return made


@pytest.mark.parametrize(("mod", "shape"), [(RESNET, (1, 1000)), (BERT, (1, 8, 128))])
def test_models_of_known_size_run_natively(mod, shape):
    executable = relax.build(mod, "llvm")
    entry = executable.program.functions["main"].native
    assert entry is not None
    found = relax.VirtualMachine(executable, weft.cpu())["main"](*arguments(mod, 0)).numpy()
    assert found.shape == shape
    assert np.isfinite(found).all()


def test_a_model_of_symbolic_length_runs_at_every_length():
    executable = relax.build(LLAMA, "llvm")
    machine = relax.VirtualMachine(executable, weft.cpu())
    planned = executable.program.functions["main"].native.planned
    for n in (1, 5, 16):
        found = machine["main"](*arguments(LLAMA, n)).numpy()
        assert found.shape == (1, n, 50)
        assert np.isfinite(found).all()
        known = dict.fromkeys(planned.symbols, n)
        sizes = [eval(str(size), {}, known) for size in planned.sizes]
        _, arena = plan_offsets(sizes, planned.lives)
        rounded = [-(-size // 64) * 64 for size in sizes]
        assert arena <= 1.1 * largest_live(rounded, planned.lives)


def test_parameters_come_after_inputs():
    assert [int(mod["main"].attrs["num_input"]) for mod in (RESNET, BERT, LLAMA)] == [1, 1, 4]
    assert LLAMA["main"].params[0].name_hint == "tokens"
