"""Rules that move transposes, reshapes and slices to where they cost nothing: ``MOVEMENTS``.

A rule gets a call with arguments in normal form, and returns what to compute instead, or None.
"""

from __future__ import annotations

from weft.relax.transform.graph.movement import attention, elementwise, layout, products, slices
from weft.relax.transform.graph.movement.scope import MOVEMENTS

__all__ = ["MOVEMENTS", "attention", "elementwise", "layout", "products", "slices"]
