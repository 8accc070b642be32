"""What stands for functions of torch and transformers that look at attention masks."""

from __future__ import annotations

import torch


def ignore_bidirectional_mask_sdpa(
    padding_mask: torch.Tensor | None, kv_length: int, local_attention_size: int | None = None
) -> bool:
    """Whether all tokens see all others, so that no mask is needed.

    While a model is captured transformers always makes a mask, though only the contents of a
    padding mask cannot be looked at. Without one nothing is hidden. Informer and Autoformer work
    only without the mask: it has the length of the first layer, and later layers are shorter.
    """
    return padding_mask is None and local_attention_size is None


def told_causal(
    mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether the caller says that the mask hides what comes later.

    If nobody says so, torch.nn's layers compare the mask with such a one, to leave it out if they
    are equal. The mask has the same effect.
    """
    return is_causal is True
