"""Docs of buffers: declarations, annotations of parameters, regions.

A buffer's variables (shape, strides, data, offset) that have no name yet are either declared in a
line of their own before the buffer, or printed as its attributes (``A.data``, ``A.strides[0]``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import IntImm, Range
from weft.ir.functor import collect
from weft.ir.type import PointerType, PrimType
from weft.script.printer.doc import (
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    Doc,
    ExprDoc,
    IdDoc,
    IndexDoc,
    ListDoc,
    LiteralDoc,
    SliceDoc,
    TupleDoc,
)
from weft.script.printer.docsifier import Docsifier, Frame, prints
from weft.script.printer.tir_expr import declare_var, slice_end
from weft.support.dtype import DataType
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.constant import is_const_int
from weft.tir.expr import Var
from weft.tir.stmt import MatchBufferRegion

NOTHING: Final = 0
"""A buffer declaration that defines no variable."""
DATA: Final = 1
"""A declaration that defines the data pointer (T.Buffer, alloc_buffer, allocate + decl_buffer)."""
MATCH: Final = 2
"""match_buffer, which defines data, strides and offset."""

_POSITIONAL: Final = ("shape", "dtype")


def is_simple(buffer: Buffer) -> bool:
    """Whether ``T.Buffer(shape, dtype)`` is enough: the shape is constant, the rest default."""
    for size in buffer.shape:
        if not isinstance(size, IntImm):
            return False
    return (
        not buffer.strides
        and _is_default_offset(buffer)
        and _has_default_data(buffer)
        and buffer.scope() == "global"
        and buffer.data_alignment == 64
        and buffer.offset_factor == 1
        and buffer.buffer_type == 1
        and not buffer.axis_separators
    )


def _is_default_offset(buffer: Buffer) -> bool:
    offset = buffer.elem_offset
    return is_const_int(offset, 0) and offset.dtype == "int32"


def _has_default_data(buffer: Buffer) -> bool:
    """Whether a declaration without ``data`` creates such a data pointer."""
    annotation = buffer.data.type_annotation
    if type(buffer.data) is not Var or not isinstance(annotation, PointerType):
        return False
    element = annotation.element_type
    expected = DataType("int8") if buffer.dtype.is_bool else buffer.dtype
    return (
        isinstance(element, PrimType)
        and element.dtype is expected
        and (bool(annotation.storage_scope))
    )


def define_buffer(buffer: Buffer, d: Docsifier, frame: Frame | None = None) -> IdDoc:
    """Name a buffer."""
    return d.define(buffer, buffer.name or "buffer", frame)


def buffer_annotation(buffer: Buffer, d: Docsifier, frame: Frame) -> ExprDoc:
    """``T.Buffer((128, 128), "float32")`` of a parameter."""
    attributes = buffer_attributes(buffer, d, frame, DATA)
    dtype = attributes.get("dtype", LiteralDoc(str(buffer.dtype)))
    return CallDoc(d.tir("Buffer"), (attributes["shape"], dtype))


def buffer_declaration(
    buffer: Buffer,
    callee: str,
    d: Docsifier,
    defines: int,
    *,
    args: Sequence[ExprDoc] = (),
    frame: Frame | None = None,
) -> ExprDoc:
    """``T.<callee>(args, shape, dtype, ...)`` with the arguments that differ from the defaults."""
    attributes = buffer_attributes(buffer, d, frame or d.frames[-1], defines)
    positional = [*args, *[attributes.pop(key) for key in _POSITIONAL if key in attributes]]
    return CallDoc(d.tir(callee), positional, tuple(attributes), tuple(attributes.values()))


def buffer_attributes(
    buffer: Buffer, d: Docsifier, frame: Frame, defines: int
) -> dict[str, ExprDoc]:
    """The parts of a declaration that must be printed, in TVM's order."""
    attributes: dict[str, ExprDoc] = {}
    uses = _count_uses(buffer)
    for size in buffer.shape:
        if isinstance(size, Var) and not d.defined(size):
            declare_var(size, d, frame)
    attributes["shape"] = TupleDoc([d.doc(size) for size in buffer.shape])
    if buffer.dtype != d.config.buffer_dtype:
        attributes["dtype"] = LiteralDoc(str(buffer.dtype))
    _data_attribute(buffer, d, frame, defines, attributes)
    if buffer.strides:
        attributes["strides"] = _strides(buffer, d, frame, defines, uses)
    defined_offset = _offset_attribute(buffer, d, frame, defines, attributes)
    scope = buffer.scope()
    if scope != "global":
        attributes["scope"] = LiteralDoc(scope)
    if buffer.data_alignment != 64:
        attributes["align"] = LiteralDoc(buffer.data_alignment)
    if buffer.offset_factor != 1 or defined_offset:
        attributes["offset_factor"] = LiteralDoc(buffer.offset_factor)
    if buffer.buffer_type != 1:
        attributes["buffer_type"] = LiteralDoc("auto_broadcast")
    if buffer.axis_separators:
        attributes["axis_separators"] = ListDoc([d.doc(i) for i in buffer.axis_separators])
    return attributes


def _count_uses(buffer: Buffer) -> dict[int, int]:
    uses: dict[int, int] = {}
    if not buffer.strides and isinstance(buffer.elem_offset, IntImm):
        return uses
    for root in (buffer.elem_offset, buffer.data, *buffer.strides, *buffer.shape):
        for var in collect(root, Var):
            uses[id(var)] = uses.get(id(var), 0) + 1
    return uses


def _data_attribute(
    buffer: Buffer, d: Docsifier, frame: Frame, defines: int, attributes: dict[str, ExprDoc]
) -> None:
    data = buffer.data
    if not d.defined(data):
        if defines >= DATA and _has_default_data(buffer):
            d.define_as(data, lambda: AttrAccessDoc(d.doc(buffer), "data"), frame)
            return
        declare_var(data, d, frame)
    attributes["data"] = d.doc(data)


def _strides(
    buffer: Buffer, d: Docsifier, frame: Frame, defines: int, uses: dict[int, int]
) -> ExprDoc:
    results: list[ExprDoc] = []
    for index, stride in enumerate(buffer.strides):
        if isinstance(stride, Var) and not d.defined(stride):
            if (
                defines == MATCH
                and uses.get(id(stride)) == 1
                and type(stride) is Var
                and (stride.dtype is _index_type(buffer))
            ):
                _define_stride(buffer, stride, index, d, frame)
                results.append(LiteralDoc(stride.name))
                continue
            declare_var(stride, d, frame)
        results.append(d.doc(stride))
    return TupleDoc(results)


def _index_type(buffer: Buffer) -> DataType:
    """The type of strides and offsets that the parser creates."""
    return buffer.shape[0].dtype if buffer.shape else DataType("int32")


def _define_stride(buffer: Buffer, stride: Var, index: int, d: Docsifier, frame: Frame) -> None:
    def make() -> ExprDoc:
        return IndexDoc(AttrAccessDoc(d.doc(buffer), "strides"), [LiteralDoc(index)])

    d.define_as(stride, make, frame)


def _offset_attribute(
    buffer: Buffer, d: Docsifier, frame: Frame, defines: int, attributes: dict[str, ExprDoc]
) -> bool:
    """Add ``elem_offset`` if it must be printed; True if ``offset_factor`` implies the offset."""
    offset = buffer.elem_offset
    if _is_default_offset(buffer):
        return False
    if isinstance(offset, Var) and not d.defined(offset):
        known = offset.dtype is _index_type(buffer)
        implied = buffer.offset_factor != 0 and type(offset) is Var and known
        if defines in (DATA, MATCH) and implied:
            d.define_as(offset, lambda: AttrAccessDoc(d.doc(buffer), "elem_offset"), frame)
            return True
        declare_var(offset, d, frame)
    attributes["elem_offset"] = d.doc(offset)
    return False


@prints("Buffer")
def _buffer(node: Buffer, d: Docsifier) -> Doc:
    doc = d.reference(node)
    if doc is not None:
        return doc
    frame = _declaring_frame(node, d)
    rhs = buffer_declaration(node, "Buffer", d, DATA, frame=frame)
    lhs = define_buffer(node, d, frame)
    frame.stmts.append(AssignDoc(lhs, rhs))
    return lhs


def _declaring_frame(buffer: Buffer, d: Docsifier) -> Frame:
    """The frame in which a buffer can be declared: the innermost that names a variable of it."""
    used: set[int] = set()
    for root in (buffer.data, buffer.elem_offset, *buffer.shape, *buffer.strides):
        used.update([id(var) for var in collect(root, Var)])
    for frame in reversed(d.frames):
        if frame.kind == "tir" and not used.isdisjoint([key for key, _ in frame.defined]):
            return frame
    return d.function_frame("tir")


@prints("BufferRegion")
def _buffer_region(node: BufferRegion, d: Docsifier) -> Doc:
    indices: list[ExprDoc | SliceDoc] = []
    for item in node.region:
        index = range_index(item, d)
        if index is None:
            ranges = ListDoc([d.doc(dom) for dom in node.region])
            return CallDoc(d.tir("BufferRegion"), (d.doc(node.buffer), ranges))
        indices.append(index)
    return IndexDoc(d.doc(node.buffer), indices)


def range_index(item: Range, d: Docsifier) -> ExprDoc | SliceDoc | None:
    """``min`` or ``min:end``; None if parsing would give another extent."""
    extent = item.extent
    if isinstance(extent, IntImm) and extent.value == 1 and extent.dtype is item.min.dtype:
        return d.expr(item.min)
    end = slice_end(item.min, extent)
    return None if end is None else SliceDoc(d.doc(item.min), d.doc(end))


@prints("MatchBufferRegion")
def _match_buffer_region(node: MatchBufferRegion, d: Docsifier) -> Doc:
    source = d.doc(node.source)
    rhs = buffer_declaration(node.buffer, "match_buffer", d, MATCH, args=(source,))
    return AssignDoc(define_buffer(node.buffer, d), rhs)
