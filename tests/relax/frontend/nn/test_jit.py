"""jit and TorchModule: torch tensors in and out."""

import pytest

from weft.relax.frontend import nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Model(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(3, 2)

    def forward(self, x: nn.Tensor):
        return self.layer(x)

    def parts(self, xs, n):
        return xs[0].reshape(n, -1), (xs[1],)


SPEC = {
    "forward": {"x": nn.spec.Tensor(["n", 3], "float32")},
    "parts": {"xs": [nn.spec.Tensor([6], "float32"), nn.spec.Tensor([2], "int32")], "n": "int"},
}


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def filled(layer):
    model = Model()
    model.layer.load_state_dict(layer.state_dict())
    return model


@pytest.mark.parametrize("mode", ["plain", "packed"])
@pytest.mark.parametrize("debug", [False, True])
def test_methods_on_torch_tensors(mode, debug, layer):
    spec = {name: {**item, "$": {"param_mode": mode, "effect_mode": mode}}
            for name, item in SPEC.items()}  # fmt: skip
    model = filled(layer).jit(spec, debug=debug)
    for count in (1, 4):
        x = torch.randn(count, 3, requires_grad=True)
        torch.testing.assert_close(model["forward"](x), layer(x).detach())
    reshaped, (ints,) = model["parts"]([torch.arange(6.0), torch.tensor([1, 2]).int()], 2)
    assert reshaped.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ints.tolist() == [1, 2]
    assert model["parts"].__name__ == "parts"


def test_methods_without_parameters_or_effects():
    spec = {"parts": {**SPEC["parts"], "$": {"param_mode": "none", "effect_mode": "none"}}}
    model = Model()
    model.layer.to()
    torch_layer = torch.nn.Linear(3, 2)
    compiled = filled(torch_layer).jit(spec, debug=True)
    reshaped, _ = compiled["parts"]([torch.arange(6.0), torch.tensor([1, 2]).int()], 3)
    assert reshaped.shape == (3, 2)


def test_parameters_need_data():
    with pytest.raises(ValueError, match="Parameters are not set to any concrete values: layer.we"):
        Model().jit(SPEC)
    with pytest.raises(ValueError, match="jit: Unknown out_format: expected 'torch', got 'numpy'"):
        Model().jit(SPEC, out_format="numpy")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), r"Expected 2 arguments, but got 0 arguments. The spec is: parts\(xs: \["),
        ((1, 2), "Expected argument `xs` to be `a tuple of 2`, but got int"),
        (([1, 2], 2), r"Expected argument `xs\[0\]` to be `torch.Tensor`, but got int"),
        (([torch.zeros(6), torch.zeros(2).int()], 2.5), "Expected argument `n` to be `int`, but g"),
    ],
)
def test_wrong_arguments(args, message, layer):
    model = filled(layer).jit(SPEC)
    with pytest.raises(TypeError, match=message):
        model["parts"](*args)


def test_a_method_that_is_not_there(layer):
    with pytest.raises(KeyError, match="Method `prefill` is not found in the module spec; it has "):
        filled(layer).jit(SPEC)["prefill"]
