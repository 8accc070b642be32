"""Padding: by a number, a mirror image, the edge, the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

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


MODES: Final = {"reflect": "reflect", "replicate": "replicate", "circular": "circular"}
"""torch's modes of padding by relax's names."""


def _surround(context: Context, tensor: Expr, pad: Sequence[Any], mode: str) -> Expr:
    around = widths(pad, context.rank(tensor))
    data = _cut(context, tensor, around)
    grown = [amount if not isinstance(amount, int) else max(amount, 0) for amount in around]
    return op.nn.pad(data, grown, MODES[mode])


@converter("aten.pad.default")
def pad(
    context: Context, self: Expr, pad: Sequence[Any], mode: str = "constant", value: Any = None
) -> Expr:
    """Padding by any mode."""
    if mode == "constant":
        return constant_pad(context, self, pad, 0 if value is None else value)
    return _surround(context, self, pad, mode)


def _padding_by(mode: str) -> Callable[..., Expr]:
    return lambda context, self, padding: _surround(context, self, padding, mode)


for _rank in (1, 2, 3):
    converter(f"aten.reflection_pad{_rank}d.default")(_padding_by("reflect"))
    converter(f"aten.replication_pad{_rank}d.default")(_padding_by("replicate"))
