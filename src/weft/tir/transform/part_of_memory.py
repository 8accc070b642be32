"""Buffers that are enlarged, along their first dimension, to several parts of equal size.

Each virtual thread has a part of its own; double buffering alternates between two parts.
"""

from __future__ import annotations

from typing import TypeVar

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator
from weft.ir.node import Array
from weft.support.errors import UnsupportedError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Ramp, is_call
from weft.tir.stmt import Allocate, BufferStore

Access = TypeVar("Access", BufferLoad, BufferStore)


def flat_size(stmt: Allocate) -> PrimExpr:
    """The number of elements of an allocation."""
    size: PrimExpr = IntImm(stmt.extents[0].dtype, 1) if stmt.extents else op.const(1)
    for extent in stmt.extents:
        size = op.multiply(size, extent)
    return size


def enlarged_extents(stmt: Allocate, count: int) -> Array[PrimExpr]:
    """The extents of an allocation for ``count`` parts."""
    if not stmt.extents:
        return Array([op.const(count)])
    return Array([op.multiply(stmt.extents[0], count), *stmt.extents[1:]])


def enlarged(buffer: Buffer, count: int, who: str) -> Buffer:
    """The buffer enlarged to ``count`` parts; errors name ``who``."""
    if not buffer.shape or buffer.strides:
        raise UnsupportedError(
            f"{who}: {buffer.name} needs {count} parts, and has no dimension or has strides; run "
            "FlattenBuffer first"
        )
    first = op.multiply(buffer.shape[0], count)
    return buffer.with_(shape=Array([first, *buffer.shape[1:]]))


class PartOfMemory(Mutator):
    """Moves accesses of enlarged buffers to part number ``var``.

    ``sizes``: data variable -> elements of a part (for pointers); ``buffers``: old -> new buffer.
    """

    def __init__(
        self, var: PrimExpr, sizes: dict[int, PrimExpr], buffers: dict[int, Buffer]
    ) -> None:
        super().__init__()
        self.var, self.sizes, self.buffers = var, sizes, buffers

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer

    def moved(self, access: Access, buffer: Buffer) -> Access:
        new = self.buffers.get(id(buffer))
        if new is None:
            return access
        shift = op.multiply(op.cast(buffer.shape[0].dtype, self.var), buffer.shape[0])
        first = access.indices[0]
        if isinstance(first, Ramp):
            place: PrimExpr = Ramp(op.add(first.base, shift), first.stride, first.lanes)
        else:
            place = op.add(first, shift)
        return access.with_(buffer=new, indices=Array([place, *access.indices[1:]]))

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        return self.moved(self.visit_default(load), load.buffer)

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        return self.moved(self.visit_default(store), store.buffer)

    def visit_Call(self, call: Call) -> PrimExpr:
        new = self.visit_default(call)
        size = self.sizes.get(id(call.args[1])) if is_call(call, "tvm_access_ptr") else None
        if size is None:
            return new
        shift = op.multiply(self.var, size)
        args = [*new.args[:2], op.add(new.args[2], shift), *new.args[3:]]
        return new.with_(args=Array(args))
