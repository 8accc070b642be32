"""Operators that move elements and change shapes, but compute nothing.

Axes may be negative; extents may be symbolic where the result's shape can still be written down.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from weft.ir.expr import Extent, IntImm, PrimExpr, as_prim_expr
from weft.support.errors import IRIndexError, IRValueError
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Axes,
    Extents,
    Shape,
    as_sequence,
    compute_ax,
    compute_one,
    const_int,
    const_ints,
    is_const,
    may_be_equal,
    normalize_axes,
    normalize_axis,
    product,
    ravel_index,
    shape_text,
    unravel_index,
)
from weft.topi.simplify import simplified

INT64_MAX = (1 << 63) - 1


def expand_dims(a: Tensor, axis: Extent, num_newaxis: int = 1) -> Tensor:
    """``num_newaxis`` axes of extent 1 put in before ``axis`` (of the result, if negative)."""
    place = normalize_axis(axis, a.ndim + 1, "expand_dims")
    count = const_int(num_newaxis, "expand_dims: num_newaxis")
    unit = op.const(1, a.shape[0].dtype if a.ndim else "int32")
    shape = [*a.shape[:place], *[unit] * count, *a.shape[place:]]
    return compute_ax(
        shape, lambda *i: a(*i[:place], *i[place + count :]), "T_expand_dims", tag=tag.BROADCAST
    )


def squeeze(a: Tensor, axis: Axes = None) -> Tensor:
    """The axes of extent 1 (or those in ``axis``, which must be) left out."""
    if axis is None:
        axes = [i for i, extent in enumerate(a.shape) if is_const(extent, 1)]
    else:
        axes = normalize_axes(axis, a.ndim, "squeeze")
    for position in axes:
        if is_const(a.shape[position]) and not is_const(a.shape[position], 1):
            raise IRValueError(
                f"squeeze: axis {position} has extent {a.shape[position]}, expected 1"
            )
    kept = [extent for i, extent in enumerate(a.shape) if i not in axes]

    def element(*indices: PrimExpr) -> PrimExpr:
        remaining = list(indices)
        return a(*[_zero(a, i) if i in axes else remaining.pop(0) for i in range(a.ndim)])

    return compute_ax(kept, element, "T_squeeze", tag=tag.INJECTIVE)


def _zero(a: Tensor, axis: int) -> PrimExpr:
    return op.const(0, a.shape[axis].dtype)


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order; reversed if None."""
    if axes is None:
        order = list(range(a.ndim))[::-1]
    else:
        axes = axes if isinstance(axes, Iterable) else [axes]
        order = [normalize_axis(axis, a.ndim, "transpose") for axis in axes]
        if sorted(order) != list(range(a.ndim)):
            raise IRValueError(
                f"transpose: {tuple(order)} is no permutation of the {a.ndim} axes"
            )

    def element(*indices: PrimExpr) -> PrimExpr:
        source: list[PrimExpr | None] = [None] * a.ndim
        for index, axis in zip(indices, order, strict=True):
            source[axis] = index
        return a(*source)

    return compute_ax([a.shape[i] for i in order], element, "T_transpose", tag=tag.INJECTIVE)


def reshape(a: Tensor, newshape: Extents) -> Tensor:
    """The elements in row-major order as another shape; one extent may be -1."""
    target = _inferred_shape(a, [as_prim_expr(e) for e in as_sequence(newshape)])
    count, have = simplified(as_prim_expr(product(target))), as_prim_expr(product(a.shape))
    if not may_be_equal(count, simplified(have)):
        raise IRValueError(
            f"reshape: {shape_text(a.shape)} has {have} elements, {shape_text(target)} has {count}"
        )
    if [1 for extent in target if is_const(extent, 0)]:
        return compute_ax(target, lambda *_: op.const(0, a.dtype), "T_reshape", tag=tag.INJECTIVE)

    def element(*indices: PrimExpr) -> PrimExpr:
        flat = simplified(ravel_index(indices, target))
        if a.ndim == 0:
            return a()
        return a(*[simplified(index) for index in unravel_index(flat, a.shape)])

    return compute_ax(target, element, "T_reshape", tag=tag.INJECTIVE)


def _inferred_shape(a: Tensor, target: list[PrimExpr]) -> list[PrimExpr]:
    unknown = [i for i, extent in enumerate(target) if is_const(extent, -1)]
    if not unknown:
        return target
    if len(unknown) > 1:
        raise IRValueError(f"reshape: more than one extent of {shape_text(target)} is -1")
    known = [extent for i, extent in enumerate(target) if i not in unknown]
    whole, rest = as_prim_expr(product(a.shape)), as_prim_expr(product(known))
    if isinstance(whole, IntImm) and isinstance(rest, IntImm):
        if rest.value == 0 or whole.value % rest.value:
            raise IRValueError(
                f"reshape: {shape_text(a.shape)} has {whole} elements, not a multiple of the "
                f"{rest} of {shape_text(target)}"
            )
    target[unknown[0]] = simplified(op.floordiv(whole, rest))
    return target


def flatten(data: Tensor) -> Tensor:
    """``(batch, ...)`` as ``(batch, rest)``."""
    if data.ndim == 0:
        raise IRValueError("flatten: expected at least 1 dimension, got shape ()")
    rest = simplified(as_prim_expr(product(data.shape[1:])))
    shape = [data.shape[0], rest]

    def element(*indices: PrimExpr) -> PrimExpr:
        tail = unravel_index(indices[1], data.shape[1:])
        return data(indices[0], *[simplified(index) for index in tail])

    return compute_one(shape, element, name="compute", tag=tag.INJECTIVE)


def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along ``axis``; the other extents must agree."""
    tensors = list(a_tuple)
    if not tensors:
        raise IRValueError("concatenate: expected at least one tensor")
    first = tensors[0]
    place = normalize_axis(axis, first.ndim, "concatenate")
    for other in tensors[1:]:
        _check_joinable(first, other, place, "concatenate")
    total = first.shape[place]
    for other in tensors[1:]:
        total = total + other.shape[place]
    shape = [*first.shape[:place], simplified(total), *first.shape[place + 1 :]]

    def element(*indices: PrimExpr) -> PrimExpr:
        offsets = itertools.accumulate([tensor.shape[place] for tensor in tensors[:-1]])
        # the position in each tensor: negative before it
        starts = [indices[place], *[indices[place] - offset for offset in offsets]]
        values = [
            tensor(*indices[:place], start, *indices[place + 1 :])
            for tensor, start in zip(tensors, starts, strict=True)
        ]
        return _last_begun([op.less_equal(0, start) for start in starts], values)

    return compute_ax(shape, element, "T_concat", tag=tag.INJECTIVE)


_CHAIN: Final = 4


def _last_begun(begun: Shape, values: Sequence[PrimExpr]) -> PrimExpr:
    """The last of the values whose condition holds; each condition implies the one before it.

    A few are asked one after the other, from the last one, as TVM writes it. More are halved, so
    that a kernel of n tensors has nests of log n conditions and not n: simplifying, which assumes
    the conditions around an expression, takes time that grows faster than their number.
    """
    if len(values) == 1:
        return values[0]
    middle = len(values) - 1 if len(values) <= _CHAIN else len(values) // 2
    return op.if_then_else(
        begun[middle],
        _last_begun(begun[middle:], values[middle:]),
        _last_begun(begun[:middle], values[:middle]),
    )


def _check_joinable(first: Tensor, other: Tensor, place: int, name: str) -> None:
    ranks_differ = first.ndim != other.ndim
    pairs = enumerate(zip(first.shape, other.shape, strict=False))
    differing = [i for i, (a, b) in pairs if i != place and not may_be_equal(a, b)]
    if ranks_differ or differing:
        raise IRValueError(
            f"{name}: the shapes {shape_text(first.shape)} and {shape_text(other.shape)} differ "
            f"outside of axis {place}"
        )


def stack(a: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    tensors = list(a)
    if not tensors:
        raise IRValueError("stack: expected at least one tensor")
    first = tensors[0]
    for other in tensors[1:]:
        _check_joinable(first, other, -1, "stack")
    place = normalize_axis(axis, first.ndim + 1, "stack")
    dtype = first.shape[0].dtype if first.ndim else "int32"
    shape = [*first.shape[:place], op.const(len(tensors), dtype), *first.shape[place:]]

    def element(*indices: PrimExpr) -> PrimExpr:
        inside = (*indices[:place], *indices[place + 1 :])
        begun = [indices[place] >= number for number in range(len(tensors))]
        return _last_begun(begun, [tensor(*inside) for tensor in tensors])

    return compute_ax(shape, element, "T_stack", tag=tag.INJECTIVE)


def split(ary: Tensor, indices_or_sections: Extents, axis: int = 0) -> list[Tensor]:
    """Parts along ``axis``: that many equal ones, or cut at the given positions.

    A position past the end is the end; a negative one counts from there.
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
        # As numpy.array_split of torch.chunk: the last part may be shorter.
        step = op.ceildiv(extent, sections)
        cuts = [*[op.minimum(simplified(step * i), extent) for i in range(sections)], extent]
        name = "T_split_sections"
    parts = []
    for begin, end in itertools.pairwise(cuts):
        parts.append(_slice_part(ary, place, as_prim_expr(begin), as_prim_expr(end), name))
    return parts


def _cut(position: Extent, extent: PrimExpr) -> PrimExpr:
    """A cut as an index from 0 to the extent."""
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
    a: Tensor, begin: Extents, end: Extents, strides: Extents | None = None, axes: Axes = None,
    slice_mode: str = "end", assume_inbound: bool = True,
) -> Tensor:  # fmt: skip
    """``a[begin:end:strides]`` along ``axes`` (the first ones if None), by Python's rules.

    With ``slice_mode="size"`` ``end`` holds the lengths (-1: to the end). Symbolic bounds are
    taken to lie inside (``assume_inbound``) or are clamped.
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
    """A slice whose begin and strides (1-d tensors) are data; ``output_shape`` is given.

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
    """A begin or end as Python's slices take it: counted from the end if negative, cut off."""
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


def repeat(a: Tensor, repeats: int, axis: int = 0) -> Tensor:
    """Every element ``repeats`` times along ``axis``."""
    place = normalize_axis(axis, a.ndim, "repeat")
    times = const_int(repeats, "repeat: repeats")
    if times < 0:
        raise IRValueError(f"repeat: expected 0 or more repeats, got {times}")
    shape = [*a.shape[:place], simplified(a.shape[place] * times), *a.shape[place + 1 :]]

    def element(*indices: PrimExpr) -> PrimExpr:
        source = op.floordiv(indices[place], max(times, 1))
        return a(*indices[:place], source, *indices[place + 1 :])

    return compute_ax(shape, element, "T_repeat", tag=tag.BROADCAST)


def tile(a: Tensor, reps: Extents) -> Tensor:
    """The tensor repeated as a whole, by numpy's rule."""
    times = as_sequence(reps)
    rank = max(a.ndim, len(times))
    times = [*[1] * (rank - len(times)), *times]
    extents = [1] * (rank - a.ndim) + list(a.shape)
    shape = [simplified(as_prim_expr(e) * t) for e, t in zip(extents, times, strict=True)]
    if [1 for extent in shape if is_const(extent, 0)]:
        return compute_ax(shape, lambda *_: op.const(0, a.dtype), "T_tile", tag=tag.BROADCAST)

    def element(*indices: PrimExpr) -> PrimExpr:
        inner = indices[rank - a.ndim :]
        source = [
            index if is_const(time, 1) else op.floormod(index, extent)
            for index, extent, time in zip(inner, a.shape, times[rank - a.ndim :], strict=True)
        ]
        return a(*source)

    return compute_ax(shape, element, "T_tile", tag=tag.BROADCAST)


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """The order of the elements along ``axis`` turned around."""
    place = normalize_axis(axis, a.ndim, "flip")

    def element(*indices: PrimExpr) -> PrimExpr:
        turned = a.shape[place] - 1 - indices[place]
        return a(*indices[:place], turned, *indices[place + 1 :])

    return compute_ax(a.shape, element, "T_flip", tag=tag.INJECTIVE)


def reverse_sequence(
    a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> Tensor:
    """Per batch entry the first ``seq_lengths[b]`` elements of ``seq_axis`` turned around."""
    sequence = normalize_axis(seq_axis, a.ndim, "reverse_sequence")
    batch = normalize_axis(batch_axis, a.ndim, "reverse_sequence")
    if not may_be_equal(seq_lengths.shape[0], a.shape[batch]):
        raise IRValueError(
            f"reverse_sequence: {seq_lengths.shape[0]} lengths for a batch of {a.shape[batch]}"
        )

    def element(*indices: PrimExpr) -> PrimExpr:
        length = seq_lengths(indices[batch])
        place = indices[sequence]
        turned = op.if_then_else(op.less(place, length), length - 1 - place, place)
        turned = op.cast(place.dtype, turned)
        return a(*indices[:sequence], turned, *indices[sequence + 1 :])

    return compute_ax(a.shape, element, "T_reverse_sequence", tag=tag.INJECTIVE)


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The extents of a tensor as a 1-d tensor."""

    def element(*indices: PrimExpr) -> PrimExpr:
        value = op.const(0, dtype)
        for position, extent in enumerate(array.shape):
            here = op.equal(indices[0], position)
            value = op.if_then_else(here, op.cast(dtype, extent), value)
        return value

    return compute_ax([array.ndim], element, "T_shape", tag=tag.INJECTIVE)


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements, as a 0-d tensor."""
    count = op.cast(dtype, as_prim_expr(product(array.shape)))
    return compute_ax([], lambda: count, "ndarray_size", tag=tag.INJECTIVE)


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """Coordinate tensors of 1-d ones; indexing "ij" or "xy"."""
    tensors = list(a_tuple)
    if indexing not in ("ij", "xy"):
        raise IRValueError(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
    for tensor in tensors:
        if tensor.ndim > 1:
            raise IRIndexError(f"meshgrid: expected 1-d tensors, got {tensor.ndim} dimensions")
    order = list(range(len(tensors)))
    if indexing == "xy" and len(tensors) > 1:
        order[0], order[1] = 1, 0
    extents = [tensors[i].shape[0] if tensors[i].ndim else op.const(1, "int32") for i in order]
    outputs = []
    for number, tensor in enumerate(tensors):
        place = order.index(number)
        outputs.append(_coordinate(tensor, extents, place))
    return outputs


def _coordinate(tensor: Tensor, extents: Shape, place: int) -> Tensor:
    return compute_ax(
        extents, lambda *i: tensor(i[place]) if tensor.ndim else tensor(), "T_meshgrid",
        tag=tag.INJECTIVE,
    )  # fmt: skip
