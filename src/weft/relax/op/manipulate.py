"""Operators that move elements: reshape, transpose, new axes, repetition, layouts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft import topi
from weft.ir.expr import Extent, PrimExpr, RelaxExpr
from weft.ir.node import Array
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, PrimValue, ShapeExpr, Tuple
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import (
    broadcast,
    constant_value,
    differ,
    product,
    quotient,
    same_dim,
    same_dims,
    simplified,
)
from weft.relax.op.base import call_dps_packed
from weft.relax.op.create import known_shape
from weft.relax.op.definition import Ints, Replacements, Shape, operator, peek_info
from weft.relax.op.infer import (
    VOID,
    axes_of,
    axis_of,
    common_dtype,
    dims_of,
    fail,
    int64,
    integral,
    result,
    same_along_axis,
    scalar_info,
    shape_arg,
    shaped,
    show_dims,
    tensor,
)
from weft.relax.op.lowering import Builder, dims, scalar_or_tensor
from weft.relax.op.reference import manipulate as reference
from weft.relax.op.requirements import Required
from weft.relax.struct_info import TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir.index_map import IndexMap
from weft.topi import rearrangement


def infer_broadcast_to(call: Call) -> TensorStructInfo:
    """The target shape, if the input can be broadcast to it."""
    info, shape = tensor(call, 0), shape_arg(call, 1)
    target, dims = shape.values, dims_of(info)
    if shape.ndim != -1 and info.ndim > shape.ndim:
        fail(call, f"cannot broadcast {info.ndim} dimensions to {shape.ndim}")
    if target is not None and dims is not None:
        joint = broadcast(dims, target)
        wrong = isinstance(joint, str) or (
            joint is not None
            and any(differ(mine, its) for mine, its in zip(joint[::-1], target[::-1], strict=True))
        )
        if wrong:
            fail(call, f"cannot broadcast {show_dims(dims)} to {show_dims(target)}")
    return shaped(call, 1, info.dtype, info.vdevice)


@operator(
    "relax.broadcast_to",
    infer_broadcast_to,
    te=topi.broadcast_to,
    numpy=lambda x, shape: np.broadcast_to(x, shape),
    traits=Trait.MOVES,
)
def broadcast_to(x: Expr, shape: Shape) -> None:
    """The tensor repeated along new axes and axes of extent 1."""


def infer_expand_dims(call: Call) -> TensorStructInfo:
    """New axes of extent 1."""
    info = tensor(call, 0)
    axes = call.attrs["axis"]
    if info.ndim == -1:
        return result(None, info.dtype, -1, info.vdevice)
    ndim = info.ndim + len(axes)
    chosen = axes_of(call, axes, ndim)
    dims = dims_of(info)
    if dims is None:
        return result(None, info.dtype, ndim, info.vdevice)
    rest = iter(dims)
    extents = [int64(1) if axis in chosen else next(rest) for axis in range(ndim)]
    return result(extents, info.dtype, vdevice=info.vdevice)


@operator(
    "relax.expand_dims",
    infer_expand_dims,
    te=rearrangement.expand_dims,
    numpy=lambda x, axis: np.expand_dims(x, tuple(axis)),
    traits=Trait.MOVES,
)
def expand_dims(x: Expr, axis: Ints) -> None:
    """The tensor with new axes of extent 1."""


def infer_flatten(call: Call) -> TensorStructInfo:
    """One dimension."""
    info = tensor(call, 0)
    if info.ndim == 1:
        return info
    dims = [] if info.ndim == 0 else dims_of(info)
    return result(None if dims is None else [product(dims)], info.dtype, 1, info.vdevice)


@operator(
    "relax.flatten",
    infer_flatten,
    te=lambda x: topi.reshape(x, [product(x.shape)]),
    kernel="reshape",
    numpy=lambda x: x.reshape(-1),
    traits=Trait.MOVES,
)
def flatten(x: Expr) -> None:
    """All elements in one dimension, in row-major order."""


def infer_permute_dims(call: Call) -> TensorStructInfo:
    """The dimensions in another order."""
    info = tensor(call, 0)
    axes = call.attrs["axes"]
    if axes is not None and info.ndim not in (-1, len(axes)):
        fail(call, f"axes {axes} has {len(axes)} entries for a tensor of {info.ndim} dimensions")
    if info.ndim == -1:
        known = -1 if axes is None else len(axes_of(call, axes, len(axes), "axes"))
        return result(None, info.dtype, known, info.vdevice)
    order = range(info.ndim)[::-1] if axes is None else axes_of(call, axes, info.ndim, "axes")
    dims = dims_of(info)
    extents = None if dims is None else [dims[axis] for axis in order]
    return result(extents, info.dtype, info.ndim, info.vdevice)


@operator(
    "relax.permute_dims",
    infer_permute_dims,
    te=topi.transpose,
    numpy=lambda x, axes=None: np.transpose(x, axes),
    traits=Trait.MOVES,
)
def permute_dims(x: Expr, axes: Ints | None = None) -> None:
    """The axes in another order (reversed if None)."""


def infer_reshape(call: Call) -> TensorStructInfo:
    """The new shape, if it holds as many elements."""
    info, shape = tensor(call, 0), shape_arg(call, 1)
    dims, target = dims_of(info), shape.values
    if dims is not None and target is not None:
        if not same_dims(dims, target) and differ(product(dims), product(target)):
            fail(
                call,
                f"cannot reshape {show_dims(dims)} of {product(dims)} elements to "
                f"{show_dims(target)} of {product(target)}",
            )
    return shaped(call, 1, info.dtype, info.vdevice)


def _lower_reshape(bb: Builder, call: Call) -> RelaxExpr:
    """A kernel; or a function that compares the sizes, if they are not proved to be equal."""
    shape = known_shape(call.args[1])
    if shape is None:
        return call
    x = call.args[0]
    if not same_dim(product(dims(x)), product(shape.values)):
        return call_dps_packed("vm.builtin.reshape_into", Tuple([x]), call.struct_info)
    return bb.call_te(topi.reshape, x, shape, primfunc_name_hint="reshape")


@operator(
    "relax.reshape",
    infer_reshape,
    legalize=_lower_reshape,
    numpy=lambda x, shape: x.reshape(shape),
    traits=Trait.MOVES | Trait.VIEW,
)
def reshape(x: Expr, shape: Shape) -> Replacements:
    """The same elements, in row-major order, in another shape.

    One extent may be -1: it is computed. An extent of 0 is copied from x.
    """
    return {"shape": complete_shape(x, shape)}


def complete_shape(x: object, shape: Shape) -> Expr:
    """The shape with -1 computed from the tensor, and 0 copied from it."""
    if isinstance(shape, Expr) and not isinstance(shape, ShapeExpr):
        return shape
    if isinstance(shape, int | PrimExpr):
        shape = [shape]
    if not isinstance(shape, Iterable):
        raise wrong_type("relax.reshape: expected a shape", shape)
    values: list[Extent] = list(shape)
    dims = tensor_dims(getattr(x, "struct_info", None))
    for index, value in enumerate(values):
        if constant_value(value) == 0 and dims is not None and index < len(dims):
            if constant_value(product(dims)) != 0:
                values[index] = dims[index]
    if any((constant_value(value) or 0) < -1 for value in values):
        raise IRValueError(f"relax.reshape: expected extents of -1, 0 or more, got {shape}")
    unknown = [i for i, value in enumerate(values) if constant_value(value) == -1]
    if len(unknown) > 1:
        raise IRValueError(f"relax.reshape: only one extent may be -1, got {shape}")
    if unknown:
        if dims is None:
            raise IRValueError(
                "relax.reshape: an extent of -1 needs a tensor of known shape, got "
                f"{getattr(x, 'struct_info', None)}"
            )
        rest = [value for i, value in enumerate(values) if i != unknown[0]]
        values[unknown[0]] = _quotient(dims, rest)
    return ShapeExpr(values)


def _quotient(dims: Sequence[PrimExpr], rest: Sequence[Extent]) -> PrimExpr:
    total, known = product(dims), product(rest)
    if constant_value(known) == 0:
        raise IRValueError("relax.reshape: -1 cannot be computed beside an extent of 0")
    whole, part = constant_value(total), constant_value(known)
    if whole is not None and part is not None and whole % part:
        raise IRValueError(
            f"relax.reshape: {whole} elements of {show_dims(dims)} are not a multiple of {part}"
        )
    return quotient(dims, rest)


def infer_squeeze(call: Call) -> TensorStructInfo:
    """Without axes of extent 1."""
    info = tensor(call, 0)
    axes, dims = call.attrs["axis"], dims_of(info)
    if info.ndim == -1 or (axes is None and dims is None):
        return result(None, info.dtype, -1, info.vdevice)
    if axes is None:
        kept = [dim for dim in dims or () if constant_value(dim) != 1]
        return result(kept, info.dtype, vdevice=info.vdevice)
    chosen = axes_of(call, axes, info.ndim)
    if dims is None:
        return result(None, info.dtype, info.ndim - len(chosen), info.vdevice)
    for axis in chosen:
        if constant_value(dims[axis]) not in (None, 1):
            fail(call, f"axis {axis} has the extent {dims[axis]}, expected 1")
    kept = [dim for axis, dim in enumerate(dims) if axis not in chosen]
    return result(kept, info.dtype, vdevice=info.vdevice)


def _of_extent_one(call: Call) -> Required:
    """The axes to remove must have the extent 1."""
    shape = dims(call.args[0])
    if call.attrs["axis"] is None:
        return {}
    removed = {axis % len(shape) for axis in call.attrs["axis"]}
    unit = simplified(1)
    return {0: [unit if axis in removed else dim for axis, dim in enumerate(shape)]}


@operator(
    "relax.squeeze",
    infer_squeeze,
    te=topi.squeeze,
    requires=_of_extent_one,
    numpy=reference.squeeze,
    traits=Trait.MOVES,
)
def squeeze(x: Expr, axis: Ints | None = None) -> None:
    """The tensor without axes of extent 1 (all such if None)."""


def infer_repeat(call: Call) -> TensorStructInfo:
    """The extent times the number of repeats."""
    info = tensor(call, 0)
    repeats, axis, dims = call.attrs["repeats"], call.attrs["axis"], dims_of(info)
    if repeats < 0:
        fail(call, f"repeats: expected 0 or more, got {repeats}")
    if axis is None:
        flat = None if dims is None else [simplified(product(dims) * repeats)]
        return result(flat, info.dtype, 1, info.vdevice)
    position = axis_of(call, axis, info.ndim)
    if dims is None:
        return result(None, info.dtype, info.ndim, info.vdevice)
    extents = list(dims)
    extents[position] = simplified(extents[position] * repeats)
    return result(extents, info.dtype, vdevice=info.vdevice)


@operator(
    "relax.repeat",
    infer_repeat,
    te=rearrangement.repeat,
    numpy=lambda data, repeats, axis=None: np.repeat(data, repeats, axis),
    traits=Trait.MOVES,
)
def repeat(data: Expr, repeats: int, axis: int | None = None) -> None:
    """Each element repeated along an axis (of the flat tensor if None)."""


def infer_tile(call: Call) -> TensorStructInfo:
    """The extents times the repeats."""
    info = tensor(call, 0)
    repeats, dims = list(call.attrs["repeats"]), dims_of(info)
    if any(count < 0 for count in repeats):
        fail(call, f"repeats: expected 0 or more, got {repeats}")
    if info.ndim == -1:
        return result(None, info.dtype, -1, info.vdevice)
    ndim = max(info.ndim, len(repeats))
    if dims is None:
        return result(None, info.dtype, ndim, info.vdevice)
    shape = [int64(1)] * (ndim - info.ndim) + list(dims)
    times = [1] * (ndim - len(repeats)) + repeats
    extents = [simplified(dim * count) for dim, count in zip(shape, times, strict=True)]
    return result(extents, info.dtype, vdevice=info.vdevice)


@operator(
    "relax.tile",
    infer_tile,
    te=topi.tile,
    numpy=lambda data, repeats: np.tile(data, repeats),
    traits=Trait.MOVES,
)
def tile(data: Expr, repeats: Ints) -> None:
    """The whole tensor repeated along its axes."""


@operator(
    "relax.flip",
    same_along_axis,
    te=topi.flip,
    numpy=lambda data, axis: np.flip(data, axis),
    traits=Trait.MOVES | Trait.ALONG_AXIS,
)
def flip(data: Expr, axis: int) -> None:
    """The order along an axis reversed."""


def infer_layout_transform(call: Call) -> TensorStructInfo:
    """The shape that the index map makes."""
    info = tensor(call, 0)
    index_map, padding = call.attrs["index_map"], call.attrs["pad_value"]
    if padding is not None and info.dtype not in (VOID, padding.value.dtype):
        raise IRTypeError(
            f"relax.layout_transform: pad_value: expected {info.dtype} as the tensor, got "
            f"{padding.value.dtype}"
        )
    dims = dims_of(info)
    if dims is None:
        return result(None, info.dtype, len(index_map.final_indices), info.vdevice)
    return result(index_map.map_shape(dims), info.dtype, vdevice=info.vdevice)


def _pad_constant(value: Any, dtype: str) -> PrimExpr:
    """The padding as a constant of the tensor's dtype; IRTypeError for a float among integers."""
    given = PrimValue(value).value
    if dtype == VOID:
        return given
    if given.dtype.is_float and DataType(dtype).is_integral:
        raise IRTypeError(
            f"relax.layout_transform: pad_value: expected {dtype} as the tensor, got {value}"
        )
    return given.astype(str(dtype))


def _lower_layout_transform(bb: Builder, call: Call) -> RelaxExpr:
    if call.attrs["axis_separators"] or call.attrs["input_axis_separators"]:
        return call
    value = call.attrs["pad_value"]
    fill = value.value if isinstance(value, PrimValue) else value
    hint = "te_layout_transform" if fill is None else "te_layout_transform_with_pad"
    index_map = call.attrs["index_map"]
    moved = partial(rearrangement.layout_transform, index_map=index_map, pad_value=fill)
    return bb.call_te(moved, call.args[0], primfunc_name_hint=hint)


@operator(
    "relax.layout_transform",
    infer_layout_transform,
    legalize=_lower_layout_transform,
    numpy=reference.layout_transform,
    traits=Trait.EXACT,
)
def layout_transform(
    x: Expr,
    index_map: object,
    pad_value: object = None,
    axis_separators: object = None,
    input_axis_separators: object = None,
) -> Replacements:
    """Elements moved by an index map (``tir.IndexMap``, or a function of index variables)."""
    if not isinstance(index_map, IndexMap):
        if not callable(index_map):
            raise IRTypeError(
                "relax.layout_transform: expected a tir.IndexMap or a function as index_map, got "
                f"{type(index_map).__name__}"
            )
        index_map = IndexMap.from_func(index_map)
    info = peek_info(x)
    value = pad_value
    if pad_value is not None and not isinstance(pad_value, Expr):
        dtype = getattr(info, "dtype", VOID)
        value = PrimValue(_pad_constant(pad_value, dtype))
    return {
        "index_map": index_map,
        "pad_value": value,
        "axis_separators": axis_separators or Array(),
        "input_axis_separators": input_axis_separators or Array(),
    }


def infer_one_hot(call: Call) -> TensorStructInfo:
    """A new axis of extent depth, of the dtype of both values."""
    info = integral(call, 0)
    values = [scalar_info(call, index) for index in (1, 2)]
    dtype = common_dtype(call, values)
    depth = call.attrs["depth"]
    if (constant_value(depth) or 0) < 0:
        fail(call, f"depth: expected 0 or more, got {depth}")
    ndim = -1 if info.ndim == -1 else info.ndim + 1
    axis = axis_of(call, call.attrs["axis"], ndim)
    dims = dims_of(info)
    if dims is None:
        return result(None, dtype, ndim, info.vdevice)
    return result([*dims[:axis], simplified(depth), *dims[axis:]], dtype, vdevice=info.vdevice)


def _lower_one_hot(bb: Builder, call: Call) -> RelaxExpr:
    on_value, off_value = (scalar_or_tensor(arg) for arg in call.args[1:3])
    for value in (on_value, off_value):
        if value is call.args[1] or value is call.args[2]:
            inner = getattr(value, "value", None)
            if inner is None:
                return call
    values = [
        getattr(v, "value", v) if isinstance(v, PrimValue) else v for v in (on_value, off_value)
    ]
    return bb.call_te(
        topi.one_hot,
        call.args[0],
        *values,
        call.attrs["depth"],
        call.attrs["axis"],
        str(call.struct_info.dtype),
        primfunc_name_hint="one_hot",
    )


@operator("relax.one_hot", infer_one_hot, legalize=_lower_one_hot, numpy=reference.one_hot)
def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: int, axis: int = -1) -> None:
    """on_value where the index along the new axis equals the element, else off_value."""
