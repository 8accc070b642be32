"""Accesses to buffers as expressions: loads by indices and slices, offsets, access pointers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir.expr import ExprLike, IntImm, PrimExpr, as_prim_expr
from weft.ir.node import Array
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import expr as nodes
from weft.tir.arithmetic import add, floordiv, multiply, subtract
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.constant import cast, match_types
from weft.tir.linear_difference import constant_difference

STATEMENTS: Final[dict[str, Callable[..., Any]]] = {}


def register_statements(**builders: Callable[..., object]) -> None:
    """Register the constructors of statements: ``weft.tir.stmt`` calls this when it is imported.

    This module is below ``weft.tir.stmt`` and cannot import them.
    """
    STATEMENTS.update(builders)


def check_index(buffer: Buffer, index: object) -> None:
    """Raise IRTypeError for an index that is no integer: a text, a real number."""
    dtype = getattr(index, "dtype", None)
    if isinstance(index, (str, float)) or (dtype is not None and not dtype.is_integral):
        raise IRTypeError(
            f"buffer {buffer.name}: an index must be an integer or an expression, got "
            f"{index!r}{'' if dtype is None else f' of type {dtype}'}"
        )


def index_buffer(buffer: Buffer, indices: Sequence[object]) -> BufferLoad | BufferRegion:
    """``buffer[indices]``: a BufferLoad, or a BufferRegion if an index is a slice."""
    for index in indices:
        check_index(buffer, index)
    nodes_only = [index for index in indices if not isinstance(index, slice)]
    if len(nodes_only) == len(indices):
        return BufferLoad(buffer, indices)
    if len(nodes_only) < len(indices) and _strided(indices):
        return BufferLoad(
            buffer, [slice_as_ramp(i) if isinstance(i, slice) else i for i in indices]
        )
    region: BufferRegion = STATEMENTS["region"](buffer, indices)
    return region


def _strided(indices: Sequence[object]) -> bool:
    return bool([i for i in indices if isinstance(i, slice) and i.step not in (None, 1)])


def slice_as_ramp(item: slice) -> PrimExpr:
    """The vector index of a slice with constant extent; one element is a scalar."""
    start = as_prim_expr(0 if item.start is None else item.start)
    if item.stop is None:
        raise IRValueError(
            "a slice in a load or store needs an end, such as A[0:4], a vector of 4 elements; for "
            "all elements loop over them: for i in range(n): B[i] = A[i]"
        )
    step = as_prim_expr(1 if item.step is None else item.step)
    if isinstance(step, IntImm) and step.value < 1:
        raise IRValueError(
            f"a slice in a load or store goes up, got the step {step.value}; write "
            "T.Ramp(first, step, lanes)"
        )
    extent = extent_between(start, as_prim_expr(item.stop))
    lanes = floordiv(subtract(add(extent, step), 1), step)
    if isinstance(lanes, IntImm) and lanes.value == 1:
        return start
    return nodes.Ramp(start, cast(start.dtype, step), cast("int32", lanes))


def extent_between(begin: ExprLike, end: ExprLike) -> PrimExpr:
    """``end - begin``, simplified where that is easy: ``n`` for the end ``begin + n``."""
    start, stop = match_types(begin, end)
    if isinstance(stop, nodes.Add):
        if structural_equal(stop.a, start):
            return stop.b
        if structural_equal(stop.b, start):
            return stop.a
    difference = constant_difference(stop, start)
    if difference is not None:
        return IntImm(start.dtype, difference)
    return subtract(stop, start)


def buffer_store(
    buffer: Buffer, value: ExprLike, indices: Sequence[ExprLike], predicate: ExprLike | None = None
) -> Any:
    """The BufferStore statement."""
    return STATEMENTS["store"](buffer, value, indices, predicate)


def buffer_offset(buffer: Buffer, indices: Sequence[ExprLike]) -> list[PrimExpr]:
    """The flat element offset of ``indices``: by strides, or row-major over the shape."""
    values = [as_prim_expr(index) for index in indices]
    if not values:
        return [buffer.elem_offset]
    if buffer.strides:
        offset = multiply(values[0], buffer.strides[0])
        for value, stride in zip(values[1:], buffer.strides[1:], strict=True):
            offset = add(offset, multiply(value, stride))
    else:
        offset = values[0]
        for value, extent in zip(values[1:], buffer.shape[1:], strict=True):
            offset = add(multiply(offset, extent), value)
    return [add(offset, buffer.elem_offset)]


def flattened_buffer(buffer: Buffer) -> Buffer:
    """The buffer as one dimension over the same data; itself if it is one already."""
    if len(buffer.shape) == 1 and not buffer.strides:
        return buffer
    extent: PrimExpr = IntImm(DataType("int32"), 1)
    if buffer.strides and buffer.shape:
        extent = multiply(buffer.shape[0], buffer.strides[0])
    else:
        for size in buffer.shape:
            extent = multiply(extent, size)
    return buffer.with_(shape=Array([extent]), strides=Array())


def buffer_access_ptr(
    buffer: Buffer,
    access_mask: int | str,
    ptr_type: str,
    content_lanes: int,
    offset: ExprLike,
    extent: ExprLike | None,
) -> PrimExpr:
    """The ``tvm_access_ptr`` call of ``Buffer.access_ptr``."""
    if isinstance(access_mask, str):
        if not set(access_mask) <= {"r", "w"}:
            raise IRValueError(f"access_ptr: expected 'r', 'w' or 'rw', got {access_mask!r}")
        access_mask = ("r" in access_mask) + 2 * ("w" in access_mask)
    start = add(offset, buffer.elem_offset)
    if extent is None:
        extent = subtract(flattened_buffer(buffer).shape[0], offset)
    kind = nodes.Call(buffer.dtype, Op.get("tir.type_annotation"), ())
    args = (kind, buffer.data, start, extent, as_prim_expr(access_mask))
    return nodes.Call(DataType(ptr_type), Op.get("tir.tvm_access_ptr"), args)
