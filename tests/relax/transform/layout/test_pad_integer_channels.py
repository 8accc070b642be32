"""PadIntegerChannels: channels and filters of integer convolutions in fours."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout.pad_integer_channels import PadIntegerChannels


def module_of(data, weights, **options):
    given = [relax.Var(name, relax.TensorStructInfo(array.shape, str(array.dtype)))
             for name, array in (("x", data), ("w", weights))]  # fmt: skip
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            made = builder.emit_output(op.nn.conv2d(*given, **options))
        builder.emit_func_output(made)
    return builder.get()


@pytest.mark.parametrize(
    ("channels", "filters", "options", "wanted"),
    [
        (3, 21, {}, (24, 4, 3, 2)), (3, 8, {"padding": 1, "strides": 2}, (8, 4, 3, 2)),
        (4, 5, {}, (8, 4, 3, 2)), (4, 8, {}, (8, 4, 3, 2)), (3, 3, {"groups": 3}, (3, 1, 3, 2)),
        (3, 5, {"dtype": "float32"}, (5, 3, 3, 2)),
    ],
)  # fmt: skip
def test_zeros_are_added_and_their_results_cut_off(channels, filters, options, wanted):
    rng = np.random.default_rng(1)
    dtype = options.pop("dtype", "uint8")
    x = rng.integers(0, 100, (2, channels, 5, 6)).astype(dtype)
    groups = options.get("groups", 1)
    w = rng.integers(-99, 99, (filters, channels // groups, 3, 2))
    w = w.astype("int8" if dtype == "uint8" else dtype)
    kind = "int32" if dtype == "uint8" else None
    before = module_of(x, w, out_dtype=kind, **options)
    with weft.target.Target("llvm -mcpu=haswell"):
        after = PadIntegerChannels()(before)
    assert well_formed(after)
    [call] = [c for c in collect(after["main"].body, Call) if c.op.name == "relax.nn.conv2d"]
    assert tuple([int(dim) for dim in call.args[1].struct_info.shape.values]) == wanted
    np.testing.assert_array_equal(run(after, "main", x, w), run(before, "main", x, w))
