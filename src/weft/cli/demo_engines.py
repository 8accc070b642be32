"""The first table of ``weft demo``: a model compiled by default, beside the engines installed here.

Each engine runs in a process of its own, as in ``weft bench``, and they take turns.
"""

from __future__ import annotations

import importlib.util
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from weft.cli import demo_cnn, demo_mlp
from weft.cli.bench import chosen, rounds
from weft.cli.engine_process import Engine
from weft.cli.engines import Request
from weft.data import fashion_mnist
from weft.runtime.threads.parallel import num_threads

PEERS: Final = ("weft", "torch eager", "torch.compile", "ONNX Runtime")
"""Engines of ``weft bench`` that the demo shows, if they are installed."""
ROUNDS: Final = 7
TIMEOUT: Final = 300.0
"""Seconds in which an engine has to be ready."""
_ERROR_WIDTH: Final = 90


class Subject(NamedTuple):
    """A model of this module (``mlp`` or ``cnn``), a batch of images and their classes."""

    name: str
    batch: np.ndarray
    labels: np.ndarray


def mlp() -> Any:
    """The perceptron in PyTorch, with its trained parameters."""
    return demo_mlp.torch_model(fashion_mnist.load_mlp_parameters())


def cnn() -> Any:
    """The assignment's network in PyTorch, with its trained parameters."""
    return demo_cnn.torch_model(fashion_mnist.load_cnn_parameters())


def show(subjects: Sequence[Subject]) -> None:
    """Time the engines on a batch of each model and print their table.

    Without PyTorch, from which all engines take the models, a line says so.
    """
    if importlib.util.find_spec("torch") is None:
        print("left out, since the models are those of PyTorch, which is not installed")
        return
    print(HEADING)
    names = [name for name in chosen((), "torch") if name in PEERS]
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as folder:
        engines: list[Engine] = []
        try:
            engines.extend(Engine(name, Path(folder), TIMEOUT) for name in names)
            for subject in subjects:
                right = _measure(engines, subject, Path(folder))
                count = len(subject.labels)
                print("\n".join(lines(subject.name.upper(), engines, right, count)), flush=True)
        finally:
            for engine in engines:
                engine.stop()


def _measure(engines: Sequence[Engine], subject: Subject, folder: Path) -> list[int]:
    """Time each engine on the batch; how many images each puts into their class."""
    request = _request(subject.name, subject.batch, folder)
    for engine in engines:
        engine.load(request)
    rounds(engines, ROUNDS)
    return [_right(engine, folder, subject.labels) for engine in engines]


def _request(model: str, batch: np.ndarray, folder: Path) -> Request:
    inputs = folder / "inputs.npz"
    np.savez(inputs, x0=batch)
    return {
        "model": f"{__name__}:{model}",
        "kind": "torch",
        "inputs": str(inputs),
        "shapes": {},
        "dtypes": ["float32"],
        "threads": num_threads(),
        "folder": str(folder),
    }


def _right(engine: Engine, folder: Path, labels: np.ndarray) -> int:
    """How many images of the batch an engine puts into their class; 0 if it failed."""
    if engine.error:
        return 0
    output = folder / f"{engine.name}.npz"
    if "error" in engine.ask({"output": str(output)}):
        return 0
    with np.load(output, allow_pickle=False) as stored:
        scores = stored[stored.files[0]]
    return int((scores.argmax(axis=1) == labels).sum())


def lines(model: str, engines: Sequence[Engine], right: Sequence[int], count: int) -> list[str]:
    """The rows of a model: time, as a multiple of weft's too, images right, seconds until ready."""
    own = next((e for e in engines if e.name == "weft" and e.seconds), None)
    rows = []
    for engine, hits in zip(engines, right, strict=True):
        head = f"{model:5} {engine.name:30}"
        if not engine.seconds:
            rows.append(f"{head}  {engine.error.strip().splitlines()[0][:_ERROR_WIDTH]}")
            continue
        median = statistics.median(engine.seconds)
        ratio = f"{median / statistics.median(own.seconds):.2f}" if own else "-"
        rows.append(f"{head}{1e3 * median:10.3f}{ratio:>9}{hits:>8} of {count}{engine.setup:9.1f}")
    return rows


HEADING: Final = (
    f"{'model':5} {'engine':30}{'ms/batch':>10}{'x weft':>9}{'right':>15}{'ready s':>9}"
)
