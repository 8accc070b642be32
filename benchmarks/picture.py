"""The same as a picture: how many times the machine's limit each engine takes, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.report import need


def draw(results: Sequence[Result], engines: Sequence[str], path: Path, title: str) -> None:
    """Write one dot for each engine and row; the form of the file follows from its name."""
    need("matplotlib", "--picture").use("agg")
    pyplot = need("matplotlib.pyplot", "--picture")
    limited = all(result.limit for result in results)
    height = 1.5 + 0.25 * len(results)
    figure, axes = pyplot.subplots(figsize=(10, height), layout="constrained")
    for number, name in enumerate(engines):
        points = [
            (result.timed[name] / ((result.limit or 1.0) if limited else 1e-3), place)
            for place, result in enumerate(results)
            if name in result.timed
        ]
        if points:
            marker = "D" if name == "weft" else "o"
            axes.plot(*zip(*points, strict=True), marker, label=name, zorder=9 - number, alpha=0.8)
    if limited:
        axes.axvline(1.0, color="grey", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("time as a multiple of the machine's limit" if limited else "milliseconds")
    axes.set_yticks(range(len(results)), [result.row.name for result in results])
    axes.invert_yaxis()
    axes.grid(axis="both", alpha=0.3)
    axes.set_title(title)
    figure.legend(loc="outside right upper")
    figure.savefig(path)
    pyplot.close(figure)
