"""The statements of TensorIR as functions: what ``T.grid``, ``T.allocate``, ``T.attr`` ... do.

Each adds to the frame that it belongs to, or creates a frame. Parameters are TVM 0.20's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from weft.ir.expr import ExprLike, IntImm, PrimExpr, Range, StringImm, as_prim_expr
from weft.ir.type import PrimType, Type
from weft.runtime.ndarray import NDArray, array
from weft.script.ir_builder.base import IRBuilder, as_attributes
from weft.script.ir_builder.tir_frame import (
    AllocateConstFrame,
    AllocateFrame,
    AssertFrame,
    AttrFrame,
    BlockFrame,
    DeclBufferFrame,
    ElseFrame,
    IfFrame,
    LaunchThreadFrame,
    LetFrame,
    PrimFuncFrame,
    RealizeFrame,
    RegionLike,
    ThenFrame,
    WhileFrame,
    add_statement,
    as_buffer_region,
    as_node,
    evaluate_statement,
    find_function,
    last_block,
)
from weft.script.ir_builder.tir_value import ShapeLike, make_buffer
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op as tir_op
from weft.tir.access import check_index, slice_as_ramp
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import IterVar, Var
from weft.tir.stmt import BufferStore, MatchBufferRegion, pointer_type

Indices = ExprLike | slice | list[ExprLike | slice] | tuple[ExprLike | slice, ...]
TypeLike = Var | Type | str | Callable[[], Var]
V = TypeVar("V", Buffer, Var)
T = TypeVar("T", bound=Type | str)


def prim_func(is_private: bool = False) -> PrimFuncFrame:
    """Open a function: ``with IRBuilder() as builder, T.prim_func(): ...`` and
    ``builder.get()``.

    In a script ``@T.prim_func`` opens it.
    """
    return PrimFuncFrame(is_private)


def arg(name: str, obj: V) -> V:
    """Add a parameter to the function: a scalar, a handle, or a buffer (and a handle for
    it).
    """
    frame = find_function("T.arg")
    IRBuilder.name(name, obj)
    if isinstance(obj, Buffer):
        handle = Var(f"{name}_handle", "handle")
        frame.args.append(handle)
        frame.buffer_map[handle] = obj
    elif isinstance(obj, Var):
        frame.args.append(obj)
    else:
        raise IRTypeError(
            f"parameter {name!r}: expected a type such as T.Buffer((128,), 'float32'), T.handle "
            f"or T.int32, got {type(obj).__name__}: {obj!r}"
        )
    return obj


def func_name(name: str) -> None:
    """Name the function: its ``global_symbol``, unless it is private."""
    find_function("T.func_name").name = name


def func_attr(attrs: Mapping[str, object]) -> None:
    """Set the function's attributes, once: ``T.func_attr({"tir.noalias": T.bool(True)})``."""
    frame = find_function("T.func_attr")
    attrs = as_attributes("T.func_attr", attrs)
    if frame.attrs is not None:
        raise IRValueError("T.func_attr: the function's attributes are already set")
    if frame.is_private and "global_symbol" in attrs:
        raise IRValueError(
            "T.func_attr: a private function has no global_symbol; write @T.prim_func without "
            "private=True, or leave the attribute out"
        )
    frame.attrs = attrs


def func_ret(ret_type: T) -> T:
    """State the type that the function returns: what ``-> T.int32`` does in a script."""
    find_function("T.func_ret").ret_type = (
        ret_type if isinstance(ret_type, Type) else PrimType(DataType(ret_type))
    )
    return ret_type


def match_buffer(
    param: Var | RegionLike,
    shape: ShapeLike | None = None,
    dtype: str = "float32",
    data: Var | None = None,
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """Give a handle parameter its buffer; in a block, give a region of a buffer a name and a
    shape.

    Args:
        param: a parameter of type ``T.handle``, or a region such as ``A[i * 4 : i * 4 + 4,
            0:8]``.
        shape: the extents; variables among them are bound when the function is called. That of
            the region if left out.
        dtype: the type of an element.
        data: the pointer, where another buffer shares it.
        strides: elements between neighbours in each dimension; row-major if left out.
        elem_offset: where the first element lies, counted in elements from ``data``.
        scope: the memory it lies in: ``global``, ``shared``, ``local`` ...
        align: the alignment of ``data`` in bytes; -1 for the default.
        offset_factor: what divides ``elem_offset``.
        buffer_type: ``auto_broadcast`` lets dimensions of extent 1 repeat.
        axis_separators: the dimensions at which a new group of dimensions begins when the
            buffer is flattened.

    >>> from weft.script import tir as T
    >>> @T.prim_func(private=True)
    ... def double(a: T.handle, b: T.handle):
    ...     n = T.int32()
    ...     A = T.match_buffer(a, (n,))
    ...     B = T.match_buffer(b, (n,))
    ...     for i in range(n):
    ...         B[i] = A[i] * T.float32(2)
    >>> len(double.buffer_map)
    2
    """
    if shape is None:
        if isinstance(param, Var):
            raise IRValueError("T.match_buffer: expected a shape for a handle")
        region = as_buffer_region(param)
        shape, dtype = [item.extent for item in region.region], region.buffer.dtype
    buffer = make_buffer(
        shape,
        dtype,
        "",
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    if isinstance(param, Var):
        frame = find_function("T.match_buffer")
        if param not in frame.args:
            raise IRValueError(f"T.match_buffer: {param.name} is not a parameter of the function")
        if not param.dtype.is_handle:
            raise IRTypeError(f"T.match_buffer: {param.name} is {param.dtype}, expected a T.handle")
        if param in frame.buffer_map:
            raise IRValueError(f"T.match_buffer: {param.name} has a buffer already")
        frame.buffer_map[param] = buffer
        return buffer
    source = as_buffer_region(param)
    last_block("T.match_buffer of a region").match_buffers.append(MatchBufferRegion(buffer, source))
    return buffer


def alloc_buffer(
    shape: ShapeLike,
    dtype: str = "float32",
    data: Var | None = None,
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> Buffer:
    """Allocate a buffer in the innermost block, or outside of all in the function's root block.

    Arguments as those of ``T.match_buffer``.

    >>> from weft.script import tir as T
    >>> @T.prim_func(private=True)
    ... def twice(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    ...     B = T.alloc_buffer((8,))
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             v_i = T.axis.spatial(8, i)
    ...             B[v_i] = A[v_i] + A[v_i]
    ...     for i in range(8):
    ...         with T.block("C"):
    ...             v_i = T.axis.spatial(8, i)
    ...             C[v_i] = B[v_i] + B[v_i]
    >>> twice.body.block.alloc_buffers[0].name
    'B'
    """
    buffer = make_buffer(
        shape,
        dtype,
        "",
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    block_frame = IRBuilder.current().find(BlockFrame)
    if block_frame is not None:
        block_frame.alloc_buffers.append(buffer)
    else:
        find_function("T.alloc_buffer").root_alloc_buffers.append(buffer)
    return buffer


sblock_alloc_buffer = alloc_buffer


def Assert(condition: ExprLike, message: str) -> AssertFrame:  # noqa: N802 - TVM's name
    """Check a condition before the statements that follow; ``assert x, "text"`` in a script."""
    return AssertFrame(as_prim_expr(condition), str(message))


def LetStmt(  # noqa: N802 - TVM's name
    value: ExprLike, type_annotation: TypeLike | None = None, *, var: Var | None = None
) -> LetFrame:
    """Bind a value to a variable for the statements that follow; ``x: T.let = value`` in a
    script.

    Args:
        value: the value.
        type_annotation: the type of the variable, if it is not that of the value.
        var: the variable, if it exists already.
    """
    bound = as_prim_expr(value)
    if var is None and type_annotation is not None:
        hint = type_annotation() if callable(type_annotation) else type_annotation
        var = hint if isinstance(hint, Var) else Var("", hint)
    if var is not None and isinstance(var, Var) and var.dtype is not bound.dtype:
        bound = _convert_let(var, bound)
    return LetFrame(bound, var)


def _convert_let(var: Var, value: PrimExpr) -> PrimExpr:
    if var.dtype.is_handle or value.dtype.is_handle:
        if value.dtype.is_handle and var.dtype.is_handle:
            return value
        raise IRTypeError(f"{var.name or 'the variable'} is {var.dtype}, the value {value.dtype}")
    return tir_op.cast(var.dtype, value)


def attr(node: object, attr_key: str, value: ExprLike) -> AttrFrame:
    """Put the statements that follow under an attribute (key, node, value) that passes look
    up.
    """
    if not isinstance(attr_key, str):
        raise IRTypeError(f"T.attr: expected the name of an attribute, got {attr_key!r}")
    return AttrFrame(as_node(node), attr_key, as_prim_expr(value))


def realize(
    buffer_slice: RegionLike, storage_scope: str, condition: ExprLike = True
) -> RealizeFrame:
    """Give a region of a buffer memory of a scope, for the statements that follow."""
    return RealizeFrame(as_buffer_region(buffer_slice), storage_scope, as_prim_expr(condition))


def allocate(
    extents: Sequence[ExprLike],
    dtype: str,
    scope: str = "global",
    condition: ExprLike | None = None,
    annotations: Mapping[str, object] | None = None,
) -> AllocateFrame:
    """Allocate memory for the statements that follow; gives its pointer.

    Args:
        extents: the number of elements in each dimension.
        dtype: the type of an element.
        scope: the memory: ``global``, ``shared``, ``local`` ...
        condition: allocate only where it holds.
        annotations: what passes look up on the statement, by name.
    """
    if not isinstance(extents, list | tuple):
        raise IRTypeError(f"T.allocate: expected a list of extents, got {extents!r}")
    var = Var("", pointer_type(dtype, scope))
    certain = as_prim_expr(True if condition is None else condition)
    sizes = [as_prim_expr(item) for item in extents]
    return AllocateFrame(var, dtype, sizes, certain, dict(annotations) if annotations else None)


def allocate_const(
    data: object,
    dtype: str,
    extents: Sequence[int | IntImm],
    annotations: Mapping[str, object] | None = None,
) -> AllocateConstFrame:
    """Allocate memory with constant content for the statements that follow; gives its
    pointer.
    """
    var = Var("", pointer_type(dtype, "global"))
    content = _constant_data(data, dtype, extents)
    return AllocateConstFrame(
        var,
        dtype,
        [as_prim_expr(e) for e in extents],
        content,
        dict(annotations) if annotations else None,
    )


def _constant_data(data: object, dtype: str, extents: Sequence[int | IntImm]) -> NDArray:
    if isinstance(data, NDArray):
        return data
    given = np.asarray(data)
    content = given.astype(DataType(dtype).numpy)
    if DataType(dtype).is_integral and not np.array_equal(given, content):
        raise IRValueError(f"T.allocate_const: {dtype} does not hold the values {data!r}")
    return array(content.reshape([operator.index(e) for e in extents]))


def decl_buffer(
    shape: ShapeLike,
    dtype: str = "float32",
    data: Var | None = None,
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike | None = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Sequence[int] | None = None,
) -> DeclBufferFrame:
    """Declare a buffer over ``data``, or over new memory, for the statements that follow.

    Arguments as those of ``T.match_buffer``.
    """
    buffer = make_buffer(
        shape,
        dtype,
        "",
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    return DeclBufferFrame(buffer, data is None)


def launch_thread(thread: str | Var, extent: ExprLike) -> LaunchThreadFrame:
    """Run the statements that follow once for each of ``extent`` threads.

    Args:
        thread: a tag such as ``threadIdx.x``, or a variable that ``T.env_thread`` gave.
        extent: the number of threads.
    """
    size = as_prim_expr(extent)
    if not size.dtype.is_integral:
        raise IRTypeError(f"T.launch_thread: expected an integer extent, got {extent!r}")
    if isinstance(thread, str):
        axis = IterVar(None, Var("", size.dtype), IterVar.ThreadIndex, thread)
        return LaunchThreadFrame(size, axis.with_(dom=_thread_range(size)))
    threads = find_function("T.launch_thread").env_threads
    if thread not in threads:
        raise IRValueError("T.launch_thread: expected a tag or a variable of T.env_thread")
    declared = threads[thread]
    if declared.dom is None:
        declared.dom = _thread_range(size)
    return LaunchThreadFrame(size, declared)


def _thread_range(size: PrimExpr) -> Range:
    return Range.from_min_extent(tir_op.const(0, size.dtype), size)


def env_thread(thread_tag: str, dtype: str = "int32") -> Var:
    """Declare a variable for the index of a thread, to be given to ``T.launch_thread``."""
    var = Var("", dtype)
    axis = IterVar(None, var, IterVar.ThreadIndex, thread_tag)
    find_function("T.env_thread").env_threads[var] = axis
    return var


def buffer_store(
    buffer: Buffer,
    value: ExprLike | BufferRegion,
    indices: Indices,
    predicate: PrimExpr | None = None,
) -> None:
    """Store ``value``, converted to the buffer's type, at ``indices``: ``A[i] = x`` in a
    script.
    """
    items = indices if isinstance(indices, list | tuple) else [indices]
    for item in items:
        check_index(buffer, item)
    places = [
        slice_as_ramp(item) if isinstance(item, slice) else as_prim_expr(item) for item in items
    ]
    stored = as_value(value)
    lanes = places[-1].dtype.lanes * buffer.dtype.lanes if places else buffer.dtype.lanes
    if stored.dtype.lanes == lanes and stored.dtype.element is not buffer.dtype.element:
        scalable = bool(places) and places[-1].dtype.is_scalable
        if buffer.dtype.is_handle or stored.dtype.is_handle:
            raise IRTypeError(f"{buffer.name} holds {buffer.dtype}, the value is {stored.dtype}")
        stored = tir_op.cast(buffer.dtype.element.with_lanes(lanes, scalable), stored)
    add_statement(BufferStore(buffer, stored, places, predicate))


def as_value(value: ExprLike | BufferRegion) -> PrimExpr:
    """An expression; a region of a buffer is loaded as a vector."""
    if isinstance(value, BufferRegion):
        indices = [slice_as_ramp(slice(r.min, tir_op.add(r.min, r.extent))) for r in value.region]
        return BufferLoad(value.buffer, indices)
    return as_prim_expr(value)


def evaluate(value: ExprLike) -> None:
    """Evaluate an expression for its effect, as a statement: a call, mostly."""
    evaluate_statement(StringImm(value) if isinstance(value, str) else value)


def If(condition: ExprLike) -> IfFrame:  # noqa: N802 - TVM's name
    """Run one of two branches: ``with T.If(condition)``, and inside ``T.Then()`` and
    ``T.Else()``.

    In a script write ``if``.
    """
    test = as_prim_expr(condition)
    return IfFrame(test if test.dtype.is_bool else tir_op.cast("bool", test))


def Then() -> ThenFrame:  # noqa: N802 - TVM's name
    """Open the branch of ``T.If`` that runs where the condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:  # noqa: N802 - TVM's name
    """Open the branch of ``T.If`` that runs where the condition does not hold."""
    return ElseFrame()


def While(condition: ExprLike) -> WhileFrame:  # noqa: N802 - TVM's name
    """Repeat the statements inside while a condition holds; ``while`` in a script."""
    return WhileFrame(as_prim_expr(condition))
