"""Layers of neural networks: dense."""

from __future__ import annotations

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter


@converter("aten.linear.default")
def linear(context: Context, input: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """``input @ weight.T + bias``."""
    return op.linear(input, weight, bias, context.dtype)
