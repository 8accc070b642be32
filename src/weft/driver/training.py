"""Warns if a model from torch is compiled in training mode, which is hardly ever intended."""

from __future__ import annotations

import sys
import warnings
from typing import Any


class TrainingModeWarning(UserWarning):
    """A model in training mode has layers that compute something else than in inference."""


def warn_of_training(model: object) -> None:
    """Warn about a ``torch.nn.Module`` in training mode, with the names of the layers concerned.

    Only layers that compute something else in training count: batch norms (which also change their
    statistics), dropouts, and recurrent layers and attention with dropout.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        return
    try:
        layers = dict(model.named_modules())
    except TypeError:  # a part cannot be hashed: the import will raise a clear error
        return
    training = [
        name or type(model).__name__
        for name, layer in layers.items()
        if layer.training and _differs(layer, torch.nn)
    ]
    if training:
        more = f" and {len(training) - 3} more" if len(training) > 3 else ""
        warnings.warn(
            f"compile: {type(model).__name__} is in training mode: {', '.join(training[:3])}{more} "
            "compute what they do in training; call model.eval() before weft.compile for inference",
            TrainingModeWarning,
            stacklevel=4,  # the call of weft.compile, a public_entry
        )


def _differs(layer: object, nn: Any) -> bool:
    """Whether a layer computes something else in training than in inference."""
    if isinstance(layer, nn.modules.batchnorm._NormBase):
        return bool(layer.track_running_stats)
    if isinstance(layer, nn.modules.dropout._DropoutNd):
        return bool(layer.p)
    if isinstance(layer, nn.RNNBase | nn.MultiheadAttention):
        return bool(layer.dropout)
    return isinstance(layer, nn.RReLU)
