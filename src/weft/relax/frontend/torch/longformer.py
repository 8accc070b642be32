"""What stands for functions of transformers' Longformer that torch.export cannot capture.

Its encoder asks the values of its mask whether any token attends to all others. Only
``global_attention_mask`` marks such tokens, so without it the answer is no.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from weft.support.errors import UnsupportedError


class Encoder(Protocol):
    """What ``local_encoder`` needs of transformers' ``LongformerEncoder``."""

    layer: Sequence[torch.nn.Module]


def local_encoder(
    self: Encoder,
    hidden_states: Tensor,
    attention_mask: Tensor,
    padding_len: int = 0,
    output_attentions: bool = False,
    output_hidden_states: bool = False,
    return_dict: bool = True,
) -> object:
    """The layers one after another, in which each token attends to those near it only.

    ``attention_mask`` is 0 where a token takes part and negative elsewhere.
    """
    states, attentions = [hidden_states], []
    for layer in self.layer:
        state, *rest = layer(
            states[-1],
            attention_mask=attention_mask,
            is_index_masked=attention_mask < 0,
            is_index_global_attn=attention_mask > 0,
            is_global_attn=False,
            output_attentions=output_attentions,
        )
        states.append(state)
        attentions += [weights.transpose(1, 2) for weights in rest]
    length = hidden_states.shape[1] - padding_len
    results = (
        states[-1][:, :length],
        tuple([state[:, :length] for state in states]) if output_hidden_states else None,
        tuple([weights[:, :, :length] for weights in attentions]) if output_attentions else None,
    )
    if not return_dict:
        return tuple([item for item in results if item is not None])
    module = sys.modules["transformers.models.longformer.modeling_longformer"]
    return module.LongformerBaseModelOutput(*results)


def refuse_global_attention(
    self: object, attention_mask: Tensor, global_attention_mask: Tensor
) -> Tensor:
    """An error, where torch would report a branch on data inside of transformers."""
    raise UnsupportedError(
        "Longformer: expected no global_attention_mask, got one (heads for classification, answers "
        "and choices make one themselves): how many tokens attend to all others is asked of its "
        'values; use torch.compile(model, backend="weft"), which splits the model there'
    )
