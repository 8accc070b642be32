"""The interpreter of bytecode (weft.runtime.vm.bytecode): one loop for all activations of a call.

A call of another bytecode function, or of a closure over one, is an activation on a list, so that
recursion takes memory and not the stack of Python; ``MAX_DEPTH`` makes endless recursion an error.
The activation of a tail call takes the place of its caller's.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from weft.runtime.profiling import Recorder
from weft.runtime.registry import get_global_func
from weft.runtime.vm.builtins import BUILTINS, operator_runner
from weft.runtime.vm.bytecode import CALLS, Instruction, VMFunction, text_of
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.frames import Frame, Prepared, detached, returned
from weft.runtime.vm.library import alloc_shape_heap
from weft.runtime.vm.patterns import bind, match
from weft.runtime.vm.stack import MAX_DEPTH
from weft.support.errors import IRTypeError, RuntimeFault, TVMError
from weft.support.public_entry import is_callers


class VMInstrumentReturnKind(enum.IntEnum):
    """What an instrument answers before a call: run it, or leave it out."""

    NO_OP = 0
    SKIP_RUN = 1


class Machine(Protocol):
    """What running bytecode asks of the virtual machine."""

    executable: Executable
    instrument: Callable[..., Any] | None
    recorder: Recorder | None

    def run(self, name: str, arguments: Sequence[object]) -> Any:
        """Call a function of the program by name."""

    def callable_of(self, name: str) -> Callable[..., Any]:
        """What runs the function of that name: natively or as bytecode."""

    def prepared(self, function: VMFunction) -> Prepared:
        """The instructions of a function of the machine, prepared once."""


class Closure:
    """A function value with captured values."""

    __slots__ = ("captured", "function", "machine")

    def __init__(self, machine: Machine, function: str, captured: tuple[object, ...]) -> None:
        self.machine, self.function, self.captured = machine, function, captured

    def __call__(self, *args: object) -> Any:
        return self.machine.run(self.function, (*args, *self.captured))


def checked_arguments(
    function: VMFunction, arguments: Sequence[object], symbols: dict[str, int]
) -> list[object]:
    """The arguments as the machine keeps them; an error where one does not fit."""
    if len(arguments) != len(function.params):
        names = ", ".join(name for name, _ in function.params)
        plural = "" if len(function.params) == 1 else "s"
        raise IRTypeError(
            f"{function.name}: expected {len(function.params)} argument{plural} ({names}), "
            f"got {len(arguments)}"
        )
    for value, (_, pattern) in zip(arguments, function.params, strict=True):
        bind(value, pattern, symbols)
    return [
        match(value, pattern, symbols, f"{function.name}: argument {position} ({name})")
        for position, (value, (name, pattern)) in enumerate(
            zip(arguments, function.params, strict=True)
        )
    ]


class Interpreted:
    """A bytecode function, bound to its machine; a value goes after its last use."""

    def __init__(self, machine: Machine, function: VMFunction) -> None:
        self.machine, self.function = machine, function
        self.prepared = machine.prepared(function)

    def activation(self, arguments: Sequence[object]) -> Frame:
        """A frame with the arguments in its first registers."""
        symbols: dict[str, int] = {}
        registers = checked_arguments(self.function, arguments, symbols)
        registers += [None] * (self.function.registers - len(registers))
        return Frame(self.prepared, registers, symbols)

    def __call__(self, *arguments: object) -> object:
        frame = self.activation(arguments)
        del arguments
        try:
            return self.run(frame)
        except RecursionError as error:
            raise self.too_deep() from error
        except Exception as error:
            if isinstance(error, TVMError | MemoryError | Warning) or is_callers(error):
                raise
            raise self.impossible(frame, error) from error

    def run(self, frame: Frame) -> object:
        """Carry out instructions until the first activation returns."""
        callers: list[Frame] = []
        while True:
            here, prepared = frame.position, frame.prepared
            instruction = prepared.code[here]
            frame.position += 1
            opcode = instruction[0]
            if opcode in CALLS:
                entered = self.call(here, instruction, frame)
                if entered is not None:
                    if opcode == "tail":
                        frame.registers.clear()
                    elif len(callers) >= MAX_DEPTH:
                        raise self.too_deep()
                    else:
                        callers.append(frame)
                    frame = entered
                    continue
            elif opcode == "ret":
                value = returned(read(prepared, here, frame), prepared.constant_ids)
                if not callers:
                    return value
                frame = callers.pop()
                here, prepared = frame.position - 1, frame.prepared
                target = prepared.code[here][1]
                if target >= 0:
                    frame.registers[target] = value
                del value
            elif opcode == "match":
                _, register, pattern, what = instruction
                value = frame.registers[register]
                frame.registers[register] = match(value, pattern, frame.symbols, what)
                del value
            elif opcode == "goto" or not BUILTINS["to_condition"](read(prepared, here, frame)):
                start, frame.position = frame.position, frame.position + instruction[-1]
                for skipped in prepared.done[start : frame.position]:
                    frame.release(skipped)
            frame.release(prepared.done[here])

    def impossible(self, frame: Frame, error: Exception) -> RuntimeFault:
        """The error of an instruction that asks for what its operands do not have."""
        shown = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        place, code = max(frame.position - 1, 0), frame.prepared.code
        text = text_of(code[place])[:200] if place < len(code) else "beyond the last"
        return RuntimeFault(
            f"{self.function.name}: the bytecode cannot be run ({shown}; the outermost activation "
            f"is at instruction {place}: {text}); the file that it is from was changed, or weft "
            "compiled it wrongly: compile the model again"
        )

    def too_deep(self) -> RuntimeFault:
        """The error of a recursion without an end."""
        watched = ", or too deep for Python, which an instrument needs"
        if self.machine.instrument is None and self.machine.recorder is None:
            watched = ""
        return RuntimeFault(
            f"{self.function.name}: calls are nested more than {MAX_DEPTH} deep{watched}; "
            "a recursion needs an end"
        )

    def call(self, here: int, instruction: Instruction, frame: Frame) -> Frame | None:
        """Carry out a call; or the frame of a callee that is bytecode as well."""
        _, target, callee, _ = instruction
        arguments, direct = read(frame.prepared, here, frame), frame.prepared.direct[here]
        machine, entered = self.machine, None
        if direct is not None and machine.instrument is None and machine.recorder is None:
            value = direct(*arguments)
        else:
            entered = self.entered(callee, arguments, frame)
            value = self.observed(callee, arguments, frame) if entered is None else None
        if entered is None:
            if target >= 0:
                frame.registers[target] = value
        return entered

    def entered(
        self, callee: tuple[str, Any], arguments: Sequence[object], frame: Frame
    ) -> Frame | None:
        """The frame for a callee that is bytecode of this machine.

        None for any other callee, and where an instrument has to see the call.
        """
        kind, name = callee
        captured: tuple[object, ...] = ()
        if kind not in ("function", "register") or self.machine.instrument is not None:
            return None
        if kind == "register":
            closure = frame.registers[name]
            if type(closure) is not Closure or closure.machine is not self.machine:
                return None
            name, captured = closure.function, closure.captured
        function = self.machine.callable_of(name)
        if not isinstance(function, Interpreted):
            return None
        return function.activation([*arguments, *captured])

    def observed(
        self, callee: tuple[str, object], arguments: Sequence[object], frame: Frame
    ) -> object:
        """Call what an instruction names, observed by the machine's instrument if there is one."""
        function, name = self.resolve(callee, frame)
        recorder = self.machine.recorder
        if recorder is not None:
            return recorder.timed(callee[0], name, function, arguments)
        instrument = self.machine.instrument
        if instrument is None:
            return function(*arguments)
        if instrument(function, name, True, None, *arguments) == VMInstrumentReturnKind.SKIP_RUN:
            return None
        result = function(*arguments)
        instrument(function, name, False, result, *arguments)
        return result

    def resolve(self, callee: tuple[str, Any], frame: Frame) -> tuple[Callable[..., Any], str]:
        """The Python callable of a callee and its name."""
        kind, name = callee
        machine = self.machine
        if kind == "kernel":
            return machine.executable.kernels[name], name
        if kind == "packed":
            kernels = machine.executable.kernels
            if kernels.imports and kernels.implements_function(name, query_imports=True):
                return kernels[name], name
            return get_global_func(name), name
        if kind == "function":
            return machine.callable_of(name), name
        if kind == "operator":
            return partial(operator_runner(name), name), name
        if kind == "register":
            value = frame.registers[name]
            if not callable(value):
                raise RuntimeFault(f"expected a function to call, got {type(value).__name__}")
            return value, "closure"
        if name == "make_closure":
            return lambda target, *captured: Closure(machine, target, captured), name
        if name == "call_tir_dyn":
            kernels = machine.executable.kernels
            return lambda kernel, *given: kernels[kernel](*given[:-1], *given[-1]), name
        if name == "detach":
            return partial(detached, constants=frame.prepared.constant_ids), name
        if name == "alloc_shape_heap":
            return alloc_shape_heap, name
        return BUILTINS[name], name


def read(prepared: Prepared, here: int, frame: Frame) -> Any:
    """What the instruction at a place reads: the operands of a call, or one value."""
    reads = prepared.reads[here]
    return None if reads is None else reads(frame)
