"""Factors of activations move into the layers before them; results change by roundings alone."""

from __future__ import annotations

import numpy as np
import pytest

from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.reference import run
from weft.relax.transform.quantize.fold_steps import fold_steps

RNG = np.random.default_rng(3)
IMAGE = RNG.standard_normal((2, 4, 5, 6)).astype("float32")
ROWS = RNG.standard_normal((5, 4)).astype("float32")


def constant(*shape):
    return relax.const(RNG.standard_normal(shape).astype("float32"))


def layer(emit, x):
    """A layer with int8 weights and a factor for each channel, and how its channels broadcast."""
    if x.struct_info.ndim == 4:
        weights, channels = RNG.integers(-9, 10, (3, 4, 1, 1)), (3, 1, 1)
        known = op.multiply(emit(whole(weights)), constant(3, 1, 1, 1))
        return emit(op.nn.conv2d(x, emit(known))), channels
    known = op.multiply(emit(whole(RNG.integers(-9, 10, (4, 3)))), constant(3))
    return emit(op.matmul(x, emit(known))), (3,)


def whole(weights):
    return op.astype(relax.const(weights.astype("int8")), "float32")


def function(data, body):
    """A function of one tensor; ``body(emit, x)`` gives its result."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(data.shape, "float32"))
    with builder.function("main", [x]):
        result = body(builder.emit, x)
        builder.emit_func_output(result)
    return builder.get()


def folded(mod):
    """The module after the pass, and how often each operator is in its main function."""
    after = mod.clone()
    after["main"] = fold_steps(mod["main"])
    names = [call.op.name.rpartition(".")[2] for call in collect(after["main"], relax.Call)]
    return after, {name: names.count(name) for name in names}


@pytest.mark.parametrize("data", [IMAGE, ROWS], ids=["conv2d", "matmul"])
@pytest.mark.parametrize("is_rectified", [False, True])
def test_a_factor_moves_into_weights_and_sums(data, is_rectified):
    def body(emit, x):
        y, channels = layer(emit, x)
        y = emit(op.add(emit(op.add(y, constant(*channels))), constant(*channels)))
        y = emit(op.nn.relu(y)) if is_rectified else y
        return emit(op.multiply(y, relax.const(3.5, "float32")))

    mod = function(data, body)
    after, counts = folded(mod)
    assert (counts["add"], counts["multiply"]) == (1, 1)
    assert counts.get("relu", 0) == is_rectified
    np.testing.assert_allclose(run(after, "main", data), run(mod, "main", data), rtol=1e-5,
                               atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("factor", [-2.0, 0.0, np.nan])
def test_a_factor_that_is_not_positive_stays(factor):
    def body(emit, x):
        y = emit(op.nn.relu(layer(emit, x)[0]))
        return emit(op.multiply(y, relax.const(factor, "float32")))

    assert folded(function(ROWS, body))[1]["multiply"] == 2


def test_what_others_read_stays():
    def body(emit, x):
        y = emit(op.nn.relu(layer(emit, x)[0]))
        return emit(op.add(y, emit(op.multiply(y, relax.const(2.0, "float32")))))

    mod = function(ROWS, body)
    after, counts = folded(mod)
    assert counts["multiply"] == 2
    np.testing.assert_array_equal(run(after, "main", ROWS), run(mod, "main", ROWS))


@pytest.mark.parametrize(("low", "rectifiers"), [(0, 0), (-3, 1)])
def test_what_a_clip_repeats_is_left_out(low, rectifiers):
    def body(emit, x):
        steps = emit(op.round(emit(op.nn.relu(emit(op.multiply(x, constant(1, 4)))))))
        return emit(op.clip(steps, low, 255))

    mod = function(ROWS, body)
    after, counts = folded(mod)
    assert counts.get("relu", 0) == rectifiers
    data = np.array([[-7.5, -0.4, 0.0, 1e9], [np.nan, 2.5, 0.5, -np.inf]], "float32")
    data = np.vstack([data, ROWS[2:]])
    np.testing.assert_array_equal(run(after, "main", data), run(mod, "main", data))


def test_sums_of_other_values_keep_their_order():
    """Adding a large number and taking it off rounds, which a program may mean."""

    def body(emit, x):
        moved = emit(op.add(x, relax.const(1e9, "float32")))
        return emit(op.add(moved, relax.const(-1e9, "float32")))

    mod = function(ROWS, body)
    after, counts = folded(mod)
    assert counts == {"add": 2}
    np.testing.assert_array_equal(run(after, "main", ROWS), np.zeros_like(ROWS))
