"""Longformer of transformers: attention to neighbours, and of tokens that a mask marks to all."""

from __future__ import annotations

import pytest
import torch

from tests.lib.aten import check_model
from tests.lib.zoo import import_torchvision

pytestmark = [pytest.mark.sampled(2), pytest.mark.torch]


@pytest.fixture(scope="module")
def transformers():
    """The package, which imports torchvision where that is installed."""
    import_torchvision()
    return pytest.importorskip("transformers")


def small(transformers, head, layers=2):
    """A Longformer whose tokens see two neighbours on each side."""
    torch.manual_seed(0)
    config = transformers.LongformerConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=32, attention_window=[4] * layers, max_position_embeddings=40,
        pad_token_id=1,
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


class WithGlobal(Inner):
    """As ``Inner``, with tokens that attend to all others."""

    def forward(self, tokens, mask, is_global):
        """The last states, all states, the attention of each layer and that of these tokens."""
        result = self.model(tokens, mask, global_attention_mask=is_global,
                            output_hidden_states=True, output_attentions=True)  # fmt: skip
        return (result.last_hidden_state, *result.hidden_states, *result.attentions,
                *result.global_attentions)  # fmt: skip


def marked(tokens, *places):
    """1 at the places and 0 elsewhere."""
    mask = torch.zeros_like(tokens)
    for place in places:
        mask[place] = 1
    return mask


def test_global_attention(transformers):
    """As many as there are in the row that has the most: more in one row, one, all."""
    tokens = torch.randint(2, 50, (2, 10))
    mask = torch.ones_like(tokens)
    mask[1, -3:] = 0
    counts = [marked(tokens, (0, 0), (0, 4), (1, 2)), marked(tokens, (1, 1)), mask]
    check_model(
        WithGlobal(small(transformers, "LongformerModel")), tokens, mask, counts[0],
        others=[(tokens, mask, count) for count in counts[1:]],
    )  # fmt: skip


class States(Inner):
    """The last states only."""

    def forward(self, tokens, is_global):
        return self.model(tokens, global_attention_mask=is_global).last_hidden_state


@pytest.mark.slow
def test_a_mask_in_which_no_token_is_global(transformers):
    tokens = torch.randint(2, 50, (2, 8))
    model = States(small(transformers, "LongformerModel", layers=1))
    check_model(model, tokens, marked(tokens, (0, 7)), others=[(tokens, marked(tokens))])


class Logits(Inner):
    """What a head says of the tokens, which makes a mask of its own."""

    def forward(self, tokens):
        result = self.model(tokens)
        return result[0] if "logits" in result else (result.start_logits, result.end_logits)


@pytest.mark.slow
@pytest.mark.parametrize("head", ["SequenceClassification", "QuestionAnswering", "MultipleChoice"])
def test_heads_that_say_which_tokens_are_global(transformers, head):
    """The first one for classification, else those of the question (or of the choice)."""
    model = small(transformers, f"LongformerFor{head}", layers=1)
    tokens, other = (torch.randint(4, 50, (2, 10)) for _ in range(2))
    for row, places in zip([*tokens, *other], ([3, 4, 9], [1, 5, 7], [0, 2, 3], [7, 8, 9]),
                           strict=True):  # fmt: skip
        row[places] = model.config.sep_token_id
    given = [item[:, None] if head == "MultipleChoice" else item for item in (tokens, other)]
    check_model(Logits(model), given[0], others=[(given[1],)])
