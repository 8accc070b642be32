"""The converters, one module for each family; importing the package registers all of them."""

from __future__ import annotations

from weft.relax.frontend.torch.operators import (
    activations,
    attention,
    bags,
    control_flow,
    convolution,
    elementwise,
    gathering,
    gradients,
    indexing,
    joining,
    linear_algebra,
    neural,
    normalization,
    padding,
    pooling,
    recurrent,
    resampling,
    scattering,
    strided_views,
    views,
    windows,
)
from weft.relax.frontend.torch.registry import CONVERTERS

__all__ = [
    "CONVERTERS",
    "activations",
    "attention",
    "bags",
    "control_flow",
    "convolution",
    "elementwise",
    "gathering",
    "gradients",
    "indexing",
    "joining",
    "linear_algebra",
    "neural",
    "normalization",
    "padding",
    "pooling",
    "recurrent",
    "resampling",
    "scattering",
    "strided_views",
    "views",
    "windows",
]
