"""weft.compile(dtype=...): half the bytes of weights, results near those of float32."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import weft
from weft import relax
from weft.support.errors import IRValueError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TYPES = ("bfloat16", "float16")
ERRORS = {"bfloat16": 2e-2, "float16": 2e-3}
"""The largest error that is allowed, as a share of the largest result. Rounding a weight to the
nearest has a relative error of up to 2**-9, or 2**-12; errors of layers add up."""
COSINES = {"bfloat16": 0.9999, "float16": 0.999999}
"""The cosine that results must have with those in float32, at least."""


def mlp():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(128, 128), torch.nn.ReLU()] * 3
    return torch.nn.Sequential(*layers, torch.nn.Linear(128, 10)).eval(), torch.randn(2, 128)


class Block(torch.nn.Module):
    """Two convolutions with batch norms, and their input again."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = [
            torch.nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2)
        ]
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(x + self.second(torch.relu(self.norm(self.first(x)))))


def cnn():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, stride=2), Block(32), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(32, 48, 1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(48, 10), torch.nn.Softmax(-1),
    )  # fmt: skip
    return net.eval(), torch.randn(1, 3, 40, 40)


def encoder():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, activation="gelu", batch_first=True)
    layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    net = torch.nn.Sequential(torch.nn.Embedding(1000, 64), layers)
    return net.eval(), torch.randint(0, 1000, (1, 32))


def bert():
    pytest.importorskip("transformers")
    networks = importlib.import_module("benchmarks.networks")
    library = networks._transformers()
    config = library.BertConfig(num_hidden_layers=2)
    net = networks._hidden(library.BertModel(config)).eval()
    return net, torch.randint(0, config.vocab_size, (1, 32))


def resnet():
    return importlib.import_module("benchmarks.networks").resnet18().eval(), torch.randn(
        1, 3, 224, 224
    )


def weight_bytes(model):
    return sum(array._array.nbytes for array in model.program.constants)


def close(given, wanted, dtype):
    given, wanted = [np.asarray(item, "float64").ravel() for item in (given, wanted)]
    assert np.abs(given - wanted).max() <= ERRORS[dtype] * np.abs(wanted).max()
    norm = math.sqrt((given @ given) * (wanted @ wanted))
    assert given @ wanted >= COSINES[dtype] * norm


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "network",
    [
        mlp,
        cnn,
        encoder,
        pytest.param(bert, marks=pytest.mark.slow),
        pytest.param(resnet, marks=pytest.mark.slow),
    ],
)
def test_results_are_near_those_of_float32(network, dtype):
    net, x = network()
    with torch.no_grad():
        wanted = net(x).numpy()
    model = weft.compile(net, (x,), dtype=dtype)
    result = model(x)
    assert result.dtype == torch.float32
    close(result, wanted, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_half_the_bytes_in_memory_and_in_the_file(dtype, tmp_path):
    net, x = mlp()
    plain, narrow = weft.compile(net, (x,)), weft.compile(net, (x,), dtype=dtype)
    assert weight_bytes(narrow) < 0.52 * weight_bytes(plain)
    sizes = []
    for name, model in (("plain", plain), ("narrow", narrow)):
        model.save(tmp_path / f"{name}.weft")
        sizes.append((tmp_path / f"{name}.weft").stat().st_size)
    assert sizes[0] - sizes[1] > 0.45 * weight_bytes(plain)
    loaded = weft.load(tmp_path / "narrow.weft")
    torch.testing.assert_close(loaded(x), narrow(x))


def test_each_type_is_a_model_of_its_own_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    net, x = mlp()
    for _ in range(2):
        models = [weft.compile(net, (x,), dtype=dtype) for dtype in (None, *TYPES)]
    assert len(list((tmp_path / "models").iterdir())) == 3
    assert weight_bytes(models[1]) == weight_bytes(models[2]) < weight_bytes(models[0])
    assert not np.array_equal(models[1](x), models[2](x))


def product():
    x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(
                relax.op.matmul(x, relax.const(np.eye(4, dtype="float32")))
            )
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("dtype", TYPES)
def test_every_pass_keeps_the_narrow_results(dtype):
    model = weft.compile(product(), dtype=dtype, verify=True)
    assert model.program.constants[0].dtype == dtype
    np.testing.assert_array_equal(model(np.ones((2, 4), "float32")), np.ones((2, 4)))


def test_without_schedules():
    model = weft.compile(product(), dtype="float16", relax_pipeline="unscheduled")
    assert model.program.constants[0].dtype == "float16"


@pytest.mark.parametrize("dtype", ["int8", "float32", "half", 16])
def test_other_types_are_refused(dtype):
    with pytest.raises(IRValueError, match="dtype: expected 'bfloat16' or 'float16', got"):
        weft.compile(product(), dtype=dtype)


@pytest.mark.parametrize("pipeline", [None, "default", relax.transform.LegalizeOps()])
def test_pipelines_that_do_not_narrow_are_refused(pipeline):
    with pytest.raises(IRValueError, match="dtype= is for the pipelines 'weft' or 'unscheduled'"):
        weft.compile(product(), dtype="bfloat16", relax_pipeline=pipeline)
