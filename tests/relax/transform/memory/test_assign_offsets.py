"""AssignOffsets: one storage a region, close to the largest sum of live tensors."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.driver.pipeline import get_pipeline
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import Sequential
from weft.relax import transform
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

PLANNED = Sequential(
    [
        transform.LegalizeOps(),
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
        transform.StaticPlanBlockMemory(),
        transform.AssignOffsets(),
    ]
)
FINISH = Sequential(
    [
        transform.LowerAllocTensor(),
        transform.KillAfterLastUse(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]
)


def storages(mod):
    """The storages of main and the tensors in them: (storage name, offset)."""
    bindings = [b for block in mod["main"].body.blocks for b in block.bindings]
    made, tensors = [], []
    for binding in bindings:
        name = getattr(getattr(binding.value, "op", None), "name", "")
        if name == "relax.memory.alloc_storage":
            made.append((binding.var.name_hint, binding.value.args[0].values[0]))
        elif name == "relax.memory.alloc_tensor":
            args = binding.value.args
            tensors.append((args[0].name_hint, args[1].value))
    return made, tensors


@I.ir_module
class Static:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 32), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.matmul(a, w)
            c = R.nn.relu(b)
            d = R.sum(c, axis=1)
            e = R.add(d, d)
            R.output(e)
        return e


def test_static_tensors_get_numbers():
    found = PLANNED(Static)
    made, tensors = storages(found)
    assert made == [("arena", made[0][1])]
    assert made[0][1].value == 1024  # b and c live at once; all others fit beside or after them
    assert len(tensors) == 4
    assert {name for name, _ in tensors} == {"arena"}
    again = weft.script.from_source(found.script(show_meta=True))
    assert_structural_equal(again, found)


@I.ir_module
class Symbolic:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), y: R.Tensor(("m",), "float32")):
        k = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.add(a, a)
            c = R.nn.relu(b)
            d = R.exp(y)
            e = R.add(d, d)
            f = R.match_cast(R.nn.relu(e), R.Tensor((k,), "float32"))
            g = R.exp(f)
            h = R.add(g, g)
            i = R.sum(h)
            j = R.sum(R.add(c, c))
            R.output(i, j)
        return i, j


def run(mod, mode, *args):
    machine = relax.VirtualMachine(
        relax.build(mod, "llvm", pipeline=None), weft.cpu(), exec_mode=mode
    )
    return [item.numpy() for item in machine["main"](*args)]


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("finish", [False, True])
@pytest.mark.parametrize(("n", "m"), [(3, 5), (0, 0), (40, 1), (1, 300)])
def test_symbolic_tensors_are_placed_at_the_call(mode, finish, n, m):
    planned = PLANNED(Symbolic)
    made, _ = storages(planned)
    assert len(made) == 2  # the match_cast that defines k starts a new region
    assert not any(isinstance(size, weft.tir.IntImm) for _, size in made)
    assert relax.analysis.well_formed(planned)
    if finish:
        planned = FINISH(planned)
    x = np.linspace(-1, 1, n * 8, dtype="float32").reshape(n, 8)
    y = np.linspace(-1, 1, m, dtype="float32")
    g = np.exp(np.maximum(2 * np.exp(y), 0))
    i, j = run(planned, mode, x, y)
    np.testing.assert_allclose(i, (2 * g).sum(), rtol=1e-4)
    np.testing.assert_allclose(j, (4 * np.exp(x)).sum(), rtol=1e-4)


def test_the_planned_function_is_native():
    executable = relax.build(PLANNED(Symbolic), "llvm", pipeline=None)
    assert executable.program.functions["main"].native is not None


def test_nothing_to_plan_is_the_same_module():
    lowered = get_pipeline("default_build")(Static)
    assert transform.AssignOffsets()(lowered) is lowered
