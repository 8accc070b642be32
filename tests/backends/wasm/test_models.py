"""Models compiled for WebAssembly and run by node, beside the same models compiled for this CPU."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.node import JavaScriptError, missing, run_in_node
from weft import relax
from weft.support.errors import ArtifactTargetError

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
op = relax.op


def mlp(batch):
    """Two layers and a softmax; ``batch`` may be a symbol."""
    rng = np.random.default_rng(0)
    x = relax.Var("x", relax.TensorStructInfo((batch, 16), "float32"))
    weights = [
        relax.const(rng.standard_normal(shape, "float32") / 4) for shape in ((16, 33), (33, 10))
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit(op.nn.relu(builder.emit(op.matmul(x, weights[0]))))
            scores = builder.emit(op.matmul(hidden, weights[1]))
            result = builder.emit_output(op.nn.softmax(scores, -1))
        builder.emit_func_output(result)
    return builder.get()


def agree(source, folder, *calls, relaxed=False, **options):
    """The model in node and here give the same to 1e-4."""
    weft.compile(source, *options.values(), target="wasm").save(folder)
    native = weft.compile(source, *options.values())
    for inputs, outputs in zip(calls, run_in_node(folder, *calls, relaxed=relaxed), strict=True):
        wanted = native(*inputs)
        wanted = wanted if isinstance(wanted, tuple | list) else (wanted,)
        for result, expected in zip(outputs, wanted, strict=True):
            assert result.dtype == np.asarray(expected).dtype
            np.testing.assert_allclose(result, np.asarray(expected), atol=1e-4, rtol=1e-4)


def numbers(*shape):
    return np.random.default_rng(1).standard_normal(shape, "float32")


@pytest.mark.parametrize("relaxed", [False, True])
def test_an_mlp(relaxed, tmp_path):
    agree(mlp(5), tmp_path, [numbers(5, 16)], relaxed=relaxed)


def test_symbolic_sizes(tmp_path):
    calls = [[numbers(n, 16)] for n in (7, 0, 1, 33)]
    agree(mlp(weft.tir.Var("n", "int64")), tmp_path, *calls)


def test_it_is_not_called_here(tmp_path):
    model = weft.compile(mlp(2), target="wasm")
    with pytest.raises(ArtifactTargetError, match=r"save\(folder\) .* node or a web page runs it"):
        model(numbers(2, 16))


def saved(folder, batch=2):
    weft.compile(mlp(batch), target="wasm").save(folder)
    return folder


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], r"Error: main: expected 1 inputs \(x\), found 0"),
        ([numbers(2, 16)] * 2, r"Error: main: expected 1 inputs \(x\), found 2"),
        ([numbers(3, 16)], r"Error: x: expected the shape \(2,16\), found \(3,16\)"),
        ([numbers(32)], r"Error: x: expected the shape \(2,16\), found \(32\)"),
        ([numbers(2, 16).astype("float64")], "TypeError: x: expected Float32Array, found Float64A"),
    ],
)
def test_a_wrong_input_is_an_error(inputs, message, tmp_path):
    with pytest.raises(JavaScriptError, match=message):
        run_in_node(saved(tmp_path), inputs)


def test_a_wrong_size_of_a_symbolic_model_is_an_error(tmp_path):
    folder = saved(tmp_path, weft.tir.Var("n", "int64"))
    with pytest.raises(JavaScriptError, match=r"x: expected the shape \(3,16\), found \(3,15\)"):
        run_in_node(folder, [numbers(3, 15)])
