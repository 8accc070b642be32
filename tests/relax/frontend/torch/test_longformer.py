"""Longformer of transformers: local attention compiles, global attention is refused clearly."""

from __future__ import annotations

import pytest
import torch

import weft
from tests.lib.aten import check_model
from tests.lib.zoo import import_torchvision
from weft.support.errors import UnsupportedError

pytestmark = [pytest.mark.sampled(2), pytest.mark.torch]


@pytest.fixture(scope="module")
def transformers():
    """The package, which imports torchvision where that is installed."""
    import_torchvision()
    return pytest.importorskip("transformers")


def small(transformers, head):
    """A Longformer of two layers whose tokens see two neighbours on each side."""
    torch.manual_seed(0)
    config = transformers.LongformerConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, attention_window=[4, 4], max_position_embeddings=40, pad_token_id=1,
    )  # fmt: skip
    return getattr(transformers, head)(config).eval()


class Inner(torch.nn.Module):
    """All that the model gives, as a tuple."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, mask):
        """The last states, all states, and the attention of each layer."""
        result = self.model(tokens, mask, output_hidden_states=True, output_attentions=True)
        return result.last_hidden_state, *result.hidden_states, *result.attentions


@pytest.mark.parametrize("length", [8, 10])
def test_local_attention(transformers, length):
    """Of whole windows, and of a length that the model pads; the last tokens of a row are none."""
    tokens = torch.randint(2, 50, (2, length))
    mask = torch.ones_like(tokens)
    mask[1, -3:] = 0
    check_model(Inner(small(transformers, "LongformerModel")), tokens, mask)


def test_global_attention_says_what_to_do(transformers):
    model = small(transformers, "LongformerForSequenceClassification")
    with pytest.raises(UnsupportedError, match=r"expected no global_attention_mask, got one .*"):
        weft.compile(model, (torch.randint(2, 50, (1, 8)),), cache=False)
