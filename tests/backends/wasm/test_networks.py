"""Networks compiled for WebAssembly: node computes what the same network computes on this CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft
from tests.lib.node import missing, run_in_node
from tests.lib.small_networks import Bert, Cnn
from tests.lib.zoo import import_torchvision
from weft.cli.demo_cnn import BATCH, graph
from weft.data import fashion_mnist

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=missing() or "none"),
    pytest.mark.torch,
]
LARGEST_CODE = 300_000
"""Bytes of a model's code."""
LARGEST_SCRIPT = {True: 5 * 1024, False: 6 * 1024}
"""Bytes of model.js, of models of one size and of any: these place tensors at the call."""


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


def agree(net, folder, *calls, relaxed=(False,), **options):
    """The model in node gives what it gives here to 1e-4; its files are small."""
    net.eval()
    example = tuple(torch.from_numpy(array) for array in calls[0])
    weft.compile(net, example, target="wasm", **options).save(folder)
    for name in ("model.wasm", "model-relaxed.wasm"):
        assert (folder / name).stat().st_size <= LARGEST_CODE
    assert (folder / "model.js").stat().st_size <= LARGEST_SCRIPT[not options]
    native = weft.compile(net, example, **options)
    for is_relaxed in relaxed:
        results = run_in_node(folder, *calls, relaxed=is_relaxed)
        for inputs, outputs in zip(calls, results, strict=True):
            wanted = native(*inputs)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for result, expected in zip(outputs, wanted, strict=True):
                np.testing.assert_allclose(result, expected, atol=1e-4, rtol=1e-4)


def numbers(*shape):
    return np.random.default_rng(1).standard_normal(shape, "float32")


def test_a_cnn(tmp_path):
    agree(Cnn(), tmp_path, [numbers(2, 1, 28, 28)], relaxed=(False, True))


def test_a_cnn_of_any_batch(tmp_path):
    calls = [[numbers(n, 1, 28, 28)] for n in (2, 7, 0, 1)]
    agree(Cnn(), tmp_path, *calls, dynamic_shapes=({0: torch.export.Dim("n")},))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_of_16_bits(dtype, tmp_path):
    calls = [[numbers(2, 1, 28, 28)]]
    net = Cnn().eval()
    example = (torch.from_numpy(calls[0][0]),)
    weft.compile(net, example, target="wasm", dtype=dtype).save(tmp_path)
    ((result,),) = run_in_node(tmp_path, *calls)
    native = weft.compile(net, example, dtype=dtype)(*calls[0])
    np.testing.assert_allclose(result, native, atol=1e-4, rtol=1e-4)


def test_small_integers(tmp_path):
    image = numbers(2, 1, 28, 28)
    quantized = weft.quantize(Cnn().eval(), [(torch.from_numpy(image),)])
    weft.compile(quantized, target="wasm").save(tmp_path)
    ((result,),) = run_in_node(tmp_path, [image])
    np.testing.assert_allclose(result, weft.compile(quantized)(image), atol=1e-4, rtol=1e-4)


def test_fashion_mnist(tmp_path):
    data = fashion_mnist.load_subset()
    images = [data.as_float()[at : at + BATCH].reshape(BATCH, 1, 28, 28) for at in (0, BATCH)]
    model = graph(fashion_mnist.load_cnn_parameters())
    weft.compile(model, target="wasm").save(tmp_path)
    results = run_in_node(tmp_path, *[[image] for image in images])
    native = weft.compile(model)
    for (scores,), image in zip(results, images, strict=True):
        np.testing.assert_allclose(scores, native(image), atol=1e-4, rtol=1e-4)
    classes = np.concatenate([scores.argmax(1) for (scores,) in results])
    assert (classes == data.labels[: 2 * BATCH]).mean() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "squeezenet1_1"])
def test_a_network_of_torchvision(name, tmp_path):
    net = getattr(import_torchvision().models, name)()
    agree(net, tmp_path, [numbers(1, 3, 224, 224)], relaxed=(False, True))


@pytest.mark.slow
def test_bert(tmp_path):
    tokens = np.random.default_rng(1).integers(0, 1000, (1, 128))
    agree(Bert(), tmp_path, [tokens])
