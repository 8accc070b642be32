"""What ``tune_tir`` makes of programs that no default schedule was made for.

    python benchmarks/tuned_programs.py [--trials N] [NAME ...]

For each of ``benchmarks.written_programs``: milliseconds as written, milliseconds of the fastest
schedule, their ratio, and how many trials there were; at last the geometric mean of the ratios.
Both are measured in turn, and the shortest of nine batches counts. The results of both must agree.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import weft
from benchmarks.written_programs import PROGRAMS
from weft import meta_schedule as ms
from weft.runtime.threads.parallel import num_threads
from weft.tir.function import PrimFunc

_ROUNDS: Final = 9
_BATCH: Final = 0.02
"""Seconds of the calls that are timed together."""


def main() -> None:
    """Tune the programs that the command line names, or all."""
    parser = argparse.ArgumentParser(description="tune_tir on programs as users write them")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--trials", type=int, default=64, help="of each program (default: 64)")
    options = parser.parse_args()
    print(f"{'program':<14}{'written ms':>12}{'tuned ms':>12}{'ratio':>8}{'trials':>8}")
    ratios = []
    for name in options.names or PROGRAMS:
        written, tuned, trials = times_of(PROGRAMS[name], options.trials)
        ratios.append(written / tuned)
        print(
            f"{name:<14}{written * 1e3:12.3f}{tuned * 1e3:12.3f}{ratios[-1]:8.2f}{trials:8}",
            flush=True,
        )
    print(f"{'geometric mean':<38}{statistics.geometric_mean(ratios):8.2f}")


def times_of(program: PrimFunc, trials: int) -> tuple[float, float, int]:
    """Seconds of a call as written and as tuned, and how many trials were made."""
    program = program.with_attr("global_symbol", "main")
    target = weft.target.Target(f"llvm -num-cores={num_threads()}")
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(
            program, target, folder, trials, num_trials_per_iter=16, cost_model="mlp", seed=1
        )
        schedule = ms.tir_integration.compile_tir(database, program, target)
        count = len(database)
    written = weft.build(program, target)["main"]
    tuned = written if schedule is None else weft.build(schedule.mod, target)["main"]
    arrays = random_arrays(program)
    results = [run(call, arrays) for call in (written, tuned)]
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-3)
    return *in_turn([written, tuned], arrays), count


def random_arrays(program: PrimFunc) -> list[Any]:
    """An array for each parameter: floats between 0 and 1, integers 0 or 1."""
    generator = np.random.default_rng(0)
    arrays = []
    for buffer in program.buffer_map.values():
        shape = [int(extent) for extent in buffer.shape]
        values = (
            generator.random(shape) if buffer.dtype.is_float else generator.integers(0, 2, shape)
        )
        arrays.append(weft.nd.array(values.astype(str(buffer.dtype))))
    return arrays


def run(call: Callable[..., object], arrays: Sequence[Any]) -> list[np.ndarray]:
    """All arrays after a call."""
    call(*arrays)
    return [array.numpy().copy() for array in arrays]


def in_turn(calls: Sequence[Callable[..., object]], arrays: Sequence[Any]) -> tuple[float, float]:
    """Seconds of each of two calls: the shortest of some batches, in turn."""
    batches: list[list[float]] = [[] for _ in calls]
    for _ in range(_ROUNDS):
        for call, times in zip(calls, batches, strict=True):
            times.append(batch(call, arrays))
    first, second = [min(times) for times in batches]
    return first, second


def batch(call: Callable[..., object], arrays: Sequence[Any]) -> float:
    """Seconds of a call, the mean of some."""
    begin, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - begin) < _BATCH:
        call(*arrays)
        count += 1
    return passed / count


if __name__ == "__main__":
    main()
