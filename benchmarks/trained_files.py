"""Trained ONNX files of packages, as they are: weft beside ONNX Runtime.

    python -m benchmarks.trained_files [--only TEXT] [--rounds 4] [--threads 2] [--worst 10]

The packages stand in ``tests/zoo/weights.txt``, the files and their sizes in ``trained_rows.py``;
a file whose package is not installed is skipped, and said to be. weft compiles each file once,
without any option, with caches empty; axes that the file leaves open stay open. Each engine is a
process of its own; they take turns. Printed for each size: the shortest call of both in
milliseconds, ONNX Runtime / weft (above 1: weft is faster), the share of the largest magnitude by
which their first results are apart (files with products of int8 round their data in steps), and
seconds of compilation. ``--worst`` prints that many of the least ratios once more.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import weft
from benchmarks.options import chosen, positive, status_of
from benchmarks.trained_rows import FILES, TrainedFile
from benchmarks.turns import Contender, output_of, take_turns

GOAL: Final = 0.95
"""No file should be slower than ONNX Runtime divided by this."""


class Timed(NamedTuple):
    """A file at one size: both engines' shortest calls, and how far their results are apart."""

    label: str
    own: float
    peer: float
    apart: float

    @property
    def ratio(self) -> float:
        """ONNX Runtime's time as a multiple of weft's."""
        return self.peer / self.own


def installed(file: TrainedFile) -> Path | None:
    """Where the file lies, or None: its package, which is not imported, is not here."""
    spec = importlib.util.find_spec(file.path[0])
    folders = spec.submodule_search_locations if spec is not None else None
    path = Path(folders[0]).joinpath(*file.path[1:]) if folders else None
    return path if path is not None and path.exists() else None


def measure(file: TrainedFile, path: Path, options: argparse.Namespace) -> list[Timed]:
    """Compile one file, measure it at all its sizes and print a row for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        model = weft.compile(path, cache=False, num_threads=options.threads)
        seconds = time.perf_counter() - start
        model.save(folder / "model.weft")
        contenders = [
            Contender("weft", "weft", folder / "model.weft"),
            Contender("ONNX Runtime", "ONNX Runtime", path),
        ]
        rows = [_row(file, size, contenders, folder, seconds, options) for size in file.sizes]
        return [row for row in rows if row is not None]


def _row(
    file: TrainedFile, size: tuple[int, ...], contenders: list[Contender], folder: Path,
    seconds: float, options: argparse.Namespace,
) -> Timed | None:  # fmt: skip
    """Print what both engines take at one size, or what error one of them has."""
    label = f"{file.name}, {'x'.join(map(str, size))}"
    inputs = list(file.inputs(*size))
    engines = take_turns(contenders, inputs, folder, options.threads, options.rounds)
    try:
        for contender, engine in zip(contenders, engines, strict=True):
            if engine.error:
                print(f"{label:<42} {contender.label}: {engine.error[:80]}", flush=True)
                return None
        own, wanted = [output_of(engine, folder).astype("float64") for engine in engines]
    finally:
        for engine in engines:
            engine.stop()
    apart = float(np.abs(own - wanted).max() / (np.abs(wanted).max() or 1.0))
    timed = Timed(label, *[min(engine.seconds) for engine in engines], apart)
    print(_line(timed), f"{apart:>9.1e}{seconds:>10.1f}", sep="", flush=True)
    return timed


def _line(timed: Timed) -> str:
    own, peer = timed.own * 1e3, timed.peer * 1e3
    return f"{timed.label:<42}{own:>10.3f}{peer:>10.3f}{timed.ratio:>9.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="files with this text in their name")
    parser.add_argument("--rounds", type=positive, default=4)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--worst", type=positive, default=10, help="rows to repeat (default 10)")
    options = parser.parse_args()
    print(
        f"{'milliseconds':<42}{'weft':>10}{'ORT':>10}{'ORT/weft':>9}{'apart':>9}{'compile s':>10}"
    )
    timed, missing = [], []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["WEFT_CACHE_DIR"] = cache
        for file in chosen(FILES, options.only):
            path = installed(file)
            if path is None:
                missing.append(file.name)
            else:
                timed += measure(file, path, options)
    _summary(timed, missing, options.worst)


def _summary(timed: list[Timed], missing: list[str], worst: int) -> None:
    if missing:
        print(f"not installed (tests/zoo/weights.txt): {', '.join(missing)}")
    if not timed:
        return
    ratios = [item.ratio for item in timed]
    below = sum([ratio < GOAL for ratio in ratios])
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}, "
          f"below {GOAL}: {below} of {len(ratios)}")  # fmt: skip
    for item in sorted(timed, key=lambda one: one.ratio)[:worst]:
        print(_line(item))


if __name__ == "__main__":
    raise SystemExit(status_of(main))
