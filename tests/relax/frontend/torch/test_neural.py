"""Layers beside torch: one build for each family of calls."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own spelling

import weft
from tests.lib.aten import check_model, check_overload
from tests.lib.aten_samples import check_calls

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]

_SPEC = importlib.util.spec_from_file_location(
    "neural_cases", Path(__file__).with_name("neural_cases.py")
)
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)

FAMILIES = (
    "activations", "convolutions", "pools", "norms", "attention", "windows", "gradients",
    "resampling",
)  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_layers(family):
    check_calls(getattr(cases, family)("float32"), at_once=40)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["activations", "convolutions", "norms", "attention"])
def test_layers_of_float16(family):
    calls = getattr(cases, family)("float16")
    # torch deduces float32 for the running statistics of these, and gives float16.
    check_calls([c for c in calls if "legit_functional" not in c.name], at_once=40)


def test_pooling_of_integers():
    x = cases.numbers((1, 2, 6, 6), "int64")
    check_overload("aten.max_pool2d_with_indices.default", x, [2, 2])
    check_overload("aten.avg_pool2d.default", x, [2, 2], [2, 2], [0, 0], False, True, 3)


class Applied(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def test_losses():
    def losses(x, y):
        return (
            F.mse_loss(x, y), F.l1_loss(x, y, reduction="none"), F.smooth_l1_loss(x, y),
            F.huber_loss(x, y, delta=0.5), F.kl_div(x, y, reduction="batchmean"),
            F.soft_margin_loss(x, y),
            F.binary_cross_entropy_with_logits(x, y), F.poisson_nll_loss(x, y),
            F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.cosine_similarity(x, y),
            F.pairwise_distance(x, y), F.hinge_embedding_loss(x, y.sign()),
            F.triplet_margin_loss(x, y, x + y),
        )  # fmt: skip

    check_model(Applied(losses), torch.randn(5, 4), torch.rand(5, 4))


def test_losses_of_classes():
    def losses(x, targets, weights):
        return (
            F.cross_entropy(x, targets), F.cross_entropy(x, targets, weights, label_smoothing=0.1),
            F.nll_loss(x, targets, weights, reduction="none"), F.nll_loss(x, targets.clamp(min=0)),
            F.multi_margin_loss(x, targets.clamp(min=0)),
        )  # fmt: skip

    targets = torch.tensor([0, 1, 2, 3, -100])
    check_model(Applied(losses), torch.randn(5, 4), targets, torch.rand(4))


def test_bags_of_embeddings():
    def bags(table, indices, offsets, weights):
        return (
            F.embedding_bag(indices, table, offsets),
            F.embedding_bag(indices, table, offsets, mode="max", padding_idx=4),
            F.embedding_bag(indices, table, offsets, mode="sum", per_sample_weights=weights),
            F.embedding_bag(indices.reshape(2, 3), table, padding_idx=1),
        )  # fmt: skip

    indices, offsets = torch.tensor([1, 2, 3, 4, 9, 1]), torch.tensor([0, 2, 2])
    check_model(Applied(bags), torch.randn(10, 4), indices, offsets, torch.rand(6))


def test_layers_of_torch_nn():
    layers = (
        torch.nn.Conv2d(4, 4, 3, padding="same", groups=4, padding_mode="reflect"),
        torch.nn.InstanceNorm2d(4, affine=True), torch.nn.PReLU(4), torch.nn.GroupNorm(2, 4),
        torch.nn.LocalResponseNorm(3), torch.nn.PixelShuffle(2), torch.nn.PixelUnshuffle(2),
        torch.nn.ChannelShuffle(2), torch.nn.BatchNorm2d(4),
    )  # fmt: skip
    check_model(torch.nn.Sequential(*layers), torch.randn(2, 4, 6, 5))


def test_layers_of_symbolic_extents():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 4, 3, stride=2, padding=1), torch.nn.BatchNorm2d(4), torch.nn.GELU(),
        torch.nn.MaxPool2d(3, 2, padding=1), torch.nn.Upsample(scale_factor=2),
        torch.nn.AdaptiveAvgPool2d((2, 3)), torch.nn.Flatten(), torch.nn.LayerNorm(24),
        torch.nn.Softmax(-1),
    )  # fmt: skip
    n, side = torch.export.Dim("n", max=16), torch.export.Dim("side", min=16, max=64)
    check_model(
        model, torch.randn(3, 2, 20, 20), dynamic_shapes=({0: n, 2: side, 3: side},),
        others=[(torch.randn(1, 2, 33, 33),), (torch.randn(2, 2, 16, 16),)],
    )  # fmt: skip


def test_attention_of_symbolic_lengths():
    def attend(q, k, mask):
        return F.scaled_dot_product_attention(q, k, k, mask), F.scaled_dot_product_attention(
            q, k, k, is_causal=True
        )

    n, m = torch.export.Dim("n", min=2, max=16), torch.export.Dim("m", min=2, max=16)
    check_model(
        Applied(attend), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.rand(5, 7) > 0.3,
        dynamic_shapes=(({2: n}, {2: m}, {0: n, 1: m}),),
        others=[(torch.randn(2, 3, 2, 8), torch.randn(2, 3, 9, 8), torch.rand(2, 9) > 0.3)],
    )  # fmt: skip


def test_dropout_in_attention_is_refused():
    q = torch.randn(1, 1, 2, 4)
    with pytest.raises(weft.TVMError, match=r"dropout_p=0\.5 .* call model\.eval\(\)"):
        check_overload("aten.scaled_dot_product_attention.default", q, q, q, None, 0.5)


def test_uneven_factors_of_symbolic_extents():
    n = torch.export.Dim("n", min=4, max=64)
    model = Applied(lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"))
    check_model(model, torch.randn(1, 2, 8, 8), dynamic_shapes=(({2: n},),))


def test_a_convolution_along_time_batch_and_channels():
    check_model(
        Applied(lambda x, w, b: torch.conv_tbc(x, w, b, 1)),
        torch.randn(8, 3, 9), torch.randn(2, 9, 4), torch.randn(4),
    )  # fmt: skip
