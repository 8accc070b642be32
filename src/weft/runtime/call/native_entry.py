"""The one native call of an inference: check the inputs, allocate the outputs, call.

``make_entry`` prints the plan of a model as Python source, with the writer of
``weft.runtime.call.wrapper`` and what only models have: nested arguments, outputs in fresh aligned
memory, the arena leased from a pool, the table of constants. Nothing that the call returns lives in
the arena, so an arena goes back when the call ends.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from weft.runtime.call import arguments
from weft.runtime.call.plan import (
    Arena,
    CallPlan,
    Cast,
    Check,
    Limit,
    Open,
    Pass,
    Path,
    Same,
    plan_of_entry,
)
from weft.runtime.call.wrapper import CallWriter
from weft.runtime.containers import ShapeTuple
from weft.runtime.extent import Extent, evaluator, may_divide
from weft.runtime.memory.allocation import aligned_empty
from weft.runtime.memory.plan import OffsetPlanner
from weft.runtime.native.foreign import CompiledFunction
from weft.runtime.ndarray import NDArray, compact, storage_dtype
from weft.runtime.vm.builtins import check_limit
from weft.runtime.vm.bytecode import NativeEntry, PlannedSizes, Result
from weft.runtime.vm.host_services import mismatch
from weft.runtime.vm.patterns import as_ndarray
from weft.runtime.vm.stack import stack_floor
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.support.recursion import deep_recursion

MAX_NESTED: Final = 32


Block = tuple[int, int, np.ndarray]
"""The address and size of working memory, and the array that owns it."""


class _User:
    """Says that a thread uses a pool; it goes with the thread, and a block that was kept for it."""

    __slots__ = ("free", "users")
    taken = suppress(IndexError)
    """Of the class: as an interpreter ends, names of modules are gone before the last user is."""

    def __init__(self, free: list[Block], users: set[int]) -> None:
        self.free, self.users = free, users
        users.add(id(self))

    def __del__(self) -> None:
        self.users.discard(id(self))
        with self.taken:  # by other threads, at the same time
            while len(self.free) > len(self.users):
                self.free.pop()


class ArenaPool:
    """Working memory: one block a call at a time; blocks are kept for the next call.

    ``take`` and ``give`` are single list operations, which the interpreter makes atomic. There are
    at most as many free blocks as living threads that have called.
    """

    def __init__(self) -> None:
        self._free: list[Block] = []
        self._users: set[int] = set()
        self._here = threading.local()

    def take(self, size: int) -> Block:
        """``(address, size, owner)`` of at least ``size`` bytes on a 64-byte boundary."""
        try:
            block = self._free.pop()
        except IndexError:
            block = (0, -1, np.empty(0, np.uint8))
        if not hasattr(self._here, "user"):
            self._here.user = _User(self._free, self._users)
        if block[1] >= size:
            return block
        if size < 0:
            raise IRValueError(f"expected a size of working memory, got {size}")
        array, address = aligned_empty((size,), np.dtype("uint8"), size)
        return address, size, array

    def give(self, block: Block) -> None:
        """Return a block."""
        self._free.append(block)


def constant_table(constants: Sequence[NDArray]) -> Any:
    """An array of the addresses of constants; it must live as long as code reads it."""
    addresses = [constant._address for constant in constants]  # noqa: SLF001 - the same room
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


class EntryWriter(CallWriter):
    """Prints the plan of a model: only the inputs are arguments; outputs and memory are made here.

    In the text, output 0 is ``o0``, its address ``q0``; working memory is ``block``.
    """

    def __init__(self, plan: CallPlan, address: int) -> None:
        super().__init__(plan, address)
        self.arrays: list[str] = []
        self.tuples = 0
        self.casts = 0
        self.divisions = 0

    def check(self, step: Check) -> None:
        """The lines of one step."""
        match step:
            case Open():
                self._open(step)
            case Same():
                self.names["unfit"] = _unfit
                test = f"{_name_of(step.path)} != {self.value(step.extent)}"
                self.guarded([f"if {test}:", "    raise unfit(name)"], [step.extent])
            case Cast():
                self._cast(step)
            case Limit():
                self.names["check_limit"] = check_limit
                value = self.value(step.symbol)
                refuse = f"check_limit(name, {step.symbol!r}, {value}, {step.most})"
                self.lines += [f"if {value} > {step.most}:", f"    {refuse}"]
            case _:
                super().check(step)

    def _open(self, step: Open) -> None:
        self.names["unfit"] = _unfit
        source = _name_of(step.path)
        targets = "".join(
            [
                f"{_name_of((*step.path, place)) if item is None else f'a{item}'}, "
                for place, item in enumerate(step.items)
            ]
        )
        test = f"not isinstance({source}, (tuple, list)) or len({source}) != {len(step.items)}"
        self.lines += [
            f"if {test}:",
            "    raise unfit(name)",
            f"{targets}= {source}" if targets else "pass",
        ]

    def _cast(self, step: Cast) -> None:
        """A comparison of shapes, and where they differ the error of the bytecode."""
        message = f"M{self.casts}"
        self.casts += 1
        self.names["mismatch"] = mismatch
        self.names[message] = (step.kind, step.wanted, step.what)
        actual, expected = self.tuple_text(step.actual), self.tuple_text(step.resolved)
        symbols = ", ".join([f"{name!r}: {self.value(text)}" for name, text in step.known])
        lines = [
            f"if {actual} != {expected}:",
            f"    mismatch({actual}, {{{symbols}}}, *{message})",
        ]
        values = [value for _, value in step.known]
        self.guarded(lines, [*step.actual, *step.resolved, *values])

    def guarded(self, lines: list[str], extents: Sequence[Extent]) -> None:
        """Lines that compute extents; a division by 0 in one of these is an error of the caller."""
        if may_divide(extents):
            names = f"E{self.divisions}"
            self.divisions += 1
            self.names.update({names: tuple(extents), "division_fault": arguments.division_fault})
            known = "".join([f"{name!r}: {value}, " for name, value in self.bound.items()])
            lines = [
                "try:",
                *[f"    {line}" for line in lines],
                "except ZeroDivisionError:",
                f"    raise division_fault(name, {names}, {{{known}}}) from None",
            ]
        self.lines += lines

    def tuple_text(self, extents: Sequence[Extent]) -> str:
        """Extents as a Python tuple."""
        return "(" + "".join([f"{self.value(extent)}, " for extent in extents]) + ")"

    def allocate(self) -> None:
        """Fresh memory for the outputs, whose NDArrays are made after the call; working memory."""
        for index, output in enumerate(self.plan.outputs):
            dtype = DataType(output.dtype)
            width = storage_dtype(dtype).itemsize
            if all(isinstance(extent, int) for extent in output.shape):
                size = str(width * math.prod([int(extent) for extent in output.shape]))
            else:
                size = " * ".join([*[self.value(extent) for extent in output.shape], str(width)])
            shape = self.tuple_text(output.shape)
            self.names.update(
                {
                    f"K{index}": storage_dtype(dtype),
                    f"L{index}": dtype,
                    "compact": compact,
                    "aligned_empty": aligned_empty,
                }
            )
            line = f"o{index}, q{index} = aligned_empty({shape}, K{index}, {size})"
            self.guarded([line], output.shape)
            self.arrays.append(f"compact(o{index}, q{index}, {shape}, L{index})")
        if self.plan.arena is not None:
            self._take_arena(self.plan.arena)

    def _take_arena(self, arena: Arena) -> None:
        """Working memory, and where sizes have symbols the table of what stands where in it."""
        size = str(arena.size)
        if arena.planned is not None:
            self.names["planner"] = make_planner(arena.planned)
            symbols = ", ".join([self.value(name) for name in arena.planned.symbols])
            self.guarded([f"plan = planner({symbols})"], arena.planned.sizes)
            size = "plan.size"
        self.names["arena_pool"] = ArenaPool()
        self.lines.append(f"block = arena_pool.take({size})")

    def passed(self, item: Pass) -> str:
        """The text of one argument of the native function."""
        if item.kind == "stack":
            self.names["stack_floor"] = stack_floor
        if item.kind == "output":
            return f"q{item.index}"
        return _HANDLES.get(item.kind) or super().passed(item)

    def call(self) -> None:
        """The native call and the fault check; working memory goes back whatever happens."""
        lines = [f"code = native({', '.join([self.passed(item) for item in self.plan.passed])})"]
        after = "" if self.plan.arena is None else "arena_pool.give(block)"
        if self.plan.calls_packed:
            outputs = range(len(self.plan.outputs))
            owned = "".join([f"o{index}, " for index in outputs])
            ranges = [*self.ranges(), *[f"(q{i}, q{i} + o{i}.nbytes)" for i in outputs]]
            if self.plan.arena is not None and not self.plan.arena.loops:
                owned, ranges = f"{owned}block, ", [*ranges, "(block[0], block[0] + block[1])"]
                after = ""  # a callback may keep a view on the arena: it is not used again
            holder = f"holding((args, keep, {owned}), [{', '.join(ranges)}])"
            lines = [f"with {holder}:", f"    {lines[0]}"]
        if after:
            lines = ["try:", *[f"    {line}" for line in lines], "finally:", f"    {after}"]
        self.lines += [*lines, "if code:", "    raise pop_fault(code, name)"]
        before = len(self.lines)
        text, _ = _result_text(self, self.plan.result)
        lines = [*self.lines[before:], f"return {text}"]
        del self.lines[before:]
        self.guarded(lines, list(_extents(self.plan.result)))


_HANDLES: Final = {
    "arena": "block[0]", "offsets": "plan.address", "constants": "table", "stack": "stack_floor()",
}  # fmt: skip
"""Native arguments of a model beside tensors, by the kind of ``Pass``."""


def _name_of(path: Path) -> str:
    """The variable of a tuple among the arguments, or of a number in it: ``args_1_0``."""
    return "_".join(["args", *map(str, path)])


@deep_recursion
def make_entry(
    entry: NativeEntry, host: CompiledFunction, constants: Sequence[NDArray]
) -> Callable[..., object]:
    """The Python function that runs a native VM function on its inputs; it keeps the code alive."""
    plan = plan_of_entry(entry)
    used = [constants[index] for index in plan.constants]
    table = constant_table(used)
    writer = EntryWriter(plan, host.address)
    writer.names.update(table=ctypes.addressof(table), keep=(table, used, host))
    writer.checks()
    writer.allocate()
    writer.call()
    return writer.build()


def make_planner(planned: PlannedSizes) -> OffsetPlanner:
    """The planner of tensors whose sizes are expressions over symbols."""
    return OffsetPlanner(evaluator(tuple(planned.sizes), tuple(planned.symbols)), planned.lives)


def _unfit(name: str) -> IRTypeError:
    """An argument has the wrong form; the virtual machine says more (VirtualMachine._callable)."""
    return IRTypeError(f"{name}: the arguments do not have the form of the parameters")


def _extents(result: Result) -> Iterator[Extent]:
    """The extents that a result is computed from."""
    todo = [result]
    while todo:
        kind, content = todo.pop()
        if kind == "tuple":
            todo.extend(content)
        elif kind == "shape":
            yield from content
        elif kind == "expr":
            yield content


def _result_text(writer: EntryWriter, result: Result) -> tuple[str, int]:
    """A result as a Python expression, and how deep it is nested.

    Python nests 200 parentheses and no more: a deeper tuple is assigned to a name on the way.
    """
    kind = result[0]
    if kind == "output":
        return writer.arrays[result[1]], 1
    if kind == "input":
        writer.names["as_ndarray"] = as_ndarray
        return f"as_ndarray(a{result[1]}, name)", 1
    if kind == "shape":
        writer.names["ShapeTuple"] = ShapeTuple
        return f"ShapeTuple({writer.tuple_text(result[1])})", 3
    if kind == "expr":
        return writer.value(result[1]), 1
    texts, depth = [], 0
    for item in result[1]:
        text, below = _result_text(writer, item)
        texts.append(f"{text}, ")
        depth = max(depth, below)
    whole = f"({''.join(texts)})"
    if depth < MAX_NESTED:
        return whole, depth + 1
    writer.tuples += 1
    writer.lines.append(f"r{writer.tuples} = {whole}")
    return f"r{writer.tuples}", 0
