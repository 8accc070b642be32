"""Replaying the trace of a schedule: conv2d + bias + relu, thirty edits, checks as by default.

    python benchmarks/schedule.py [--repeats N] [--profile]

A trace is applied to a new schedule, as a search does for each candidate. The table has the median
of the whole replay (the processor's time: other load on the machine counts less), of traces of
other lengths (the cost should grow as their length), of each primitive, and the share spent in
``weft.arith``: the simplifier and what decides on bounds and iteration maps. ``--profile`` prints
where the rest goes.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import itertools
import pstats
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from types import FunctionType
from typing import Any

from weft import te, tir, topi
from weft.arith.analyzer import Analyzer
from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.trace import Trace

LENGTHS = (15, 30, 60)


def convolution() -> tir.PrimFunc:
    """The function that is scheduled: 3x3, 64 to 64 channels, 56 x 56, padded."""
    data = te.placeholder((1, 64, 56, 56), name="data")
    weight = te.placeholder((64, 64, 3, 3), name="weight")
    bias = te.placeholder((1, 64, 1, 1), name="bias")
    conv = topi.nn.conv2d(data, weight, 1, 1, 1)
    return te.create_prim_func([data, weight, bias, topi.nn.relu(topi.add(conv, bias))])


def tiled(sch: tir.Schedule) -> None:
    """The first fifteen edits: inline, tile, fuse, parallel."""
    pad, conv = sch.get_block("pad_temp"), sch.get_block("conv2d_nchw")
    add, relu = sch.get_block("T_add"), sch.get_block("compute")
    sch.compute_inline(add)  # 1
    _, channel, row, column, in_channel, ky, kx = sch.get_loops(conv)
    channels, lane = sch.split(channel, [None, 16])  # 2
    rows, height = sch.split(row, [None, 2])  # 3
    columns, width = sch.split(column, [None, 7])  # 4
    groups, depth = sch.split(in_channel, [None, 16])  # 5
    sch.reorder(channels, rows, columns, groups, depth, ky, kx, height, width, lane)  # 6
    sch.reverse_compute_at(relu, columns)  # 7
    outer = sch.fuse(channels, rows)  # 8
    sch.parallel(outer)  # 9
    sch.compute_at(pad, outer)  # 10
    sch.vectorize(lane)  # 11
    sch.unroll(width)  # 12
    sch.unroll(height)  # 13
    sch.annotate(outer, "pragma_auto_unroll_max_step", 16)  # 14
    sch.vectorize(sch.get_loops(pad)[-1])  # 15


def finished(sch: tir.Schedule) -> None:
    """Fifteen more: caches, packing, the kinds of their loops, the reduction taken apart."""
    conv = sch.get_block("conv2d_nchw")
    loops = sch.get_loops(conv)
    packed = sch.cache_read(conv, 1, "global")  # 16
    sch.transform_layout(packed, ("write", 0), lambda o, i, y, x: (o // 16, i, y, x, o % 16))  # 17
    outputs, *_ = sch.get_loops(packed)
    many, lane = sch.split(outputs, [None, 16])  # 18
    sch.reorder(many, *sch.get_loops(packed)[2:], lane)  # 19
    sch.parallel(many)  # 20
    sums = sch.cache_write(conv, 0, "local")  # 21
    *_, copied_lane, copied_row, copied_column = sch.get_loops(sums)
    sch.reorder(copied_row, copied_column, copied_lane)  # 22
    sch.vectorize(copied_lane)  # 23
    relu = sch.get_block("compute")
    sch.annotate(relu, "meta_schedule.layout_rewrite_preproc", 1)  # 24
    sch.unannotate(relu, "meta_schedule.layout_rewrite_preproc")  # 25
    last = sch.get_loops(relu)[-1]
    _, few = sch.split(last, [None, 7])  # 26
    sch.unroll(few)  # 27
    sch.storage_align(packed, 0, -2, 16, 0)  # 28
    sch.unannotate(packed, "buffer_dim_align")  # 29
    sch.decompose_reduction(conv, loops[3])  # 30


def refined(sch: tir.Schedule) -> None:
    """Thirty more, for the linearity: loops are split, exchanged, fused and unrolled again."""
    for name in ("pad_temp", "weight_global", "compute"):
        for _ in range(2):
            loop = sch.get_loops(sch.get_block(name))[-2]
            outer, inner = sch.split(loop, [None, 2])
            sch.unroll(inner)
            sch.annotate(outer, "pragma_unroll_explicit", 0)
            sch.unannotate(outer, "pragma_unroll_explicit")
            sch.fuse(outer, inner)


def replayed(func: tir.PrimFunc, trace: Trace) -> float:
    """Milliseconds of a replay on a new schedule."""
    sch = tir.Schedule(func, seed=1)
    start = time.process_time()
    trace.apply_to_schedule(sch)
    return (time.process_time() - start) * 1e3


def edits(trace: Trace) -> int:
    """The calls of a trace that change the program."""
    return sum(not inst.kind.is_pure for inst in trace.insts)


def first(trace: Trace, count: int) -> Trace:
    """The trace up to its edit number ``count``."""
    kept = Trace(trace.insts)
    while edits(kept) > count:
        kept.pop()
    return kept


def milliseconds_by_call(func: tir.PrimFunc, trace: Trace) -> list[float]:
    """What each call of one replay took."""
    stamps: list[float] = []

    def stamp(_: Instruction, __: list[Any], ___: list[Any], decision: Any) -> Any:
        stamps.append(time.process_time())
        return decision

    sch = tir.Schedule(func, seed=1)
    trace.apply_to_schedule(sch, decision_provider=stamp)
    stamps.append(time.process_time())
    return [(end - start) * 1e3 for start, end in itertools.pairwise(stamps)]


def by_primitive(func: tir.PrimFunc, trace: Trace, repeats: int) -> list[tuple[str, int, float]]:
    """(primitive, calls, median milliseconds of all its calls), the dearest first."""
    runs = [milliseconds_by_call(func, trace) for _ in range(repeats)]
    medians = [statistics.median(values) for values in zip(*runs, strict=True)]
    sums: dict[str, list[float]] = defaultdict(list)
    for inst, value in zip(trace.insts, medians, strict=True):
        sums[inst.kind.method].append(value)
    rows = [(name, len(values), sum(values)) for name, values in sums.items()]
    return sorted(rows, key=lambda row: -row[2])


def profiled(func: tir.PrimFunc, trace: Trace, repeats: int) -> pstats.Stats:
    """A profile of some replays."""
    profile = cProfile.Profile()
    for _ in range(repeats):
        sch = tir.Schedule(func, seed=1)
        profile.enable()
        trace.apply_to_schedule(sch)
        profile.disable()
    return pstats.Stats(profile)


class Stopwatch:
    """Counts the time of the outermost calls of the functions that it wraps."""

    def __init__(self) -> None:
        self.depth, self.seconds = 0, 0.0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            self.depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                self.depth -= 1
                if not self.depth:
                    self.seconds += time.process_time() - start

        return timed


def entries_of_arith() -> list[tuple[Any, str]]:
    """(owner, name) of the functions of ``weft.arith`` that the scheduler's modules call."""
    found: list[tuple[Any, str]] = [
        (Analyzer, name)
        for name, value in vars(Analyzer).items()
        if isinstance(value, FunctionType) and not name.startswith("_")
    ]
    for module in [m for n, m in sys.modules.items() if n.startswith("weft.tir.schedule")]:
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__.startswith("weft.arith"):
                found.append((module, name))
    return found


def share_of_arith(func: tir.PrimFunc, trace: Trace, repeats: int) -> float:
    """The part of a replay's time that is spent below calls into ``weft.arith``."""
    watch = Stopwatch()
    places = entries_of_arith()
    originals = [getattr(owner, name) for owner, name in places]
    for (owner, name), original in zip(places, originals, strict=True):
        setattr(owner, name, watch.wrap(original))
    try:
        total = sum(replayed(func, trace) for _ in range(repeats))
    finally:
        for (owner, name), original in zip(places, originals, strict=True):
            setattr(owner, name, original)
    return watch.seconds * 1e3 / total


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    func = convolution()
    sch = tir.Schedule(func, seed=1)
    for part in (tiled, finished, refined):
        part(sch)
    print("conv2d + bias + relu; medians, one thread, checks as by default")
    for count in LENGTHS:
        trace = first(sch.trace, count)
        value = statistics.median([replayed(func, trace) for _ in range(options.repeats)])
        print(
            f"{edits(trace):3} edits, {len(trace.insts):3} calls {value:8.1f} ms"
            f"{value / edits(trace):7.2f} ms an edit"
        )
    trace = first(sch.trace, 30)
    print(f"share of weft.arith (30 edits): {share_of_arith(func, trace, options.repeats):.0%}")
    for name, calls, value in by_primitive(func, trace, options.repeats):
        print(f"    {name:22} {calls:3} calls {value:8.2f} ms {value / calls:8.2f} ms a call")
    if options.profile:
        stats = profiled(func, trace, options.repeats)
        stats.sort_stats("tottime").print_stats(40)
        stats.sort_stats("cumulative").print_stats(60)


if __name__ == "__main__":
    main()
