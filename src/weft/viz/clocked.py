"""A model whose host function reads the clock around each call of a kernel.

The host function is compiled once more; kernels are those of the model, from the cache. A reading
takes about 25 ns. A kernel in a loop of the host has the time of its last round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from weft.driver.build import build_lowered
from weft.driver.recording import Recording
from weft.ir.expr import GlobalVar, IntImm
from weft.ir.functor import Mutator
from weft.relax.vm.host import HostFunction
from weft.relax.vm.lower import lower_functions
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.threads.watched import WatchedServices
from weft.support.events import observing
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.expr import Call
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate, Stmt, seq

MONOTONIC: Final = 1
"""The number of the clock, as Linux has it."""
RUNS: Final = 15
WARM: Final = 3
MOST_CALLS: Final = 4096


@dataclass(frozen=True)
class CallOfKernel:
    """A call of a kernel in the host function, in the order of the program."""

    kernel: str
    arguments: tuple[object, ...]
    """Buffers and numbers of the host."""


class Run(NamedTuple):
    """A run: nanoseconds of begin and end of each call, and (thread, begin, end) of each part."""

    calls: np.ndarray
    parts: np.ndarray


class _Clocked(Mutator):
    """Surrounds each call of a kernel with readings of the clock into a table."""

    def __init__(self, kernels: Mapping[str, PrimFunc], table: np.ndarray) -> None:
        super().__init__()
        self.kernels, self.table = kernels, table
        self.calls: list[CallOfKernel] = []

    def visit_Evaluate(self, stmt: Evaluate) -> Stmt:
        """A call of a kernel; other statements stay."""
        call = stmt.value
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return stmt
        if call.op.name_hint not in self.kernels or len(self.calls) == len(self.table) // 2:
            return stmt
        at = 2 * len(self.calls)
        self.calls.append(CallOfKernel(call.op.name_hint, tuple(call.args)))
        return seq(self._reading(at), stmt, self._reading(at + 1))

    def _reading(self, at: int) -> Stmt:
        address = self.table.ctypes.data + at * self.table.itemsize * 2
        place = IntImm("int64", address)
        return Evaluate(op.call_extern("int32", "clock_gettime", MONOTONIC, place))


class ClockedModel:
    """A model of which each call of a kernel is timed; ``host`` is None if it runs as bytecode.

    ``services`` note which threads work, too.
    """

    def __init__(
        self, record: Recording, model: CompiledModel, services: WatchedServices | None = None
    ) -> None:
        assert record.module is not None
        self.services = services
        self.table = np.zeros((2 * MOST_CALLS, 2), np.int64)
        lowered = lower_functions(record.module)
        self.host: HostFunction | None = lowered.hosts.get(model.entry)
        self.calls: list[CallOfKernel] = []
        if self.host is None:
            return
        clocked = _Clocked(record.kernels(), self.table)
        func = self.host.func.with_(body=deep_recursion(clocked.visit)(self.host.func.body))
        self.calls = clocked.calls
        lowered.hosts[model.entry] = replace(self.host, func=func)
        lowered.tir[self.host.symbol] = func
        watched = nullcontext() if services is None else services.watched()
        with record.target, record.context, observing(None), watched:
            executable = build_lowered(lowered, record.target)
        self.model = CompiledModel(
            executable, model.signature, entry=model.entry, states=model.states,
            num_threads=model.num_threads,
        )  # fmt: skip

    def measure(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[Run]:
        """Run the model some times, after some runs to warm up."""
        runs = []
        for turn in range(WARM + RUNS):
            if self.services is not None:
                self.services.clear()
            self.model(*args, **kwargs)
            if turn >= WARM:
                stamps = self.table[: 2 * len(self.calls)]
                calls = (stamps[:, 0] * 1_000_000_000 + stamps[:, 1]).reshape(-1, 2)
                none = np.zeros((0, 3), np.int64)
                runs.append(Run(calls, none if self.services is None else self.services.parts()))
        return runs


def middle_of(runs: Sequence[Run]) -> Run:
    """The run of median length."""
    lengths = [int(run.calls[-1, 1] - run.calls[0, 0]) if len(run.calls) else 0 for run in runs]
    return runs[lengths.index(sorted(lengths)[(len(lengths) - 1) // 2])]
