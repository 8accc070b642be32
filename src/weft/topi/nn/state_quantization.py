"""The hidden state of a recurrent layer rounded to 256 steps of its range, where it is multiplied.

One range is that of all sequences at a step, widened to hold 0; 0 is a step itself. So does ONNX
Runtime in DynamicQuantizeLSTM, by the rule of ONNX's DynamicQuantizeLinear.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.expr import Extent, PrimExpr
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.ir_builder import BufferVar, IRBuilder
from weft.topi.extents import const_int, is_const
from weft.topi.simplify import simplified

_LANES: Final = 8
"""How many extremes are looked for side by side."""
_STEPS: Final = 255


class Rounding(NamedTuple):
    """The distance of two steps, and which step is 0; both are numbers of the state's type."""

    scale: PrimExpr
    place: PrimExpr

    def step(self, value: PrimExpr) -> PrimExpr:
        """The number of the step that is nearest to a value."""
        zero, most = op.const(0, value.dtype), op.const(_STEPS, value.dtype)
        return op.minimum(op.maximum(op.nearbyint(value / self.scale) + self.place, zero), most)


def emit_rounding(ib: IRBuilder, state: BufferVar, shape: tuple[Extent, Extent]) -> Rounding:
    """The steps for the state (batch, hidden) as it is now."""
    kind = state.dtype
    low, high = _ends(ib, state, shape)
    zero, most = op.const(0, kind), op.const(_STEPS, kind)
    width = ib.let("width", high - low)
    scale = ib.let("scale", op.select(op.equal(width, zero), op.const(1, kind), width / most))
    place = ib.let("place", op.nearbyint(op.minimum(op.maximum(zero - low / scale, zero), most)))
    return Rounding(scale, place)


def emit_quantized(
    ib: IRBuilder, state: BufferVar, rounded: BufferVar, shape: tuple[Extent, Extent]
) -> None:
    """Store the rounded state (batch, hidden) in ``rounded``."""
    batch, size = shape
    rounding = emit_rounding(ib, state, shape)
    with ib.for_range(0, batch, "b") as b:
        with ib.for_range(0, size, "j", kind="vectorized" if is_const(size) else "serial") as j:
            step = rounding.step(state[b * size + j])
            rounded[b * size + j] = (step - rounding.place) * rounding.scale


def _ends(
    ib: IRBuilder, state: BufferVar, shape: tuple[Extent, Extent]
) -> tuple[PrimExpr, PrimExpr]:
    """The least and the greatest element, and 0 if it is not between them."""
    batch, size = shape
    kind: DataType = state.dtype
    lanes = _LANES if is_const(size) and const_int(size, "hidden") % _LANES == 0 else 1
    low = ib.allocate(kind, [lanes], "low", scope="local")
    high = ib.allocate(kind, [lanes], "high", scope="local")
    for lane in range(lanes):
        low[lane] = high[lane] = op.const(0, kind)
    with (
        ib.for_range(0, batch, "b") as b,
        ib.for_range(0, simplified(op.floordiv(size, lanes)), "group") as group,
        ib.for_range(0, lanes, "lane", kind="vectorized" if lanes > 1 else "serial") as lane,
    ):
        element = state[b * size + group * lanes + lane]
        low[lane] = op.minimum(low[lane], element)
        high[lane] = op.maximum(high[lane], element)
    for lane in range(1, lanes):
        low[0] = op.minimum(low[0], low[lane])
        high[0] = op.maximum(high[0], high[lane])
    return low[0], high[0]
