"""The one native call of an inference: check the inputs, allocate the outputs, call.

``make_entry`` writes Python source as ``weft.runtime.call.wrapper`` does (and with its writer) and
adds the outputs in fresh aligned memory, the arena leased from a pool, and the table of constants.
Nothing that the call returns lives in the arena, so an arena goes back when the call ends.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from weft.runtime.call.spec import FunctionSpec
from weft.runtime.call.wrapper import WrapperWriter, native_function
from weft.runtime.containers import ShapeTuple
from weft.runtime.extent import Extent, evaluator
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

    def __init__(self, free: list[Block], users: set[int]) -> None:
        self.free, self.users = free, users
        users.add(id(self))

    def __del__(self) -> None:
        self.users.discard(id(self))
        with suppress(IndexError):  # other threads take blocks at the same time
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


class EntryWriter(WrapperWriter):
    """Writes an entry: only the inputs are arguments; outputs, handles and symbols follow."""

    def __init__(self, spec: FunctionSpec, address: int, inputs: int) -> None:
        super().__init__(FunctionSpec(spec.name, spec.params[:inputs]), address)
        self.full = spec
        self.names["native"] = native_function(spec, address)
        self.outputs: list[str] = []
        self.arrays: list[str] = []
        self.handles: list[str] = []
        self.tuples = 0
        self.layout: tuple[Result, ...] | None = None
        self.same: list[tuple[str, Extent]] = []
        self.places: dict[int, str] = {}

    def _unpack(self) -> None:
        """Arguments to inputs; tuples and shapes are opened, as the layout says."""
        if self.layout is None:
            super()._unpack()
            return
        self.names["unfit"] = _unfit
        todo: list[tuple[str, str, tuple[Result, ...]]] = [("args", "", self.layout)]
        while todo:
            source, path, layouts = todo.pop(0)
            targets = []
            for index, (kind, content) in enumerate(layouts):
                target = f"a{content}" if kind == "leaf" else f"{source}_{index}"
                targets.append(f"{target}, ")
                place = f"{path}[{index}]" if path else f"argument {index}"
                if kind == "tuple":
                    todo.append((target, place, content))
                elif kind == "leaf":
                    self.places[content] = place
                elif kind == "same":
                    self.same.append((target, content))
            self.lines += [
                f"if not isinstance({source}, (tuple, list)) or len({source}) != {len(targets)}:",
                "    raise unfit(name)",
                f"{''.join(targets)}= {source}" if targets else "pass",
            ]

    def checks(self) -> None:
        """Those of every function; also the numbers in shapes that are no new symbols."""
        super().checks()
        for index, place in self.places.items():
            param = self.spec.params[index]
            checker = self.names[f"{'R' if param.kind == 'buffer' else 'C'}{index}"]
            checker.prefix = f"{self.spec.name}: {place} ({param.name})"
        for target, extent in self.same:
            self.lines += [f"if {target} != {self._value(extent)}:", "    raise unfit(name)"]

    def value(self, extent: Extent) -> str:
        """An extent as a Python expression over the bound symbols."""
        return self._value(extent)

    def invoke(self, after: str) -> None:
        """The native call; ``after`` runs whatever happens."""
        symbols = [self._symbol(name) for name in self.full.implicit]
        passed = [*self.passed, *self.outputs, *self.handles, *symbols]
        lines = [f"code = native({', '.join(passed)})"]
        if self.full.calls_packed:
            owned = "".join(f"o{index}, " for index in range(len(self.outputs)))
            kept = [f"(q{i}, q{i} + o{i}.nbytes)" for i in range(len(self.outputs))]
            if after:
                owned, kept = f"{owned}block, ", [*kept, "(block[0], block[0] + block[1])"]
            ranges = ", ".join(text for text in (self._ranges(), *kept) if text)
            lines = [f"with holding((args, keep, {owned}), [{ranges}]):", f"    {lines[0]}"]
            after = ""  # a callback may keep a view on the arena: it is not used again
        if after:
            lines = ["try:", *[f"    {line}" for line in lines], "finally:", f"    {after}"]
        self.lines += [*lines, "if code:", "    raise pop_fault(code, name)"]


@deep_recursion
def make_entry(
    entry: NativeEntry, host: CompiledFunction, constants: Sequence[NDArray]
) -> Callable[..., object]:
    """The Python function that runs a native VM function on its inputs; it keeps the code alive."""
    used = [constants[index] for index in entry.constants]
    table = constant_table(used)
    writer = EntryWriter(entry.spec, host.address, _input_count(entry))
    writer.layout = entry.layout
    writer.checks()
    writer.names.update(
        aligned_empty=aligned_empty, arena_pool=ArenaPool(), table=ctypes.addressof(table),
        keep=(table, used, host),
    )  # fmt: skip
    for index, check in enumerate(entry.checks):
        _compare(writer, index, check)
    for name, limit in entry.limits:
        writer.names["check_limit"] = check_limit
        value = writer.value(name)
        refuse = f"check_limit(name, {name!r}, {value}, {limit})"
        writer.lines += [f"if {value} > {limit}:", f"    {refuse}"]
    for index, (dtype, shape) in enumerate(entry.outputs):
        _allocate(writer, index, dtype, shape)
    has_arena = entry.arena != 0 or entry.planned is not None
    if has_arena:
        _take_arena(writer, entry)
    if entry.constants or entry.recursive:
        writer.handles.append("table")
    if entry.recursive:
        writer.names["stack_floor"] = stack_floor
        writer.handles.append("stack_floor()")
    writer.invoke("arena_pool.give(block)" if has_arena else "")
    text, _ = _result_text(writer, entry.result)
    writer.lines.append(f"return {text}")
    return writer.build()


def _input_count(entry: NativeEntry) -> int:
    handles = (entry.arena != 0) + 2 * (entry.planned is not None)
    handles += 2 if entry.recursive else bool(entry.constants)
    return len(entry.spec.params) - len(entry.outputs) - handles


def _take_arena(writer: EntryWriter, entry: NativeEntry) -> None:
    """Working memory, and where sizes have symbols the table of what stands where in it."""
    size = str(entry.arena)
    if entry.planned is not None:
        writer.names["planner"] = make_planner(entry.planned)
        symbols = ", ".join([str(writer.value(name)) for name in entry.planned.symbols])
        writer.lines.append(f"plan = planner({symbols})")
        size = "plan.size"
    writer.lines.append(f"block = arena_pool.take({size})")
    writer.handles.append("block[0]")
    if entry.planned is not None:
        writer.handles.append("plan.address")


def make_planner(planned: PlannedSizes) -> OffsetPlanner:
    """The planner of tensors whose sizes are expressions over symbols."""
    return OffsetPlanner(evaluator(tuple(planned.sizes), tuple(planned.symbols)), planned.lives)


def _unfit(name: str) -> IRTypeError:
    """An argument has the wrong form; the virtual machine says more (VirtualMachine._callable)."""
    return IRTypeError(f"{name}: the arguments do not have the form of the parameters")


def _compare(writer: EntryWriter, index: int, check: tuple[Any, ...]) -> None:
    """A match_cast: a comparison of shapes, and where they differ the error of the bytecode."""
    kind, what, wanted, resolved, given, known = check
    writer.names["mismatch"] = mismatch
    writer.names[f"M{index}"] = (kind, wanted, what)
    actual, expected = (
        "(" + "".join([f"{writer.value(extent)}, " for extent in extents]) + ")"
        for extents in (given, resolved)
    )
    symbols = ", ".join([f"{name!r}: {writer.value(text)}" for name, text in known])
    writer.lines += [
        f"if {actual} != {expected}:",
        f"    mismatch({actual}, {{{symbols}}}, *M{index})",
    ]


def _allocate(writer: EntryWriter, index: int, dtype: str, shape: tuple[int | str, ...]) -> None:
    """Fresh memory for an output; its NDArray is made after the call."""
    parsed = DataType(dtype)
    writer.names[f"K{index}"] = storage_dtype(parsed)
    width = storage_dtype(parsed).itemsize
    extents = [writer.value(extent) for extent in shape]
    size = " * ".join([*extents, str(width)])
    if all(isinstance(extent, int) for extent in shape):
        count = width
        for extent in shape:
            count *= int(extent)
        size = str(count)
    text = "".join(f"{extent}, " for extent in extents)
    writer.lines.append(f"o{index}, q{index} = aligned_empty(({text}), K{index}, {size})")
    writer.outputs.append(f"q{index}")
    writer.names.update({"compact": compact, f"L{index}": parsed})
    writer.arrays.append(f"compact(o{index}, q{index}, ({text}), L{index})")


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
        return "ShapeTuple((" + "".join([f"{writer.value(x)}, " for x in result[1]]) + "))", 3
    if kind == "expr":
        return str(writer.value(result[1])), 1
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
