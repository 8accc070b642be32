"""Models compiled for WebAssembly and run by node, beside the same models compiled for this CPU."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.lib.node import JavaScriptError, missing, run_in_node
from weft import relax
from weft.support.errors import (
    ArtifactError,
    ArtifactTargetError,
    IRValueError,
    UnsupportedError,
)

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


def agree(source, folder, *calls, relaxed=False, target="wasm"):
    """The model in node and here give the same to 1e-4."""
    weft.compile(source, target=target).save(folder)
    native = weft.compile(source)
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


def test_parallel_loops_run_on_one_thread(tmp_path):
    x = relax.Var("x", relax.TensorStructInfo((512, 512), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        product = builder.emit(op.matmul(x, x))
        builder.emit_func_output(builder.emit(op.exp(builder.emit(op.nn.softmax(product, 0)))))
    agree(builder.get(), tmp_path, [numbers(512, 512)], target="wasm -num-cores=4")


def typed(dtype, compute, *shape):
    """A model of one input of a type."""
    x = relax.Var("x", relax.TensorStructInfo(shape, dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(compute(builder, x))
    return builder.get()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int8", "float64", "float16"])
def test_types_of_arrays(dtype, tmp_path):
    model = typed(dtype, lambda builder, x: builder.emit(op.add(x, x)), 3, 5)
    values = np.arange(15).reshape(3, 5).astype(dtype)
    weft.compile(model, target="wasm").save(tmp_path)
    ((result,),) = run_in_node(tmp_path, [values])
    np.testing.assert_array_equal(result, values + values)


def test_functions_of_math(tmp_path):
    values = np.array([0.1, 3.0, 1e6, -1e30, np.inf], "float32")
    agree(typed("float32", lambda b, x: b.emit(op.sin(x)), 5), tmp_path, [values])
    assert b"\x04Math\x03sin" in (tmp_path / "model.wasm").read_bytes()


def test_several_results_and_a_shape(tmp_path):
    def compute(builder, x):
        doubled = builder.emit(op.add(x, x))
        return builder.emit(relax.Tuple([doubled, x, builder.emit(op.sum(x, axis=[0]))]))

    agree(typed("float32", compute, weft.tir.Var("n", "int64"), 4), tmp_path, [numbers(3, 4)])


def test_a_fault_is_an_error_with_its_text(tmp_path):
    table = relax.const(np.arange(10, dtype="float32"))
    model = typed("int64", lambda b, x: b.emit(op.take(table, x, axis=0, mode="fast")), 2)
    weft.compile(model, target="wasm").save(tmp_path)
    with pytest.raises(
        JavaScriptError, match=r"Error: .*index 10 is out of bounds for .* extent 10"
    ):
        run_in_node(tmp_path, [np.array([3, 10])])


def test_too_large_a_call_is_an_error(tmp_path):
    def compute(builder, x):
        return builder.emit(op.broadcast_to(op.sum(x), relax.ShapeExpr([n, n, n])))

    n = weft.tir.Var("n", "int64")
    weft.compile(typed("float32", compute, n), target="wasm").save(tmp_path)
    with pytest.raises(
        JavaScriptError, match="RangeError: main: expected 256000000000 bytes of mem"
    ):
        run_in_node(tmp_path, [np.zeros(4000, "float32")])


def test_the_name_of_a_file_is_refused(tmp_path):
    model = weft.compile(mlp(2), target="wasm")
    with pytest.raises(
        ArtifactError, match=r"a model for wasm is a folder, got the name of a file"
    ):
        model.save(tmp_path / "net.weft")
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(
        ArtifactError, match=r"is a folder, and .*taken' cannot be one: .*another path"
    ):
        model.save(tmp_path / "taken")


def test_the_library_of_a_model_is_the_folder(tmp_path):
    weft.compile(mlp(2), target="wasm").export_library(tmp_path / "net")
    assert (tmp_path / "net" / "model.js").exists()


def test_what_needs_python_is_refused(tmp_path):
    model = weft.compile(typed("float32", lambda b, x: b.emit(op.unique(x)), 6), target="wasm")
    with pytest.raises(
        UnsupportedError, match="main cannot be written for wasm: .*runs it in Pyth"
    ):
        model.save(tmp_path / "net")


def test_an_unknown_option_is_refused():
    with pytest.raises(IRValueError, match="target wasm has no option 'mcpu'"):
        weft.target.Target("wasm -mcpu=native")


def test_a_model_from_the_cache_is_saved_as_it_was(tmp_path):
    for name in ("first", "second"):
        weft.compile(mlp(2), target="wasm").save(tmp_path / name)
    first, second = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("first", "second")
    ]
    renamed = first.pop("package.json").replace(b'"first"', b'"second"')
    assert renamed == second.pop("package.json")
    assert first == second


def test_verify_lists_its_code_as_not_compared():
    model = weft.compile(mlp(2), target="wasm", verify=True)
    assert "this code is for wasm32" in str(model.verification)


def test_types_are_declared(tmp_path):
    declared = (saved(tmp_path, weft.tir.Var("n", "int64")) / "model.d.ts").read_text()
    assert "run(x: Tensor<Float32Array>): [Tensor<Float32Array>];" in declared
    assert "   * x: float32 (n, 16)\n" in declared


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
