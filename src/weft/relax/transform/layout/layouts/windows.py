"""Layout rules of operators that name their layout: convolutions, pools, resizing."""

from __future__ import annotations

import functools
from typing import Final

from weft.relax.ir.lattice import tensor_dims
from weft.relax.transform.layout.layouts.order import AxisOrder, identity, order_of
from weft.relax.transform.layout.layouts.rule import LAYOUTS, Answer, Request, Rule

CONVOLUTIONS: Final = tuple(f"nn.conv{rank}d" for rank in (1, 2, 3))
RESIZES: Final = tuple(f"image.resize{rank}d" for rank in (1, 2, 3))
POOLS: Final = tuple(
    f"nn.{kind}_pool{rank}d"
    for kind in ("max", "avg", "adaptive_avg", "adaptive_max")
    for rank in (1, 2, 3)
)
DESIRABLE: Final = frozenset(f"relax.{name}" for name in (*CONVOLUTIONS, *RESIZES))
"""Names of operators whose layouts can be asked for."""


def unless_in_blocks(rule: Rule) -> Rule:
    """The rule for calls in plain layouts; calls in layouts of blocks (``NCHW16c``) stay."""

    @functools.wraps(rule)
    def limited(request: Request) -> Answer | None:
        names = ("layout", "data_layout", "kernel_layout", "out_layout")
        named = [str(request.attrs[name]) for name in names if name in request.attrs]
        is_in_blocks = any(letter.isdigit() for name in named for letter in name)
        return None if is_in_blocks else rule(request)

    return limited


@LAYOUTS.of(*CONVOLUTIONS)
@unless_in_blocks
def convolution(request: Request) -> Answer | None:
    """The layouts that are asked for; without such, the order of the data, also for the result."""
    return _desired_convolution(request) or _following_convolution(request)


def _desired_convolution(request: Request) -> Answer | None:
    if request.desired is None:
        return None
    data, kernel, *rest = request.desired
    out = rest[0] if rest else data
    names = [request.attrs[name] for name in ("data_layout", "kernel_layout", "out_layout")]
    orders = [order_of(n, s) for n, s in zip(names, (data, kernel, out), strict=True)]
    shapes = [request.dims(0), request.dims(1), tensor_dims(request.call.struct_info)]
    if not all(order.divides(dims) for order, dims in zip(orders, shapes, strict=True)):
        return None
    layouts = {"data_layout": data, "kernel_layout": kernel, "out_layout": out}
    return Answer(orders[:2], orders[2], layouts)


def _following_convolution(request: Request) -> Answer | None:
    data, kernel = request.have
    if not isinstance(data, AxisOrder) or not isinstance(kernel, AxisOrder):
        return None
    if data.is_blocked or kernel.is_blocked:
        return None
    names = request.attrs
    layouts = {
        "data_layout": data.stored(names["data_layout"]),
        "kernel_layout": kernel.stored(names["kernel_layout"]),
        "out_layout": data.stored(names["out_layout"]),
    }
    return Answer([data, kernel], data, layouts)


@LAYOUTS.of(*POOLS)
@unless_in_blocks
def pool(request: Request) -> Answer:
    """The order of the data stays, unless it splits an axis that windows move along."""
    names, order = request.attrs["layout"], request.data
    if names != request.attrs["out_layout"] or _splits_space(order, names):
        order = request.unsplit
    layouts = {name: order.stored(request.attrs[name]) for name in ("layout", "out_layout")}
    return Answer([order], order, layouts)


@LAYOUTS.of(*RESIZES)
@unless_in_blocks
def resize(request: Request) -> Answer | None:
    """The layout that is asked for; without one, the order of the data."""
    names, order = request.attrs["layout"], request.unsplit
    if request.desired is not None:
        order = order_of(names, request.desired[0])
    if _splits_space(order, names) or not order.divides(request.dims()):
        order = identity(order.ndim)
    return Answer([order], order, {"layout": order.stored(names)})


def _splits_space(order: AxisOrder, names: str) -> bool:
    return any(names[axis] not in "NC" for axis, _ in order.blocks())
