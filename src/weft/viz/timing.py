"""The native time of each kernel in its place: between its neighbours, with their data in caches.

The host function is compiled once more with a reading of the clock before and after each call of a
kernel; kernels are those of the model, from the cache. A reading takes about 25 ns, and the times
are those of the run of median length. A kernel in a loop of the host has the time of its last
round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.driver.build import build_lowered
from weft.driver.recording import Recording
from weft.ir.expr import GlobalVar, IntImm, PrimExpr
from weft.ir.functor import Mutator, substitute
from weft.ir.module import IRModule
from weft.relax.vm.host import HostFunction
from weft.relax.vm.lower import lower_functions
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.flops import flops_of
from weft.runtime.threads.parallel import num_threads, own_num_threads
from weft.support.errors import TVMError
from weft.support.events import observing
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate, Stmt, seq
from weft.viz.limits import LARGEST, copy_gbs, peak_gflops

Row = dict[str, object]
MONOTONIC: Final = 1
"""The number of the clock, as Linux has it."""
RUNS: Final = 15
WARM: Final = 3


@dataclass(frozen=True)
class CallOfKernel:
    """A call of a kernel in the host function, in the order of the program."""

    kernel: str
    arguments: tuple[object, ...]
    """Buffers and numbers of the host."""


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


MOST_CALLS: Final = 4096


class TimedModel:
    """A model whose host function reads the clock around each call of a kernel."""

    def __init__(self, record: Recording, model: CompiledModel) -> None:
        assert record.module is not None
        self.record, self.model = record, model
        self.table = np.zeros((2 * MOST_CALLS, 2), np.int64)
        lowered = lower_functions(record.module)
        self.host: HostFunction | None = lowered.hosts.get(model.entry)
        self.calls: list[CallOfKernel] = []
        if self.host is None:
            return
        clocked = _Clocked(record.kernels(), self.table)
        func = self.host.func
        timed = func.with_(body=clocked.visit(func.body))
        self.calls = clocked.calls
        lowered.hosts[model.entry] = replace(self.host, func=timed)
        lowered.tir = IRModule({**dict(lowered.tir.functions)})
        lowered.tir[self.host.symbol] = timed
        with record.target, record.context, observing(None):
            executable = build_lowered(lowered, record.target)
        self.timed = CompiledModel(
            executable, model.signature, entry=model.entry, states=model.states,
            num_threads=model.num_threads,
        )  # fmt: skip

    def measure(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[np.ndarray]:
        """Run the model; the nanoseconds at which each call began and ended, of each run."""
        runs = []
        for turn in range(WARM + RUNS):
            self.timed(*args, **kwargs)
            if turn >= WARM:
                stamps = self.table[: 2 * len(self.calls)]
                runs.append((stamps[:, 0] * 1_000_000_000 + stamps[:, 1]).reshape(-1, 2))
        return runs


def profile_of(
    record: Recording, model: CompiledModel, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[Row | None, str]:
    """The part ``profile`` of the page; None with the reason where nothing can be measured."""
    if record.lowered is None:
        return None, "it is no model: its kernels are called from Python"
    try:
        timed = TimedModel(record, model)
    except TVMError as error:
        return None, f"the clocked host function cannot be compiled: {error}"
    if timed.host is None:
        function = record.lowered.program.functions[model.entry]
        return None, f"it runs as bytecode: {function.why_not_native}"
    runs = timed.measure(args, kwargs)
    threads = model.num_threads or num_threads()
    symbols = symbols_of(timed.host, model, args, kwargs)
    launching = _launching(model, timed.calls)
    lengths = [int(run[-1, 1] - run[0, 0]) if len(run) else 0 for run in runs]
    middle = runs[lengths.index(statistics.median_low(lengths))]
    rows = []
    for index, call in enumerate(timed.calls):
        took = float(np.median([run[index, 1] - run[index, 0] for run in runs])) / 1e3
        count = threads if call.kernel in launching else 1
        rows.append(call_row(timed.model, call, index, took, count, symbols))
    begin = int(middle[0, 0]) if len(middle) else 0
    activity = [
        {
            "thread": 0,
            "kernel": call.kernel,
            "begin_us": (int(stamps[0]) - begin) / 1e3,
            "end_us": (int(stamps[1]) - begin) / 1e3,
        }
        for call, stamps in zip(timed.calls, middle, strict=True)
    ]
    return {
        "threads": threads,
        "runs": RUNS,
        "peak_gflops": round(peak_gflops(threads), 1),
        "bandwidth_gbs": round(copy_gbs(LARGEST, threads), 2),
        "calls": rows,
        "activity": activity,
    }, ""


def _launching(model: CompiledModel, calls: Sequence[CallOfKernel]) -> set[str]:
    """The kernels that have a parallel loop in their code."""
    specs = {} if model.code is None else {spec.name: spec for spec in model.code.specs}
    names = {call.kernel for call in calls}
    return {name for name in names if name in specs and specs[name].launches}


def call_row(
    model: CompiledModel,
    call: CallOfKernel,
    index: int,
    microseconds: float,
    threads: int,
    symbols: Mapping[Var, int],
) -> Row:
    """A call with its shares of what the machine can do by as many threads.

    ``wasted_us`` is the time beyond what the operations would take at the peak, or a copy of as
    many bytes, whichever is longer. Bytes are those of the arguments, each once.
    """
    flops = _flops(model, call, symbols)
    sizes = [bytes_of(item, symbols) for item in _distinct(call.arguments)]
    known = [size for size in sizes if size is not None]
    nbytes = sum(known) if len(known) == len(sizes) else None
    seconds = max(microseconds, 1e-3) / 1e6
    gflop = None if flops is None else flops / 1e9
    compute = 0.0 if gflop is None else gflop / peak_gflops(threads)
    memory = 0.0 if nbytes is None else nbytes / 1e9 / copy_gbs(nbytes, threads)
    wasted = None if gflop is None and nbytes is None else seconds - max(compute, memory)
    return {
        "kernel": call.kernel,
        "index": index,
        "us": round(microseconds, 3),
        "gflop": gflop,
        "bytes": nbytes,
        "share_of_peak": None if gflop is None else round(compute / seconds, 4),
        "share_of_bandwidth": None if nbytes is None else round(memory / seconds, 4),
        "wasted_us": None if wasted is None else round(max(wasted, 0.0) * 1e6, 3),
        "threads": threads,
    }


def _distinct(arguments: Sequence[object]) -> list[Buffer]:
    return list({id(item.data): item for item in arguments if isinstance(item, Buffer)}.values())


def bytes_of(buffer: Buffer, symbols: Mapping[Var, int]) -> int | None:
    """The bytes of a tensor of the host for these values of symbols."""
    elements = 1
    for extent in buffer.shape:
        value = _value(extent, symbols)
        if value is None:
            return None
        elements *= value
    return elements * buffer.dtype.bits * buffer.dtype.lanes // 8


def _value(expr: PrimExpr, symbols: Mapping[Var, int]) -> int | None:
    if isinstance(expr, IntImm):
        return int(expr.value)
    known = {var: IntImm(var.dtype, value) for var, value in symbols.items()}
    value = Analyzer().simplify(substitute(expr, known))
    return int(value.value) if isinstance(value, IntImm) else None


class _Shaped(NamedTuple):
    """A tensor, for counts of operations."""

    shape: tuple[int | None, ...]


def _flops(model: CompiledModel, call: CallOfKernel, symbols: Mapping[Var, int]) -> float | None:
    """Operations of a call on arguments of these shapes."""
    arguments = [
        _Shaped(tuple([_value(extent, symbols) for extent in item.shape]))
        if isinstance(item, Buffer)
        else _value(item, symbols) if isinstance(item, PrimExpr) else None
        for item in call.arguments
    ]  # fmt: skip
    return flops_of(model.flop_counts, call.kernel, arguments)


def symbols_of(
    host: HostFunction, model: CompiledModel, args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[Var, int]:
    """The symbols of a host function for these arguments."""
    symbols: dict[Var, int] = {}
    given: Sequence[Any] = model.given_inputs(args, kwargs)
    for param, value in zip(host.func.params[: host.inputs], given, strict=False):
        buffer = host.func.buffer_map.get(param)
        shape = getattr(value, "shape", None)
        if buffer is not None and shape is not None:
            for extent, size in zip(buffer.shape, shape, strict=False):
                if isinstance(extent, Var):
                    symbols[extent] = int(size)
    return symbols


def call_seconds(
    model: CompiledModel, args: Sequence[object], kwargs: Mapping[str, object]
) -> float:
    """The median time of a call of the model as it is."""
    times = []
    with nullcontext() if model.num_threads is None else own_num_threads(model.num_threads):
        for _ in range(WARM + RUNS):
            begin = time.perf_counter()
            model(*args, **kwargs)
            times.append(time.perf_counter() - begin)
    return statistics.median(times[WARM:])
