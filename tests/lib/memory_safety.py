"""Whether compiled code stays within its memory: the check behind the memory fuzzer.

Each program of ``random_memory`` is built and called with arguments in guarded memory; a build that
is refused and a call that raises a TVMError are as good as one that returns. A changed byte around
an argument, another exception, and another result than the interpreter's are failures. What ends
the process is one too: ``run_seeds`` says which program comes before it runs it, so that ``hunt``,
which runs it in a process of its own, knows.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from unittest import mock

import numpy as np

from tests.lib.guarded_heap import watch_heap
from tests.lib.guarded_memory import GuardedMemory
from tests.lib.memory_arguments import ArgumentGenerator, CallArguments
from tests.lib.random_memory import MemoryProgram, random_memory_program
from weft.backends.cpu.backend import BACKEND
from weft.codegen.llvm import work
from weft.driver.pipeline import lower_tir
from weft.ir.expr import integer_range
from weft.ir.module import IRModule
from weft.runtime.faults import AllocationFault
from weft.runtime.native.native_library import NativeFunction, NativeLibrary
from weft.support.errors import IRTypeError, IRValueError, TVMError, UnsupportedError
from weft.target.target import Target
from weft.tir.analysis.bounds import check_bounds
from weft.tir.function import PrimFunc
from weft.tir.interp import arithmetic, scalars
from weft.tir.interp.machine import run

_CALLS: Final = 8
_SLOTS: Final = 12
_SECONDS: Final = 0.5
"""Of the processor, for the interpreter; what takes longer is not called."""
_LONG: Final = 30
"""Seconds of the processor after which a call of native code ends its process: no finding."""
_REFUSALS: Final = (IRTypeError, IRValueError, UnsupportedError, AllocationFault)
"""What native code may say of a call that the interpreter carries out: its arrays have no types of
layout, and pages that nothing touches cost it nothing."""
_TOO_LARGE: Final = "expected less than"
"""What native code says of a symbol of int32 near the end of its type, which it does not take."""
_TARGETS: Final = (
    "llvm -fast-math-contract=0 -num-cores=2 -opt-level=1",
    "llvm -fast-math-contract=0 -num-cores=2 -opt-level=0",
    "llvm -fast-math-contract=0 -num-cores=2",
    "llvm -fast-math-contract=0 -num-cores=2 -mcpu=x86-64-v3",
)  # fmt: skip


@dataclass
class Findings:
    """What a hunt came to: failures with their seeds, and how often what happened."""

    failures: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class _OutOfTimeError(BaseException):
    """The interpreter takes too long."""


class Checker:
    """Builds and calls programs; holds the memory for their arguments."""

    def __init__(self) -> None:
        self.memory = GuardedMemory(_SLOTS)
        self.heap = watch_heap()
        self.counts: Counter[str] = Counter()

    def check(self, seed: int) -> str | None:
        """What is wrong with a program; None if nothing is."""
        program = random_memory_program(seed)
        target = _TARGETS[seed % 7 % len(_TARGETS)]
        # Every other program has all its parallel loops in parallel, however small they are.
        least = (lambda stmt: 0) if seed % 2 else work.smallest_work
        try:
            with mock.patch.object(work, "smallest_work", least):
                native = _built(program.module, target)
        except TVMError:
            self.counts["refused"] += 1
            return None
        except Exception as error:  # noqa: BLE001 - any other exception is a finding
            return f"build: {type(error).__name__}: {error}"
        self.counts["built"] += 1
        arguments = ArgumentGenerator(program.module["main"], self.memory, seed)
        for _ in range(_CALLS):
            found = self.call(program, native, arguments.draw())
            if found is not None:
                return found
        return None

    def call(self, program: MemoryProgram, native: Any, given: CallArguments) -> str | None:
        """What is wrong with one call."""
        expected, fault = self.interpreted(program, given)
        if fault is not None and isinstance(fault, _OutOfTimeError):
            self.counts["long"] += 1
            return None
        if fault is not None and not isinstance(fault, TVMError):
            return f"the interpreter: {type(fault).__name__}: {fault}\n{_shown(given)}"
        result: BaseException | None = None
        with _limited(signal.SIGPROF, signal.ITIMER_PROF, _LONG, signal.SIG_DFL):
            try:
                native(*given.values)
            except TVMError as error:
                result = error
            except Exception as error:  # noqa: BLE001 - any other exception is a finding
                return f"call: {type(error).__name__}: {error}\n{_shown(given)}"
        self.counts["returned" if result is None else "raised"] += 1
        for position, place in enumerate(given.placed):
            if place is not None:
                changed = self.memory.damage(place)
                if changed:
                    return (
                        f"argument {position} of {place.last - place.first} bytes: bytes "
                        f"{changed[:6]} outside of it were written\n{_shown(given)}"
                    )
        if expected is None or fault is not None:
            return None
        return self.compared(given, expected, result)

    def compared(
        self, given: CallArguments, expected: list[Any], result: BaseException | None
    ) -> str | None:
        """The difference from what the interpreter computed."""
        if result is not None:
            refused = isinstance(result, _REFUSALS)
            if refused or _TOO_LARGE in str(result):
                return None
            return f"native code faults, the interpreter does not: {result}\n{_shown(given)}"
        self.counts["compared"] += 1
        for position, (want, have) in enumerate(zip(expected, given.values, strict=True)):
            if isinstance(want, np.ndarray):
                same = (want == have) | ((want != want) & (have != have))
                if not same.all():
                    return f"argument {position} differs from the interpreter's\n{_shown(given)}"
        return None

    def interpreted(
        self, program: MemoryProgram, given: CallArguments
    ) -> tuple[list[Any] | None, BaseException | None]:
        """Arguments after a run of the interpreter, and the fault that it ended with."""
        main = program.module["main"]
        own = [value.copy() if isinstance(value, np.ndarray) else value for value in given.values]
        try:
            limit = _limited(signal.SIGVTALRM, signal.ITIMER_VIRTUAL, _SECONDS, _raise_out_of_time)
            with limit, _counted_wraps() as wraps:
                run(main, *own, module=program.module)
        except (Exception, _OutOfTimeError) as error:  # noqa: BLE001 - a finding
            return None, error
        compares = program.is_ordered and given.is_compact and not wraps
        return own if compares else None, None


def _raise_out_of_time(*_: Any) -> None:
    raise _OutOfTimeError


def _built(module: IRModule, target: str) -> NativeFunction:
    """``main`` of a module as ``weft.build`` makes it, without asking its cache."""
    for func in module.functions.values():
        assert isinstance(func, PrimFunc)
        check_bounds(func)
    with Target(target):
        compiled = BACKEND.emit(lower_tir()(module), Target(target))
    spec = next(spec for spec in compiled.specs if spec.name == "main")
    return NativeLibrary(compiled.object_code).function(spec)


@contextmanager
def _limited(number: int, timer: int, seconds: float, handler: Any) -> Iterator[None]:
    """Send a signal to this process after so many seconds of its own time."""
    before = signal.signal(number, handler)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


@contextmanager
def _counted_wraps() -> Iterator[list[str]]:
    """The types of the sums and products that the interpreter wraps in int32 and int64: lowering
    takes arithmetic of indices not to wrap, so that the results of such programs are open.
    """
    found: list[str] = []
    finish, wrapping = arithmetic.finish, scalars.wrapping

    def noted(dtype: Any) -> Any:
        end = finish(dtype)
        if not dtype.is_int or dtype.bits < 32 or dtype.lanes != 1:
            return end
        low, high = integer_range(dtype)

        def note(value: Any) -> Any:
            if not low <= value <= high:
                found.append(str(dtype))
            return end(value)

        return note

    def noted_wrapping(dtype: Any) -> Any:
        wrap = wrapping(dtype)

        def note(value: Any) -> Any:
            if dtype.is_int and dtype.bits >= 32:
                found.append(str(dtype))
            return wrap(value)

        return note

    arithmetic.finish, scalars.wrapping = noted, noted_wrapping
    try:
        yield found
    finally:
        arithmetic.finish, scalars.wrapping = finish, wrapping


def _shown(given: CallArguments) -> str:
    """The arguments of a call in a line."""
    parts = []
    for value in given.values:
        if isinstance(value, np.ndarray):
            steps = tuple([step // value.itemsize for step in value.strides])
            parts.append(f"{value.dtype}{value.shape} strides {steps}")
        else:
            parts.append(str(value))
    return "arguments: " + "; ".join(parts)


def run_seeds(start: int, count: int) -> None:
    """Check programs; each line of output is a seed that comes, a failure, or the counts."""
    checker = Checker()
    for seed in range(start, start + count):
        _tell(f"seed {seed}")
        found = checker.check(seed)
        if found is not None:
            text = found.replace("\n", "\\n")
            _tell(f"failure {seed}: {text}")
        if seed % 10 == 0 or seed == start + count - 1:
            counts = " ".join([f"{name}={number}" for name, number in checker.counts.items()])
            _tell(f"counts {counts}")
            checker.counts.clear()


def _tell(line: str) -> None:
    """A line for ``hunt``, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def hunt(start: int, count: int, planted: str = "") -> Findings:
    """Check programs in processes of their own; one that dies is a finding, and the next goes on.

    ``planted`` is Python that runs first, to see that a fault of code generation is found.
    """
    findings = Findings()
    seed, end = start, start + count
    while seed < end:
        code = f"{planted}\nfrom tests.lib.memory_safety import run_seeds\n"
        code += f"run_seeds({seed}, {end - seed})"
        environment = {**os.environ, "WEFT_NO_CACHE": "1", "WEFT_NUM_THREADS": "2"}
        with subprocess.Popen(
            [sys.executable, "-c", code], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            seed = _follow(process, findings, seed)
    findings.counts["programs"] = count
    return findings


def _follow(process: subprocess.Popen[str], findings: Findings, seed: int) -> int:
    """Read what a process finds; the seed to go on with."""
    assert process.stdout is not None
    for line in process.stdout:
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "seed":
            seed = int(rest)
        elif kind == "failure":
            findings.failures.append("seed " + rest.replace("\\n", "\n"))
        elif kind == "counts":
            for name, number in re.findall(r"(\w+)=(\d+)", rest):
                findings.counts[name] += int(number)
    error = process.stderr.read() if process.stderr is not None else ""
    code = process.wait()
    if code == -signal.SIGPROF:
        findings.counts["long"] += 1
    elif code != 0:
        last = error.strip().splitlines()[-1:] or [""]
        findings.failures.append(f"seed {seed}: the process ended with status {code}: {last[0]}")
    return seed + 1
