"""Operators that move elements and change shapes, but compute nothing.

Axes may be negative; extents may be symbolic if the shape of the result can be expressed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from weft.ir.expr import Extent, IntImm, PrimExpr, as_prim_expr
from weft.support.errors import IRIndexError, IRValueError
from weft.te.operation import compute
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi import tag
from weft.topi.extents import (
    Axes,
    Extents,
    Shape,
    as_sequence,
    compute_ax,
    const_int,
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
from weft.topi.slices import (  # noqa: F401 - names of this module too
    dynamic_strided_slice,
    normalize_list,
    shape_func_dynamic_strided_slice,
    slice_window,
    split,
    strided_slice,
)


def expand_dims(a: Tensor, axis: Extent, num_newaxis: int = 1) -> Tensor:
    """``num_newaxis`` axes of extent 1 inserted before ``axis`` (of the result, if negative)."""
    place = normalize_axis(axis, a.ndim + 1, "expand_dims")
    count = const_int(num_newaxis, "expand_dims: num_newaxis")
    unit = op.const(1, a.shape[0].dtype if a.ndim else "int32")
    shape = [*a.shape[:place], *[unit] * count, *a.shape[place:]]
    return compute_ax(
        shape, lambda *i: a(*i[:place], *i[place + count :]), "T_expand_dims", tag=tag.BROADCAST
    )


def squeeze(a: Tensor, axis: Axes = None) -> Tensor:
    """The tensor without its axes of extent 1, or without those in ``axis``."""
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
            raise IRValueError(f"transpose: {tuple(order)} is no permutation of the {a.ndim} axes")

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

    return compute(shape, element, name="compute", tag=tag.INJECTIVE)


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
        # the index into each tensor, negative before its start
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

    A few conditions are tested one after the other, from the last one, as in TVM. For more, a
    binary search makes a kernel of n tensors have log n nested conditions instead of n: the time of
    the simplifier, which assumes the conditions around an expression, grows faster than their
    number.
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
    """The elements in reverse order along ``axis``."""
    place = normalize_axis(axis, a.ndim, "flip")

    def element(*indices: PrimExpr) -> PrimExpr:
        turned = a.shape[place] - 1 - indices[place]
        return a(*indices[:place], turned, *indices[place + 1 :])

    return compute_ax(a.shape, element, "T_flip", tag=tag.INJECTIVE)


def reverse_sequence(
    a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> Tensor:
    """The first ``seq_lengths[b]`` elements along ``seq_axis`` of each batch entry reversed."""
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
        extents,
        lambda *i: tensor(i[place]) if tensor.ndim else tensor(),
        "T_meshgrid",
        tag=tag.INJECTIVE,
    )
