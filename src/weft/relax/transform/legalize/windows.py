"""Windows that slide over data of unknown extent: compared when the function runs.

The struct-info rules refuse a window that is known to reach over more than there is. Where the
extent is a symbol, the data is cast to an extent that is large enough and back; the first cast
fails with both shapes. As ``check_window`` has it, no window fits into nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.op import Op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call
from weft.relax.ir.shape_arith import constant_value, simplified
from weft.relax.op.layout import Layout, parse_layout
from weft.relax.transform.legalize.rule import Rule, dims, with_dims
from weft.tir.op import max as tir_max
from weft.tir.op import min as tir_min

Reach = Callable[[Call, int], list[Any]]
"""How many elements a window reaches over on each of so many spatial axes."""


def _spatial(call: Call) -> str:
    rank = next(int(digit) for digit in call.op.name.rpartition(".")[2] if digit.isdigit())
    return "DHW"[3 - rank :]


def _pool_reach(call: Call, rank: int) -> list[Any]:
    sizes, dilation = call.attrs["pool_size"], call.attrs["dilation"]
    return [dilation[axis] * (sizes[axis] - 1) + 1 for axis in range(rank)]


def _kernel_reach(call: Call, rank: int) -> list[Any]:
    letters = f"OI{_spatial(call)}"
    layout = parse_layout(call.attrs["kernel_layout"], letters, f"{call.op.name}: kernel_layout")
    extents = layout.to_canonical(dims(call.args[1]), letters)[2:]
    dilation = call.attrs["dilation"]
    return [simplified((extents[axis] - 1) * dilation[axis] + 1) for axis in range(rank)]


def _enough(call: Call, axis: int, rank: int, extent: Any, reach: Any) -> Any:
    """The extent where a window fits into it and its padding, more than it where none does."""
    padding = call.attrs["padding"][axis] + call.attrs["padding"][rank + axis]
    least = constant_value(simplified(reach - padding))
    if constant_value(extent) is not None and least is not None:
        return extent  # the rule has compared them
    if least is None:
        return simplified(tir_max(extent, reach - padding))
    stride = call.attrs["strides"][axis]
    is_up = bool(call.attrs.get("ceil_mode"))
    steps_of_nothing = (-(least // stride) if is_up else -least // stride) + 1
    nothing_fits = padding == 0 and steps_of_nothing >= 0
    if least <= (1 if nothing_fits else 0):
        return extent
    return simplified(tir_max(extent, tir_min(extent * least, least) if nothing_fits else least))


def _layout(call: Call, order: str) -> Layout:
    name = "data_layout" if "data_layout" in call.attrs else "layout"
    return parse_layout(call.attrs[name], order, f"{call.op.name}: {name}")


def fitting(rule: Rule, reaches: Reach) -> Rule:
    """The rule on data whose spatial extents are compared with what the windows reach over."""

    def checked(bb: BlockBuilder, call: Call) -> Any:
        order = f"NC{_spatial(call)}"
        rank, layout = len(order) - 2, _layout(call, order)
        data = call.args[0]
        batch, channels, *space = layout.to_canonical(dims(data), order)
        reach = reaches(call, rank)
        enough = [
            _enough(call, axis, rank, extent, reach[axis]) for axis, extent in enumerate(space)
        ]
        name = call.op.name.rpartition(".")[2]
        cast = with_dims(bb, data, layout.from_canonical([batch, channels, *enough], order), name)
        if cast is data:
            return rule(bb, call)
        made = Call(
            call.op, [bb.match_cast(cast, data.struct_info, name), *call.args[1:]], call.attrs
        )
        made.struct_info = call.struct_info
        return rule(bb, made)

    return checked


WINDOWS: dict[Op, Reach] = {
    **{
        Op.get(f"relax.nn.{kind}_pool{rank}d"): _pool_reach
        for kind in ("max", "avg")
        for rank in (1, 2, 3)
    },
    **{Op.get(f"relax.nn.conv{rank}d"): _kernel_reach for rank in (1, 2, 3)},
}
"""Operators with windows over their first argument."""
