"""The converters, one module for each family; importing the package registers all of them."""

from __future__ import annotations

from weft.relax.frontend.torch.operators import elementwise, indexing, neural
from weft.relax.frontend.torch.registry import CONVERTERS

__all__ = ["CONVERTERS", "elementwise", "indexing", "neural"]
