"""Converters by family; ``load`` enters all of them in the table."""

from __future__ import annotations

import importlib
from typing import Final

FAMILIES: Final = (
    "activation", "arithmetic", "attention", "casting", "control", "convolution", "deform",
    "elementwise", "images", "indexing", "linear", "microsoft", "microsoft_array",
    "microsoft_attention", "microsoft_experts", "microsoft_grouped", "microsoft_quantized",
    "microsoft_states", "microsoft_weights", "ml_features",
    "ml_linear", "ml_support_vectors", "ml_trees", "normalization", "padding", "pooling",
    "quantization", "random", "recurrent", "reduction", "resize", "sampling", "sequence", "shape",
    "signal", "strings", "text", "training",
)  # fmt: skip
"""Modules of this package; a new family is a new name here."""


def load() -> None:
    """Import every family."""
    for name in FAMILIES:
        importlib.import_module(f"{__name__}.{name}")
