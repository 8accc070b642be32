"""Modules as trees: names of parameters, data, containers, data types, what has no forward."""

import numpy as np
import pytest

from weft.relax.frontend import nn


class Block(nn.Module):
    def __init__(self):
        self.dtype = "float32"
        self.up = nn.Linear(2, 4)
        self.layers = nn.ModuleList([nn.ModuleList([nn.Linear(4, 4, bias=False)]), nn.ReLU()])
        self.parts = nn.ModuleDict({"down": nn.Linear(4, 2, bias=False)})
        self.scale = nn.Parameter((1,))

    def forward(self, x: nn.Tensor):
        return self.parts["down"](self.layers(self.up(x))) * self.scale


NAMES = ["up.weight", "up.bias", "layers.0.0.weight", "parts.down.weight", "scale"]


def test_names_of_parameters():
    block = Block()
    assert [name for name, _ in block.named_parameters()] == NAMES
    assert [name for name, _ in block.named_parameters("m.")] == [f"m.{name}" for name in NAMES]
    assert len(list(block.parameters())) == 5
    assert list(block.state_dict(prefix="m.")) == [f"m.{name}" for name in NAMES]
    found = {"other": 1}
    assert block.state_dict(destination=found) is found
    assert found["scale"] is block.scale


def test_load_state_dict_from_arrays_and_from_another_module(fill):
    first, second = Block(), Block()
    data = fill(first)
    assert second.load_state_dict(first.state_dict()) == ([], [])
    for name, parameter in second.named_parameters():
        np.testing.assert_array_equal(parameter.data.numpy(), data[name])


def test_load_state_dict_names_what_does_not_fit(fill):
    block = Block()
    data = fill(block)
    del data["scale"]
    data["extra"] = np.zeros(1)
    with pytest.raises(KeyError, match=r"Missing keys: \['scale'\], Unexpected keys: \['extra'\]"):
        block.load_state_dict(data)
    assert block.load_state_dict(data, strict=False) == (["scale"], ["extra"])
    with pytest.raises(ValueError, match="Parameter scale is not set to any concrete tensor"):
        block.load_state_dict({"scale": nn.Parameter((1,))}, strict=False)


def test_nothing_is_loaded_where_names_do_not_fit():
    block = Block()
    with pytest.raises(KeyError, match="Missing keys"):
        block.load_state_dict({"scale": np.ones(1, "float32")})
    assert block.scale.data is None


def test_forward_through_containers(call, fill, random):
    block, x = Block(), random(3, 2)
    data = fill(block)
    hidden = x @ data["up.weight"].T + data["up.bias"]
    hidden = np.maximum(hidden @ data["layers.0.0.weight"].T, 0)
    wanted = hidden @ data["parts.down.weight"].T * data["scale"]
    np.testing.assert_allclose(call(block, x), wanted, rtol=1e-4, atol=1e-5)


def test_to_reaches_all_parts():
    block = Block()
    block.cache = nn.KVCache(4, [2])
    block.to("float16")
    assert {item.dtype for item in block.parameters()} == {"float16"}
    assert block.dtype == "float16"
    assert block.cache.dtype == "float16"
    block.to()
    assert block.dtype == "float16"


def test_module_list_is_a_list():
    modules = nn.ModuleList([nn.ReLU()])
    modules.append(nn.SiLU())
    modules[0] = nn.GELU()
    assert len(modules) == 2
    assert [type(item).__name__ for item in modules] == ["GELU", "SiLU"]
    assert isinstance(modules[-1], nn.SiLU)
    modules.to("float16")


def test_module_dict_is_a_dict():
    modules = nn.ModuleDict()
    modules["act"] = nn.ReLU()
    assert "act" in modules
    assert len(modules) == 1
    assert list(modules) == ["act"]
    assert list(modules.keys()) == ["act"]
    assert list(modules.items()) == [("act", modules["act"])]
    assert list(modules.values()) == [modules["act"]]


def test_a_module_without_forward():
    with pytest.raises(TypeError, match="nn.Module Module has no method forward to call"):
        nn.Module()(1)


def test_a_shared_layer_has_one_set_of_data(call, random):
    class Tied(nn.Module):
        def __init__(self):
            self.first = nn.Linear(3, 3, bias=False)
            self.second = self.first

        def forward(self, x: nn.Tensor):
            return self.second(self.first(x))

    model, x, w = Tied(), random(2, 3), random(3, 3)
    model.load_state_dict({"first.weight": w}, strict=False)
    assert model.second.weight.data is model.first.weight.data
    np.testing.assert_allclose(call(model, x), x @ w.T @ w.T, rtol=1e-4)
