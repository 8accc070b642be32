"""Recording what a compilation did: modules after each pass, decisions, phases with their time.

A recording keeps references to modules, which never change, and prints nothing: whoever asks for a
text (``weft.viz``) makes it then. Kernels are not lowered for a recording either, as their code may
come from the cache; lowering is run again for the text. Schedules are made in this process alone,
as another one could not tell of its decisions; nothing else in a compilation changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.vm.lower import LoweredModule
from weft.support.events import Event, observing
from weft.support.progress import PhaseClock, watching
from weft.target.target import Target, target_meant
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule

State = tuple[tuple[GlobalVar, BaseFunc], ...]
"""The functions of a module at one moment."""


@dataclass
class PassRun:
    """A pass that ran over the graph: how deep inside of other passes, and for how long."""

    name: str
    depth: int
    before: State
    after: State = ()
    seconds: float = 0.0


@dataclass
class Attempt:
    """How a kernel got its schedule: the function before, what was tried, what came of it."""

    kernel: str
    func: PrimFunc
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Rules and programs of rules that did not fit, each with the reason."""
    fitted: list[str] = field(default_factory=list)
    """Programs of the rule that scheduled a block, in order."""
    rule: str | None = None
    schedule: Schedule | None = None


@dataclass
class CodeSource:
    """Where the code of some functions came from: the cache, or the compiler."""

    names: list[str]
    is_cached: bool
    has_key: bool


@dataclass
class Recording:
    """What a compilation did, in order."""

    target: Target
    context: PassContext
    passes: list[PassRun] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    codes: list[CodeSource] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    """Phase -> seconds in it and in no phase inside of it."""
    module: IRModule | None = None
    """The module that code was made of: a graph with scheduled kernels, or PrimFuncs alone."""
    lowered: LoweredModule | None = None
    seconds: float = 0.0

    def kernels(self) -> dict[str, PrimFunc]:
        """The PrimFuncs that code was made of, without host functions, by name."""
        functions = {} if self.module is None else self.module.functions
        return {
            var.name_hint: func for var, func in functions.items() if isinstance(func, PrimFunc)
        }


class _Observer:
    """Fills a recording."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.open: list[PassRun] = []
        self.is_lowering = False

    def __call__(self, event: Event, *details: object) -> None:
        """Note an event (``weft.support.events.Event``)."""
        getattr(self, f"_{event}")(*details)

    def _pass(self, name: str, module: IRModule) -> None:
        if self.is_lowering:
            return
        run = PassRun(name, len(self.open), tuple(module.functions.items()))
        self.recording.passes.append(run)
        self.open.append(run)

    def _passed(self, _name: str, module: IRModule, seconds: float) -> None:
        if self.is_lowering:
            return
        run = self.open.pop()
        run.seconds = seconds
        run.after = tuple(module.functions.items())

    def _kernel(self, name: str, func: PrimFunc) -> None:
        self.recording.attempts.append(Attempt(name, func))

    def _rule(self, name: str, schedule: Schedule | None) -> None:
        if not self.recording.attempts:
            return
        attempt = self.recording.attempts[-1]
        if schedule is None:
            attempt.refused.append((name, "the function is not of its form"))
        else:
            attempt.rule, attempt.schedule = name, schedule

    def _program(self, name: str, reason: object) -> None:
        if not self.recording.attempts:
            return
        attempt = self.recording.attempts[-1]
        if reason:
            attempt.refused.append((name, str(reason)))
        else:
            attempt.fitted.append(name)

    def _lowered(self, module: IRModule, lowered: LoweredModule | None) -> None:
        self.recording.module, self.recording.lowered = module, lowered
        self.is_lowering = True

    def _code(self, names: list[str], is_cached: bool, key: str | None) -> None:
        self.recording.codes.append(CodeSource(names, is_cached, key is not None))


@contextmanager
def recording(target: Target | None = None) -> Iterator[Recording]:
    """Record what this thread compiles inside of the block; the last module counts.

    >>> import weft
    >>> from weft import te
    >>> x = te.placeholder((4,), name="x")
    >>> with recording() as record:
    ...     built = weft.build(te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)]))
    >>> list(record.kernels())
    ['main']
    """
    record = Recording(target_meant(target), PassContext.current())
    clock = PhaseClock(record.phases)
    begin = time.perf_counter()
    with observing(_Observer(record)), watching(clock.watch):
        yield record
    record.seconds = time.perf_counter() - begin
