"""Every architecture of the zoo: imported, compiled, and within 1e-4 of PyTorch.

Behind ``-m slow``: ``pytest -m slow tests/zoo -k resnet18`` takes one of them.
"""

from __future__ import annotations

import copy
import importlib.util

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402 - after the question whether torch is there
from tests.lib.zoo import ZOO, find, settle, stir  # noqa: E402 - likewise

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
TOLERANCE = 1e-4
"""Of the largest magnitude of an output."""


def test_the_zoo_has_a_hundred_architectures_with_names_of_their_own():
    assert len(ZOO) >= 100
    assert len({item.name for item in ZOO}) == len(ZOO)


def test_what_starts_as_one_number_is_random():
    """Weights of zeros, and scales of 1e-6, would hide what comes before them."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    model.register_buffer("mask", torch.ones(4))
    torch.nn.init.zeros_(model[0].bias)
    drawn = model[0].weight.clone()
    assert stir(model) is model
    norm = model[1]
    for tensor in (model[0].bias, norm.weight, norm.bias, norm.running_mean, norm.running_var):
        assert len(set(tensor.tolist())) == 4
    assert 0.8 <= float(norm.running_var.min()) <= float(norm.running_var.max()) <= 1.2
    assert torch.equal(model.mask, torch.ones(4))
    assert torch.equal(model[0].weight, drawn)
    assert int(norm.num_batches_tracked) == 0


def test_batch_norms_have_the_statistics_of_a_call():
    """Else a deep network's output does not depend on its input."""
    torch.manual_seed(0)
    layers = [(torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4)) for _ in range(30)]
    model = torch.nn.Sequential(*[layer for pair in layers for layer in pair]).eval()
    images = torch.randn(2, 4, 8, 8)
    with torch.no_grad():
        assert float(model(images).std()) < 0.2
        assert settle(model, images) is model
        spread = float(model(images).std())
    assert 0.5 < spread < 2
    assert not any(layer._forward_pre_hooks for layer in model)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ZOO, ids=lambda item: item.name)
def test_a_model_equals_pytorch(architecture):
    if importlib.util.find_spec(architecture.library) is None:
        pytest.skip(f"{architecture.library} is not installed")
    model = architecture.model()
    args, kwargs = architecture.example()
    others = architecture.example(seed=2)
    with torch.no_grad():
        expected = tensors_of(model(*args, **kwargs))
        changed = tensors_of(model(*others[0], **others[1]))
    assert max(map(apart, changed.values(), expected.values())) > 100 * TOLERANCE
    compiled = weft.compile(model, kwargs or args, cache=False)
    found = tensors_of(compiled(*args, **kwargs))
    assert len(found) == len(expected) > 0
    far = [name for name, value in expected.items() if apart(found[name], value) > TOLERANCE]
    exact = exact_results(model, args, kwargs) if far else {}
    for name, value in expected.items():
        if name in far and apart(value, exact[name]) > TOLERANCE / 2:
            assert apart(found[name], exact[name]) <= 1.5 * apart(value, exact[name])
        else:
            assert_close(found[name], value, f"{architecture.name}: {name}")


def exact_results(model, args, kwargs):
    """What the model gives in float64.

    With random weights a deep network may carry rounding so far that PyTorch's own float32 is
    off by the tolerance; weft must then be as near to the exact result as PyTorch is.
    """
    wide = copy.deepcopy(model).double()
    with torch.no_grad():
        return tensors_of(wide(*map(doubled, args), **{k: doubled(v) for k, v in kwargs.items()}))


def doubled(value):
    """A tensor of floats in float64."""
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value


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


def apart(found, expected):
    """The largest difference as a share of the expected tensor's largest magnitude."""
    mine, its = found.double().numpy(), expected.double().numpy()
    finite = np.isfinite(its)
    np.testing.assert_array_equal(np.isfinite(mine), finite)
    scale = np.abs(its[finite]).max(initial=0.0)
    assert scale > 0, "all zeros say nothing of a model"
    return np.abs(mine[finite] - its[finite]).max(initial=0.0) / scale


def assert_close(found, expected, what):
    """Equal up to ``TOLERANCE`` of the expected tensor's largest magnitude."""
    assert found.shape == expected.shape, what
    assert found.dtype == expected.dtype, what
    share = apart(found, expected)
    assert share <= TOLERANCE, f"{what}: {share:.2e} of its scale"


BATCH, LENGTH, TARGET = (torch.export.Dim(name, min=2, max=60) for name in ("b", "n", "m"))
IMAGES = ({0: BATCH},)
TEXT = {"input_ids": {0: BATCH, 1: LENGTH}}
BOTH = {"input_ids": {0: BATCH, 1: LENGTH}, "decoder_input_ids": {0: BATCH, 1: TARGET}}


def images(size):
    return lambda batch: (torch.randn(batch, 3, size, size),)


def words(batch, length):
    return {"input_ids": torch.randint(3, 96, (batch, length))}


def both_sides(batch, length, target):
    return {**words(batch, length), "decoder_input_ids": words(batch, target)["input_ids"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dynamic_shapes", "inputs", "sizes"),
    [
        ("resnet18", IMAGES, images(64), [(2,), (3,), (5,)]),
        ("mobilenet_v2", IMAGES, images(64), [(2,), (3,), (5,)]),
        ("unet", IMAGES, images(32), [(2,), (3,), (5,)]),
        ("hf-vit", IMAGES, images(32), [(2,), (3,), (5,)]),
        ("bert", TEXT, words, [(2, 12), (3, 7), (5, 31)]),
        ("gpt2", TEXT, words, [(2, 12), (3, 7), (5, 31)]),
        ("llama", TEXT, words, [(2, 12), (3, 7), (5, 31)]),
        ("t5", BOTH, both_sides, [(2, 12, 9), (3, 7, 5), (5, 31, 17)]),
        ("lstm-language-model", IMAGES, lambda batch: (words(batch, 9)["input_ids"],),
         [(2,), (3,), (5,)]),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)  # fmt: skip
def test_one_compilation_serves_all_sizes(name, dynamic_shapes, inputs, sizes):
    """Compiled for the first size with symbols, called with each of them."""
    architecture = find(name)
    if importlib.util.find_spec(architecture.library) is None:
        pytest.skip(f"{architecture.library} is not installed")
    model = architecture.model()
    compiled = weft.compile(model, inputs(*sizes[0]), dynamic_shapes=dynamic_shapes, cache=False)
    for size in sizes:
        given = inputs(*size)
        args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
        with torch.no_grad():
            expected = tensors_of(model(*args, **kwargs))
        found = tensors_of(compiled(*args, **kwargs))
        for place, value in expected.items():
            assert_close(found[place], value, f"{name} {size}: {place}")
