"""Parts of tensors: slices."""

from __future__ import annotations

from typing import Any, Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter

END: Final = 2**63 - 1
"""torch's end of a slice that has none."""


@converter("aten.slice.Tensor")
def slice_(
    context: Context, self: Expr, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Expr:
    """``self[..., start:end:step, ...]`` along one dimension."""
    start, end = 0 if start is None else start, END if end is None else end
    return op.strided_slice(self, [dim], [start], [end], [step])
