"""Operators of torch in terms of others, where torch's decomposition is wrong or missing.

In eval mode ``TransformerEncoderLayer`` and ``MultiheadAttention`` call one operator for all that
they do, which torch.export avoids and torch.compile does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

ATEN: Final = torch.ops.aten


def _heads(x: Tensor, weight: Tensor, bias: Tensor, count: int) -> Tensor:
    """(batch, head, place, feature) of a projection."""
    return functional.linear(x, weight, bias).unflatten(-1, (count, -1)).transpose(1, 2)


def _blocked(mask: Tensor, mask_type: int | None) -> Tensor:
    """Which keys a query does not see, as (batch, head, query, key).

    Types of masks: 0 is (query, key), 1 is (batch, key), others have all four axes.
    """
    is_blocked = mask.to(torch.bool)
    if mask_type == 0:
        return is_blocked[None, None]
    return is_blocked[:, None, None] if mask_type == 1 else is_blocked


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(what was attended to, the weights); of the latter none unless asked for."""
    sides = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (_heads(*side, num_head) for side in sides)
    blocked = None if mask is None else _blocked(mask, mask_type)
    if need_weights:
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        if blocked is not None:
            scores = scores.masked_fill(blocked, float("-inf"))
        weights = scores.softmax(-1)
        attended = weights @ v
    else:
        seen = None if blocked is None else ~blocked
        attended = functional.scaled_dot_product_attention(q, k, v, seen)
        weights = query.new_empty(0)
    joined = functional.linear(attended.transpose(1, 2).flatten(2), proj_weight, proj_bias)
    return joined, weights.mean(1) if need_weights and average_attn_weights else weights


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Attention and two linear layers, each added to its input and normalised before or after."""

    def attention(x: Tensor) -> Tensor:
        whole = (x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
        return native_multi_head_attention(*whole, mask, False, True, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    def first_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attention(first_norm(src))
        return x + feed_forward(second_norm(x))
    x = first_norm(src + attention(src))
    return second_norm(x + feed_forward(x))


def multilabel_margin_loss_forward(
    self: Tensor, target: Tensor, reduction: int
) -> tuple[Tensor, Tensor]:
    """(loss, which classes are right): hinges of all wrong classes below each right one.

    The right classes of a row end at its first -1. torch's own decomposition takes class 0 for
    every place after that.
    """
    scores, classes = torch.atleast_2d(self), torch.atleast_2d(target)
    is_given = (classes < 0).to(torch.int64).cumsum(-1) == 0
    places = torch.where(is_given, classes, 0)
    numbers = torch.arange(scores.shape[-1], device=self.device)
    is_right = ((numbers == places.unsqueeze(-1)) & is_given.unsqueeze(-1)).any(1)
    right = scores.gather(1, places).unsqueeze(-1)
    hinges = (1 - right + scores.unsqueeze(1)).clamp(min=0)
    counted = is_given.unsqueeze(-1) & ~is_right.unsqueeze(1)
    loss = torch.where(counted, hinges, 0).sum((1, 2)) / scores.shape[-1]
    loss = loss.reshape(target.shape[:-1])
    if reduction:
        loss = loss.mean() if reduction == 1 else loss.sum()
    return loss, is_right.to(self.dtype).reshape(target.shape)


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first axis of (time, batch, channel)."""
    turned = functional.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return turned.permute(2, 0, 1).contiguous()


OWN_DECOMPOSITIONS: Final[Mapping[torch._ops.OperatorBase, Callable[..., object]]] = {
    ATEN._native_multi_head_attention.default: native_multi_head_attention,
    ATEN._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
    ATEN.multilabel_margin_loss_forward.default: multilabel_margin_loss_forward,
    ATEN.conv_tbc.default: conv_tbc,
}
"""Overload -> a function of its arguments that calls other operators."""
