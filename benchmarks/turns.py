"""Engines on files, each in a process of its own, that take turns: the shortest call of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from weft.cli.engine_process import Engine
from weft.cli.engines import Request

SECONDS: Final = 0.5
"""How long an engine is timed in each turn."""
TIMEOUT: Final = 900.0


class Contender(NamedTuple):
    """What runs in one process: an engine on a file."""

    label: str
    engine: str
    file: Path


def take_turns(
    contenders: Sequence[Contender],
    inputs: Sequence[np.ndarray],
    folder: Path,
    threads: int,
    rounds: int,
) -> list[Engine]:
    """Time all of them on the same inputs; the engines have their measurements, and still run."""
    stored = folder / "inputs.npz"
    np.savez(stored, **{f"x{index}": array for index, array in enumerate(inputs)})
    engines = []
    for index, contender in enumerate(contenders):
        own = folder / f"engine{index}"
        own.mkdir(exist_ok=True)
        engine = Engine(contender.engine, own, TIMEOUT)
        dtypes = [str(array.dtype) for array in inputs]
        engine.load(_request(contender.file, stored, dtypes, threads, folder))
        engines.append(engine)
    for _ in range(rounds):
        for engine in engines:
            _time(engine)
    return engines


def _request(
    file: Path, inputs: Path, dtypes: list[str], threads: int, folder: Path
) -> Request:  # fmt: skip
    return {
        "model": str(file), "kind": file.suffix[1:], "threads": threads, "inputs": str(inputs),
        "shapes": {}, "dtypes": dtypes, "folder": str(folder),
    }  # fmt: skip


def _time(engine: Engine) -> None:
    """Time calls for a while, as many at once as take a tenth of it."""
    if engine.error:
        return
    calls, spent = 1, 0.0
    while spent < SECONDS and not engine.error:
        taken = engine.ask({"run": calls}).get("seconds", math.inf)
        engine.seconds.append(taken / calls)
        spent += taken
        calls = max(1, int(SECONDS / 10 / max(taken / calls, 1e-9)))


def output_of(engine: Engine, folder: Path) -> np.ndarray:
    """The first result of an engine's model."""
    path = folder / "output.npz"
    engine.ask({"output": str(path)})
    with np.load(path) as stored:
        result: np.ndarray = stored[stored.files[0]]
    return result
