"""Calls between the PrimFuncs of a module: the callee declares its buffers over pointers.

As in native code, the shape of an argument in the caller does not matter; the memory from the
pointer on must only be large enough for the callee's buffer. The symbols of the callee's shapes are
passed after the arguments (``implicit_symbols``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.ir.node import Node, expect
from weft.support.errors import IRValueError, RuntimeFault, UnsupportedError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.interp.state import State, Thunk
from weft.tir.stmt import BufferStore, MatchBufferRegion


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address: ``nbytes`` after the start of an array."""

    memory: np.ndarray
    nbytes: int


class Compiles(Protocol):
    """The interface of ExprCompiler, whose module imports this one."""

    def compile(self, expr: PrimExpr) -> Thunk:
        """The closure that evaluates an expression."""


def argument(compiler: Compiles, arg: PrimExpr) -> Thunk:
    """The closure that evaluates an argument of a call: to a number, or to a Pointer."""
    place = _place(arg)
    if place is None:
        return compiler.compile(arg)
    data, terms, unit = place
    steps = [(compiler.compile(a), compiler.compile(b)) for a, b in terms]

    def point(state: State) -> object:
        memory = state.memory.get(id(data))
        if memory is None:  # a raw handle is a number
            return state.values[id(data)]
        return Pointer(memory, sum([a(state) * b(state) for a, b in steps]) * unit)

    return point


def address(value: Pointer | int | None) -> int:
    """The address of a Pointer as a number; a raw handle is a number already, None is 0."""
    if isinstance(value, Pointer):
        return int(value.memory.ctypes.data) + value.nbytes
    return value or 0


_Terms = list[tuple[PrimExpr, PrimExpr]]


def _place(arg: Node) -> tuple[Var, _Terms, int] | None:
    """The data variable of an argument, its offset as a sum of products, and the bytes of a unit.

    None for an argument that is a number.
    """
    unit = op.const(1, "int64")
    if isinstance(arg, Buffer):
        return arg.data, [(op.convert(arg.elem_offset), unit)], _itemsize(arg)
    if isinstance(arg, Var) and arg.dtype.is_handle:
        return arg, [], 1
    if isinstance(arg, BufferLoad):
        return arg.buffer.data, _offset(arg.buffer, arg.indices), _itemsize(arg.buffer)
    if is_call(arg, "address_of"):
        return _place(arg.args[0])
    if is_call(arg, "tvm_access_ptr"):
        sample, data, offset = arg.args[:3]
        size = int(sample.dtype.element.numpy.itemsize * sample.dtype.lanes)
        return expect(data, Var), [(offset, unit)], size
    return None


def _offset(buffer: Buffer, indices: Sequence[PrimExpr]) -> _Terms:
    """The offset of an element as a list of products; Python adds them up without overflow."""
    terms: _Terms = [(op.convert(buffer.elem_offset), op.const(1, "int64"))]
    strides = list(buffer.strides)
    if not strides:
        step: PrimExpr = op.const(1, "int64")
        for extent in reversed(buffer.shape):
            strides.insert(0, step)
            step = step * op.cast("int64", extent)
    return [*terms, *zip(indices, strides, strict=True)]


def bind_call(func: PrimFunc, args: Sequence[object], state: State) -> None:
    """Bind a callee's parameters: scalars, symbols, and buffers over the caller's memory.

    Raises RuntimeFault if a buffer does not fit, or if a function that promises ``tir.noalias``
    gets overlapping memory and writes it.
    """
    symbols = implicit_symbols(func)
    if len(args) != len(func.params) + len(symbols):
        raise IRValueError(
            f"expected {len(func.params)} arguments and then {len(symbols)} sizes, got {len(args)}"
        )
    buffers = []
    for variable, value in zip((*func.params, *symbols), args, strict=True):
        buffer = func.buffer_map.get(variable)
        if buffer is not None:
            buffers.append((buffer, value))
        else:
            state.values[id(variable)] = value
            if isinstance(value, Pointer):
                state.memory[id(variable)] = value.memory.view(np.uint8)[value.nbytes :]
    spans = [(buffer, *_lay(buffer, pointer, state)) for buffer, pointer in buffers]
    promise = func.attrs.get("tir.noalias", False)
    if getattr(promise, "value", promise):
        _check_apart(spans, _written(func))


def _lay(buffer: Buffer, pointer: object, state: State) -> tuple[int, int]:
    """Declare a buffer over memory, and return the addresses of its begin and its end."""
    if not isinstance(pointer, Pointer):
        raise UnsupportedError(f"buffer {buffer.name}: the interpreter reads no raw handles")
    size = _itemsize(buffer)
    first, last = state.reach(buffer)
    whole = pointer.memory.view(np.uint8)
    begin, end = pointer.nbytes + first * size, pointer.nbytes + last * size
    if first == last:
        begin = end = 0
    if begin < 0 or end > whole.size:
        raise RuntimeFault(
            f"buffer {buffer.name}: reaches from byte {begin} to byte {end} of a memory of "
            f"{whole.size} bytes"
        )
    if first < 0:
        raise UnsupportedError(
            f"buffer {buffer.name}: the interpreter passes no memory before a pointer"
        )
    start = min(pointer.nbytes, whole.size) if first != last else 0
    state.memory[id(buffer.data)] = whole[start : max(end, start)].view(buffer.dtype.element.numpy)
    state.starts[id(buffer.data)] = first * size if first != last else 0
    state.declare(buffer)
    return whole.ctypes.data + begin, whole.ctypes.data + end


def _check_apart(spans: Sequence[tuple[Buffer, int, int]], written: set[int]) -> None:
    for position, (buffer, begin, end) in enumerate(spans):
        for other, first, last in spans[:position]:
            is_written = id(buffer.data) in written or id(other.data) in written
            if is_written and begin < last and first < end:
                raise RuntimeFault(
                    f"buffers {other.name} and {buffer.name} overlap, and their function promises "
                    "tir.noalias"
                )


def _written(func: PrimFunc) -> set[int]:
    """The data variables (by ``id``) that a function stores to, or passes to other functions."""
    written = {id(store.buffer.data) for store in collect(func.body, BufferStore)}
    for call in collect(func.body, Call):
        for arg in call.args:
            place = _place(arg)
            if place is not None and not isinstance(arg, BufferLoad):
                written.add(id(place[0]))
    views = collect(func.body, MatchBufferRegion)
    memory = {id(view.buffer.data): id(view.source.buffer.data) for view in views}
    for data in [*written]:
        while data in memory:
            data = memory[data]
            written.add(data)
    return written


def _itemsize(buffer: Buffer) -> int:
    return int(buffer.dtype.element.numpy.itemsize * buffer.dtype.lanes)
