"""Which buffers are known to lie within their memory, so that their uses need no test of that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.ir.expr import IntImm
from weft.tir import expr as e
from weft.tir import stmt as s
from weft.tir.buffer import Buffer
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import has_noalias
from weft.tir.lowering.layouts import Layout, bytes_of, constant_reach, is_same, layout_of


class SoundBuffers:
    """What a walk over a function knows of buffers and of their memory at a place."""

    def __init__(self, func: PrimFunc) -> None:
        self._declared = {id(buffer) for buffer in func.buffer_map.values()}
        self._memory = {id(buffer.data): layout_of(buffer) for buffer in func.buffer_map.values()}
        self._parameters = set(self._memory)
        self._noalias = has_noalias(func)
        self._handles = {
            id(param)
            for param in func.params
            if param not in func.buffer_map and param.dtype.is_handle
        }

    def enter_memory(self, stmt: s.Allocate | s.AllocateConst) -> None:
        """Note the memory that an allocation makes."""
        if isinstance(stmt, s.AllocateConst):
            layout = Layout((IntImm("int64", stmt.data.numpy().nbytes),), (), (), 1)
        else:
            layout = Layout(tuple(stmt.extents), (), (), bytes_of(stmt.dtype))
        self._memory[id(stmt.buffer_var)] = layout

    def memory_of(self, data: e.Var) -> Layout | None:
        """The layout of the memory that a data variable points to; None where it is not known."""
        return self._memory.get(id(data))

    def is_raw(self, data: e.Var) -> bool:
        """Whether a variable is a pointer that the caller gives, to memory of unknown size."""
        return id(data) in self._handles

    def may_alias(self, data: e.Var, other: e.Var) -> bool:
        """Whether two data variables may point into the same memory."""
        if data is other:
            return True
        are_parameters = {id(data), id(other)} <= self._parameters
        return are_parameters and not self._noalias

    @contextmanager
    def declared(self, buffer: Buffer) -> Iterator[None]:
        """The body of a DeclBuffer: the view was tested before it."""
        is_new = id(buffer) not in self._declared
        self._declared.add(id(buffer))
        yield
        if is_new:
            self._declared.discard(id(buffer))

    def has(self, buffer: Buffer) -> bool:
        """Whether the buffer is known to lie within its memory at this place."""
        if id(buffer) in self._declared:
            return True
        memory = self._memory.get(id(buffer.data))
        if memory is None:
            return id(buffer.data) not in self._handles
        view = layout_of(buffer)
        ends, limits = constant_reach(view), constant_reach(memory)
        if ends is None or limits is None:
            return is_same(view, memory)
        return limits[0] <= ends[0] and ends[1] <= limits[1]
