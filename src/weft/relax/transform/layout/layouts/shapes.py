"""Layout rules of operators that move elements: concat, split, slice, pad, expand, squeeze."""

from __future__ import annotations

from typing import Any

from weft.relax.expr import PrimValue, Tuple
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.struct_info import TupleStructInfo
from weft.relax.transform.layout.layouts.order import AxisOrder, identity
from weft.relax.transform.layout.layouts.rule import LAYOUTS, Answer, Request


@LAYOUTS.of("concat")
def concat(request: Request) -> Answer | None:
    """All tensors get the order of the first one."""
    axis, orders = request.attrs["axis"], request.have[0]
    if axis is None or not isinstance(orders, tuple) or not orders:
        return None
    order = orders[0]
    infos: Any = request.call.args[0].struct_info
    if not all(order.divides(tensor_dims(info)) for info in infos.fields):
        order = identity(order.ndim)
    return Answer([(order,) * len(orders)], order, {"axis": order.position(axis)})


@LAYOUTS.of("split")
def split(request: Request) -> Answer:
    """The order of the data stays; an axis in blocks is cut between blocks, if that is possible."""
    order, where = request.data, request.attrs["indices_or_sections"]
    info, axis = request.call.struct_info, request.attrs["axis"]
    parts = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
    if not all(order.divides(tensor_dims(part)) for part in parts):
        order = request.unsplit
    factor = dict(order.blocks()).get(axis % order.ndim)
    if factor and not isinstance(where, int):
        if any(cut % factor or cut < 0 for cut in where):
            order = request.unsplit
        else:
            where = [cut // factor for cut in where]
    output = (order,) * len(parts) if isinstance(info, TupleStructInfo) else order
    attrs = {"axis": order.position(axis), "indices_or_sections": where}
    return Answer([order], output, attrs)


@LAYOUTS.of("strided_slice")
def strided_slice(request: Request) -> Answer | None:
    """The order of the data stays; the axes of the slice become stored positions."""
    order, axes = request.unsplit, request.call.args[1]
    if not isinstance(axes, Tuple):
        return None
    chosen = [constant_value(getattr(axis, "value", None)) for axis in axes.fields]
    if None in chosen:
        return None
    stored = Tuple([PrimValue(order.position(axis)) for axis in chosen if axis is not None])
    return Answer([order], order, args={1: stored})


@LAYOUTS.of("nn.pad")
def pad(request: Request) -> Answer:
    """The order of the data stays; the widths of the padding are reordered."""
    order, widths = request.unsplit, request.attrs["pad_width"]
    moved = [width for axis, _ in order.axes for width in widths[2 * axis : 2 * axis + 2]]
    return Answer([order], order, {"pad_width": moved})


@LAYOUTS.of("expand_dims")
def expand_dims(request: Request) -> Answer:
    """New axes are stored where the program has them; the others keep their order."""
    order = request.unsplit
    ndim = order.ndim + len(request.attrs["axis"])
    new = {axis % ndim for axis in request.attrs["axis"]}
    old = [axis for axis in range(ndim) if axis not in new]
    kept = iter(order.axes)
    axes = tuple((p if p in new else old[next(kept)[0]], 0) for p in range(ndim))
    return Answer([order], AxisOrder(axes))


@LAYOUTS.of("squeeze")
def squeeze(request: Request) -> Answer | None:
    """The axes that are left keep their stored order."""
    order, axis, dims = request.unsplit, request.attrs["axis"], request.dims()
    if axis is None:
        if dims is None or any(constant_value(dim) is None for dim in dims):
            return None
        axis = [index for index, dim in enumerate(dims) if constant_value(dim) == 1]
    axes = [index % order.ndim for index in axis]
    stored = sorted(order.position(index) for index in axes)
    return Answer([order], order.without(axes), {"axis": stored})


@LAYOUTS.of("permute_dims")
def permute_dims(request: Request) -> Answer:
    """The result is in the program's order: the permutation starts from the stored order."""
    order, axes = request.unsplit, request.attrs["axes"]
    axes = range(order.ndim)[::-1] if axes is None else axes
    return Answer([order], identity(order.ndim), {"axes": [order.position(a) for a in axes]})
