"""Padding: by a number, a mirror image, the edge, the other side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import Extent
from weft.relax import op
from weft.relax.expr import Expr, const
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import held_number
from weft.relax.frontend.torch.registry import converter


def widths(pad: Sequence[Extent], rank: int) -> list[Extent]:
    """(before, after) of every dimension, of torch's pairs from the last dimension on."""
    pairs = [pad[start : start + 2] for start in range(0, len(pad), 2)]
    pairs += [[0, 0]] * (rank - len(pairs))
    return [amount for pair in reversed(pairs) for amount in pair]


@converter("aten.constant_pad_nd.default")
def constant_pad(context: Context, self: Expr, pad: Sequence[Extent], value: float = 0) -> Expr:
    """A number around the tensor; negative amounts cut off."""
    fill = held_number(value, context.dtype)
    if math.isnan(fill) or float(fill) == fill:
        return surrounded(context, self, pad, "constant", float(fill))
    zeros = surrounded(context, self, pad, "constant")  # no float is that integer
    ones = context.emit(op.ones(context.dims(self), "bool"))
    inside = surrounded(context, ones, pad, "constant")
    return op.where(context.emit(inside), context.emit(zeros), const(fill, context.dtype))


def surrounded(
    context: Context, tensor: Expr, pad: Sequence[Extent], mode: str, value: float = 0.0
) -> Expr:
    """The tensor padded by positive amounts, then cut by negative ones."""
    if 0 in context.shape and context.static(context.shape):
        return op.zeros(context.shape, context.dtype)
    around = widths(pad, context.rank(tensor))
    grown = [max(amount, 0) if isinstance(amount, int) else amount for amount in around]
    if not context.static(grown) or any(grown):
        tensor = context.emit(op.nn.pad(tensor, grown, mode, value))
    for axis, extent in enumerate(context.dims(tensor)):
        before, after = (_cut(amount) for amount in around[2 * axis : 2 * axis + 2])
        if before or after:
            part = op.strided_slice(tensor, [axis], [before], [extent - after])
            tensor = context.emit(part)
    return tensor


def _cut(amount: Extent) -> int:
    return max(-amount, 0) if isinstance(amount, int) else 0


MODES: Final = {"reflect": "reflect", "replicate": "replicate", "circular": "circular"}
"""torch's modes of padding by relax's names."""


@converter("aten.pad.default")
def pad(
    context: Context,
    self: Expr,
    pad: Sequence[Extent],
    mode: str = "constant",
    value: float | None = None,
) -> Expr:
    """Padding by any mode."""
    if mode == "constant":
        return constant_pad(context, self, pad, 0 if value is None else value)
    return surrounded(context, self, pad, MODES[mode])


def _padding_by(mode: str) -> Callable[..., Expr]:
    return lambda context, self, padding: surrounded(context, self, padding, mode)


for _rank in (1, 2, 3):
    converter(f"aten.reflection_pad{_rank}d.default")(_padding_by("reflect"))
    converter(f"aten.replication_pad{_rank}d.default")(_padding_by("replicate"))
