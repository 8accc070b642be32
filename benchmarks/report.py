"""What a run found, as a table to read and as data."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import statistics
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.measure import Plan, Result, Timing
from weft.cli.engines import ENGINES
from weft.support.errors import UnsupportedError

TOLERANCE: Final = 1e-4
"""A result that is further from PyTorch's is marked (docs/status.md has the project's bound)."""
DISTRIBUTIONS: Final = {"tvm": "apache-tvm"}
"""Packages whose name in the index is another one."""


def need(package: str, purpose: str) -> Any:
    """A package that only reports need; UnsupportedError where it is not installed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise UnsupportedError(f"{purpose} needs {name}: pip install {name}") from error


class Table:
    """The rows of a run for the terminal."""

    def __init__(self, title: str, plan: Plan) -> None:
        self._plan, self._notes = plan, list[str]()
        table = need("rich.table", "the table")
        self._table = table.Table(title=title, title_justify="left")
        self._table.add_column("")
        for head in (*["limit"] * plan.limits, *plan.engines, "best peer / weft"):
            self._table.add_column(head, justify="right", no_wrap=True)

    def add(self, result: Result) -> None:
        """One more row; what failed is told below the table."""
        cells = [] if not self._plan.limits else [_time(result.limit)]
        for name, item in result.engines.items():
            cells.append(self._cell(result, name, item))
        for name, error in result.failed.items():
            self._note(f"{result.row.name}, {name}: {error}")
        ratio = result.ratio
        self._table.add_row(result.row.name, *cells, "" if ratio is None else f"{ratio:.2f}")

    def _cell(self, result: Result, name: str, item: Timing) -> str:
        if item.error:
            return f"failed {self._note(f'{result.row.name}, {name}: {item.error}')}"
        share = f" {result.limit / item.median:5.0%}" if result.limit else ""
        mark = ""
        if item.apart is not None and not item.apart <= TOLERANCE:
            told = f"{result.row.name}, {name}: differs from the reference by {item.apart:.1e}"
            mark = f" {self._note(told)}"
        return f"{_time(item.median)} ±{item.spread:3.0%}{share}{mark}"

    def _note(self, text: str) -> str:
        self._notes.append(text)
        return f"({len(self._notes)})"

    def print(self, results: Sequence[Result]) -> None:
        """The table, its notes, the means."""
        console = need("rich.console", "the table").Console()
        if not console.is_terminal:
            console.width = 400  # a file has no edge
        console.print(self._table)
        for number, text in enumerate(self._notes, 1):
            print(f"({number}) {text}")
        for line in summary(results):
            print(line)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:.3f} ms"


def summary(results: Sequence[Result]) -> list[str]:
    """Means over the rows, and the rows in which weft is behind."""
    lines = []
    peaks = [result.peak for result in results if result.peak]
    if peaks:
        lines.append(f"FMA peak {statistics.median(peaks) / 1e9:.0f} GFLOP/s (median of the rows)")
    ratios = {item.row.name: item.ratio for item in results if item.ratio is not None}
    if ratios:
        mean = statistics.geometric_mean(ratios.values())
        least = min(ratios, key=lambda name: ratios[name])
        behind = sum([ratio < 1 for ratio in ratios.values()])
        lines.append(
            f"best peer / weft: geometric mean {mean:.2f}, least {ratios[least]:.2f} ({least}), "
            f"{behind} of {len(ratios)} rows below 1"
        )
    return lines


def figures(command: str, plan: Plan, results: Sequence[Result]) -> dict[str, Any]:
    """Everything as data: times in seconds, rates in units a second."""
    return {
        "command": command, "threads": plan.threads, "rounds": plan.rounds,
        "processor": processor(), "versions": versions(plan.engines),
        "rows": [
            {
                "name": item.row.name, "flops": item.flops, "bytes": item.nbytes,
                "flops_per_second": item.peak, "bytes_per_second": item.bandwidth,
                "limit": item.limit, "ratio": item.ratio, "failed": item.failed,
                "engines": {name: timing(found, item) for name, found in item.engines.items()},
            }
            for item in results
        ],
    }  # fmt: skip


def timing(item: Timing, result: Result) -> dict[str, Any]:
    """One engine on one row as data."""
    good = not item.error
    return {
        "seconds": item.seconds, "median": item.median if good else None,
        "spread": item.spread if good else None, "setup": item.setup, "error": item.error,
        "apart": item.apart, "share": result.limit / item.median if good and result.limit else None,
        "profile": item.profile,
    }  # fmt: skip


def processor() -> str:
    """The processor's name where the system says it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def versions(engines: Sequence[str]) -> dict[str, str]:
    """The version of each engine's package."""
    found = {}
    for name in engines:
        package = ENGINES[name][1]
        try:
            found[name] = importlib.metadata.version(DISTRIBUTIONS.get(package, package))
        except importlib.metadata.PackageNotFoundError:
            found[name] = ""
    return found
