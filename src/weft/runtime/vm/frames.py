"""Frames of bytecode, and how instructions read them: prepared once for each function.

An instruction in a loop is carried out thousands of times. So what it reads (a register, a
constant, an integer expression over symbols) is a function of the frame, chosen when the function
is first called, and what a call of a kernel or a builtin runs is looked up then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

from weft.runtime.containers import ShapeTuple
from weft.runtime.extent import evaluate
from weft.runtime.module import Module
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.builtins import BUILTINS
from weft.runtime.vm.bytecode import CALLS, Instruction, Operand, VMFunction, last_uses
from weft.support.recursion import deep_recursion


class Frame:
    """One activation of a bytecode function."""

    __slots__ = ("position", "prepared", "registers", "symbols")

    def __init__(
        self, prepared: Prepared, registers: list[object], symbols: dict[str, int]
    ) -> None:
        self.prepared, self.position = prepared, 0
        self.registers, self.symbols = registers, symbols

    def release(self, registers: tuple[int, ...]) -> None:
        """Forget values that are needed no more."""
        for register in registers:
            self.registers[register] = None


Getter = Callable[[Frame], Any]
"""Reads a value from a frame."""


class Prepared:
    """A function's instructions, as the interpreter of one machine carries them out.

    Attributes:
        code: the instructions.
        done: for each, the registers whose values are not needed after it.
        reads: for each, what reads its operands (a list for a call, one value for ``if`` and
            ``ret``); None where it has none.
        direct: for each, what a call of a kernel or of a builtin runs; None for other calls.
        constant_ids: the ``id`` of each constant of the program.
    """

    def __init__(
        self,
        function: VMFunction,
        constants: Sequence[object],
        kernels: Module,
    ) -> None:
        self.code, self.done = function.code, last_uses(function.code)
        self.constant_ids = frozenset([id(item) for item in constants])
        self.reads = [_reads(instruction, constants) for instruction in function.code]
        self.direct = [self._direct(instruction, kernels) for instruction in function.code]

    def _direct(self, instruction: Instruction, kernels: Module) -> Callable[..., object] | None:
        if instruction[0] not in CALLS:
            return None
        kind, name = instruction[2]
        if kind == "builtin" and name == "detach":
            return partial(detached, constants=self.constant_ids)
        if kind == "builtin":
            return BUILTINS.get(name)
        return _kernel(kernels, name) if kind == "kernel" else None


def _kernel(kernels: Module, name: str) -> Callable[..., object] | None:
    """A kernel; None where there is none, which a call of it says."""
    try:
        return kernels[name]
    except (KeyError, AttributeError):
        return None


def _reads(instruction: Instruction, constants: Sequence[object]) -> Getter | None:
    opcode = instruction[0]
    if opcode in CALLS:
        return _all_of(instruction[3], constants)
    return getter_of(instruction[1], constants) if opcode in ("if", "ret") else None


def _all_of(operands: Sequence[Operand], constants: Sequence[object]) -> Getter:
    """What reads all operands of a call, as a sequence."""
    kinds = {operand[0] for operand in operands}
    if kinds == {"reg"} and len(operands) > 1:
        pick = itemgetter(*[register for _, register in operands])
        return lambda frame: pick(frame.registers)
    getters = [getter_of(operand, constants) for operand in operands]
    return lambda frame: [getter(frame) for getter in getters]


def getter_of(operand: Operand, constants: Sequence[object]) -> Getter:
    """What reads an operand."""
    kind, content = operand
    if kind == "reg":
        return lambda frame: frame.registers[content]
    if kind == "const":
        return lambda frame: constants[content]
    if kind == "expr":
        return lambda frame: evaluate(content, frame.symbols)
    if kind == "shape":
        return _shape_of(content)
    if kind == "tuple":
        getters = [getter_of(item, constants) for item in content]
        return lambda frame: tuple([getter(frame) for getter in getters])
    return lambda frame: content


def _shape_of(extents: Sequence[int | str]) -> Getter:
    numbers = [extent for extent in extents if isinstance(extent, int)]
    if len(numbers) == len(extents):
        shape = ShapeTuple(numbers)
        return lambda frame: shape
    return lambda frame: ShapeTuple([evaluate(extent, frame.symbols) for extent in extents])


def detached(value: object, constants: frozenset[int]) -> object:
    """A value with copies of the constants in it, into which its owner may write.

    ``constants`` are their ``id``.
    """
    if type(value) is tuple:  # a ShapeTuple holds no tensors
        return tuple([detached(item, constants) for item in value])
    if isinstance(value, NDArray) and id(value) in constants:
        return BUILTINS["copy"](value)
    return value


_detached_nested: Final = deep_recursion(detached)


def returned(result: object, constants: frozenset[int]) -> object:
    """The value of a return; constants in it are copied, for the caller may write into it."""
    nested = isinstance(result, tuple) and any(isinstance(item, tuple) for item in result)
    return (_detached_nested if nested else detached)(result, constants)
