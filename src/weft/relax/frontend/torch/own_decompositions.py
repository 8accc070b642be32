"""Operators of torch in terms of others, for which torch has no decomposition.

In eval mode ``TransformerEncoderLayer`` and ``MultiheadAttention`` call one operator for all that
they do, which torch.export avoids and torch.compile does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from weft.relax.frontend.torch.complex_decompositions import (
    COMPLEX_DECOMPOSITIONS,
    where_complex,
)
from weft.relax.frontend.torch.complex_tensor import COMPLEX
from weft.relax.frontend.torch.registry import overload_name
from weft.relax.frontend.torch.special_decompositions import SPECIAL_DECOMPOSITIONS

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


def transformer_encoder_layer(  # noqa: PLR0913 - the schema of torch
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
    activation = torch.nn.GELU() if use_gelu else torch.nn.ReLU()

    def attention(x: Tensor) -> Tensor:
        whole = (x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias)
        return native_multi_head_attention(*whole, mask, False, True, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(activation(hidden), ffn_weight_2, ffn_bias_2)

    def first_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attention(first_norm(src))
        return x + feed_forward(second_norm(x))
    x = first_norm(src + attention(src))
    return second_norm(x + feed_forward(x))


def flash_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of attention with respect to queries, keys and values (Dao et al., 2022)."""
    kind, heads = logsumexp.dtype, key.shape[1]
    groups = query.shape[1] // heads
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    q, gradient = query.to(kind), grad_out.to(kind)
    k, v = (side.to(kind).repeat_interleave(groups, 1) for side in (key, value))
    scores = q @ k.transpose(-2, -1) * factor
    if attn_mask is not None:
        scores = scores + attn_mask.to(kind)
    if is_causal:
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
    weights = torch.where(scores.isneginf(), 0.0, (scores - logsumexp.unsqueeze(-1)).exp())
    whole = (gradient * out.to(kind)).sum(-1, keepdim=True)
    through = weights * (gradient @ v.transpose(-2, -1) - whole) * factor
    sides = through.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ gradient
    grad_key, grad_value = (side.unflatten(1, (heads, groups)).sum(2) for side in sides)
    grad_query = (through @ k).to(query.dtype)
    return grad_query, grad_key.to(key.dtype), grad_value.to(value.dtype)


def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """The gradient of the distances between rows with respect to the first rows; 0 at none."""
    step = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    size, length = step.abs(), cdist.unsqueeze(-1)
    if p == 2:
        slope = step / length
    elif math.isinf(p):
        slope = step.sign() * (size == length)
    else:
        slope = step.sign() * (size / length) ** (p - 1) * (p != 0)
    slope = torch.where(length == 0, 0, slope)
    return (grad.unsqueeze(-1) * slope).sum(-2)


def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution along the first axis of (time, batch, channel)."""
    turned = functional.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return turned.permute(2, 0, 1).contiguous()


OWN_DECOMPOSITIONS: Final[Mapping[torch._ops.OperatorBase, Callable[..., object]]] = {
    ATEN._native_multi_head_attention.default: native_multi_head_attention,
    ATEN._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward.default: flash_attention_backward,
    ATEN._cdist_backward.default: cdist_backward,
    ATEN.conv_tbc.default: conv_tbc,
    **SPECIAL_DECOMPOSITIONS,
}
"""Overload -> a function of its arguments that calls other operators."""


def with_own_decompositions(
    table: Mapping[torch._ops.OperatorBase, Callable[..., object]],
    converters: Container[str],
) -> dict[torch._ops.OperatorBase, Callable[..., object]]:
    """Decompositions of the operators that have no converter: torch's, and those it lacks."""
    whole = {
        overload: decomposition
        for overload, decomposition in {**table, **OWN_DECOMPOSITIONS}.items()
        if overload_name(overload) not in converters
    }
    for overload, decomposition in COMPLEX_DECOMPOSITIONS.items():
        if overload_name(overload) + COMPLEX not in converters:
            whole[overload] = where_complex(decomposition, whole.get(overload))
    return whole
