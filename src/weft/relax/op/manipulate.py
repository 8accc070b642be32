"""Operators that move elements: reshape, transpose, concat, split, pad's relatives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.ir.expr import PrimExpr
from weft.ir.node import Array
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, PrimValue, ShapeExpr
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import (
    broadcast,
    constant_value,
    differ,
    product,
    quotient,
    same_dims,
    simplified,
)
from weft.relax.op.definition import (
    Exprs,
    Ints,
    Shape,
    as_int,
    as_ints,
    operator,
    peek_info,
)
from weft.relax.op.infer import (
    VOID,
    axes_of,
    axis_of,
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    int64,
    integral,
    result,
    scalar_info,
    shape_arg,
    shaped,
    show_dims,
    tensor,
    tensors,
)
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.index_map import IndexMap
from weft.tir.op import ceildiv
from weft.tir.op import max as tir_max
from weft.tir.op import min as tir_min


def infer_broadcast_to(call: Call) -> TensorStructInfo:
    """The target shape, if the input can be broadcast to it."""
    info, shape = tensor(call, 0), shape_arg(call, 1)
    target, dims = shape.values, dims_of(info)
    if shape.ndim != -1 and info.ndim > shape.ndim:
        fail(call, f"cannot broadcast {info.ndim} dimensions to {shape.ndim}")
    if target is not None and dims is not None:
        found = broadcast(dims, target)
        wrong = isinstance(found, str) or (
            found is not None
            and any(
                differ(mine, its)
                for mine, its in zip(found[::-1], target[::-1], strict=True)
            )
        )
        if wrong:
            fail(call, f"cannot broadcast {show_dims(dims)} to {show_dims(target)}")
    return shaped(call, 1, info.dtype, info.vdevice)


@operator("relax.broadcast_to", infer_broadcast_to, traits=Trait.MOVES)
def broadcast_to(x: Expr, shape: Shape) -> Any:
    """The tensor repeated along new axes and axes of extent 1."""


def infer_concat(call: Call) -> TensorStructInfo:
    """The extents along the axis add up; the others must agree."""
    infos = tensors(call, 0)
    if not infos:
        fail(call, "expected at least one tensor")
    dtype, vdevice = common_dtype(call, infos), common_vdevice(infos)
    axis = call.attrs["axis"]
    ranks = {info.ndim for info in infos if info.ndim != -1}
    if len(ranks) > 1:
        fail(call, f"the tensors have different numbers of dimensions: {sorted(ranks)}")
    ndim = next(iter(ranks), -1)
    if axis is None:
        if ndim not in (-1, 1):
            fail(call, f"axis None needs tensors of 1 dimension, got {ndim}")
        axis, ndim = 0, 1
    position = axis_of(call, axis, ndim)
    shapes = [dims_of(info) for info in infos]
    if any(shape is None for shape in shapes):
        return result(None, dtype, ndim, vdevice)
    total: Any = int64(0)
    dims = list(shapes[0] or ())
    for index, shape in enumerate(shapes):
        for other, (mine, its) in enumerate(zip(dims, shape or (), strict=True)):
            if other != position and differ(mine, its):
                fail(
                    call,
                    f"tensor {index} has the shape {show_dims(shape)}, the first one "
                    f"{show_dims(shapes[0])}; they may differ along axis {position} only",
                )
        total = simplified(total + (shape or ())[position])
    dims[position] = total
    return result(dims, dtype, vdevice=vdevice)


@operator("relax.concat", infer_concat, traits=Trait.MOVES)
def concat(tensors: Exprs, axis: int | None = 0) -> Any:
    """Tensors joined along an axis."""


def infer_stack(call: Call) -> TensorStructInfo:
    """A new axis with one index for each tensor."""
    infos = tensors(call, 0)
    if not infos:
        fail(call, "expected at least one tensor")
    dtype, vdevice = common_dtype(call, infos), common_vdevice(infos)
    known = [info for info in infos if info.ndim != -1]
    ndim = known[0].ndim if known else -1
    axis = axis_of(call, call.attrs["axis"], -1 if ndim == -1 else ndim + 1)
    shapes = [dims_of(info) for info in infos]
    dims = next((shape for shape in shapes if shape is not None), None)
    for index, (info, its) in enumerate(zip(infos, shapes, strict=True)):
        clash = dims is not None and its is not None and (
            len(its) != len(dims) or any(differ(a, b) for a, b in zip(dims, its, strict=True))
        )  # fmt: skip
        if clash or info.ndim not in (-1, ndim):
            fail(call, f"tensor {index} is {info}, others {known[0]}; the shapes must be equal")
    if dims is None or None in shapes:
        return result(None, dtype, -1 if ndim == -1 else ndim + 1, vdevice)
    return result([*dims[:axis], int64(len(infos)), *dims[axis:]], dtype, vdevice=vdevice)


@operator("relax.stack", infer_stack, traits=Trait.MOVES)
def stack(tensors: Exprs, axis: int = 0) -> Any:
    """Tensors of one shape joined along a new axis."""


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
    made = [int64(1) if axis in chosen else next(rest) for axis in range(ndim)]
    return result(made, info.dtype, vdevice=info.vdevice)


@operator("relax.expand_dims", infer_expand_dims, traits=Trait.MOVES)
def expand_dims(x: Expr, axis: Ints) -> Any:
    """The tensor with new axes of extent 1."""


def infer_flatten(call: Call) -> TensorStructInfo:
    """One dimension."""
    info = tensor(call, 0)
    if info.ndim == 1:
        return info
    dims = [] if info.ndim == 0 else dims_of(info)
    return result(None if dims is None else [product(dims)], info.dtype, 1, info.vdevice)


@operator("relax.flatten", infer_flatten, traits=Trait.MOVES)
def flatten(x: Expr) -> Any:
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
    made = None if dims is None else [dims[axis] for axis in order]
    return result(made, info.dtype, info.ndim, info.vdevice)


@operator("relax.permute_dims", infer_permute_dims, traits=Trait.MOVES)
def permute_dims(x: Expr, axes: Ints | None = None) -> Any:
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


@operator("relax.reshape", infer_reshape, traits=Trait.MOVES | Trait.VIEW)
def reshape(x: Expr, shape: Shape) -> Any:
    """The elements in row-major order in another shape; one extent may be -1, 0 copies."""
    return {"shape": complete_shape(x, shape)}


def complete_shape(x: Any, shape: Any) -> Any:
    """The shape with -1 computed from the tensor, and 0 copied from it."""
    if isinstance(shape, Expr) and not isinstance(shape, ShapeExpr):
        return shape
    if isinstance(shape, int | PrimExpr):
        shape = [shape]
    if not isinstance(shape, Iterable):
        raise IRTypeError(f"relax.reshape: expected a shape, got {type(shape).__name__}")
    values: list[Any] = list(shape)
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


def _quotient(dims: Any, rest: Any) -> Any:
    total, known = product(dims), product(rest)
    if constant_value(known) == 0:
        raise IRValueError("relax.reshape: -1 cannot be computed beside an extent of 0")
    whole, part = constant_value(total), constant_value(known)
    if whole is not None and part is not None and whole % part:
        raise IRValueError(
            f"relax.reshape: {whole} elements of {show_dims(dims)} are not a multiple of {part}"
        )
    return quotient(dims, rest)


def infer_split(call: Call) -> StructInfo:
    """A tuple of the parts."""
    info = tensor(call, 0)
    where = call.attrs["indices_or_sections"]
    axis = axis_of(call, call.attrs["axis"], info.ndim)
    dims = dims_of(info)
    count = where if isinstance(where, int) else len(where) + 1
    if count == 1:
        return info
    if dims is None:
        parts = [result(None, info.dtype, info.ndim, info.vdevice)] * count
        return TupleStructInfo(parts)
    extent = dims[axis]
    if isinstance(where, int):
        sizes = _equal_parts(call, extent, where)
    else:
        ends = [*[_cut(end, extent) for end in where], extent]
        starts = [int64(0), *ends[:-1]]
        ordered = list(where) == sorted(where) and min(where, default=0) >= 0
        sizes = [
            simplified(end - start if ordered else tir_max(end - start, int64(0)))
            for start, end in zip(starts, ends, strict=True)
        ]
    made = [
        result([*dims[:axis], size, *dims[axis + 1 :]], info.dtype, vdevice=info.vdevice)
        for size in sizes
    ]
    return TupleStructInfo(made)


def _cut(position: int, extent: Any) -> Any:
    """Where a cut lies: past the end is the end, a negative one counts from there."""
    if position < 0:
        return simplified(tir_max(extent + position, int64(0)))
    return tir_min(int64(position), extent)


def _equal_parts(call: Call, extent: Any, count: int) -> list[Any]:
    size = simplified(ceildiv(extent, int64(count)))
    last = simplified(extent - size * int64(count - 1))
    if (constant_value(last) or 0) < 0 and constant_value(last) is not None:
        fail(call, f"cannot split an extent of {extent} into {count} sections")
    return [size] * (count - 1) + [last]


@operator("relax.split", infer_split, traits=Trait.MOVES)
def split(x: Expr, indices_or_sections: Any, axis: int = 0) -> Any:
    """Parts along an axis: a number of equal ones, or between indices. One part is no tuple."""
    if isinstance(indices_or_sections, list | tuple):
        return {"indices_or_sections": as_ints(indices_or_sections)}
    sections = as_int(indices_or_sections)
    if not isinstance(sections, int):
        raise IRTypeError(f"relax.split: expected a constant number of sections, got {sections}")
    if sections < 1:
        raise IRValueError(f"relax.split: expected at least 1 section, got {sections}")
    return {"indices_or_sections": sections}


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


@operator("relax.squeeze", infer_squeeze, traits=Trait.MOVES)
def squeeze(x: Expr, axis: Ints | None = None) -> Any:
    """The tensor without axes of extent 1 (all such if None)."""


def infer_repeat(call: Call) -> TensorStructInfo:
    """The extent times the number of repeats."""
    info = tensor(call, 0)
    repeats, axis, dims = call.attrs["repeats"], call.attrs["axis"], dims_of(info)
    if repeats < 0:
        fail(call, f"repeats: expected 0 or more, got {repeats}")
    if axis is None:
        made = None if dims is None else [simplified(product(dims) * repeats)]
        return result(made, info.dtype, 1, info.vdevice)
    position = axis_of(call, axis, info.ndim)
    if dims is None:
        return result(None, info.dtype, info.ndim, info.vdevice)
    made = list(dims)
    made[position] = simplified(made[position] * repeats)
    return result(made, info.dtype, vdevice=info.vdevice)


@operator("relax.repeat", infer_repeat, traits=Trait.MOVES)
def repeat(data: Expr, repeats: int, axis: int | None = None) -> Any:
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
    made = [simplified(dim * count) for dim, count in zip(shape, times, strict=True)]
    return result(made, info.dtype, vdevice=info.vdevice)


@operator("relax.tile", infer_tile, traits=Trait.MOVES)
def tile(data: Expr, repeats: Ints) -> Any:
    """The whole tensor repeated along its axes."""


def infer_flip(call: Call) -> TensorStructInfo:
    """As the input."""
    info = tensor(call, 0)
    axis_of(call, call.attrs["axis"], info.ndim)
    return info


@operator("relax.flip", infer_flip, traits=Trait.MOVES | Trait.ALONG_AXIS)
def flip(data: Expr, axis: int) -> Any:
    """The order along an axis reversed."""


def infer_collapse(call: Call) -> TensorStructInfo:
    """The target shape; an extent of it that is not known to be 1 must be that of the tensor."""
    info = tensor(call, 0)
    like = call.op.name == "relax.collapse_sum_like"
    target = tensor(call, 1) if like else None
    dims = dims_of(target) if target is not None else shape_arg(call, 1).values
    mine = dims_of(info)
    if dims is not None and mine is not None:
        pairs = zip(reversed(dims), reversed(mine), strict=False)
        if len(dims) > len(mine) or any(
            constant_value(kept) != 1 and differ(kept, whole) for kept, whole in pairs
        ):
            fail(call, f"cannot collapse {show_dims(mine)} to {show_dims(dims)}")
    if target is not None:
        return TensorStructInfo(target.shape, info.dtype, info.vdevice, target.ndim)
    return shaped(call, 1, info.dtype, info.vdevice)


@operator("relax.collapse_sum_like", infer_collapse)
def collapse_sum_like(data: Expr, collapse_target: Expr) -> Any:
    """The sum over broadcast axes, of the shape of another tensor."""


@operator("relax.collapse_sum_to", infer_collapse)
def collapse_sum_to(data: Expr, shape: Shape) -> Any:
    """The sum over broadcast axes, of a given shape."""


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


def _pad_constant(value: Any, dtype: Any) -> PrimExpr:
    """The padding as a constant of the tensor's dtype; a fraction is no integer."""
    given = PrimValue(value).value
    if dtype == VOID:
        return given
    if given.dtype.is_float and DataType(dtype).is_integral:
        raise IRTypeError(
            f"relax.layout_transform: pad_value: expected {dtype} as the tensor, got {value}"
        )
    made: PrimExpr = given.astype(str(dtype))
    return made


@operator("relax.layout_transform", infer_layout_transform)
def layout_transform(
    x: Expr,
    index_map: Any,
    pad_value: Any = None,
    axis_separators: Any = None,
    input_axis_separators: Any = None,
) -> Any:
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
        "index_map": index_map, "pad_value": value, "axis_separators": axis_separators or Array(),
        "input_axis_separators": input_axis_separators or Array(),
    }  # fmt: skip


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


@operator("relax.one_hot", infer_one_hot)
def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: int, axis: int = -1) -> Any:
    """on_value where the new axis' index is the element, else off_value."""


def infer_meshgrid(call: Call) -> StructInfo:
    """One grid for each vector, all of the shape of their lengths."""
    if call.attrs["indexing"] not in ("ij", "xy"):
        fail(call, f"indexing: expected 'ij' or 'xy', got {call.attrs['indexing']!r}")
    infos = tensors(call, 0)
    if not infos:
        fail(call, "expected at least one vector")
    for index, info in enumerate(infos):
        if info.ndim > 1:
            fail(call, f"vector {index}: expected at most 1 dimension, got {info}")
    dtype = common_dtype(call, infos)
    shapes = [dims_of(info) for info in infos]
    dims: Any = None
    if None not in shapes:
        dims = [shape[0] if shape else int64(1) for shape in shapes]
        if call.attrs["indexing"] == "xy" and len(dims) > 1:
            dims[:2] = dims[1], dims[0]
    made = result(dims, dtype, len(infos), common_vdevice(infos))
    return TupleStructInfo([made] * len(infos))


@operator("relax.meshgrid", infer_meshgrid)
def meshgrid(tensors: Exprs, indexing: str | None = "ij") -> Any:
    """The coordinates of the grid that vectors span, one tensor each; "xy" swaps the first two."""
