"""Which extents of an operator's arguments must agree: what is compared when a function runs.

The struct-info rules refuse extents that are known to differ. Where they are not known (two
symbols), a kernel would read too little of one argument, or outside of it. ``@operator(requires=)``
gives, for a call whose shapes are known up to symbols, the dimensions that arguments must have;
what is not proved becomes a ``match_cast`` with both shapes in its error. Extents that broadcast
are compared by the kernel itself (``topi.extents.broadcast_indices``).

``@operator(window=)`` says how far the windows of an operator reach over its first argument. The
struct-info rules refuse a window that is known to reach over more than there is. Where the extent
is a symbol, the data is cast to an extent that is large enough and back; the first cast fails with
both shapes. As ``check_window`` has it, no window fits into nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ir.expr import Extent, PrimExpr, RelaxExpr
from weft.relax.expr import Call, Tuple
from weft.relax.ir.shape_arith import constant_value, same_dims, simplified
from weft.relax.op.layout import Layout, parse_layout
from weft.relax.op.lowering import Builder, Rule, dims, tuple_fields
from weft.relax.struct_info import TensorStructInfo
from weft.tir.op import floordiv
from weft.tir.op import max as tir_max
from weft.tir.op import min as tir_min

Required = Mapping[int | tuple[int, int], Sequence[Extent]]
"""The dimensions that arguments must have, by position; (position, field) of a tuple's field."""

Requires = Callable[[Call], Required]
"""From a call to what it requires of its arguments."""

Reach = Callable[[Call, int], list[Extent]]
"""How many elements a window reaches over on each of so many spatial axes."""


def same_shape(first: int, second: int) -> Requires:
    """Two arguments of one shape."""
    return lambda call: {second: dims(call.args[first])}


def per_channel(axis: str) -> Requires:
    """The other arguments are vectors with an element for each channel."""

    def required(call: Call) -> Required:
        channels = dims(call.args[0])[call.attrs[axis]]
        return {index: [channels] for index in range(1, len(call.args))}

    return required


def multiple(extent: Extent, of: Extent) -> PrimExpr:
    """The largest multiple that is not above an extent; 0 of nothing."""
    return simplified(floordiv(extent, tir_max(of, 1)) * of)


def with_dims(bb: Builder, x: RelaxExpr, wanted: Sequence[Extent], name: str) -> RelaxExpr:
    """The tensor; where its dimensions are not proved to be these, a match_cast compares them."""
    if same_dims(dims(x), wanted):
        return x
    info = x.struct_info
    dtype = info.dtype if isinstance(info, TensorStructInfo) else None
    return bb.match_cast(x, TensorStructInfo(wanted, dtype), name)


def _with_field(
    bb: Builder, x: RelaxExpr, field: int, wanted: Sequence[Extent], name: str
) -> RelaxExpr:
    """The tuple, whose field is compared as ``with_dims`` compares a tensor."""
    fields = tuple_fields(bb, x)
    compared = with_dims(bb, fields[field], wanted, name)
    return x if compared is fields[field] else Tuple([
        compared if index == field else item for index, item in enumerate(fields)
    ])  # fmt: skip


def agreeing(rule: Rule, requires: Requires) -> Rule:
    """The rule on arguments whose dimensions are compared where they are not proved as required."""

    def checked(bb: Builder, call: Call) -> RelaxExpr:
        args: list[RelaxExpr] = list(call.args)
        name = call.op.name.rpartition(".")[2]
        for place, shape in requires(call).items():
            index = place[0] if isinstance(place, tuple) else place
            hint = f"{name}_{index}"
            if isinstance(place, tuple):
                args[index] = _with_field(bb, args[index], place[1], shape, hint)
            else:
                args[index] = with_dims(bb, args[index], shape, hint)
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return rule(bb, call)
        compared = Call(call.op, args, call.attrs, call.sinfo_args)
        compared.struct_info = call.struct_info
        return rule(bb, compared)

    return checked


def least_extent(
    call: Call, axis: int, rank: int, extent: Extent, reach: Extent
) -> Extent:
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

    def checked(bb: Builder, call: Call) -> RelaxExpr:
        rank = len(call.attrs["strides"])
        order = "NC" + "DHW"[3 - rank :]
        layout = _layout(call, order)
        data = call.args[0]
        batch, channels, *space = layout.to_canonical(dims(data), order)
        reach = reaches(call, rank)
        enough = [
            least_extent(call, axis, rank, extent, reach[axis]) for axis, extent in enumerate(space)
        ]
        name = call.op.name.rpartition(".")[2]
        cast = with_dims(bb, data, layout.from_canonical([batch, channels, *enough], order), name)
        if cast is data:
            return rule(bb, call)
        back = bb.match_cast(cast, data.struct_info, name)
        compared = Call(call.op, [back, *call.args[1:]], call.attrs)
        compared.struct_info = call.struct_info
        return rule(bb, compared)

    return checked
