"""``weft course``: makes a folder with notebooks that teach the compiler, and their data.

There is one notebook for each of the chapters 2 to 9 of the course Machine Learning Compilation
(mlc.ai), in weft's own words and for a CPU. What is there already is kept: it may be a learner's.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Final

import numpy as np

from weft.cli.notebooks import notebook_text
from weft.data import fashion_mnist
from weft.support.errors import IRValueError
from weft.support.files import write_whole

CHAPTERS: Final = Path(fashion_mnist.__file__).parent / "course"
"""The notebooks' sources: files of Python with ``# %%`` before each cell."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    parser.add_argument("directory", type=Path, metavar="DIRECTORY", help="the folder to make")


def run(options: argparse.Namespace) -> int:
    """Make the folder, and tell what was written and what was there."""
    written, kept = make_folder(options.directory)
    print(f"{options.directory}: {len(written)} files written")
    if kept:
        print(f"kept, since they were there: {', '.join(kept)}")
    print(f"pip install jupyterlab, then jupyter lab {options.directory}; begin with chapter 2")
    return 0


def make_folder(directory: Path) -> tuple[list[str], list[str]]:
    """Write notebooks and data that are not there yet; the names of those written, of those kept.

    Raises IRValueError where the directory is a file or cannot be made.
    """
    try:
        (directory / "data").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise IRValueError(f"weft course: expected a folder to write to, got {reason}") from error
    written: list[str] = []
    kept: list[str] = []
    for name, content in _files().items():
        path = directory / name
        if path.exists():
            kept.append(name)
            continue
        write_whole(path, content, durable=False)
        written.append(name)
    return written, kept


def _files() -> dict[str, bytes]:
    """The content of each file by its name in the folder."""
    chapters = sorted(CHAPTERS.glob("chapter_*.py"))
    files = {f"{p.stem}.ipynb": notebook_text(p.read_text("utf-8")).encode() for p in chapters}
    full = fashion_mnist.find_full()
    images = fashion_mnist.load_subset() if full is None else fashion_mnist.load_full(full)
    names = np.array(fashion_mnist.CLASS_NAMES)
    test = _packed(images=images.images, labels=images.labels, class_names=names)
    perceptron = _packed(**fashion_mnist.load_mlp_parameters())
    return {**files, "data/fashion_mnist_test.npz": test, "data/perceptron.npz": perceptron}


def _packed(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()
