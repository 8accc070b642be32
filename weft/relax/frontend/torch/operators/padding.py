"""Padding: by a number, a mirror image, the edge, the other side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.registry import converter


def widths(pad: Sequence[Any], rank: int) -> list[Any]:
    """(before, after) of every dimension, of torch's pairs from the last dimension on."""
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]
    pairs += [(0, 0)] * (rank - len(pairs))
    return [amount for pair in reversed(pairs) for amount in pair]


@converter("aten.constant_pad_nd.default")
def constant_pad(context: Context, self: Expr, pad: Sequence[Any], value: Any = 0) -> Expr:
    """A number around the tensor; negative amounts cut off."""
    around = widths(pad, context.rank(self))
    tensor = _cut(context, self, around)
    grown = [amount if not isinstance(amount, int) else max(amount, 0) for amount in around]
    if context.static(grown) and not any(grown):
        return tensor
    return op.nn.pad(tensor, grown, "constant", float(value))


def _cut(context: Context, tensor: Expr, around: Sequence[Any]) -> Expr:
    """The tensor without what negative amounts take away."""
    for axis, extent in enumerate(context.dims(tensor)):
        before, after = around[2 * axis : 2 * axis + 2]
        begin = -before if isinstance(before, int) and before < 0 else 0
        end = extent + after if isinstance(after, int) and after < 0 else extent
        if begin or end is not extent:
            tensor = context.emit(op.strided_slice(tensor, [axis], [begin], [end]))
    return tensor
