"""Whole models of the zoo through ``torch.compile(backend="weft")``: equal to eager, in one graph.

Behind ``-m slow``.
"""

from __future__ import annotations

import importlib.util
import warnings

import pytest
import torch

from tests.lib.zoo import find
from weft.dynamo import backend as backend_module
from weft.dynamo.backend import FallbackWarning

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "bert", "gpt2", "unet"])
def test_a_model_equals_eager_pytorch(name):
    architecture = find(name)
    if importlib.util.find_spec(architecture.library) is None:
        pytest.skip(f"{architecture.library} is not installed")
    torch._dynamo.reset()
    backend_module._told.clear()
    model = architecture.model()
    args, kwargs = architecture.example()
    with torch.no_grad():
        expected = model(*args, **kwargs)
        with warnings.catch_warnings():
            warnings.simplefilter("error", FallbackWarning)
            found = torch.compile(model, backend="weft")(*args, **kwargs)
    assert type(found) is type(expected)
    if isinstance(expected, torch.Tensor):
        expected, found = {"output": expected}, {"output": found}
    assert list(found) == list(expected)
    for place, value in expected.items():
        scale = float(value.abs().max())
        torch.testing.assert_close(
            found[place], value, rtol=0, atol=1e-4 * scale, msg=f"{name}: {place}"
        )
