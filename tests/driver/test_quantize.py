"""``weft.quantize``: integer layers from samples, beside what integers give in numpy."""

import functools
import importlib
import re

import numpy as np
import pytest

import weft
from tests.lib.onnx_models import info, model, node
from weft import relax
from weft.data import fashion_mnist
from weft.relax.transform.quantize.numbers import STEPS, coding_of, quantized_weights
from weft.script import relax as R
from weft.target.host import host_features
from weft.target.machine import machine_of
from weft.tir.byte_pairs import has_exact_pairs, largest_pairs

MACHINE = machine_of()
IN_PAIRS = MACHINE.multiplies_byte_pairs and not MACHINE.multiplies_bytes
PAIR_AXIS = 0 if IN_PAIRS else None
"""Along which axis of a matrix neighbours add up to 128 at most."""
RNG = np.random.default_rng(5)
W = RNG.standard_normal((16, 8)).astype("float32")
SAMPLES = [RNG.standard_normal((4, 16)).astype("float32") for _ in range(6)]


def product(weights=W):
    """A module whose main multiplies an activation of four rows with weights."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, weights.shape[0]), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.matmul(x, relax.const(weights)))
        builder.emit_func_output(y)
    return builder.get()


@functools.cache
def quantized_product(**options):
    """``product()`` quantized with ``SAMPLES``: once for all tests that want the same."""
    return weft.quantize(product(), SAMPLES, **options)


@functools.cache
def compiled_product(**options):
    """The same, compiled."""
    return weft.compile(quantized_product(**options))


def in_integers(x, coding, weights=W):
    """The product of what the integers stand for."""
    steps = x * np.float32(1 / np.float32(coding.scale)) + np.float32(coding.zero_point)
    q = np.clip(np.rint(steps), 0, STEPS)
    numbers, scales = quantized_weights(weights, 1, PAIR_AXIS)
    total = (q.astype("int64") - coding.zero_point) @ numbers.astype("int64")
    return total.astype("float32") * (np.float32(coding.scale) * scales)


def relative(given, wanted):
    return np.linalg.norm(given - wanted) / np.linalg.norm(wanted)


def test_a_static_product_is_the_sum_of_integers():
    compiled = compiled_product(bias_correction=False)
    coding = coding_of(np.min(SAMPLES), np.max(SAMPLES))
    for x in [*SAMPLES, 9 * SAMPLES[0], np.zeros_like(SAMPLES[0])]:  # out of the range, too
        np.testing.assert_allclose(compiled(x), in_integers(x, coding), rtol=1e-5, atol=1e-6)


def test_the_report_has_the_error_that_the_layer_has():
    quantized = quantized_product(bias_correction=False)
    coding = coding_of(np.min(SAMPLES), np.max(SAMPLES))
    together = np.concatenate(SAMPLES)
    [layer] = quantized.report.layers
    assert layer.error == pytest.approx(relative(in_integers(together, coding), together @ W), 1e-3)
    assert (layer.name, layer.weights, layer.is_integer) == ("matmul_0", (16, 8), True)
    assert "matmul_0      16x8" in str(quantized.report)
    assert "1 of 1 layers multiply integers" in str(quantized.report)


def test_bias_correction_takes_the_mean_error_away():
    together = np.concatenate(SAMPLES)
    ways = [{"bias_correction": wanted} for wanted in (False, True)]
    corrected = quantized_product(**ways[1])
    reports = [weft.quantize(product(), SAMPLES[:1] * 3, **way).report for way in ways]
    [before], [less] = [report.layers for report in reports]
    assert less.error < before.error
    errors = []
    for way in ways:
        compiled = compiled_product(**way)
        y = np.concatenate([compiled(x) for x in SAMPLES])
        errors.append(y - together @ W)
    medians = [np.median(e.reshape(len(SAMPLES), 4, 8).mean(1), axis=0) for e in errors]
    assert np.abs(medians[0]).max() > 1e-4
    assert np.abs(medians[1]).max() < 1e-5
    [after] = corrected.report.layers
    assert after.error == pytest.approx(
        np.linalg.norm(errors[1]) / np.linalg.norm(together @ W), 1e-2
    )


@pytest.mark.parametrize("method", ["static", "dynamic"])
def test_the_processor_multiplies_bytes(method):
    quantized = weft.quantize(product(), SAMPLES, method=method)
    compiled = weft.compile(quantized, target="llvm -mcpu=cascadelake")
    assert re.search("vpdpbusd", compiled.get_source("asm"))


@pytest.mark.skipif(not host_features().get("avx2", False), reason="cannot run code for AVX2")
@pytest.mark.parametrize("method", ["static", "dynamic"])
def test_weights_are_such_that_bytes_can_be_multiplied_in_pairs(method):
    target = "llvm -mcpu=haswell"
    quantized = weft.quantize(product(), SAMPLES, method=method, target=target)
    compiled = weft.compile(quantized, target=target)
    assert "vpmaddubsw" in compiled.get_source("asm")
    [layer] = quantized.report.layers
    assert relative(compiled(SAMPLES[0]), SAMPLES[0] @ W) < 2 * layer.error < 0.04


def test_pairs_of_quantized_weights():
    """Scales are as small as pairs allow: the largest pair of a channel is near 128."""
    random = np.random.default_rng(0)
    for shape, axis in (((9, 31), 0), ((31, 9), 1), ((8, 30, 3, 3), 0)):
        weights = random.standard_normal(shape).astype("float32")
        numbers, scales = quantized_weights(weights, axis, 1 - axis)
        assert has_exact_pairs(numbers, 1 - axis)
        largest = largest_pairs(numbers.astype("int64"), 1 - axis)
        others = tuple([other for other in range(len(shape)) if other != axis])
        whole = np.abs(numbers.astype("int64")).max(axis=others)
        assert ((largest.max(axis=others) >= 126) | (whole == 127)).all()
        wide = scales.reshape([-1 if other == axis else 1 for other in range(len(shape))])
        assert (np.abs(numbers * wide - weights) < 0.51 * wide).all()


def test_layers_over_the_limit_and_layers_to_skip_stay_float32():
    for options, reason in (
        ({"limit": 1e-6}, "its error exceeds the limit of 0.00%"),
        ({"skip": ["matmul_0"]}, "it is among those to skip"),
    ):
        quantized = weft.quantize(product(), SAMPLES, **options)
        assert [layer.reason for layer in quantized.report.layers] == [reason]
        np.testing.assert_allclose(
            weft.compile(quantized)(SAMPLES[0]), SAMPLES[0] @ W, rtol=1e-4, atol=1e-5
        )
        assert repr(quantized) == "QuantizedModel(main, 0 of 1 layers in int8)"


def test_a_percentile_leaves_outliers_out():
    rng = np.random.default_rng(8)
    samples = [rng.standard_normal((4, 16)).astype("float32") for _ in range(20)]
    samples[3][1, 2] = 900
    wide, narrow = [
        weft.compile(weft.quantize(product(), samples, calibration=name, percentile=99.9, limit=9))
        for name in ("minmax", "percentile")
    ]
    x = samples[0]
    assert relative(narrow(x), x @ W) < 0.2 < 0.5 < relative(wide(x), x @ W)


@pytest.mark.parametrize("x", [SAMPLES[0], 1e4 * SAMPLES[1], np.zeros((4, 16), "float32"),
                               -np.abs(SAMPLES[2])])  # fmt: skip
def test_dynamic_products_find_the_range_in_each_call(x):
    compiled = compiled_product(method="dynamic", limit=1)
    means = compiled_product(method="dynamic", bias_correction=False)
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = (high - low) / 255 or 1
    y = means(x)
    assert np.abs(y - x @ W).max() <= 16 * np.abs(W).max() * scale + 0.03 * np.abs(x @ W).max()
    assert compiled(x).shape == (4, 8)


def test_an_activation_of_one_value_and_weights_of_zeros():
    weights = np.zeros((16, 8), "float32")
    weights[:, 1] = 1
    for value in (0.0, 3.0, -2.0):
        x = np.full((4, 16), value, "float32")
        y = weft.compile(weft.quantize(product(weights), [x]))(x)
        np.testing.assert_allclose(y, x @ weights, atol=1e-2)


def test_layers_with_nan_and_infinity_in_samples_stay_float32():
    samples = [SAMPLES[0].copy(), SAMPLES[1]]
    samples[0][0, 0], samples[0][1, 1] = np.inf, np.nan
    quantized = weft.quantize(product(), samples, limit=float("inf"))
    [layer] = quantized.report.layers
    assert layer.reason == "its numbers on the samples are not finite"
    np.testing.assert_allclose(
        weft.compile(quantized)(SAMPLES[1]), SAMPLES[1] @ W, rtol=1e-4, atol=1e-5
    )


def test_a_branch_keeps_its_layers():
    @weft.script.ir_module
    class Module:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((4, 16), "float32"),
                 w: R.Tensor((16, 16), "float32")):  # fmt: skip
            if c:
                y = R.matmul(x, w)
            else:
                y = x
            return y

    bound = relax.transform.BindParams("main", {"w": W @ W.T})(Module)
    quantized = weft.quantize(bound, [(np.array(True), SAMPLES[0])])
    assert quantized.report.layers == ()
    y = weft.compile(quantized)(np.array(True), SAMPLES[0])
    np.testing.assert_allclose(y, SAMPLES[0] @ (W @ W.T), rtol=1e-4, atol=1e-4)


def test_the_same_numbers_are_found_in_the_cache_and_others_are_not(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    x = SAMPLES[0]
    first = weft.compile(weft.quantize(product(), SAMPLES))(x)
    (entry,) = (tmp_path / "models").iterdir()
    again = weft.compile(weft.quantize(product(), SAMPLES))(x)
    assert list((tmp_path / "models").iterdir()) == [entry]
    other = weft.compile(weft.quantize(product(), SAMPLES[:1]))(x)
    assert len(list((tmp_path / "models").iterdir())) == 2
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_quantized_model_is_saved_and_loaded(tmp_path):
    compiled = compiled_product()
    compiled.save(tmp_path / "model.weft")
    loaded = weft.load(tmp_path / "model.weft")
    np.testing.assert_array_equal(loaded(SAMPLES[0]), compiled(SAMPLES[0]))


@pytest.mark.onnx
def test_an_onnx_model_of_any_batch():
    rng = np.random.default_rng(7)
    nodes = [node("Gemm", "x w b", "h", transB=1), node("Relu", "h", "r"),
             node("MatMul", "r v", "y")]  # fmt: skip
    constants = {"w": rng.standard_normal((24, 16)).astype("float32"),
                 "b": rng.standard_normal(24).astype("float32"),
                 "v": rng.standard_normal((24, 3)).astype("float32")}  # fmt: skip
    proto = model(nodes, [info("x", shape=["n", 16])], ["y"], constants=constants)
    samples = [rng.uniform(-1, 1, (rows, 16)).astype("float32") for rows in (1, 3, 64, 5)]
    quantized = weft.quantize(proto, samples)
    assert quantized.report.integer_layers == 2
    compiled, exact = weft.compile(quantized), weft.compile(proto)
    for rows in (0, 1, 2, 17):
        x = rng.uniform(-1, 1, (rows, 16)).astype("float32")
        given, wanted = compiled(x), exact(x)
        assert given.shape == wanted.shape
        assert rows == 0 or relative(given, wanted) < 0.1


@pytest.mark.torch
def test_a_network_of_torch_with_batch_norm_groups_and_a_residual():
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.norm = torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.BatchNorm2d(16)
            self.deep = torch.nn.Conv2d(16, 16, 3, 1, 1, groups=16)
            self.point, self.head = torch.nn.Conv2d(16, 16, 1), torch.nn.Linear(16, 5)

        def forward(self, image, *, scale=1.0):
            x = torch.relu(self.norm(self.stem(image)))
            x = x + self.point(torch.relu(self.deep(x)))
            return self.head(x.mean((2, 3))) * scale

    torch.manual_seed(0)
    net = Net().eval()
    net.norm.running_mean.uniform_(-1, 1)
    net.norm.running_var.uniform_(0.5, 2)
    samples = [{"image": torch.randn(2, 3, 17, 15)} for _ in range(5)]
    quantized = weft.quantize(net, samples)
    assert [layer.name for layer in quantized.report.layers if layer.is_integer] == [
        "conv2d_0", "conv2d_2", "matmul_0",
    ]  # fmt: skip
    (other,) = [layer for layer in quantized.report.layers if not layer.is_integer]
    assert (other.name, other.reason) == ("conv2d_1", "its channels are in groups")
    compiled = weft.compile(quantized)
    for sample in samples:
        given = compiled(**sample)
        assert isinstance(given, torch.Tensor)
        assert relative(given.numpy(), net(**sample).detach().numpy()) < 0.03


@pytest.mark.torch
def test_a_model_that_changes_its_tensors_is_refused():
    import torch

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            self.calls.add_(1)
            return self.linear(x)

    with pytest.raises(weft.UnsupportedError, match="calls of this model change its tensors"):
        weft.quantize(Counter().eval(), [torch.randn(2, 3)])


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([], {}, "samples: expected at least one, got none"),
        ({"x": SAMPLES[0]}, {}, "expected a list of inputs, .* got dict"),
        (SAMPLES[0], {}, "got ndarray; write \\[it\\] for a single sample"),
        (3, {}, "expected a list of inputs, .* got int"),
        (SAMPLES, {"method": "int8"}, "method: expected static or dynamic, got 'int8'"),
        (SAMPLES, {"calibration": "kl"}, "calibration: expected minmax or percentile, got 'kl'"),
        (SAMPLES, {"percentile": 0.99}, "percentile: expected a number over 50 and at most 100"),
        (SAMPLES, {"limit": -1}, "limit: expected 0 or more, got -1"),
        (SAMPLES, {"limit": float("nan")}, "limit: expected 0 or more, got nan"),
        (SAMPLES, {"skip": ["matmul_1"]}, "no layer is named 'matmul_1'; did you mean matmul_0?"),
        (SAMPLES, {"skip": "matmul_0"}, "skip: expected names of layers, got a text"),
        ([SAMPLES[0].astype("float64")], {}, "float64"),
        ([SAMPLES[0][:2]], {}, "4"),
    ],
)
def test_wrong_uses_say_what_is_expected(samples, options, message):
    with pytest.raises(weft.TVMError, match=message) as error:
        weft.quantize(product(), samples, **options)
    assert len(str(error.value).splitlines()) <= 10


def test_a_quantized_model_takes_no_example_inputs():
    quantized = quantized_product()
    with pytest.raises(weft.TVMError, match="needs no example inputs"):
        weft.compile(quantized, SAMPLES[0])
    with pytest.raises(weft.TVMError, match="quantized already"):
        weft.quantize(quantized, SAMPLES)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_trained_classifiers_keep_their_classes(name):
    """The shipped networks, calibrated on 32 of the shipped test images."""
    import torch

    network = importlib.import_module(f"weft.cli.demo_{name}").torch_model(
        getattr(fashion_mnist, f"load_{name}_parameters")()
    )
    images = fashion_mnist.load_subset().as_float()
    batches = torch.from_numpy(images.reshape(-1, 4, *((784,) if name == "mlp" else (1, 28, 28))))
    quantized = weft.quantize(network, list(batches[:8]))
    assert quantized.report.integer_layers == len(quantized.report.layers) >= 2
    compiled = weft.compile(quantized)
    with torch.no_grad():
        exact = torch.cat([network(batch) for batch in batches]).numpy()
    given = torch.cat([compiled(batch) for batch in batches]).numpy()
    assert (given.argmax(1) == exact.argmax(1)).mean() >= 0.99
    cosines = (given * exact).sum(1) / np.linalg.norm(given, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.quantile(cosines, 0.01) > 0.99
    assert cosines.mean() > 0.999
