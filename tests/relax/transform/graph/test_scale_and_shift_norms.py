"""ScaleAndShiftNorms: a batch norm is one product and one sum, and joins the kernel after it."""

import numpy as np
import pytest

from weft import relax
from weft.driver.pipeline import relax_pipeline_of
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.op.base import CALL_TIR
from weft.relax.reference import run
from weft.relax.transform.graph.scale_and_shift_norms import ScaleAndShiftNorms
from weft.target.target import Target

RNG = np.random.default_rng(0)
SHAPE = (2, 3, 4)


def norm(dtype="float32", constants=True, **options):
    """A batch norm over the second axis, and relu; its parameters are constants or arguments."""
    batch = relax.Var("x", relax.TensorStructInfo(SHAPE, dtype))
    vectors = [RNG.random(3).astype(dtype) + 0.5 for _ in range(4)]
    params = [relax.Var(name, relax.TensorStructInfo((3,), dtype)) for name in "gbmv"]
    given = [relax.const(vector) for vector in vectors] if constants else params
    builder = relax.BlockBuilder()
    with builder.function("main", [batch, *([] if constants else params)]):
        with builder.dataflow():
            settings = {"axis": 1, "epsilon": 0.25, "training": False} | options
            result = builder.emit(op.nn.batch_norm(batch, *given, **settings))
            last = builder.emit_output(op.nn.relu(builder.emit(result[0])))
        builder.emit_func_output(last)
    arrays = [RNG.standard_normal(SHAPE).astype(dtype), *([] if constants else vectors)]
    return builder.get(), arrays


def names(mod):
    calls = [call.op for call in collect(mod["main"].body, Call)]
    return sorted([callee.name.removeprefix("relax.") for callee in calls])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("constants", [True, False])
@pytest.mark.parametrize(
    "options",
    [{}, {"scale": False}, {"center": False}, {"scale": False, "center": False}, {"axis": -2}],
)
def test_results_are_those_of_the_norm(dtype, constants, options):
    before, arrays = norm(dtype, constants, **options)
    after = ScaleAndShiftNorms()(before)
    assert well_formed(after)
    assert "nn.batch_norm" not in names(after)
    expected = run(before, "main", *arrays)
    np.testing.assert_allclose(run(after, "main", *arrays), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("dtype", "options"), [("float16", {}), ("float32", {"training": True})])
def test_norms_of_16_bits_and_of_training_stay(dtype, options):
    before, _ = norm(dtype, **options)
    assert names(ScaleAndShiftNorms()(before)) == ["nn.batch_norm", "nn.relu"]


def test_a_norm_and_what_follows_are_one_kernel():
    """The norm's result is an item of a tuple, at which fusion would stop."""
    with Target("llvm"):
        mod = relax_pipeline_of("weft")(norm()[0])
    assert len([call for call in collect(mod["main"].body, Call) if call.op is CALL_TIR]) == 1
