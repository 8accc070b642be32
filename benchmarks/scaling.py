"""Threads of networks: ``python -m benchmarks.scaling [--only TEXT] [--threads N]``.

For each network of ``python -m benchmarks models``: the median call of weft with one thread and
with N, in processes of their own that take turns on the same N cores, and how many times as fast
the second is. Beside it stand the same for the machine's peak of multiply-adds, for its memory, and
for both in turn: what a network gains that waits for its bytes (each touched once) as long as
copying as many takes, and multiplies the rest of the time.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.limits import COPY, PEAK, bytes_of_call
from benchmarks.measure import HELPERS, WORK, pinned
from benchmarks.networks import NETWORKS
from benchmarks.options import chosen, positive, status_of
from benchmarks.rows import Row
from weft.cli.bench import rounds
from weft.cli.engine_process import Engine
from weft.runtime.threads.parallel import num_threads

TIMEOUT: Final = 600.0
MEASURED: Final = ("weft", PEAK, COPY)


def seconds_of(row: Row, threads: int, count: int) -> dict[tuple[str, int], float]:
    """Median seconds by engine and number of threads; RuntimeError where one fails.

    Of ``COPY`` they are those of the row's bytes.
    """
    with tempfile.TemporaryDirectory(prefix="weft-scaling-") as folder:
        arrays = row.arrays()
        np.savez(f"{folder}/inputs.npz", **arrays)
        told = {
            "model": row.model, "kind": "torch", "inputs": f"{folder}/inputs.npz", "shapes": {},
            "dtypes": [str(array.dtype) for array in arrays.values()], "folder": folder,
        }  # fmt: skip
        with contextlib.ExitStack() as running:
            counted = _loaded(running, WORK, 1, told)
            given = {**told, "bytes": counted.answer["bytes"]}
            engines = {
                (name, number): _loaded(running, name, number, given)
                for name in MEASURED for number in (1, threads)
            }  # fmt: skip
            rounds(list(engines.values()), count)
            found = {key: statistics.median(one.seconds) for key, one in engines.items()}
    part = given["bytes"] / bytes_of_call(given["bytes"])
    return {key: value * (part if key[0] == COPY else 1) for key, value in found.items()}


def _loaded(running: contextlib.ExitStack, name: str, threads: int, told: dict[str, Any]) -> Engine:
    """An engine with the model loaded, which stops with ``running``."""
    module = HELPERS.get(name)
    command = (sys.executable, "-m", module) if module else ()
    engine = Engine(f"{name} {threads}", Path(told["folder"]), TIMEOUT, command)
    running.callback(engine.stop)
    engine.answer = engine.ask({**told, "engine": name, "threads": threads})
    if engine.error:
        raise RuntimeError(f"{name} with {threads} threads: {engine.error}")
    return engine


def ratios(seconds: dict[tuple[str, int], float], threads: int) -> list[float]:
    """How many times as much each of ``MEASURED`` does with all threads, and the last two in turn.

    >>> times = {("weft", 1): 3.0, ("weft", 2): 2.0, ("FMA peak", 1): 1.0, ("FMA peak", 2): 1.0}
    >>> ratios(times | {("copy", 1): 1.0, ("copy", 2): 1.0}, 2)  # of 3 seconds one is memory's
    [1.5, 2.0, 1.0, 1.5]
    """
    one = seconds["weft", 1]
    peak = threads * seconds[PEAK, 1] / seconds[PEAK, threads]  # each thread does all of it
    copy = seconds[COPY, 1] / seconds[COPY, threads]
    waits = min(seconds[COPY, 1], one)
    return [one / seconds["weft", threads], peak, copy, one / (waits / copy + (one - waits) / peak)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line for each network, and the geometric mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="networks with this text in their name")
    add = parser.add_argument
    add("--threads", type=positive, default=num_threads(), help="default: all cores")
    add("--rounds", type=positive, default=9, help="turns of each (default 9)")
    options = parser.parse_args(arguments)
    found = []
    several = f"{options.threads} threads"
    print(f"{'':22}{'1 thread':>11}{several:>12}{'times':>8}{'peak':>7}{'memory':>8}{'both':>7}")
    with pinned(options.threads):
        for row in chosen(NETWORKS, options.only):
            seconds = seconds_of(row, options.threads, options.rounds)
            weft, peak, copy, both = ratios(seconds, options.threads)
            one, all_ = (seconds["weft", number] * 1e3 for number in (1, options.threads))
            print(f"{row.name:22}{one:8.3f} ms{all_:9.3f} ms"
                  f"{weft:8.2f}{peak:7.2f}{copy:8.2f}{both:7.2f}", flush=True)  # fmt: skip
            found.append(weft)
    print(f"geometric mean {statistics.geometric_mean(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
