"""Requirements on the extents of an operator's arguments, checked when the compiled function runs.

The struct-info rules refuse extents that are known to differ. Two different symbols may still be
unequal at run time; a kernel would then read outside of an argument, or only part of it. For a call
in LegalizeOps, ``@operator(requires=)`` returns the dimensions that arguments must have; for those
that are not proved, a ``match_cast`` is emitted, whose error shows both shapes. Extents that
broadcast are compared by the kernel itself (``topi.extents.broadcast_indices``).

``@operator(window=)`` returns the span of an operator's windows over its first argument. The
struct-info rules refuse a window that is known to be larger than the data. Where the extent is a
symbol, two match_casts are emitted: to an extent that is large enough, which fails if the data is
too small, and back. Empty data is allowed, as in ``check_window``.
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
"""call -> the dimensions that its arguments must have."""

Reach = Callable[[Call, int], list[Extent]]
"""(call, number of spatial axes) -> the span of a window along each of them."""


def same_shape(first: int, second: int) -> Requires:
    """The requirement that two arguments have the same shape."""
    return lambda call: {second: dims(call.args[first])}


def per_channel(axis: str) -> Requires:
    """The requirement that all arguments but the first are vectors with one element a channel."""

    def required(call: Call) -> Required:
        channels = dims(call.args[0])[call.attrs[axis]]
        return {index: [channels] for index in range(1, len(call.args))}

    return required


def multiple(extent: Extent, of: Extent) -> PrimExpr:
    """The largest multiple of ``of`` that does not exceed ``extent``; 0 if ``of`` is 0."""
    return simplified(floordiv(extent, tir_max(of, 1)) * of)


def with_dims(bb: Builder, x: RelaxExpr, wanted: Sequence[Extent], name: str) -> RelaxExpr:
    """The tensor; if its dimensions are not proved to be ``wanted``, bound by a match_cast."""
    if same_dims(dims(x), wanted):
        return x
    info = x.struct_info
    dtype = info.dtype if isinstance(info, TensorStructInfo) else None
    return bb.match_cast(x, TensorStructInfo(wanted, dtype), name)


def _with_field(
    bb: Builder, x: RelaxExpr, field: int, wanted: Sequence[Extent], name: str
) -> RelaxExpr:
    """The tuple, with ``with_dims`` applied to one field."""
    fields = tuple_fields(bb, x)
    compared = with_dims(bb, fields[field], wanted, name)
    return (
        x
        if compared is fields[field]
        else Tuple([compared if index == field else item for index, item in enumerate(fields)])
    )


def agreeing(rule: Rule, requires: Requires) -> Rule:
    """The rule, preceded by match_casts of the arguments whose dimensions are not proved."""

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


def least_extent(call: Call, axis: int, rank: int, extent: Extent, reach: Extent) -> Extent:
    """``extent`` if a window fits into it with its padding, else the least extent that it needs.

    The result is an expression of a symbolic extent: ``max(n, 3)`` for a window of 3 elements.
    """
    padding = call.attrs["padding"][axis] + call.attrs["padding"][rank + axis]
    stride = call.attrs["strides"][axis]
    # with ceil_mode the last window may lack so many elements
    spare = stride - 1 if call.attrs.get("ceil_mode") else 0
    least = constant_value(simplified(reach - padding - spare))
    if constant_value(extent) is not None and least is not None:
        return extent  # the struct-info rule has compared them
    if least is None:
        return simplified(tir_max(extent, reach - padding - spare))
    steps_of_nothing = -least // stride + 1
    nothing_fits = padding == 0 and steps_of_nothing >= 0
    if least <= (1 if nothing_fits else 0):
        return extent
    return simplified(tir_max(extent, tir_min(extent * least, least) if nothing_fits else least))


def _layout(call: Call, order: str) -> Layout:
    name = "data_layout" if "data_layout" in call.attrs else "layout"
    return parse_layout(call.attrs[name], order, f"{call.op.name}: {name}")


def fitting(rule: Rule, reaches: Reach) -> Rule:
    """The rule, preceded by match_casts that fail if the data is smaller than a window."""

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
        name = call.op.name.rpartition(".")[2] + "_window"
        cast = with_dims(bb, data, layout.from_canonical([batch, channels, *enough], order), name)
        if cast is data:
            return rule(bb, call)
        back = bb.match_cast(cast, data.struct_info, name)
        compared = Call(call.op, [back, *call.args[1:]], call.attrs)
        compared.struct_info = call.struct_info
        return rule(bb, compared)

    return checked
