"""The state of a running function: its variables, memory and buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

import numpy as np

from weft.ir.expr import GlobalVar, IntImm, PrimExpr
from weft.support.errors import RuntimeFault
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.interp.values import Value
from weft.tir.stmt import Stmt

Action = Callable[["State"], None]
"""Executes a statement."""
Thunk = Callable[["State"], Value]
"""Evaluates an expression."""


class Bound:
    """A buffer over memory: an n-dimensional numpy view with checked access."""

    __slots__ = ("array", "name", "shape")

    def __init__(self, name: str, array: np.ndarray) -> None:
        self.name, self.array, self.shape = name, array, array.shape

    def check(self, indices: Sequence[int]) -> None:
        """Raise RuntimeFault unless every index is in range."""
        for index, extent in zip(indices, self.shape, strict=True):
            if not 0 <= index < extent:
                self._refuse(indices)

    def _refuse(self, indices: Sequence[int]) -> NoReturn:
        """Raise the RuntimeFault of the first index that is out of range."""
        axis, (index, extent) = next(
            (axis, (index, extent))
            for axis, (index, extent) in enumerate(zip(indices, self.shape, strict=True))
            if not 0 <= index < extent
        )
        raise RuntimeFault(
            f"buffer {self.name}: index {index} of axis {axis} is outside [0, {extent})"
        )

    def load(self, indices: tuple[int, ...]) -> Value:
        """The element at ``indices``."""
        try:
            if len(indices) == len(self.shape) and (not indices or min(indices) >= 0):
                return self.array[indices]  # a negative one would count from the end
        except (IndexError, OverflowError):  # of an index beyond 64 bits
            pass  # ``check`` tells which
        self.check(indices)
        return self.array[indices]

    def store(self, indices: tuple[int, ...], value: object) -> None:
        """Set the element at ``indices``."""
        try:
            if len(indices) == len(self.shape) and (not indices or min(indices) >= 0):
                self.array[indices] = value
                return
        except (IndexError, OverflowError):  # of an index beyond 64 bits
            pass  # as in ``load``
        self.check(indices)
        self.array[indices] = value

    def load_lanes(self, indices: list[Value], predicate: np.ndarray | None) -> Value:
        """The elements at a vector index; 0 where the predicate is false."""
        lanes = np.asarray(indices[-1])
        result = np.zeros(len(lanes), self.array.dtype)
        for lane, index in enumerate(lanes):
            if predicate is None or predicate[lane]:
                result[lane] = self.load((*indices[:-1], int(index)))
        return result

    def store_lanes(
        self, indices: list[Value], value: np.ndarray, predicate: np.ndarray | None
    ) -> None:
        """Set the elements at a vector index where the predicate holds."""
        for lane, index in enumerate(np.asarray(indices[-1])):
            if predicate is None or predicate[lane]:
                self.store((*indices[:-1], int(index)), value[lane])


class RunningThread(Protocol):
    """The running thread of a kernel: its index, and the memory it shares with other threads."""

    index: dict[str, int]
    warp: tuple[tuple[int, ...], int]

    def memory_for(
        self, data: Var, scope: str, tags: tuple[str, ...], make: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """The memory of an allocation; the first of the threads that share it allocates it."""

    def watched(self, bound: Bound) -> Bound:
        """The buffer, with its accesses recorded if other threads can access its memory."""


class Interpreter(Protocol):
    """The methods of Machine that a running function uses."""

    def expression(self, expr: PrimExpr) -> Thunk:
        """The closure that evaluates an expression."""

    def compile(self, stmt: Stmt) -> Action:
        """The closure that executes a statement."""

    def call_global(self, var: GlobalVar, args: list[Value]) -> Value:
        """Call another PrimFunc of the module."""


class State:
    """The state of a running function: values of variables, memory by data variable, buffers."""

    def __init__(self, machine: Interpreter) -> None:
        self.machine = machine
        self.values: dict[int, Value] = {}
        self.memory: dict[int, np.ndarray] = {}
        self.starts: dict[int, int] = {}
        """Data variable (``id``) -> the first byte of its memory that it may access, if not 0."""
        self.scopes: dict[int, str] = {}
        self.buffers: dict[int, Bound] = {}
        self.thread: RunningThread | None = None

    def bound(self, buffer: Buffer) -> Bound:
        """The buffer bound to its memory; one that was not declared is bound to its data."""
        known = self.buffers.get(id(buffer))
        if known is not None:
            return known
        declared = self.declare(buffer)
        terms = (*buffer.shape, *buffer.strides, op.convert(buffer.elem_offset))
        if not all(isinstance(term, IntImm) for term in terms):
            del self.buffers[id(buffer)]  # its shape or offset changes with the variables
        return declared

    def evaluate(self, expr: PrimExpr) -> Value:
        """The present value of an expression."""
        return self.machine.expression(expr)(self)

    def declare(self, buffer: Buffer) -> Bound:
        """Bind a buffer to the memory of its data variable."""
        memory = self.memory.get(id(buffer.data))
        if memory is None:
            raise RuntimeFault(f"buffer {buffer.name} has no memory here")
        kind = buffer.dtype.element.numpy
        flat = memory if memory.dtype == kind else _seen_as(memory, kind)
        shape, strides, offset = self.layout(buffer)
        first, last = _reach(shape, strides)
        least = self.starts.get(id(buffer.data), 0)
        low = (first + offset) * flat.itemsize
        if first != last and (low < least or last + offset > flat.size):
            raise RuntimeFault(
                f"buffer {buffer.name}: shape {tuple(shape)} at offset {offset} reaches from "
                f"element {first + offset} to {last + offset - 1}, its memory has {flat.size}"
            )
        steps = [stride * flat.itemsize for stride in strides]
        try:
            view = np.lib.stride_tricks.as_strided(flat[offset:], shape, steps)
        except (ValueError, OverflowError) as error:  # an empty array with huge extents
            text = f"buffer {buffer.name}: no array has shape {tuple(shape)}"
            raise RuntimeFault(text) from error
        bound = self.bind(buffer, view)
        return bound

    def layout(self, buffer: Buffer) -> tuple[list[int], list[int], int]:
        """The present shape, strides and offset of a buffer, in elements."""
        shape = [int(self.evaluate(extent)) for extent in buffer.shape]
        if min(shape, default=1) < 0:
            raise RuntimeFault(
                f"buffer {buffer.name}: expected extents of 0 or more, got {tuple(shape)}"
            )
        strides = [int(self.evaluate(stride)) for stride in buffer.strides]
        offset = int(self.evaluate(op.convert(buffer.elem_offset)))
        return shape, strides or compact_strides(shape), offset

    def reach(self, buffer: Buffer) -> tuple[int, int]:
        """The range [first, last) of elements, relative to its data, that a buffer covers."""
        shape, strides, offset = self.layout(buffer)
        first, last = _reach(shape, strides)
        return first + offset, last + offset

    def bind(self, buffer: Buffer, view: np.ndarray) -> Bound:
        """Bind a buffer to a view; accesses to memory that threads share are recorded."""
        bound = Bound(buffer.name, view)
        if self.thread is not None:
            bound = self.thread.watched(bound)
        self.buffers[id(buffer)] = bound
        return bound

    def allocate(self, data: Var, tags: tuple[str, ...], make: Callable[[], np.ndarray]) -> None:
        """Allocate memory for a data variable; under threads, its scope says who shares it."""
        scope = str(getattr(data.type_annotation, "storage_scope", "") or "global")
        if self.thread is not None:
            self.memory[id(data)] = self.thread.memory_for(
                data, scope.partition(".")[0], tags, make
            )
            return
        self.memory[id(data)] = make()
        self.scopes[id(data)] = scope.partition(".")[0]

    def view_of_data(self, data: Var) -> np.ndarray:
        """The memory of a data variable."""
        return self.memory[id(data)]

    def call_global(self, var: GlobalVar, args: list[Value]) -> Value:
        """Call another PrimFunc of the module."""
        return self.machine.call_global(var, args)


def _reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The range [first, last) of elements that a layout covers, relative to element 0."""
    if 0 in shape:
        return 0, 0
    ways = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum([way for way in ways if way < 0]), sum([way for way in ways if way > 0]) + 1


def _seen_as(memory: np.ndarray, kind: np.dtype) -> np.ndarray:
    """The memory as elements of another type; bytes that do not fill an element are cut off."""
    data = memory.view(np.uint8)
    return data[: data.size // kind.itemsize * kind.itemsize].view(kind)


def compact_strides(shape: list[int]) -> list[int]:
    """The strides, in elements, of an array in row-major order."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]
