"""Rows measured: every engine in a process of its own, asked in turn with the machine's limits."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.limits import COPY, FLOPS, LIMITS, PEAK, bytes_of_call
from benchmarks.rows import Row
from weft.cli.bench import rounds
from weft.cli.engine_process import Engine

WORK: Final = "work"
HELPERS: Final = {WORK: "benchmarks.work", **dict.fromkeys(LIMITS, "benchmarks.limits")}
"""Processes that are no engines under comparison: name -> the module that they run."""


@dataclass
class Timing:
    """One engine on one row; ``apart`` is the largest difference as a share of the largest value.

    The difference is from PyTorch, or from the first engine that answered where it is not there.
    """

    seconds: list[float] = field(default_factory=list)
    setup: float = 0.0
    error: str = ""
    apart: float | None = None
    profile: str = ""

    @property
    def median(self) -> float:
        """Seconds of a call."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance from the lower to the upper quartile, as a share of the median."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.median


@dataclass
class Result:
    """A row, what it has to do, what the machine does at most, and every engine."""

    row: Row
    engines: dict[str, Timing]
    flops: float = 0.0
    nbytes: float = 0.0
    peak: float = 0.0
    bandwidth: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def limit(self) -> float | None:
        """The roofline: seconds that the machine needs at least; None where it is not known."""
        if not self.peak or not self.bandwidth:
            return None
        return max(self.flops / self.peak, self.nbytes / self.bandwidth) or None

    @property
    def timed(self) -> dict[str, float]:
        """Engine -> median seconds, of those that answered to the end."""
        return {name: item.median for name, item in self.engines.items() if not item.error}

    @property
    def ratio(self) -> float | None:
        """The best peer's time as a multiple of weft's; None where one of them is missing."""
        times = dict(self.timed)
        own = times.pop("weft", None)
        return min(times.values()) / own if own and times else None


@dataclass(frozen=True)
class Plan:
    """What holds for every row of a run."""

    engines: tuple[str, ...]
    threads: int
    rounds: int = 9
    timeout: float = 600.0
    limits: bool = True
    profile: bool = False
    fresh: bool = False
    """New processes for each row, so that the memory of a large model is given back."""


class Crew:
    """The processes of a run; one that failed is replaced before the next row."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self._running: dict[str, Engine] = {}

    def load(self, name: str, told: dict[str, Any]) -> Engine:
        """The engine of that name with the model loaded, or with an error."""
        if name not in self._running:
            module = HELPERS.get(name)
            command = (sys.executable, "-m", module) if module else ()
            self._running[name] = Engine(name, self.folder, self.plan.timeout, command)
        engine = self._running[name]
        engine.load(told)
        return engine

    def clear(self, *, everything: bool) -> None:
        """Stop the processes that failed, or all."""
        for name, engine in list(self._running.items()):
            if everything or engine.error:
                self._running.pop(name).stop()

    def measure(self, row: Row) -> Result:
        """One row; never an exception of an engine, which is an error in its column."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            told = self._told(row, Path(folder))
            result = Result(row, {})
            limits = self._limits(told, result) if self.plan.limits else []
            engines = [self.load(name, told) for name in self.plan.engines]
            apart = _differences(engines, Path(folder))
            rounds([*limits, *engines], self.plan.rounds)
            for engine in engines:
                result.engines[engine.name] = Timing(
                    engine.seconds, engine.setup, engine.error, apart.get(engine.name)
                )
            self._set_rates(result, limits)
            if self.plan.profile:
                _add_profiles(engines, result)
        self.clear(everything=self.plan.fresh)
        return result

    def _told(self, row: Row, folder: Path) -> dict[str, Any]:
        inputs = folder / "inputs.npz"
        arrays = row.arrays()
        np.savez(inputs, **arrays)
        return {
            "model": row.model, "kind": "torch", "inputs": str(inputs), "shapes": {},
            "dtypes": [str(array.dtype) for array in arrays.values()],
            "threads": self.plan.threads, "folder": str(folder),
        }  # fmt: skip

    def _limits(self, told: dict[str, Any], result: Result) -> list[Engine]:
        """The processes that measure the limits, for the bytes that this row moves."""
        counter = self.load(WORK, told)
        if counter.error:
            result.failed[WORK] = counter.error
            return []
        found = counter.answer
        result.flops, result.nbytes = found["flops"], found["bytes"]
        return [self.load(name, {**told, "bytes": result.nbytes}) for name in LIMITS]

    def _set_rates(self, result: Result, limits: Sequence[Engine]) -> None:
        amounts = {PEAK: FLOPS * self.plan.threads, COPY: bytes_of_call(result.nbytes)}
        rates = {}
        for engine in limits:
            if engine.error:
                result.failed[engine.name] = engine.error
            else:
                rates[engine.name] = amounts[engine.name] / statistics.median(engine.seconds)
        result.peak, result.bandwidth = rates.get(PEAK, 0.0), rates.get(COPY, 0.0)


def measure(rows: Sequence[Row], plan: Plan) -> Iterator[Result]:
    """Each row as it is done. The processes run on as many cores as they have threads."""
    with pinned(plan.threads), tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        crew = Crew(plan, Path(folder))
        try:
            for row in rows:
                yield crew.measure(row)
        finally:
            crew.clear(everything=True)


@contextlib.contextmanager
def pinned(threads: int) -> Iterator[None]:
    """The first ``threads`` cores of those that this process may use, for it and its children."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _differences(engines: Sequence[Engine], folder: Path) -> dict[str, float]:
    """How far the first result of each engine is from the reference's."""
    found: dict[str, Any] = {}
    for number, engine in enumerate(engines):
        path = folder / f"output{number}.npz"
        if not engine.error and "error" not in engine.ask({"output": str(path)}):
            with np.load(path) as stored:
                found[engine.name] = stored["arr_0"]
    if not found:
        return {}
    expected = found.get("torch eager", next(iter(found.values())))
    scale = float(np.abs(expected).max()) or 1.0
    return {
        name: float(np.abs(value - expected).max()) / scale
        if value.shape == expected.shape else float("inf")
        for name, value in found.items()
    }  # fmt: skip


def _add_profiles(engines: Sequence[Engine], result: Result) -> None:
    for engine in engines:
        if engine.name == "weft" and not engine.error:
            result.engines["weft"].profile = engine.ask({"profile": True}).get("profile", "")
