"""Operators that join or split tensors: concat, stack, split, meshgrid."""

from __future__ import annotations

import numpy as np

from weft import topi
from weft.ir.expr import Extent, PrimExpr, RelaxExpr
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ, simplified
from weft.relax.op.definition import Exprs, Replacements, as_int, as_ints, operator
from weft.relax.op.infer import (
    Dims,
    axis_of,
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    int64,
    result,
    show_dims,
    tensor,
    tensors,
)
from weft.relax.op.lowering import Builder, dims, tuple_fields
from weft.relax.op.reference import manipulate as reference
from weft.relax.op.requirements import with_dims
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.op import ceildiv
from weft.tir.op import max as tir_max
from weft.tir.op import min as tir_min


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
    total: PrimExpr = int64(0)
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


def _lower_concat(bb: Builder, call: Call) -> RelaxExpr:
    axis = call.attrs["axis"] or 0
    fields = tuple_fields(bb, call.args[0])
    for index, field in enumerate(fields[1:], 1):
        wanted = dims(fields[0])
        wanted[axis] = dims(field)[axis]
        fields[index] = with_dims(bb, field, wanted, f"concat_{index}")
    return bb.call_te(topi.concatenate, fields, axis)


@operator(
    "relax.concat", infer_concat, legalize=_lower_concat, numpy=reference.concat, traits=Trait.MOVES
)
def concat(tensors: Exprs, axis: int | None = 0) -> None:
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
        clash = (
            dims is not None
            and its is not None
            and (len(its) != len(dims) or any(differ(a, b) for a, b in zip(dims, its, strict=True)))
        )
        if clash or info.ndim not in (-1, ndim):
            fail(call, f"tensor {index} is {info}, others {known[0]}; the shapes must be equal")
    if dims is None or None in shapes:
        return result(None, dtype, -1 if ndim == -1 else ndim + 1, vdevice)
    return result([*dims[:axis], int64(len(infos)), *dims[axis:]], dtype, vdevice=vdevice)


def _lower_stack(bb: Builder, call: Call) -> RelaxExpr:
    fields = tuple_fields(bb, call.args[0])
    for index, field in enumerate(fields[1:], 1):
        fields[index] = with_dims(bb, field, dims(fields[0]), f"stack_{index}")
    return bb.call_te(topi.stack, fields, call.attrs["axis"])


@operator(
    "relax.stack",
    infer_stack,
    legalize=_lower_stack,
    numpy=lambda tensors, axis=0: np.stack(tensors, axis),
    traits=Trait.MOVES,
)
def stack(tensors: Exprs, axis: int = 0) -> None:
    """Tensors of one shape joined along a new axis."""


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
    parts = [
        result([*dims[:axis], size, *dims[axis + 1 :]], info.dtype, vdevice=info.vdevice)
        for size in sizes
    ]
    return TupleStructInfo(parts)


def _cut(position: int, extent: Extent) -> PrimExpr:
    """The index of a cut: one past the end is clamped, a negative one counts from the end."""
    if position < 0:
        return simplified(tir_max(extent + position, int64(0)))
    return tir_min(int64(position), extent)


def _equal_parts(call: Call, extent: Extent, count: int) -> list[PrimExpr]:
    size = simplified(ceildiv(extent, int64(count)))
    last = simplified(extent - size * int64(count - 1))
    if (constant_value(last) or 0) < 0 and constant_value(last) is not None:
        fail(call, f"cannot split an extent of {extent} into {count} sections")
    return [size] * (count - 1) + [last]


def _lower_split(bb: Builder, call: Call) -> RelaxExpr:
    where, axis = call.attrs["indices_or_sections"], call.attrs["axis"]
    if where == 1 or where == ():
        return call.args[0]
    parts = where if isinstance(where, int) else list(where)
    if isinstance(where, int):
        extent = constant_value(dims(call.args[0])[axis])
        if extent is not None and extent % where:
            size = -(-extent // where)
            parts = [size * index for index in range(1, where)]
    return bb.call_te(topi.split, call.args[0], parts, axis)


@operator(
    "relax.split", infer_split, legalize=_lower_split, numpy=reference.split, traits=Trait.MOVES
)
def split(x: Expr, indices_or_sections: object, axis: int = 0) -> Replacements:
    """The parts along an axis: so many equal ones, or those between indices.

    The result is a tuple, or the tensor itself if there is only one part.
    """
    if isinstance(indices_or_sections, list | tuple):
        return {"indices_or_sections": as_ints(indices_or_sections)}
    sections = as_int(indices_or_sections)
    if not isinstance(sections, int):
        raise IRTypeError(f"relax.split: expected a constant number of sections, got {sections}")
    if sections < 1:
        raise IRValueError(f"relax.split: expected at least 1 section, got {sections}")
    return {"indices_or_sections": sections}


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
    dims: Dims = None
    if None not in shapes:
        dims = [shape[0] if shape else int64(1) for shape in shapes]
        if call.attrs["indexing"] == "xy" and len(dims) > 1:
            dims[:2] = dims[1], dims[0]
    grid = result(dims, dtype, len(infos), common_vdevice(infos))
    return TupleStructInfo([grid] * len(infos))


@operator("relax.meshgrid", infer_meshgrid, te=topi.meshgrid, numpy=reference.meshgrid)
def meshgrid(tensors: Exprs, indexing: str | None = "ij") -> None:
    """For each vector, a tensor that holds its coordinate at each point of the grid of all.

    "xy" swaps the first two axes.
    """
