"""``weft.compile`` of models written with ``relax.frontend.nn``."""

import numpy as np
import pytest

import weft
from weft.relax.frontend import nn


class Model(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(3, 2)

    def forward(self, x: nn.Tensor):
        return nn.relu(self.layer(x))

    def parts(self, pair, n, shift=None):
        first, second = pair
        made = first.reshape(n, -1)
        return {"made": made} if shift is None else (made, [second + shift])


@pytest.fixture
def data():
    source = np.random.default_rng(0)
    return {
        "layer.weight": source.standard_normal((2, 3)).astype("float32"),
        "layer.bias": source.standard_normal(2).astype("float32"),
    }


@pytest.fixture
def model(data):
    made = Model()
    made.load_state_dict(data)
    return made


def wanted(x, data):
    return np.maximum(x @ data["layer.weight"].T + data["layer.bias"], 0)


X = np.arange(6, dtype="float32").reshape(2, 3) - 3
SPEC = nn.spec.Tensor(["n", 3], "float32")


@pytest.mark.parametrize(
    "examples",
    [X, (X,), [X], {"x": X}, (nn.spec.Tensor([2, 3], "float32"),), {"x": SPEC},
     {"forward": {"x": SPEC}}, (SPEC,)],
    ids=["array", "tuple", "list", "dict", "spec", "symbolic", "method", "symbolic tuple"],
)  # fmt: skip
def test_forms_of_example_inputs(examples, model, data):
    compiled = weft.compile(model, examples)
    np.testing.assert_allclose(compiled(X), wanted(X, data), rtol=1e-5)
    np.testing.assert_allclose(compiled(x=X), wanted(X, data), rtol=1e-5)


def test_a_module_spec(model, data):
    spec = nn.spec.ModuleSpec.from_raw({"forward": {"x": SPEC}}, model)
    np.testing.assert_allclose(weft.compile(model, spec)(X), wanted(X, data), rtol=1e-5)


def test_dynamic_shapes(model, data):
    compiled = weft.compile(model, X, dynamic_shapes={"x": {0: "n"}})
    for count in (1, 5):
        x = np.ones((count, 3), "float32")
        np.testing.assert_allclose(compiled(x), wanted(x, data), rtol=1e-5)


def test_parameters_without_data_are_inputs(model, data):
    model.layer.bias.data = None
    compiled = weft.compile(model, X)
    assert compiled.signature.inputs == ("x", "layer.bias")
    found = compiled(X, data["layer.bias"])
    np.testing.assert_allclose(found, wanted(X, data), rtol=1e-5)
    np.testing.assert_allclose(compiled(X, layer_bias=data["layer.bias"]), found)
    with pytest.raises(TypeError, match=r"Model: expected the arguments \(x, layer_bias\), missin"):
        compiled(X)


def test_parameters_with_data_are_constants(model, data):
    compiled = weft.compile(model, X)
    assert len(compiled.mod["forward"].params) == 1
    assert compiled.signature.inputs == ("x",)


def test_torch_tensors(model, data):
    torch = pytest.importorskip("torch")
    found = weft.compile(model, torch.from_numpy(X))(torch.from_numpy(X))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found.numpy(), wanted(X, data), rtol=1e-5)


def test_saved_and_loaded(model, data, tmp_path):
    weft.compile(model, {"x": SPEC}).save(tmp_path / "m.weft")
    loaded = weft.load(tmp_path / "m.weft")
    np.testing.assert_allclose(loaded(X), wanted(X, data), rtol=1e-5)


def test_another_method_with_tuples_and_integers(model):
    compiled = weft.compile(model, ((X, X[0]), 3, X[1]), method="parts")
    made, (total,) = compiled((X, X[0]), 3, X[1])
    np.testing.assert_array_equal(made, X.reshape(3, 2))
    np.testing.assert_array_equal(total, X[0] + X[1])
    assert compiled((X, X[0]), 2, X[1])[0].shape == (2, 3)
    assert repr(compiled) == "CompiledModel(Model.parts(pair, n, shift))"


def test_verify_runs_the_reference_interpreters(model, data):
    np.testing.assert_allclose(weft.compile(model, X, verify=True)(X), wanted(X, data), rtol=1e-5)


class Cached(nn.Module):
    def __init__(self):
        self.cache = nn.KVCache(2, [3])

    def forward(self, x: nn.Tensor):
        self.cache.append(x)
        return x


@pytest.mark.parametrize(
    ("make", "examples", "options", "error", "message"),
    [
        (Model, None, {}, TypeError, "forward: the spec lacks the argument x; its arguments are x"),
        (Model, (X, X), {}, TypeError, "forward takes x; got 2 example inputs"),
        (Model, {"y": X}, {}, TypeError, "forward: has no argument 'y'; its arguments are x"),
        (Model, {"x": {}}, {}, TypeError, "spec: Model has no method 'x'"),
        (Model, ({1},), {}, TypeError, "Unsupported argument type: x is of set"),
        (Model, X, {"method": "backward"}, TypeError, "Model has no method 'backward'"),
        (Model, X, {"opset": 3}, TypeError, "an nn.Module takes no option 'opset'; there is metho"),
        (Model, {"forward": {"x": SPEC}, "parts": {"pair": (SPEC, SPEC), "n": int}}, {}, ValueError,
         "expected a spec of one method, got forward, parts; say which as method="),
        (Model, {"forward": {"x": SPEC}}, {"method": "parts"}, ValueError,
         "the spec has no method 'parts'; it has forward"),
        (Model, X, {"dynamic_shapes": [0]}, TypeError,
         r"dynamic_shapes of an nn.Module is \{argument: \{axis: name\}\}, got list"),
        (Model, X, {"dynamic_shapes": {"x": {9: "n"}}}, ValueError,
         r"expected \{axis: name\} for x, which has 2 dimensions, got \{9: 'n'\}"),
        (Model, X, {"dynamic_shapes": {"x": 5}}, ValueError, r"expected \{axis: name\} for x"),
        (Cached, X, {}, NotImplementedError, r"Cached has effects \(cache\), whose state calls ha"),
        (lambda: Model, X, {}, TypeError, "the class Model; make an object of it"),
    ],
)  # fmt: skip
def test_wrong_use(make, examples, options, error, message):
    with pytest.raises(error, match=message):
        weft.compile(make(), examples, **options)


def test_a_result_that_is_no_tensor(model):
    with pytest.raises(TypeError, match="parts: Unsupported return type: dict"):
        weft.compile(model, ((X, X), 3), method="parts")
