"""Every architecture of the zoo: imported, compiled, and within 1e-4 of PyTorch.

Behind ``-m slow``: ``pytest -m slow tests/zoo -k resnet18`` takes one of them.
"""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402 - after the question whether torch is there
from weft.testing.zoo import ZOO  # noqa: E402 - likewise

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
TOLERANCE = 1e-4
"""Of the largest magnitude of an output."""


def test_the_zoo_has_sixty_architectures_with_names_of_their_own():
    assert len(ZOO) >= 60
    assert len({item.name for item in ZOO}) == len(ZOO)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ZOO, ids=lambda item: item.name)
def test_a_model_equals_pytorch(architecture):
    if importlib.util.find_spec(architecture.library) is None:
        pytest.skip(f"{architecture.library} is not installed")
    model = architecture.model()
    args, kwargs = architecture.example()
    with torch.no_grad():
        expected = tensors_of(model(*args, **kwargs))
    compiled = weft.compile(model, kwargs or args, cache=False)
    found = tensors_of(compiled(*args, **kwargs))
    assert len(found) == len(expected) > 0
    for name, value in expected.items():
        assert_close(found[name], value, f"{architecture.name}: {name}")


def tensors_of(value, name="output"):
    """The tensors of a nested result by their places."""
    if isinstance(value, torch.Tensor):
        return {name: value.detach()}
    items = []
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    found = {}
    for key, item in items:
        found.update(tensors_of(item, f"{name}.{key}"))
    return found


def assert_close(found, expected, what):
    """Equal up to ``TOLERANCE`` of the expected tensor's largest magnitude."""
    assert found.shape == expected.shape, what
    assert found.dtype == expected.dtype, what
    mine, its = found.double().numpy(), expected.double().numpy()
    np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(its), err_msg=what)
    finite = np.isfinite(its)
    scale = np.abs(its[finite]).max(initial=0.0) or 1.0
    apart = np.abs(mine[finite] - its[finite]).max(initial=0.0) / scale
    assert apart <= TOLERANCE, f"{what}: {apart:.2e} of its scale"
