"""What stands for functions of transformers' Longformer that torch.export cannot capture.

Its encoder asks the values of its mask whether any token attends to all others, and its layers
write what they compute for those tokens to places that ``nonzero`` finds. Here the model's own
``global_attention_mask`` answers the first question (without it no token does), and the places are
the first ones of a stable sort of the mask, so that one extent only depends on data: the largest
number of such tokens in a row of the batch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, cast
from weakref import WeakSet

import torch
from torch import Tensor

_GLOBAL: Final[WeakSet[object]] = WeakSet()
"""Encoders whose model has been given a ``global_attention_mask`` for the call under way."""


class Model(Protocol):
    """What ``merged_mask`` needs of transformers' ``LongformerModel``."""

    encoder: torch.nn.Module


class Encoder(Protocol):
    """What ``encoded`` needs of transformers' ``LongformerEncoder``."""

    layer: Sequence[torch.nn.Module]


class Attention(Protocol):
    """What ``attended`` needs of transformers' ``LongformerSelfAttention``."""

    num_heads: int
    head_dim: int
    dropout: float
    training: bool
    one_sided_attn_window_size: int
    query: Callable[[Tensor], Tensor]
    key: Callable[[Tensor], Tensor]
    value: Callable[[Tensor], Tensor]
    query_global: Callable[[Tensor], Tensor]
    key_global: Callable[[Tensor], Tensor]
    value_global: Callable[[Tensor], Tensor]
    _sliding_chunks_query_key_matmul: Callable[[Tensor, Tensor, int], Tensor]
    _sliding_chunks_matmul_attn_probs_value: Callable[[Tensor, Tensor, int], Tensor]


def merged_mask(self: Model, attention_mask: Tensor, global_attention_mask: Tensor) -> Tensor:
    """0 for no attention, 1 for that of neighbours, 2 for that of all; the encoder is told."""
    _GLOBAL.add(self.encoder)
    return attention_mask * (global_attention_mask + 1)


def encoded(
    self: Encoder,
    hidden_states: Tensor,
    attention_mask: Tensor,
    padding_len: int = 0,
    output_attentions: bool = False,
    output_hidden_states: bool = False,
    return_dict: bool = True,
) -> object:
    """The layers one after another.

    ``attention_mask`` is 0 where a token attends to those near it, positive where it attends to
    all, and negative where there is none.
    """
    has_global = self in _GLOBAL
    _GLOBAL.discard(self)
    states, attentions, global_attentions = [hidden_states], [], []
    for layer in self.layer:
        state, *rest = layer(
            states[-1],
            attention_mask=attention_mask,
            is_index_masked=attention_mask < 0,
            is_index_global_attn=attention_mask > 0,
            is_global_attn=has_global,
            output_attentions=output_attentions,
        )
        states.append(state)
        attentions += [weights.transpose(1, 2) for weights in rest[:1]]
        global_attentions += [weights.transpose(2, 3) for weights in rest[1:]]
    length = hidden_states.shape[1] - padding_len
    results = (
        states[-1][:, :length],
        tuple([state[:, :length] for state in states]) if output_hidden_states else None,
        tuple([weights[:, :, :length] for weights in attentions]) if output_attentions else None,
        tuple(global_attentions) if output_attentions and has_global else None,
    )
    if not return_dict:
        return tuple([item for item in results if item is not None])
    module = sys.modules["transformers.models.longformer.modeling_longformer"]
    return module.LongformerBaseModelOutput(*results)


def question_end(input_ids: Tensor, sep_token_id: int) -> Tensor:
    """Where the first separator of each row is; rows of another number than three are no error."""
    return (input_ids == sep_token_id).int().argmax(1)


class _Chosen(NamedTuple):
    """The tokens that attend to all: (batch, most) places, and whether there is one at each."""

    places: Tensor
    is_there: Tensor
    most: int  # how many the row with the most of them has

    def of(self, states: Tensor) -> Tensor:
        """What (batch, length, ...) holds for them, (batch, most, ...)."""
        return torch.gather(states, 1, self.over(states))

    def over(self, states: Tensor) -> Tensor:
        """The places with the rank of ``states``."""
        return _wide(self.places, states.ndim).expand(-1, -1, *states.shape[2:])


def _wide(rows: Tensor, rank: int) -> Tensor:
    """(batch, n) as (batch, n, 1, ...)."""
    return rows.reshape(*rows.shape, *[1] * (rank - 2))


def _chosen(is_global: Tensor) -> _Chosen:
    counts = is_global.sum(1)
    most = cast(int, counts.max().item())  # a symbol while torch captures
    torch._check(most >= 0)
    torch._check(most <= is_global.shape[1])
    places = torch.argsort(is_global.int(), dim=1, descending=True, stable=True)[:, :most]
    return _Chosen(places, torch.arange(most) < counts.unsqueeze(1), most)


def attended(
    self: Attention,
    hidden_states: Tensor,
    attention_mask: Tensor,
    is_index_masked: Tensor,
    is_index_global_attn: Tensor,
    is_global_attn: bool,
    output_attentions: bool = False,
) -> tuple[Tensor, ...]:
    """The new states, and if asked for the attention of all tokens and of the global ones."""
    queries, keys, values = (
        _in_heads(self, project(hidden_states)) for project in (self.query, self.key, self.value)
    )
    queries = queries / math.sqrt(self.head_dim)
    scores = _scores_nearby(self, queries, keys, attention_mask)
    window = self.one_sided_attn_window_size
    if not is_global_attn:
        weights = _weights(self, scores, is_index_masked[:, :, None, None])
        result = self._sliding_chunks_matmul_attn_probs_value(weights, values, window)
        return (result.flatten(2), weights)[: 1 + output_attentions]
    chosen = _chosen(is_index_global_attn)
    far = torch.einsum("blhd,bshd->blhs", queries, chosen.of(keys))
    far = far.masked_fill(~chosen.is_there[:, None, None], torch.finfo(far.dtype).min)
    scores = torch.cat([far, scores], -1)
    weights = _weights(self, scores, is_index_masked[:, :, None, None])
    near, far = weights[..., chosen.most :], weights[..., : chosen.most]
    local = self._sliding_chunks_matmul_attn_probs_value(near.contiguous(), values, window)
    local = local + torch.einsum("blhs,bshd->blhd", far, chosen.of(values))
    overall, global_weights = _attended_by_all(self, hidden_states, is_index_masked, chosen)
    # places without such a token hold others, which keep what they have
    kept = torch.where(_wide(chosen.is_there, 4), overall, chosen.of(local))
    result = torch.scatter(local, 1, chosen.over(local), kept).flatten(2)
    weights = weights.masked_fill(_wide(is_index_global_attn, 4), 0)
    return (result, weights, global_weights) if output_attentions else (result,)


def _in_heads(self: Attention, states: Tensor) -> Tensor:
    """(batch, length, embedding) as (batch, length, heads, width)."""
    return states.unflatten(-1, (self.num_heads, self.head_dim))


def _scores_nearby(self: Attention, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """(batch, length, heads, neighbours); tokens that are masked or global are none."""
    window = self.one_sided_attn_window_size
    scores = self._sliding_chunks_query_key_matmul(queries, keys, window)
    left_out = (mask != 0)[:, :, None, None]
    least = torch.zeros_like(left_out, dtype=scores.dtype)
    least = least.masked_fill(left_out, torch.finfo(scores.dtype).min)
    return scores + self._sliding_chunks_query_key_matmul(torch.ones_like(least), least, window)


def _weights(self: Attention, scores: Tensor, is_masked: Tensor | None = None) -> Tensor:
    """Computed in float32, and 0 for tokens that are masked."""
    weights = torch.softmax(scores, -1, dtype=torch.float32)
    if is_masked is not None:
        weights = weights.masked_fill(is_masked, 0.0)
    return torch.nn.functional.dropout(weights.type_as(scores), self.dropout, self.training)


def _attended_by_all(
    self: Attention, states: Tensor, is_masked: Tensor, chosen: _Chosen
) -> tuple[Tensor, Tensor]:
    """The results (batch, most, heads, width) and the attention of the global tokens."""
    picked = chosen.of(states) * _wide(chosen.is_there, 3)
    queries = _in_heads(self, self.query_global(picked)) / math.sqrt(self.head_dim)
    keys, values = (_in_heads(self, f(states)) for f in (self.key_global, self.value_global))
    scores = torch.einsum("bshd,blhd->bhsl", queries, keys)
    least = torch.finfo(scores.dtype).min
    scores = scores.masked_fill(~chosen.is_there[:, None, :, None], least)
    scores = scores.masked_fill(is_masked[:, None, None], least)
    weights = _weights(self, scores)
    return torch.einsum("bhsl,blhd->bshd", weights, values), weights
