"""Rules that move transposes, reshapes and slices to where they cost nothing: ``RULES``.

A rule gets a call whose arguments are in normal form and says what to compute instead, or None.
"""

from __future__ import annotations

from typing import Final

from weft.relax.analysis.inplace import ELEMENT_WISE
from weft.relax.transform.movement import attention, elementwise, layout, products, slices
from weft.relax.transform.movement.scope import Rule

RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(elementwise.ALL | ELEMENT_WISE, elementwise.sink),
    "relax.permute_dims": layout.permute,
    **dict.fromkeys(layout.RESHAPES, layout.reshape),
    "relax.broadcast_to": layout.broadcast,
    "relax.concat": elementwise.concat,
    "relax.take": slices.take,
    "relax.strided_slice": slices.strided_slice,
    "relax.matmul": products.matmul,
    "relax.nn.attention": attention.attention,
    "relax.nn.attention_bias": attention.attention,
}
"""By the name of the operator."""
