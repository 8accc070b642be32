"""PadChannels: channels and filters of convolutions in fours."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout.pad_channels import PadChannels


def module_of(data, weights, operator=op.nn.conv2d, **options):
    given = [relax.Var(name, relax.TensorStructInfo(array.shape, str(array.dtype)))
             for name, array in (("x", data), ("w", weights))]  # fmt: skip
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            made = builder.emit_output(operator(*given, **options))
        builder.emit_func_output(made)
    return builder.get()


@pytest.mark.parametrize(
    ("channels", "filters", "options", "wanted"),
    [
        (3, 21, {}, (24, 4, 3, 2)), (3, 8, {"padding": 1, "strides": 2}, (8, 4, 3, 2)),
        (4, 5, {}, (8, 4, 3, 2)), (4, 8, {}, (8, 4, 3, 2)), (3, 3, {"groups": 3}, (3, 1, 3, 2)),
        (3, 5, {"dtype": "float32"}, (5, 3, 3, 2)),
        (3, 5, {"dtype": "float32", "strides": 2}, (8, 3, 3, 2)),
        (9, 50, {"dtype": "float64", "padding": 1}, (52, 12, 3, 2)),
        (9, 32, {"dtype": "float32"}, (32, 12, 3, 2)), (9, 9, {"dtype": "float32"}, (9, 9, 3, 2)),
        (9, 50, {"dtype": "float16"}, (50, 9, 3, 2)),
        (9, 50, {"dtype": "float32", "out_layout": "NHWC"}, (50, 9, 3, 2)),
        (3, 21, {"out_layout": "NHWC"}, (21, 3, 3, 2)),
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
        after = PadChannels()(before)
    assert well_formed(after)
    [call] = [c for c in collect(after["main"].body, Call) if c.op.name == "relax.nn.conv2d"]
    assert tuple([int(dim) for dim in call.args[1].struct_info.shape.values]) == wanted
    np.testing.assert_allclose(
        run(after, "main", x, w), run(before, "main", x, w), rtol=0 if kind else 1e-4
    )


@pytest.mark.parametrize(
    ("filters", "channels", "strides", "wanted"),
    [(402, 1, 160, (416, 1, 400)), (7, 9, 2, (8, 12, 400)), (7, 9, 1, (7, 9, 400)),
     (3, 1, 2, (3, 1, 400))],
)  # fmt: skip
def test_sequences_are_padded_where_strides_leave_gaps(filters, channels, strides, wanted):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, channels, 800)).astype("float32")
    w = rng.normal(size=(filters, channels, 400)).astype("float32")
    before = module_of(x, w, operator=op.nn.conv1d, strides=strides)
    after = PadChannels()(before)
    assert well_formed(after)
    [call] = [c for c in collect(after["main"].body, Call) if c.op.name == "relax.nn.conv1d"]
    assert tuple([int(dim) for dim in call.args[1].struct_info.shape.values]) == wanted
    results = [run(module, "main", x, w) for module in (after, before)]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-3)


def test_a_chain_of_ragged_layers_compiles():
    """What is cut off of a result is added to the next layer's data again."""
    rng = np.random.default_rng(3)
    weights = [relax.const(rng.normal(size=shape).astype("float32") / 9)
               for shape in ((17, 17, 3, 3), (17, 17, 3, 3), (29, 17, 1, 1))]  # fmt: skip
    x = relax.Var("x", relax.TensorStructInfo((2, 17, 7, 5), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.nn.relu(op.nn.conv2d(x, weights[0], padding=1)))
            y = builder.emit(op.add(op.nn.conv2d(y, weights[1], padding=1), x))
            out = builder.emit_output(op.nn.conv2d(op.nn.relu(y), weights[2], strides=2))
        builder.emit_func_output(out)
    mod = builder.get()
    data = rng.normal(size=(2, 17, 7, 5)).astype("float32")
    expected = run(mod, "main", data)
    np.testing.assert_allclose(
        run(PadChannels()(mod), "main", data), expected, rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(weft.compile(mod)(data), expected, rtol=1e-4, atol=1e-4)
