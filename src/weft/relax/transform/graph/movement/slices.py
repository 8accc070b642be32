"""Slices move before transposes and reshapes; ``take`` at a constant position becomes a slice."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from weft.ir.expr import PrimExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Call, Expr, PrimValue, Tuple
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, product, same_dim
from weft.relax.struct_info import TupleStructInfo
from weft.relax.transform.graph.movement.scope import (
    MOVEMENTS,
    PERMUTE,
    RESHAPE,
    Scope,
    axes_of,
    constant_of,
    dims_of,
    producer,
)


@MOVEMENTS.of("take")
def take(scope: Scope, call: Call) -> Expr | None:
    """A ``take`` of one constant position becomes a slice and a reshape."""
    dims, position, axis = dims_of(call.args[0]), constant_of(call.args[1]), call.attrs["axis"]
    if dims is None or position is None or position.ndim or axis is None:
        return None
    extent, place = constant_value(dims[int(axis)]), int(position)
    if extent is None or not 0 <= place < extent:
        return None
    part = op.strided_slice(call.args[0], [int(axis) % len(dims)], [place], [place + 1])
    return op.reshape(scope.emit(part), dims_of(call))


def one_range(call: Call) -> tuple[int, int, int] | None:
    """(axis, begin, end) of a slice along one axis by constants with step 1; None for others."""
    dims = dims_of(call.args[0])
    if dims is None or not all(isinstance(arg, Tuple) for arg in call.args[1:]):
        return None
    axes, begins, ends, *strides = [_numbers(expect(arg, Tuple)) for arg in call.args[1:]]
    if any(numbers is None or len(numbers) != 1 for numbers in (axes, begins, ends, *strides)):
        return None
    assert axes is not None
    assert begins is not None
    assert ends is not None
    extent = constant_value(dims[axes[0]])
    if extent is None or any(numbers != [1] for numbers in strides):
        return None
    begin, end, _ = slice(begins[0], ends[0]).indices(extent)
    return axes[0] % len(dims), begin, max(begin, end)


def split_ranges(split: Call) -> list[tuple[int, int]] | None:
    """The beginning and the end of each part of a split.

    None where a number is symbolic, and where the parts do not follow each other, since the places
    of the cuts are not in order: ``split(x, [3, 1])`` gives some elements twice.
    """
    dims, axis = dims_of(split.args[0]), split.attrs["axis"]
    if dims is None or not isinstance(split.struct_info, TupleStructInfo):
        return None  # a split into one part gives no tuple
    shapes = [tensor_dims(part) for part in split.struct_info.fields]
    widths = [constant_value(shape[axis]) for shape in shapes if shape is not None]
    ends = list(itertools.accumulate([width for width in widths if width is not None]))
    if len(ends) < len(shapes) or ends[-1] != constant_value(dims[axis]):
        return None
    return list(itertools.pairwise([0, *ends]))


def _numbers(arg: Tuple) -> list[int] | None:
    numbers = [
        constant_value(item.value) if isinstance(item, PrimValue) else None for item in arg.fields
    ]
    return None if None in numbers else [int(number) for number in numbers if number is not None]


@MOVEMENTS.of("strided_slice")
def strided_slice(scope: Scope, call: Call) -> Expr | None:
    """The slice of a transpose becomes the transpose of a slice; so with reshapes, if possible."""
    where, dims = one_range(call), dims_of(call.args[0])
    if where is None or dims is None:
        return None
    axis, begin, end = where
    if begin == 0 and same_dim(dims[axis], end):
        return call.args[0]
    inner = producer(scope, call.args[0], PERMUTE)
    axes = None if inner is None else axes_of(inner)
    if inner is not None and axes is not None:
        part = scope.emit(op.strided_slice(inner.args[0], [axes[axis]], [begin], [end]))
        return op.permute_dims(part, axes)
    inner = producer(scope, call.args[0], RESHAPE)
    earlier_axis = None if inner is None else _axis_before(dims_of(inner.args[0]), dims, axis)
    if inner is None or earlier_axis is None:
        return None
    before, step = earlier_axis
    part = scope.emit(op.strided_slice(inner.args[0], [before], [begin * step], [end * step]))
    return op.reshape(part, dims_of(call))


def _axis_before(
    before: Sequence[PrimExpr] | None, dims: Sequence[PrimExpr], axis: int
) -> tuple[int, int] | None:
    """(axis before a reshape that ``axis`` comes from, how many of its elements one step is)."""
    if before is None:
        return None
    outer, whole = product(dims[:axis]), dims[axis]
    inner = constant_value(product(dims[axis + 1 :]))
    extent = constant_value(whole)
    for place, dim in enumerate(before):
        rest, size = constant_value(product(before[place + 1 :])), constant_value(dim)
        if not inner or not rest or size is None or extent is None or inner % rest:
            continue
        if same_dim(product(before[:place]), outer) and size == extent * (inner // rest):
            return place, inner // rest
    return None
