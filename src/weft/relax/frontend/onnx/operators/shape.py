"""Shapes, constants, and what passes values on: Shape, Constant, Reshape, Identity, Cast ..."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from weft.ir.expr import PrimExpr, constant_value
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.blocks import Taken
from weft.relax.frontend.onnx.choices import BranchesDifferError, condition_key, insist
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import INT64
from weft.relax.frontend.onnx.known import settle
from weft.relax.frontend.onnx.protos import SparseTensorProto
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.run_axes import shape_with_axes
from weft.relax.frontend.onnx.tensors import dense_array
from weft.relax.frontend.onnx.value import (
    Array,
    Dim,
    GraphValue,
    Value,
    as_prim,
    plain_dim,
)
from weft.relax.ir.shape_arith import product, quotient, simplified
from weft.tir.op import if_then_else


@converter("Constant")
def constant(
    context: Context,
    *,
    value: Array | None = None,
    sparse_value: SparseTensorProto | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Value:
    """Elements written in the node."""
    if value is not None:
        return context.constant(value)
    if sparse_value is not None:
        return context.constant(dense_array(sparse_value))
    for elements, dtype in (
        (value_int, "int64"),
        (value_ints, "int64"),
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_string, "object"),
        (value_strings, "object"),
    ):
        if elements is not None:
            return context.constant(np.array(elements, "U" if dtype == "object" else dtype))
    return context.fail("it has no value")


@converter("Shape")
def shape(context: Context, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """The dimensions from ``start`` to ``end``: known at import, symbols and all."""
    return context.shape_value(context.shape(x, "data")[start:end])


@converter("Size")
def size(context: Context, x: Value) -> Value:
    """The number of elements."""
    count = np.empty((), object)
    count[()] = product([as_prim(dim) for dim in context.shape(x, "data")])
    return context.constant(settle(count), elem=INT64)


@converter("Identity")
def identity(context: Context, x: GraphValue) -> GraphValue:
    """The value itself, of whatever kind."""
    return x


@converter("Reshape")
def reshape_attribute(
    context: Context,
    x: Value,
    *,
    shape: Sequence[int],
    consumed_inputs: Sequence[int] | None = None,
) -> Expr:
    """Until opset 4 the shape is an attribute."""
    return reshaped(context, x, list(shape), False)


@converter("Reshape", since=5)
def reshape(context: Context, x: Value, shape: Value, *, allowzero: int = 0) -> Expr:
    """The elements in another shape; 0 keeps a dimension, -1 is what remains."""
    return reshaped(context, x, context.dims(shape, "shape"), bool(allowzero))


def reshaped(context: Context, x: Value, sizes: Sequence[Dim], allow_zero: bool) -> Expr:
    """``x`` in the shape that ``sizes`` mean."""
    extents = context.shape(x, "data")
    dims: list[Dim] = []
    for axis, want in enumerate(sizes):
        if not allow_zero and axis < len(extents):
            if isinstance(want, int):
                want = extents[axis] if want == 0 else want
            elif context.is_data_symbol(want):
                want = _chosen(want == 0, extents[axis], want)
        dims.append(want)
    whole = [as_prim(dim) for dim in extents]
    if -1 in [dim for dim in dims if isinstance(dim, int)]:
        place = dims.index(-1)
        rest = [as_prim(dim) for index, dim in enumerate(dims) if index != place]
        dims[place] = quotient(whole, rest)
    elif any(not isinstance(dim, int) and context.is_data_symbol(dim) for dim in dims):
        dims = _remaining(whole, dims)
    return context.emit(op.reshape(x.expr, dims))


def _remaining(whole: Sequence[Dim], dims: Sequence[Dim]) -> list[Dim]:
    """Dimensions of which one may turn out to be -1 when the program runs."""
    settled: list[Dim] = []
    for place, dim in enumerate(dims):
        if isinstance(dim, int):
            settled.append(dim)
            continue
        rest = [as_prim(other) for index, other in enumerate(dims) if index != place]
        negative = simplified(dim < 0)
        never = constant_value(negative) == 0
        settled.append(dim if never else _chosen(negative, quotient(whole, rest), dim))
    return settled


def _chosen(condition: PrimExpr, this: Dim, other: Dim) -> Dim:
    """``this`` extent where the condition holds, else the ``other``; in simplest form.

    Reshapes follow one another, each of whose extents may be one of the tensor's before it: as a
    tree, their choices would be twice as large with each.
    """
    return plain_dim(simplified(if_then_else(condition, as_prim(this), as_prim(other))))


@converter("Squeeze")
def squeeze_attribute(context: Context, x: Value, *, axes: Sequence[int] | None = None) -> Expr:
    """Until opset 12 the axes are an attribute."""
    return _squeezed(context, x, axes)


@converter("Squeeze", since=13)
def squeeze(context: Context, x: Value, axes: Value | None = None) -> Expr:
    """Without the axes of size 1."""
    return _squeezed(context, x, context.ints(axes, "axes"))


def _squeezed(context: Context, x: Value, axes: Sequence[int] | None) -> Expr:
    if axes is None:
        return _squeezed_by_extent(context, x, [None] * context.rank(x, "data"))
    return context.emit(op.squeeze(x.expr, list(axes)))


def _squeezed_by_extent(context: Context, x: Value, is_one: Sequence[bool | None]) -> Expr:
    """Without the axes of one element; ``is_one`` is what is decided of each axis, or None.

    Raises BranchesDifferError where the run decides whether an axis has one element.
    """
    decided = list(is_one)
    for axis, extent in enumerate(context.shape(x, "data")):
        if decided[axis] is not None:
            continue
        condition = expect(
            context.run("Equal", context.dim_value(extent), context.constant(1, "int64")), Value
        )
        if condition.constant is None:
            decided[axis] = _decided(context, x, condition, [*decided[:axis], *is_one[axis:]])
        else:
            decided[axis] = bool(condition.constant)
    return context.emit(
        op.squeeze(x.expr, [axis for axis, is_gone in enumerate(decided) if is_gone])
    )


def _decided(context: Context, x: Value, condition: Value, is_one: Sequence[bool | None]) -> bool:
    """What is taken of the first axis of ``is_one`` that is not decided, or BranchesDifferError."""
    axis, translator = is_one.index(None), context.translator
    if translator.is_looping:
        reason = "every step of a loop must have the same rank"
        insist(translator, context, condition, Taken(1, reason), _names(axis))
        return False
    taken = translator.taken.get(condition_key(condition))
    if taken is not None:
        return taken.index == 0

    def branch(case: bool) -> list[GraphValue | None]:
        known = [*is_one[:axis], case, *is_one[axis + 1 :]]
        return [context.value(_squeezed_by_extent(context, x, known), x.elem)]

    raise BranchesDifferError(
        f"{context.where}: it has no axes, and the run tells whether its axis {axis} has one "
        "element and is removed; give it axes",
        context,
        condition,
        [partial(branch, True), partial(branch, False)],
        _names(axis),
    )


def _names(axis: int) -> tuple[str, str]:
    return (f"the case that axis {axis} has one element", f"the case that axis {axis} has more")


@converter("Unsqueeze")
def unsqueeze_attribute(context: Context, x: Value, *, axes: Sequence[int]) -> Expr:
    """Until opset 12 the axes are an attribute."""
    return context.emit(op.expand_dims(x.expr, list(axes)))


@converter("Unsqueeze", since=13)
def unsqueeze(context: Context, x: Value, axes: Value) -> Expr:
    """With axes of size 1; where they are depends on the run if they are not known."""
    if axes.known is None and x.rank >= 0:
        return reshaped(context, x, shape_with_axes(context, x, axes), True)
    return context.emit(op.expand_dims(x.expr, context.ints(axes, "axes")))


@converter("Flatten")
def flatten(context: Context, x: Value, *, axis: int = 1) -> Expr:
    """A matrix: the dimensions before ``axis``, and those from it on."""
    dims = [as_prim(dim) for dim in context.shape(x, "input")]
    if not -len(dims) <= axis <= len(dims):
        context.fail(f"axis {axis} is outside of a tensor of {len(dims)} dimensions")
    place = axis if axis >= 0 else axis + len(dims)
    return context.emit(op.reshape(x.expr, [product(dims[:place]), product(dims[place:])]))


@converter("Expand", since=8)
def expand(context: Context, x: Value, shape: Value) -> Expr:
    """Broadcast with a shape, both ways."""
    extents, wanted = context.shape(x, "input"), context.sizes(shape, "shape")
    count = max(len(extents), len(wanted))
    before = [1] * (count - len(extents)) + list(extents)
    target = [1] * (count - len(wanted)) + list(wanted)
    dims = [_broadcast_dim(context, a, b) for a, b in zip(before, target, strict=True)]
    base = x.expr if count == len(extents) else context.emit(op.reshape(x.expr, before))
    return context.emit(op.broadcast_to(base, dims))


def _broadcast_dim(context: Context, extent: Dim, wanted: Dim) -> Dim:
    if isinstance(wanted, int):
        return extent if wanted == 1 else wanted
    if isinstance(extent, int) and extent == 1:
        return wanted
    if context.is_data_symbol(wanted):
        return _chosen(wanted == 1, extent, wanted)
    return extent


@converter("ConstantOfShape", since=9)
def constant_of_shape(context: Context, shape: Value, *, value: Array | None = None) -> Value:
    """One value in a shape; float32 zeros by default."""
    fill = context.constant(np.zeros(1, "float32") if value is None else value)
    dims = context.sizes(shape, "input")
    scalar = context.constant(np.asarray(fill.known).reshape(()), elem=fill.elem)
    return context.value(op.full(dims, scalar.expr, scalar.dtype), fill.elem)


@converter("Tile")
def tile_repeats(context: Context, x: Value, repeats: Value, axis: Value) -> Expr:
    """Until opset 5: how often along which one axis."""
    times = [1] * context.rank(x, "input")
    times[(context.ints(axis, "axis") or [0])[0]] = (context.ints(repeats, "tiles") or [1])[0]
    return context.emit(op.tile(x.expr, times))


@converter("Tile", since=6)
def tile(context: Context, x: Value, repeats: Value) -> Expr:
    """Copies side by side along every axis."""
    times = context.sizes(repeats, "repeats")
    if all(isinstance(count, int) for count in times):
        return context.emit(op.tile(x.expr, times))
    extents = context.shape(x, "input")
    if len(times) != len(extents):
        context.fail(f"repeats: expected {len(extents)} numbers, got {len(times)}")
    apart = [dim for extent in extents for dim in (1, extent)]
    spread = [dim for pair in zip(times, extents, strict=True) for dim in pair]
    copies = context.emit(op.broadcast_to(context.emit(op.reshape(x.expr, apart)), spread))
    whole = [as_prim(count) * extent for count, extent in zip(times, extents, strict=True)]
    return context.emit(op.reshape(copies, whole))


@converter("Transpose")
def transpose(context: Context, x: Value, *, perm: Sequence[int] | None = None) -> Expr:
    """The axes in another order (reversed by default)."""
    return context.emit(op.permute_dims(x.expr, None if perm is None else list(perm)))


@converter("Concat")
def concat_until_3(context: Context, *values: Value, axis: int = 1) -> Expr:
    """Until opset 3 the axis has a default."""
    return concat(context, *values, axis=axis)


@converter("Concat", since=4)
def concat(context: Context, *values: Value, axis: int) -> Expr:
    """One after the other along an axis."""
    return context.emit(op.concat([value.expr for value in values], axis))
