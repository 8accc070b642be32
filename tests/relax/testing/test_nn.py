"""Layers of ``relax.testing.nn``: names, parameters, results."""

import numpy as np
import pytest

import weft
from tests.lib.round_trip import assert_round_trip
from weft import relax
from weft.relax.testing import nn


def built():
    builder = relax.BlockBuilder()
    with builder.function("main"):
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))
        data = nn.Placeholder((5, 4))
        params = [data, *model.parameters()]
        builder.emit_func_output(nn.LogSoftmax()(model(data)), params=params)
    return builder.get()


def test_weights_are_parameters_with_names_of_their_own():
    names = [param.name_hint for param in built()["main"].params]
    assert names == ["data", "linear_weight", "linear_bias", "linear_weight1"]


def test_a_model_computes_what_its_layers_say():
    rng = np.random.default_rng(0)
    shapes = [(5, 4), (4, 3), (3,), (3, 2)]
    x, w, b, v = (rng.normal(size=shape).astype("float32") for shape in shapes)
    found = relax.VirtualMachine(relax.build(built()), weft.cpu())["main"](x, w, b, v).numpy()
    y = np.maximum(x @ w + b, 0) @ v
    np.testing.assert_allclose(found, y - np.log(np.exp(y).sum(-1, keepdims=True)), rtol=1e-4)


def test_what_is_wrong_is_refused():
    with pytest.raises(TypeError, match="expected a list or a tuple as shape, got int"):
        nn.Placeholder(3)
    with pytest.raises(ValueError, match="expected a BlockBuilder"):
        nn.ReLU()(nn.Placeholder((3,)))


def test_a_subclass_of_a_variable_is_a_variable_to_texts():
    module = built()
    assert_round_trip(module)
