"""FlattenBuffer: every buffer becomes one dimension, addressed by an element offset.

Before: ``A[i, j]`` of shape (m, n). After: ``A_1[int64(i) * n + int64(j)]`` where
``A_1 = T.Buffer((m * n,), data=A.data)``. Offsets are int64, unless the buffer has a constant size
that fits into the type of the indices. The offset includes the strides and the element offset of a
parameter. Declarations of buffers are removed: a buffer over the data of another needs none. bool
keeps its type (a byte for each element).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator
from weft.ir.node import Array
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Call, Ramp
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, BufferStore, DeclBuffer, Stmt
from weft.tir.transform.prim_func_pass import define_pass

INT64 = DataType("int64")


class _Flatten(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.flat: dict[int, tuple[Buffer, Buffer]] = {}

    def flattened(self, buffer: Buffer) -> Buffer:
        """The one-dimensional buffer over the same data."""
        if len(buffer.shape) == 1 and not buffer.strides and constant_offset(buffer) == 0:
            return buffer
        known = self.flat.get(id(buffer))
        if known is None:
            extent = _count(buffer)
            flat = buffer.with_(
                shape=Array([extent]),
                strides=Array(),
                elem_offset=op.const(0),
                axis_separators=Array(),
            )
            known = self.flat[id(buffer)] = (buffer, flat)
        return known[1]

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return self.flattened(buffer)

    def visit_Call(self, call: Call) -> Call:
        """A buffer that is passed to a packed function keeps its shape: it becomes an array."""
        if not any(isinstance(arg, Buffer) for arg in call.args):
            return self.visit_default(call)
        args = [arg if isinstance(arg, Buffer) else self.visit(arg) for arg in call.args]
        return call.with_(args=Array(args))

    def visit_DeclBuffer(self, decl: DeclBuffer) -> Stmt:
        return self.visit(decl.body)

    def visit_Allocate(self, alloc: Allocate) -> Stmt:
        body = self.visit(alloc.body)
        kind = _small(alloc.extents) or INT64
        extent: PrimExpr = IntImm(kind, 1)
        for size in alloc.extents:
            extent = op.multiply(extent, op.cast(kind, size))
        return alloc.with_(extents=Array([extent]), body=body)

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        """The flat range from the first to the last element of a region, if there are blocks."""
        buffer = region.buffer
        lows = [self.visit(dom.min) for dom in region.region]
        steps = [op.subtract(self.visit(dom.extent), 1) for dom in region.region]
        start = op.cast(offset_type(buffer), buffer.elem_offset)
        span = op.subtract(flat_offset(buffer, Array(steps)), start)  # offsets are linear
        analyzer = Analyzer()
        first = analyzer.simplify(flat_offset(buffer, Array(lows)))
        extent = analyzer.simplify(op.add(span, IntImm(span.dtype, 1)))
        return BufferRegion(self.flattened(buffer), [Range.from_min_extent(first, extent)])

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        offset = flat_offset(load.buffer, self.visit(load.indices))
        predicate = None if load.predicate is None else self.visit(load.predicate)
        return BufferLoad(self.flattened(load.buffer), [offset], predicate, span=load.span)

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        offset = flat_offset(store.buffer, self.visit(store.indices))
        predicate = None if store.predicate is None else self.visit(store.predicate)
        value = self.visit(store.value)
        flat = self.flattened(store.buffer)
        return BufferStore(flat, value, [offset], predicate, span=store.span)


def _small(sizes: Sequence[PrimExpr]) -> DataType | None:
    """The type of constant sizes if their product fits into it, else None."""
    count = 1
    for size in sizes:
        if not isinstance(size, IntImm) or size.dtype.bits > 32:
            return None
        count *= max(size.value, 1)
    fits = bool(sizes) and count < 1 << (sizes[0].dtype.bits - 1)
    return sizes[0].dtype if fits else None


def offset_type(buffer: Buffer) -> DataType:
    """The type of element offsets: that of a constant, small shape, else int64."""
    small = _small(buffer.shape)
    if small is None or constant_offset(buffer) != 0:
        return INT64
    reach = 0
    for size, stride in zip(buffer.shape, buffer.strides, strict=False):
        if not isinstance(stride, IntImm) or not isinstance(size, IntImm):
            return INT64
        reach += abs(stride.value) * size.value
    return small if reach < 1 << 31 else INT64


def constant_offset(buffer: Buffer) -> int | None:
    """The buffer's element offset if it is constant."""
    offset = buffer.elem_offset
    return offset.value if isinstance(offset, IntImm) else None


def _count(buffer: Buffer) -> PrimExpr:
    """The number of elements from the start of the data to the buffer's last element."""
    kind = offset_type(buffer)
    if buffer.strides and buffer.shape:
        span: PrimExpr = IntImm(kind, 1)
        for size, stride in zip(buffer.shape, buffer.strides, strict=True):
            last = op.subtract(op.cast(kind, size), IntImm(kind, 1))
            span = op.add(span, op.multiply(last, op.cast(kind, stride)))
        return op.add(span, op.cast(kind, buffer.elem_offset))
    count: PrimExpr = IntImm(kind, 1)
    for size in buffer.shape:
        count = op.multiply(count, op.cast(kind, size))
    return op.add(count, op.cast(kind, buffer.elem_offset))


def flat_offset(buffer: Buffer, indices: Array[PrimExpr]) -> PrimExpr:
    """The element offset of ``indices``; a vector index makes a vector offset."""
    kind = offset_type(buffer)
    if kind is not INT64 and any(index.dtype.bits > kind.bits for index in indices):
        kind = INT64
    offset = op.cast(kind, buffer.elem_offset)
    if not indices:
        return offset
    values = [_wide(index, kind) for index in indices]
    if buffer.strides:
        steps = [op.cast(kind, stride) for stride in buffer.strides]
        for value, step in zip(values, steps, strict=True):
            offset = _add(offset, _scale(value, step))
        return offset
    total = values[0]
    for value, extent in zip(values[1:], buffer.shape[1:], strict=True):
        total = _add(_scale(total, op.cast(kind, extent)), value)
    return _add(total, offset)


def _wide(index: PrimExpr, kind: DataType) -> PrimExpr:
    if isinstance(index, Ramp):
        return Ramp(op.cast(kind, index.base), op.cast(kind, index.stride), index.lanes)
    dtype = index.dtype
    if dtype.lanes != 1 or dtype.is_scalable:
        return op.cast(kind.with_lanes(dtype.lanes, dtype.is_scalable), index)
    return op.cast(kind, index)


def _scale(value: PrimExpr, factor: PrimExpr) -> PrimExpr:
    if isinstance(value, Ramp):
        base, stride = op.multiply(value.base, factor), op.multiply(value.stride, factor)
        return Ramp(base, stride, value.lanes)
    return op.multiply(value, factor)


def _add(lhs: PrimExpr, rhs: PrimExpr) -> PrimExpr:
    """A sum in which a ramp stays a ramp."""
    for ramp, other in ((lhs, rhs), (rhs, lhs)):
        if isinstance(ramp, Ramp) and other.dtype.lanes == 1:
            return Ramp(op.add(ramp.base, other), ramp.stride, ramp.lanes)
    return op.add(lhs, rhs)


def flatten_buffer(func: PrimFunc) -> PrimFunc:
    """The function over one-dimensional buffers; ``buffer_map`` keeps the parameters' shapes."""
    return func.with_(body=_Flatten().visit(func.body))


FlattenBuffer = define_pass("FlattenBuffer", flatten_buffer)
