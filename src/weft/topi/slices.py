"""Slices as tensor expressions: ``split``, ``strided_slice`` and slices by bounds in tensors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from weft.ir.expr import Extent, IntImm, PrimExpr, as_prim_expr
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Axes,
    Extents,
    as_sequence,
    compute_ax,
    const_int,
    const_ints,
    is_const,
    normalize_axis,
)
from weft.topi.simplify import simplified

INT64_MAX = (1 << 63) - 1


def split(ary: Tensor, indices_or_sections: Extents, axis: int = 0) -> list[Tensor]:
    """Parts along ``axis``: a number of equal parts, or those between the given positions.

    A position past the end is the end; a negative one counts from the end.
    """
    place = normalize_axis(axis, ary.ndim, "split")
    extent = ary.shape[place]
    if isinstance(indices_or_sections, Sequence):
        cuts: list[Extent] = [0, *[_cut(item, extent) for item in indices_or_sections], extent]
        name = "T_split"
    else:
        sections = const_int(indices_or_sections, "split: sections")
        if sections <= 0:
            raise IRValueError(f"split: the number of sections must be positive, got {sections}")
        # As in torch.chunk, the last part may be shorter.
        step = op.ceildiv(extent, sections)
        cuts = [*[op.minimum(simplified(step * i), extent) for i in range(sections)], extent]
        name = "T_split_sections"
    parts = []
    for begin, end in itertools.pairwise(cuts):
        parts.append(_slice_part(ary, place, as_prim_expr(begin), as_prim_expr(end), name))
    return parts


def _cut(position: Extent, extent: PrimExpr) -> PrimExpr:
    """A position as an index from 0 to the extent."""
    place = as_prim_expr(position)
    if isinstance(place, IntImm) and place.value < 0:
        return simplified(op.maximum(op.add(place, extent), op.const(0, extent.dtype)))
    return simplified(op.minimum(place, extent))


def _slice_part(ary: Tensor, place: int, begin: PrimExpr, end: PrimExpr, name: str) -> Tensor:
    length = simplified(op.maximum(op.subtract(end, begin), op.const(0, begin.dtype)))
    dtype = ary.shape[place].dtype
    shape = [*ary.shape[:place], op.cast(dtype, length), *ary.shape[place + 1 :]]

    def element(*indices: PrimExpr) -> PrimExpr:
        moved = op.add(indices[place], begin)
        return ary(*indices[:place], moved, *indices[place + 1 :])

    return compute_ax(shape, element, name, tag=tag.INJECTIVE)


def strided_slice(
    a: Tensor,
    begin: Extents,
    end: Extents,
    strides: Extents | None = None,
    axes: Axes = None,
    slice_mode: str = "end",
    assume_inbound: bool = True,
) -> Tensor:
    """``a[begin:end:strides]`` along ``axes`` (the first ones if None), by Python's rules.

    With ``slice_mode="size"`` ``end`` holds the lengths (-1: to the end). Symbolic bounds are
    assumed to be inside (``assume_inbound``) or else clamped.
    """
    starts, stops = as_sequence(begin), as_sequence(end)
    places = list(range(len(starts))) if axes is None else normalize_list(a, axes)
    steps = [] if strides is None else const_ints(strides, "strided_slice: strides")
    steps += [1] * (len(starts) - len(steps))
    if not len(starts) == len(stops) == len(places) or len(places) > a.ndim:
        raise IRValueError(
            f"strided_slice: got {len(starts)} begins, {len(stops)} ends and {len(places)} axes "
            f"for a {a.ndim}-dimensional tensor"
        )
    shape, windows = list(a.shape), {}
    for start, stop, step, place in zip(starts, stops, steps, places, strict=True):
        if slice_mode == "size":
            size = as_prim_expr(stop)
            stop, step = (a.shape[place] if is_const(size, -1) else start + size), 1
        window = slice_window(a.shape[place], start, stop, (step, assume_inbound))
        windows[place], shape[place] = (window[0], step), window[1]

    def element(*indices: PrimExpr) -> PrimExpr:
        source = list(indices)
        for place, (first, step) in windows.items():
            source[place] = simplified(op.add(indices[place] * step, first))
        return a(*source)

    return compute_ax(shape, element, "T_strided_slice", tag=tag.INJECTIVE)


def normalize_list(a: Tensor, axes: Extents) -> list[int]:
    """Axes in the order given."""
    return [normalize_axis(axis, a.ndim, "strided_slice") for axis in as_sequence(axes)]


def slice_window(
    extent: PrimExpr, start: Extent | None, stop: Extent | None, options: tuple[int, bool]
) -> tuple[PrimExpr, PrimExpr]:
    """First index and number of elements of a slice of one axis."""
    step, assume_inbound = options
    if step == 0:
        raise IRValueError("strided_slice: a stride must not be 0")
    first = None if start is None else as_prim_expr(start)
    last = None if stop is None else as_prim_expr(stop)
    constant = [item for item in (first, last) if item is None or isinstance(item, IntImm)]
    if isinstance(extent, IntImm) and len(constant) == 2:
        values = [None if item is None else int(item) for item in constant]
        chosen = range(extent.value)[slice(values[0], values[1], step)]
        return op.const(chosen.start if chosen else 0, extent.dtype), op.const(
            len(chosen), extent.dtype
        )
    low = _bound(first, extent, (step, True, assume_inbound))
    high = _bound(last, extent, (step, False, assume_inbound))
    span = op.subtract(high, low) if step > 0 else op.subtract(low, high)
    width = abs(step)
    length = op.floordiv(op.add(span, width - 1), width)
    if not assume_inbound:
        length = op.maximum(length, op.const(0, length.dtype))
    return simplified(low), op.cast(extent.dtype, simplified(length))


def _bound(value: PrimExpr | None, extent: PrimExpr, options: tuple[int, bool, bool]) -> PrimExpr:
    step, is_start, assume_inbound = options
    if value is None:
        if step > 0:
            return op.const(0, extent.dtype) if is_start else extent
        return extent - 1 if is_start else op.const(-1, extent.dtype)
    if isinstance(value, IntImm) and value.value < 0:
        value = op.maximum(op.add(value, extent), op.const(0 if step > 0 else -1, extent.dtype))
    elif not assume_inbound:
        low = op.const(0 if step > 0 else -1, extent.dtype)
        if not isinstance(value, IntImm):
            value = op.if_then_else(op.less(value, 0), op.add(value, extent), value)
        value = op.maximum(value, low)
    if isinstance(value, IntImm) and value.value >= INT64_MAX - 1:
        return extent if step > 0 else extent - 1
    if assume_inbound and not isinstance(value, IntImm):
        return value
    top = extent if step > 0 else extent - 1
    return value if step > 0 and op.is_const_int(value, 0) else op.minimum(value, top)


def dynamic_strided_slice(
    a: Tensor,
    begin: Tensor,
    end: Tensor,  # noqa: ARG001 - TVM's signature; output_shape says where the slice ends
    strides: Tensor,
    output_shape: Extents,
) -> Tensor:
    """A slice whose begin and strides are 1-d tensors; ``output_shape`` is given.

    ``shape_func_dynamic_strided_slice`` computes that shape.
    """

    def element(*indices: PrimExpr) -> PrimExpr:
        source = []
        for position, index in enumerate(indices):
            start = _dynamic_bound(a, begin, strides, position)
            source.append(op.add(op.multiply(index, strides(position)), start))
        return a(*source)

    return compute_ax(
        as_sequence(output_shape), element, "T_dynamic_strided_slice", tag=tag.INJECTIVE
    )


def _dynamic_bound(a: Tensor, bounds: Tensor, strides: Tensor, position: int) -> PrimExpr:
    """A begin or end by the rules of Python's slices: negative from the end, then clamped."""
    value, extent = op.cast("int64", bounds(position)), op.cast("int64", a.shape[position])
    backward = op.less(strides(position), 0)
    wrapped = op.select(op.less(value, 0), op.add(value, extent), value)
    low = op.select(backward, op.const(-1, "int64"), op.const(0, "int64"))
    high = op.select(backward, op.subtract(extent, 1), extent)
    return op.maximum(low, op.minimum(wrapped, high))


def shape_func_dynamic_strided_slice(
    a: Tensor, begin: Tensor, end: Tensor, strides: Tensor
) -> Tensor:
    """The shape of ``dynamic_strided_slice``, as an int64 vector."""

    def extent(position: int) -> PrimExpr:
        step = op.cast("int64", strides(position))
        low, high = (_dynamic_bound(a, item, strides, position) for item in (begin, end))
        unit = op.const(1, "int64")
        beyond = op.select(op.less(step, 0), op.add(step, unit), op.subtract(step, unit))
        count = op.floordiv(op.add(op.subtract(high, low), beyond), step)
        return op.maximum(count, op.const(0, "int64"))

    def element(index: PrimExpr) -> PrimExpr:
        chosen = extent(a.ndim - 1)
        for position in reversed(range(a.ndim - 1)):
            chosen = op.if_then_else(op.equal(index, position), extent(position), chosen)
        return chosen

    return compute_ax([a.ndim], element, "T_shape_func_strided_slice_dynamic", tag=tag.INJECTIVE)
