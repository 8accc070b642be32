"""The native time of each kernel in its place: between its neighbours, with their data in caches.

Times are medians of several runs of a ``ClockedModel``; threads are watched in others, so that it
does not cost the times anything.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.driver.recording import Recording
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import substitute
from weft.relax.vm.host import HostFunction
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.flops import flops_of
from weft.runtime.threads.parallel import num_threads, own_num_threads
from weft.runtime.threads.watched import WatchedServices
from weft.support.errors import TVMError
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.viz.clocked import RUNS, WARM, CallOfKernel, ClockedModel, Run, middle_of
from weft.viz.limits import LARGEST, copy_gbs, peak_gflops
from weft.viz.loops import accesses_of

Row = dict[str, object]


def profile_of(
    record: Recording, model: CompiledModel, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[Row | None, str]:
    """The part ``profile`` of the page; None with the reason where nothing can be measured."""
    if record.lowered is None:
        return None, "it is no model: its kernels are called from Python"
    try:
        timed = ClockedModel(record, model)
    except TVMError as error:
        return None, f"the clocked host function cannot be compiled: {error}"
    if timed.host is None:
        function = record.lowered.program.functions[model.entry]
        return None, f"it runs as bytecode: {function.why_not_native}"
    runs = timed.measure(args, kwargs)
    threads = model.num_threads or num_threads()
    symbols = symbols_of(timed.host, model, args, kwargs)
    launching = _launching(model, timed.calls)
    kernels = record.kernels()
    rows = []
    for index, call in enumerate(timed.calls):
        lengths = [run.calls[index, 1] - run.calls[index, 0] for run in runs]
        count = threads if call.kernel in launching else 1
        took = float(np.median(lengths)) / 1e3
        moved = bytes_moved(call, kernels[call.kernel], symbols)
        rows.append(call_row(timed.model, call, index, took, count, symbols, moved))
    watched = ClockedModel(record, model, WatchedServices())
    middle = middle_of(watched.measure(args, kwargs))
    return {
        "threads": threads,
        "runs": RUNS,
        "peak_gflops": round(peak_gflops(threads), 1),
        "bandwidth_gbs": round(copy_gbs(LARGEST, threads), 2),
        "calls": rows,
        "activity": activity_of([call.kernel for call in watched.calls], middle),
    }, ""


def activity_of(kernels: Sequence[str], run: Run) -> list[Row]:
    """When each thread worked at which kernel, in microseconds from the first call's begin.

    A kernel that no other thread takes part in is one row of thread 0, which calls the model. The
    numbers of other threads are in the order of their first part.

    >>> calls = np.array([[1000, 3000], [4000, 5000]])
    >>> parts = np.array([[7, 1100, 2900], [9, 1200, 2500]])
    >>> rows = activity_of(["product", "softmax"], Run(calls, parts))
    >>> [(row["thread"], row["kernel"], row["begin_us"]) for row in rows]
    [(0, 'product', 0.1), (1, 'product', 0.2), (0, 'softmax', 3.0)]
    """
    start = int(run.calls[0, 0]) if len(run.calls) else 0
    order = run.parts[np.argsort(run.parts[:, 1])]
    numbers: dict[int, int] = {}
    rows: list[Row] = []
    for kernel, (begin, end) in zip(kernels, run.calls.tolist(), strict=True):
        inside = order[(order[:, 1] >= begin) & (order[:, 2] <= end)].tolist()
        for thread, first, last in inside or [[0, begin, end]]:
            number = numbers.setdefault(thread, len(numbers)) if inside else 0
            rows.append(
                {
                    "thread": number,
                    "kernel": kernel,
                    "begin_us": (first - start) / 1e3,
                    "end_us": (last - start) / 1e3,
                }
            )
    return rows


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
    nbytes: int | None,
) -> Row:
    """A call with its shares of what the machine can do by as many threads.

    ``wasted_us`` is the time beyond what the operations would take at the peak, or a copy of
    ``nbytes``, whichever is longer.
    """
    flops = _flops(model, call, symbols)
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


def bytes_moved(call: CallOfKernel, kernel: PrimFunc, symbols: Mapping[Var, int]) -> int | None:
    """Bytes of the arguments of a call, each once, and no more of one than the kernel accesses."""
    accesses = accesses_of(kernel) or {}
    moved: dict[int, int] = {}
    for param, argument in zip(kernel.params, call.arguments, strict=False):
        if not isinstance(argument, Buffer):
            continue
        size = bytes_of(argument, symbols)
        if size is None:
            return None
        own = kernel.buffer_map.get(param)
        if own is not None and own.data in accesses:
            dtype = argument.dtype
            size = min(size, accesses[own.data] * dtype.bits * dtype.lanes // 8)
        key = id(argument.data)
        moved[key] = max(moved.get(key, 0), size)
    return sum(moved.values())


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
