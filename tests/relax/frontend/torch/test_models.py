"""Whole models beside torch."""

from __future__ import annotations

import pytest
import torch

from tests.lib.aten import check_model

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


def vision_models():
    """torchvision; its operators in C++ are not needed, but their schemas are."""
    from tests.lib.zoo import import_torchvision

    return import_torchvision().models


class Encoder(torch.nn.Module):
    """Embeddings, two layers of a transformer, a head on the first position."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(50, 32), torch.nn.Embedding(64, 32)
        layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        self.layers = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(32, 5)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.words(tokens) + self.places(places))[:, 0])


class Language(torch.nn.Module):
    """A language model of two LSTM layers."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(50, 16)
        self.layers = torch.nn.LSTM(16, 24, 2, batch_first=True)
        self.head = torch.nn.Linear(24, 50)

    def forward(self, tokens):
        return self.head(self.layers(self.words(tokens))[0])


def test_resnet_18():
    check_model(vision_models().resnet18(), torch.randn(1, 3, 64, 64))


@pytest.mark.slow
def test_a_small_vision_transformer():
    model = vision_models().VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64,
        num_classes=10,
    )  # fmt: skip
    check_model(model, torch.randn(2, 3, 32, 32))


def test_a_language_model_of_a_symbolic_batch():
    batch = torch.export.Dim("batch", max=8)
    check_model(
        Language(), torch.randint(0, 50, (3, 7)), dynamic_shapes=({0: batch},),
        others=[(torch.randint(0, 50, (2, 7)),)],
    )  # fmt: skip


def test_an_encoder_of_symbolic_batch_and_length():
    batch, length = torch.export.Dim("batch", max=8), torch.export.Dim("length", min=2, max=32)
    check_model(
        Encoder(), torch.randint(0, 50, (3, 7)), dynamic_shapes=({0: batch, 1: length},),
        others=[(torch.randint(0, 50, (2, 11)),), (torch.randint(0, 50, (1, 2)),)],
    )  # fmt: skip


class Translator(torch.nn.Module):
    """torch's own encoder and decoder, whose layers look at the mask to see what it hides."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Transformer(16, 4, 1, 1, 32, batch_first=True)

    def forward(self, source, target, mask):
        return self.layers(source, target, tgt_mask=mask, src_key_padding_mask=source[..., 0] > 1)


def test_a_decoder_that_is_given_a_mask():
    batch, length, target = (torch.export.Dim(name, max=32) for name in ("b", "n", "m"))

    def inputs(rows, columns, words):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(words)
        return torch.randn(rows, columns, 16), torch.randn(rows, words, 16), mask

    shapes = ({0: batch, 1: length}, {0: batch, 1: target}, {0: target, 1: target})
    check_model(Translator(), *inputs(2, 7, 5), dynamic_shapes=shapes, others=[inputs(1, 3, 9)])
